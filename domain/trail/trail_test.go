package trail_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

var id = operation.ID{1, 2, 3, 15: 4}

func sale(buffer []byte) trail.Leaf {
	l := trail.NewLeaf(buffer, trail.Decided, id)
	l.BeginRow("sales")
	l.Int("customer_no", 1001)
	l.Text("imkb_code", "AFA")
	l.Text("refusal", "")
	l.Bytes("digest", []byte{1, 255})
	l.Time("received_at", time.Date(2026, 11, 21, 12, 0, 0, 1000, time.FixedZone("", 3*60*60)))
	l.Time("settled_at", time.Time{})
	l.EndRow()
	l.BeginRow("postings")
	l.Int("quantity", -5)
	l.EndRow()
	return l
}

// The hashes are stored. If this test fails, the encoding has changed: every
// stored leaf would look forged. Add a new Format instead, and keep this one.
func TestTheHashOfALeafNeverChanges(t *testing.T) {
	t.Parallel()
	l := sale(nil)
	hash := l.Hash()
	require.Equal(t, "2aa18c804f3895acee5e9a0af1fb74fdc52d11b948f7e8f8d20a9e34b58ef08b", hex.EncodeToString(hash[:]))
	again := sale(make([]byte, 0, 10))
	require.Equal(t, l.Content(), again.Content(), "the buffer does not matter")
}

func TestALeafIsReadBack(t *testing.T) {
	t.Parallel()
	l := sale(nil)
	d, err := trail.Decode(l.Content())
	require.NoError(t, err)
	require.Equal(t, trail.Decoded{Kind: "decided", ID: id, Rows: []trail.Row{
		{Table: "sales", Fields: []trail.Field{
			{Column: "customer_no", Value: "1001"}, {Column: "imkb_code", Value: "AFA"},
			{Column: "digest", Value: "01ff"}, {Column: "received_at", Value: "2026-11-21T09:00:00.000001Z"},
		}},
		{Table: "postings", Fields: []trail.Field{{Column: "quantity", Value: "-5"}}},
	}}, d)
}

func TestATimeIsInItsLayout(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		at := time.UnixMicro(rapid.Int64Range(-62_167_219_200_000_000, 400_000_000_000_000_000).Draw(r, "microseconds"))
		l := trail.NewLeaf(nil, trail.Act, id)
		l.BeginRow("audits")
		l.Time("at", at)
		l.EndRow()
		d, err := trail.Decode(l.Content())
		require.NoError(r, err)
		if !at.IsZero() {
			require.Equal(r, at.UTC().Format("2006-01-02T15:04:05.000000Z"), d.Rows[0].Fields[0].Value)
		}
	})
}

func TestWhatIsNoLeafIsRefused(t *testing.T) {
	t.Parallel()
	l := sale(nil)
	for i := range len(l.Content()) {
		if d, err := trail.Decode(l.Content()[:i]); err == nil {
			require.Less(t, len(d.Rows), 2, "cut at %d", i)
		}
	}
	_, err := trail.Decode(nil)
	require.ErrorIs(t, err, trail.ErrFormat)
	_, err = trail.Decode([]byte(strings.Repeat("\xff", 20)))
	require.ErrorIs(t, err, trail.ErrFormat)
}

func entries(t *rapid.T) []trail.Entry {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) trail.Entry {
		fill := func(name string, b []byte) { copy(b, rapid.SliceOfN(rapid.Byte(), len(b), len(b)).Draw(t, name)) }
		e := trail.Entry{Kind: trail.Kind(rapid.IntRange(1, 5).Draw(t, "kind"))}
		fill("id", e.ID[:])
		fill("leaf", e.Leaf[:])
		if e.Kind == trail.Notified {
			fill("digest", e.Digest[:])
		}
		return e
	}), 1, 9).Draw(t, "entries")
}

func TestEntriesAreReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := entries(t)
		encoded := trail.AppendEntries(nil, want)
		got, err := trail.ParseEntries(encoded)
		require.NoError(t, err)
		require.Equal(t, want, got)
		_, err = trail.ParseEntries(encoded[:len(encoded)-1])
		require.ErrorIs(t, err, trail.ErrFormat)
	})
	_, err := trail.ParseEntries([]byte{9})
	require.ErrorIs(t, err, trail.ErrFormat)
}

func TestARecordHasTheRootOfItsBatch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := trail.Batch{ID: id, Entries: entries(t)}
		root, leaves, err := trail.ParseRecord(b.Record())
		require.NoError(t, err)
		require.Equal(t, b.Root(), root)
		require.Equal(t, int64(len(b.Entries)), leaves)
		b.Entries[len(b.Entries)-1].Leaf[0] ^= 1
		require.NotEqual(t, root, b.Root())
	})
	_, _, err := trail.ParseRecord([]byte("short"))
	require.ErrorIs(t, err, trail.ErrFormat)
}

func TestASealIsOfTheWholeBatch(t *testing.T) {
	t.Parallel()
	keys, others := trail.NewKeys([]byte("secret")), trail.NewKeys([]byte("other secret"))
	rapid.Check(t, func(t *rapid.T) {
		b := trail.Batch{ID: id, Entries: entries(t)}
		encoded := trail.AppendEntries(nil, b.Entries)
		seal := keys.Seal(b.Record(), encoded)
		require.True(t, keys.IsSealed(b.Record(), encoded, seal))
		require.True(t, keys.IsSealed(b.Record(), encoded, keys.Seal(b.Record(), nil)), "an earlier version made it")
		require.False(t, others.IsSealed(b.Record(), encoded, seal))
		encoded[rapid.IntRange(0, len(encoded)-1).Draw(t, "changed byte")] ^= 1
		require.False(t, keys.IsSealed(b.Record(), encoded, seal))
	})
}
