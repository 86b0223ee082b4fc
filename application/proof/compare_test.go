package proof_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	compare "bankingapi/application/proof"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
	"bankingapi/domain/push"
)

// report is what a comparison has reported.
type report struct {
	flaw compare.Flaw
	name string
}

// comparison returns a comparison and what it reports.
func comparison() (*compare.Comparison, *[]report) {
	reported := new([]report)
	add := func(flaw compare.Flaw, name string) { *reported = append(*reported, report{flaw, name}) }
	return compare.NewComparison(proof.NewKeys([]byte("secret")), push.NewIdentifier([]byte("key")), add), reported
}

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// idAt returns an ID of version 7 with this time.
func idAt(at time.Time, n byte) operation.ID {
	ms := at.UnixMilli()
	return operation.ID{byte(ms >> 40), byte(ms >> 32), byte(ms >> 24), byte(ms >> 16), byte(ms >> 8), byte(ms), 0x70, 15: n}
}

func price(id int64, leaf byte) proof.Entry {
	return proof.Entry{Kind: proof.Price, ID: proof.PriceID(id), Leaf: proof.Hash{leaf}}
}

func act(at time.Time, leaf byte) proof.Entry {
	return proof.Entry{Kind: proof.Act, ID: idAt(at, leaf), Leaf: proof.Hash{leaf}}
}

// logged passes a batch of these entries.
func logged(c *compare.Comparison, position int64, at time.Time, p proof.Provenance, entries ...proof.Entry) {
	batch := proof.Batch{ID: idAt(at, byte(position)), Entries: entries}
	c.Batch(&batch, compare.Place{Position: position, Batch: batch.ID}, &p)
}

func end(c *compare.Comparison) { c.End(func(operation.ID) string { return "" }) }

// Batches come in the order of their IDs, which is not that of the log: replicas have clocks of
// their own.
func TestTheNewestLeafOfTheLogCounts(t *testing.T) {
	t.Parallel()
	for name, positions := range map[string][2]int64{"in order": {0, 1}, "in another order": {1, 0}, "not sealed": {0, compare.Open}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newest := byte(positions[0]) + 1
			if positions[1] > positions[0] {
				newest = byte(positions[1]) + 1
			}
			c, reported := comparison()
			logged(c, positions[0], noon, proof.Provenance{}, price(1, byte(positions[0])+1))
			logged(c, positions[1], noon.Add(time.Second), proof.Provenance{}, price(1, byte(positions[1])+1))
			c.Row(price(1, newest), "price 1")
			end(c)
			require.Empty(t, *reported)

			c, reported = comparison()
			logged(c, positions[0], noon, proof.Provenance{}, price(1, byte(positions[0])+1))
			logged(c, positions[1], noon.Add(time.Second), proof.Provenance{}, price(1, byte(positions[1])+1))
			c.Row(price(1, 9), "price 1")
			end(c)
			require.Equal(t, []report{{compare.Changed, "price 1"}}, *reported)
		})
	}
}

func TestWhatIsStoredHasItsLeaf(t *testing.T) {
	t.Parallel()
	one := act(noon, 1)
	name := "act " + one.ID.String()
	changed := one
	changed.Leaf = proof.Hash{2}
	for reason, c := range map[string]struct {
		stored, leaves []proof.Entry
		want           []report
	}{
		"both":         {[]proof.Entry{one}, []proof.Entry{one}, nil},
		"changed":      {[]proof.Entry{changed}, []proof.Entry{one}, []report{{compare.Changed, name}}},
		"no leaf":      {[]proof.Entry{one}, nil, []report{{compare.Added, name}}},
		"not stored":   {nil, []proof.Entry{one}, []report{{compare.Removed, name}}},
		"stored twice": {[]proof.Entry{one, one}, nil, []report{{compare.Added, name}, {compare.Added, name}}},
		"two leaves":   {nil, []proof.Entry{one, one}, []report{{compare.Removed, name}, {compare.Removed, name}}},
		"an empty calendar": {
			[]proof.Entry{calendar()}, nil, nil,
		},
		"a calendar that is empty again": {
			nil, []proof.Entry{{Kind: proof.Calendar, Leaf: proof.Hash{1}}, calendar()}, nil,
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			judge, reported := comparison()
			for _, e := range c.stored {
				judge.Row(e, name)
			}
			for i, e := range c.leaves {
				logged(judge, int64(i), noon.Add(time.Duration(i)*time.Second), proof.Provenance{}, e)
			}
			end(judge)
			require.Equal(t, c.want, *reported)
		})
	}
}

func calendar() proof.Entry {
	leaf := proof.OfCalendar(nil)
	return leaf.Entry()
}

// A leaf belongs to the time of what it is about. Only the beginning of the log, and a person who
// gives a reason, may write it later.
func TestALeafThatCameLate(t *testing.T) {
	t.Parallel()
	begun := noon.Add(48 * time.Hour)
	later := begun.Add(25 * time.Hour)
	for name, c := range map[string]struct {
		batch      time.Time
		provenance proof.Provenance
		isLate     bool
	}{
		"at its time":                   {noon, proof.Provenance{IsAdopted: true}, false},
		"when the log began":            {begun.Add(time.Hour), proof.Provenance{IsAdopted: true}, false},
		"long after the beginning":      {later, proof.Provenance{IsAdopted: true}, true},
		"by a person":                   {later, proof.Provenance{IsAdopted: true, ByAct: true}, false},
		"by a service that answered it": {later, proof.Provenance{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judge, reported := comparison()
			logged(judge, 0, begun, proof.Provenance{IsAdopted: true}, act(begun, 9))
			judge.Row(act(begun, 9), "the first act")
			logged(judge, 1, c.batch, c.provenance, act(noon, 1))
			judge.Row(act(noon, 1), "act")
			end(judge)
			if c.isLate {
				require.Equal(t, []report{{compare.Late, "act " + idAt(noon, 1).String()}}, *reported)
				return
			}
			require.Empty(t, *reported)
		})
	}
}

// A message is stored once. The other requests that had it name it in their entry.
func TestAMessageThatAnotherRequestStored(t *testing.T) {
	t.Parallel()
	keys := proof.NewKeys([]byte("secret"))
	identity := push.Identity{1}
	repeat := proof.Stored{Operation: operation.AddPushNotificationResponse, State: operation.Completed, Identities: []push.Identity{identity}}
	repeat.ID = idAt(noon, 2)
	for name, c := range map[string]struct {
		stored map[push.Identity]compare.Stored
		placed compare.Place // of the entry of the operation that stored it
		want   []report
	}{
		"it is stored":  {map[push.Identity]compare.Stored{identity: {Operation: idAt(noon.Add(-time.Hour), 1)}}, compare.Place{}, nil},
		"it is nowhere": {nil, compare.Place{}, []report{{compare.Removed, "notification " + repeat.ID.String() + "/0"}}},
		"it is stored long after": {
			map[push.Identity]compare.Stored{identity: {Operation: idAt(noon.Add(25*time.Hour), 3), Index: 4}},
			compare.Place{Position: 7, Batch: idAt(noon.Add(25*time.Hour), 7)},
			[]report{{compare.Added, "notification " + idAt(noon.Add(25*time.Hour), 3).String() + "/4"}},
		},
		"a clock was ahead": {
			map[push.Identity]compare.Stored{identity: {Operation: idAt(noon.Add(25*time.Hour), 3), Index: 4}},
			compare.Place{Position: 0, Batch: idAt(noon.Add(25*time.Hour), 7)}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judge, reported := comparison()
			judge.Operation(&repeat, false)
			logged(judge, 1, noon, proof.Provenance{}, proof.Of(keys, &repeat)...)
			require.Equal(t, []push.Identity{identity}, judge.Elsewhere())
			judge.Found(c.stored)
			require.NoError(t, judge.Suspects(func(operation.ID) (compare.Place, error) { return c.placed, nil }))
			end(judge)
			require.Equal(t, c.want, *reported)
		})
	}
}

// What matches hides nothing that comes after it, and an operation is reported once.
func TestEveryFlawIsReportedOnce(t *testing.T) {
	t.Parallel()
	c, reported := comparison()
	sale := idAt(noon, 1)
	logged(c, 0, noon, proof.Provenance{}, price(1, 1), act(noon, 2),
		proof.Entry{Kind: proof.Sale, ID: sale, Leaf: proof.Hash{3}}, proof.Entry{Kind: proof.End, ID: sale, Leaf: proof.Hash{4}})
	c.Row(price(1, 1), "price 1")
	c.Row(proof.Entry{Kind: proof.End, ID: sale, Leaf: proof.Hash{5}}, "operation "+sale.String())
	end(c)
	require.Equal(t, []report{{compare.Removed, "operation " + sale.String()}, {compare.Removed, "act " + act(noon, 2).ID.String()}}, *reported)
}

// A push has the identities of its messages in their order. What is stored at another place, or
// with another identity, was changed behind the service's back.
func TestTheMessagesOfAPush(t *testing.T) {
	t.Parallel()
	keys := proof.NewKeys([]byte("secret"))
	identifier := push.NewIdentifier([]byte("key"))
	message := func(index int, subject string) push.Entry {
		m := push.Entry{Index: index, Values: push.Values{Subject: subject}}
		m.ID = idAt(noon, 1)
		m.Identity = identifier.Of("", &m.Values)
		return m
	}
	name := func(index string) string { return "notification " + idAt(noon, 1).String() + "/" + index }
	first := message(0, "a")
	second := message(1, "b")
	otherText := second
	otherText.Values.Subject = "c"
	for reason, c := range map[string]struct {
		messages []push.Entry
		want     []report
	}{
		"as they came":             {[]push.Entry{first, second}, nil},
		"the texts are others":     {[]push.Entry{first, otherText}, []report{{compare.OtherTexts, name("1")}}},
		"another message":          {[]push.Entry{first, message(1, "c")}, []report{{compare.Changed, name("1")}}},
		"a place after the last":   {[]push.Entry{first, second, message(2, "c")}, []report{{compare.Added, name("2")}}},
		"a place before the first": {[]push.Entry{message(-1, "c"), first, second}, []report{{compare.Added, name("-1")}}},
		"one place twice":          {[]push.Entry{first, second, second}, []report{{compare.Added, name("1")}}},
		"one is missing":           {[]push.Entry{first}, []report{{compare.Removed, name("1")}}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			sent := proof.Stored{Operation: operation.AddPushNotificationResponse, State: operation.Completed, Identities: []push.Identity{first.Identity, second.Identity}}
			sent.ID = idAt(noon, 1)
			judge, reported := comparison()
			logged(judge, 1, noon, proof.Provenance{}, proof.Of(keys, &sent)...)
			sent.Identities = nil // a storage has none
			sent.Messages = c.messages
			judge.Operation(&sent, false)
			judge.Elsewhere()
			judge.Found(nil)
			end(judge)
			require.Equal(t, c.want, *reported)
		})
	}
}

func TestAPlaceThatCannotBeReadEndsTheComparison(t *testing.T) {
	t.Parallel()
	identity := push.Identity{1}
	repeat := proof.Stored{Operation: operation.AddPushNotificationResponse, State: operation.Completed, Identities: []push.Identity{identity}}
	repeat.ID = idAt(noon, 2)
	suspects := func(stored time.Time) error {
		judge, _ := comparison()
		logged(judge, 1, noon, proof.Provenance{}, proof.Of(proof.NewKeys([]byte("secret")), &repeat)...)
		judge.Operation(&repeat, false)
		judge.Found(map[push.Identity]compare.Stored{identity: {Operation: idAt(stored, 3)}})
		return judge.Suspects(func(operation.ID) (compare.Place, error) { return compare.Place{}, io.ErrUnexpectedEOF })
	}
	require.ErrorIs(t, suspects(noon.Add(24*time.Hour+time.Millisecond)), io.ErrUnexpectedEOF)
	require.NoError(t, suspects(noon.Add(24*time.Hour)), "as long as an import may take")
}
