package proof_test

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

var (
	id   = operation.ID{1, 2, 3, 15: 4}
	keys = proof.NewKeys([]byte("secret"))
	at   = time.Date(2026, 11, 21, 9, 0, 0, 1000, time.UTC)
)

func lira(minor int64) money.Amount {
	c, _ := money.ParseCurrency("TRY")
	return money.New(minor, c)
}

func onDay(text string) day.Day {
	d, err := day.Parse(text)
	if err != nil {
		panic(err)
	}
	return d
}

func fingerprintOf(text string) idempotency.Fingerprint {
	var d idempotency.Digest
	d.Text(text)
	return d.Sum()
}

func envelope() operation.Envelope {
	return operation.Envelope{ID: id, Subscription: "mobile", ReceivedAt: at, Header: operation.Header{
		AppKey: "app", Channel: "ŞUBE", TellerName: "Ayşe", CallerID: "c-1", ChannelSessionID: "session", ChannelRequestID: "r", RequestID: "x",
	}}
}

// completed is a sale that was carried out at once.
func completed() *proof.Stored {
	account := fund.AccountKey{CustomerNo: 1002, BranchCode: 0, AccountSuffix: 3, Currency: lira(0).Currency()}
	return &proof.Stored{
		Envelope: envelope(), Operation: operation.BuyFundFromCustomer, Fingerprint: fingerprintOf("content"),
		State: operation.Completed, EndedAt: at.Add(time.Second),
		Sales: []fund.SaleEntry{{
			Envelope: envelope(), Index: 0, State: operation.Completed, PriceID: 8, PerUnit: 125_000_000, Proceeds: lira(1250), SettledAt: at.Add(time.Second),
			Terms: fund.Terms{
				Holding: fund.HoldingKey{CustomerNo: 1001, Fund: fund.Fund{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy"}},
				Units:   10_500_000, Account: account, PriceID: 7, ControlTotal: 1250,
			},
		}},
	}
}

// recorded is a sale for a later day that waits.
func recorded() *proof.Stored {
	o := completed()
	o.State, o.DueOn, o.EndedAt = operation.Recorded, onDay("2026-12-01"), time.Time{}
	s := &o.Sales[0]
	s.State, s.PriceID, s.PerUnit, s.Proceeds, s.SettledAt = operation.Recorded, 0, 0, money.Amount{}, time.Time{}
	s.Terms.SelectedDay = o.DueOn
	return o
}

func settled() *proof.Stored {
	o := completed()
	o.DueOn, o.Sales[0].Terms.SelectedDay = onDay("2026-12-01"), onDay("2026-12-01")
	o.EndNumber = 3
	return o
}

func cancelled() *proof.Stored {
	o := recorded()
	o.State, o.EndedAt, o.EndNumber = operation.Failed, at.Add(time.Hour), 4
	o.Faults = operation.UnderParameter(0, []fault.Fault{fund.Refusal(fault.Cancelled)})
	o.Sales[0].State, o.Sales[0].Refusal, o.Sales[0].SettledAt = operation.Failed, fault.Cancelled, o.EndedAt
	return o
}

func refused() *proof.Stored {
	o := completed()
	o.State, o.EndedAt = operation.Failed, time.Time{}
	o.Faults = operation.UnderParameter(0, []fault.Fault{fund.RefusalNaming(fault.PriceNotCurrent, "9")})
	s := &o.Sales[0]
	s.State, s.Refusal, s.PriceID, s.PerUnit, s.Proceeds = operation.Failed, fault.PriceNotCurrent, 0, 0, money.Amount{}
	return o
}

func reversed() *proof.Stored {
	o := settled()
	o.Reversal = &fund.Reversal{OperationID: id, ID: operation.ID{9}, At: at.Add(2 * time.Hour)}
	o.ReversalNumber = 5
	return o
}

func pushed() *proof.Stored {
	return &proof.Stored{
		Envelope: envelope(), Operation: operation.AddPushNotificationResponse, Fingerprint: fingerprintOf("push"), State: operation.Completed,
		Identities: []push.Identity{{1}, {2}},
	}
}

func act() *audit.Act {
	return &audit.Act{
		ID: id, At: at, Who: audit.Who{Actor: "ayse", SystemUser: "root", Origin: "host", Reason: "a typo"},
		Action: "adjust.holding", Object: "holding", Details: "by 1",
	}
}

func adjustment() *fund.PostingEntry {
	h := fund.HoldingKey{CustomerNo: 1001, Fund: fund.Fund{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy"}}
	return &fund.PostingEntry{Posting: fund.UnitPosting(fund.AdjustmentPosting, id, 1, h, 5), PostedAt: at}
}

func credit() *fund.PostingEntry {
	a := fund.AccountKey{CustomerNo: 1002, BranchCode: 1, AccountSuffix: 3, Currency: lira(0).Currency()}
	return &fund.PostingEntry{Posting: fund.MoneyPosting(fund.OpeningPosting, id, 2, a, -7), PostedAt: at}
}

func erasedMessage() *push.Entry {
	return &push.Entry{Envelope: operation.Envelope{ID: id}, Index: 1, Identity: push.Identity{5}, Values: push.Values{ExternalApplicationCode: "LOANS", PushID: "p", Platform: push.IOS}}
}

func sumOf(postings ...*fund.PostingEntry) *proof.Sum {
	s := proof.NewSum(keys)
	for _, p := range postings {
		s.Adjustment(p)
	}
	return s
}

func sumOfErased(messages ...*push.Entry) *proof.Sum {
	s := proof.NewSum(keys)
	for _, m := range messages {
		s.Erased(m)
	}
	return s
}

func aPrice() *fund.Price {
	return &fund.Price{ID: 7, Fund: fund.Fund{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy"}, PerUnit: 125_000_000, Currency: lira(0).Currency(), ValidFrom: onDay("2026-11-21")}
}

func closedDays() []fund.ClosedDay {
	return []fund.ClosedDay{{Day: onDay("2026-01-01"), Reason: "New Year"}, {Day: onDay("2026-04-23")}}
}

func aSubscription() *subscription.Subscription {
	return &subscription.Subscription{
		Name: "mobile", State: subscription.Active, Operations: []string{"BuyFundFromCustomer", "Host"}, RequestsPerSecond: 5,
		AppKey: "app", Channel: "c", TellerName: "t", RequireCallerID: true, ClientCertificate: "ab",
		PrimaryHash: subscription.HashOf("1"), SecondaryHash: subscription.HashOf("2"), Created: at,
		PrimaryKey:   subscription.KeyLife{Created: at, Expires: at.Add(time.Hour)},
		SecondaryKey: subscription.KeyLife{Created: at.Add(time.Minute), Expires: at.Add(2 * time.Hour)},
	}
}

// The hashes are stored. If this test fails, the form of a leaf has changed: every stored leaf
// would look forged. Add a new Format instead, and keep this one.
func TestTheHashOfALeafNeverChanges(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		entries []proof.Entry
		want    []string
	}{
		"sale":         {proof.Of(keys, completed()), golden["sale"]},
		"recorded":     {proof.Of(keys, recorded()), golden["recorded"]},
		"settled":      {proof.Of(keys, settled()), golden["settled"]},
		"cancelled":    {proof.Of(keys, cancelled()), golden["cancelled"]},
		"refused":      {proof.Of(keys, refused()), golden["refused"]},
		"reversed":     {proof.Of(keys, reversed()), golden["reversed"]},
		"push":         {proof.Of(keys, pushed()), golden["push"]},
		"act":          {named(proof.OfAct(id, act(), sumOf(adjustment(), credit()), nil)), golden["act"]},
		"erasure":      {named(proof.OfAct(id, act(), nil, sumOfErased(erasedMessage()))), golden["erasure"]},
		"price":        {named(proof.OfPrice(aPrice(), operation.ID{5})), golden["price"]},
		"calendar":     {named(proof.OfCalendar(closedDays())), golden["calendar"]},
		"subscription": {named(proof.OfSubscription(aSubscription())), golden["subscription"]},
	} {
		var got []string
		for _, e := range tt.entries {
			got = append(got, fmt.Sprintf("%s %s", e.Kind, hex.EncodeToString(e.Leaf[:])))
		}
		require.Equal(t, tt.want, got, name)
	}
}

func named(n proof.Named) []proof.Entry { return []proof.Entry{n.Entry()} }

var golden = map[string][]string{
	"act":          {"act 2d94b5238edf2a29da8f4c2ae703d90c339759fdaf98a71a63693c5111f80c0f"},
	"calendar":     {"calendar cb7d1febed019cec4b702289a4c99664983e7dbaa7fa97cbcfd44f751fa9953f"},
	"cancelled":    {"sale 76a049cbd230265429314b9f194bd8a18418864e1653ebae4741d3eaf9a8a1bb", "end 657334f056cc1e0cbf51e621aade9f3bceaa33c93a00b9565541e8eeb5949f5f"},
	"erasure":      {"act d53abb9a5c81ba66ac904159009eb208f02951171b5cac556941b4e72ecb2643"},
	"price":        {"price 413386162cbb75f3d60662f9f55ad77008188e8ed6152acad4ac0b23f7f93a42"},
	"push":         {"push 1022c7b096e60967582a6ad362e23d7b870c97658b7856f542e98150d38cc25d"},
	"recorded":     {"sale 76a049cbd230265429314b9f194bd8a18418864e1653ebae4741d3eaf9a8a1bb"},
	"refused":      {"sale a2fa0d0224ea45e375ddd19453bb6ff0cb026a502cda1a0c98830a99ced6839a"},
	"reversed":     {"sale 76a049cbd230265429314b9f194bd8a18418864e1653ebae4741d3eaf9a8a1bb", "end 70bc8c374c7b96cd6b0d0a74eb8ca67fd53a74c3594aca3435f32905a632d26b", "end e2e0ea471e65d55706eb1b699a68d03e8a3ee2b6c369be97f8922eaed7f46daa"},
	"sale":         {"sale 4b030b66485d389f5e982206cbd78590c7ef2e8ebb041cdab5c2cd7fb48ab5c2"},
	"settled":      {"sale 76a049cbd230265429314b9f194bd8a18418864e1653ebae4741d3eaf9a8a1bb", "end 70bc8c374c7b96cd6b0d0a74eb8ca67fd53a74c3594aca3435f32905a632d26b"},
	"subscription": {"subscription bb7105eae4420702794e4f8e7024564bc8a1c750308bd21ed0010fb1838e555f"},
}

// A recorded sale keeps the leaf with which it was answered, whatever becomes of it.
func TestALaterEndDoesNotChangeTheFirstLeaf(t *testing.T) {
	t.Parallel()
	first := proof.Of(keys, recorded())
	require.Len(t, first, 1)
	for _, later := range []*proof.Stored{settled(), cancelled(), reversed()} {
		all := proof.Of(keys, later)
		require.Equal(t, first[0], all[0])
		require.Len(t, all, 2+min(1, len(all)-2))
	}
	require.Len(t, proof.Of(keys, reversed()), 3)
}

// TestEveryMemberOfAStoredOperationIsInALeaf changes each field, one after the other.
func TestEveryMemberOfAStoredOperationIsInALeaf(t *testing.T) {
	t.Parallel()
	// Where a storage keeps these, they are those of the operation. A Reader that finds others says so.
	repeated := map[string]bool{
		"Sales.0.Envelope.ID": true, "Sales.0.Envelope.Subscription": true, "Sales.0.Envelope.ReceivedAt": true,
		"Sales.0.Envelope.Header.AppKey": true, "Sales.0.Envelope.Header.Channel": true, "Sales.0.Envelope.Header.TellerName": true,
		"Sales.0.Envelope.Header.CallerID": true, "Sales.0.Envelope.Header.ChannelSessionID": true,
		"Sales.0.Envelope.Header.ChannelRequestID": true, "Sales.0.Envelope.Header.RequestID": true,
		"Sales.0.SettledAt": true, "Sales.0.ReversedAt": true, "Reversal.OperationID": true,
		"Faults.0.Detail": true, // follows from the code and what it names
		"Erased":          true, // of a push
	}
	for name, original := range map[string]func() *proof.Stored{"reversed": reversed, "cancelled": cancelled, "refused": refused} {
		before := proof.Of(keys, original())
		n := fieldsOf(reflect.ValueOf(original()).Elem(), "", func(string, reflect.Value) {})
		for k := range n {
			changed := original()
			var path string
			seen := 0
			fieldsOf(reflect.ValueOf(changed).Elem(), "", func(p string, v reflect.Value) {
				if seen == k {
					path = p
					change(t, p, v)
				}
				seen++
			})
			hasNoSuchEnd := path == "EndNumber" && name == "refused" || path == "ReversalNumber" && name != "reversed"
			if repeated[path] || hasNoSuchEnd {
				continue
			}
			require.NotEqual(t, before, proof.Of(keys, changed), "%s: %s is in no leaf", name, path)
		}
	}
	before := proof.Of(keys, pushed())
	for name, alter := range map[string]func(*proof.Stored){
		"subscription": func(o *proof.Stored) { o.Subscription = "x" },
		"session":      func(o *proof.Stored) { o.Header.ChannelSessionID = "x" },
		"received":     func(o *proof.Stored) { o.ReceivedAt = at.Add(time.Hour) },
		"fingerprint":  func(o *proof.Stored) { o.Fingerprint = fingerprintOf("x") },
		"state":        func(o *proof.Stored) { o.State = operation.Failed },
		"identities":   func(o *proof.Stored) { o.Identities[0], o.Identities[1] = o.Identities[1], o.Identities[0] },
		"erased":       func(o *proof.Stored) { o.SessionHash = []byte{1} },
	} {
		o := pushed()
		alter(o)
		require.NotEqual(t, before, proof.Of(keys, o), name)
	}
}

// A leaf of a push is the same after its personal data was erased.
func TestAnErasureKeepsTheLeaf(t *testing.T) {
	t.Parallel()
	o := pushed()
	before := proof.Of(keys, o)
	o.SessionHash, o.Header.ChannelSessionID = proof.SessionHash(keys, o.Header.ChannelSessionID), ""
	require.Equal(t, before, proof.Of(keys, o))
	o.Header.ChannelSessionID = "a text that somebody added"
	require.NotEqual(t, before, proof.Of(keys, o))
}

// fieldsOf visits every field that is not a struct, and returns their number.
func fieldsOf(v reflect.Value, path string, visit func(string, reflect.Value)) (n int) {
	join := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil() || v.Kind() == reflect.Slice && v.Len() == 0:
		return 0
	case v.Kind() == reflect.Pointer:
		return fieldsOf(v.Elem(), path, visit)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			n += fieldsOf(v.Index(i), join(fmt.Sprint(i)), visit)
		}
		return n
	case v.Kind() == reflect.Struct && v.Type().NumField() > 0 && v.Type().Field(0).IsExported():
		for i := range v.NumField() {
			n += fieldsOf(v.Field(i), join(v.Type().Field(i).Name), visit)
		}
		return n
	}
	visit(path, v)
	return 1
}

// change gives a field another value.
func change(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch value := v.Addr().Interface().(type) {
	case *time.Time:
		*value = value.Add(time.Hour)
		if value.IsZero() {
			*value = at
		}
	case *day.Day:
		*value = onDay("2027-01-01")
	case *money.Amount:
		*value = lira(value.Minor() + 1)
	case *money.Currency:
		*value, _ = money.ParseCurrency("USD")
	case *idempotency.Fingerprint:
		*value = fingerprintOf("other")
	case *operation.ID:
		value[3]++
	case *operation.Name:
		*value = operation.AddPushNotificationResponse
	case *operation.State:
		*value++
	default:
		switch v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Int, reflect.Int64:
			v.SetInt(v.Int() + 1)
		case reflect.Uint8:
			v.SetUint(v.Uint() + 1)
		case reflect.Slice, reflect.Array, reflect.Pointer: // an empty list has nothing to change
		default:
			t.Fatalf("the test cannot change %s", path)
		}
	}
}

func TestEveryMemberOfAnActIsInItsLeaf(t *testing.T) {
	t.Parallel()
	of := func(a *audit.Act) proof.Entry { l := proof.OfAct(a.ID, a, nil, nil); return l.Entry() }
	requireEachCounts(t, act, of)
	ofPrice := func(p *fund.Price) proof.Entry { l := proof.OfPrice(p, operation.ID{5}); return l.Entry() }
	requireEachCounts(t, aPrice, ofPrice)
	byOther := proof.OfPrice(aPrice(), operation.ID{6})
	require.NotEqual(t, ofPrice(aPrice()), byOther.Entry(), "the import")
	ofDays := func(days *[]fund.ClosedDay) proof.Entry { l := proof.OfCalendar(*days); return l.Entry() }
	requireEachCounts(t, func() *[]fund.ClosedDay { days := closedDays(); return &days }, ofDays)
	plain := proof.OfAct(id, act(), sumOf(), nil)
	with := proof.OfAct(id, act(), sumOf(adjustment()), nil)
	require.NotEqual(t, plain.Entry(), with.Entry())
}

func requireEachCounts[T any](t *testing.T, original func() *T, of func(*T) proof.Entry) {
	t.Helper()
	before := of(original())
	n := fieldsOf(reflect.ValueOf(original()).Elem(), "", func(string, reflect.Value) {})
	for k := range n {
		changed, path, seen := original(), "", 0
		fieldsOf(reflect.ValueOf(changed).Elem(), "", func(p string, v reflect.Value) {
			if seen == k {
				path = p
				change(t, p, v)
			}
			seen++
		})
		require.NotEqual(t, before, of(changed), "%s is not in the leaf", path)
	}
}

func TestEveryMemberOfASubscriptionIsInItsLeaf(t *testing.T) {
	t.Parallel()
	of := func(s *subscription.Subscription) proof.Entry { l := proof.OfSubscription(s); return l.Entry() }
	before := of(aSubscription())
	for name, alter := range map[string]func(*subscription.Subscription){
		"name":        func(s *subscription.Subscription) { s.Name = "x" },
		"state":       func(s *subscription.Subscription) { s.State = subscription.Suspended },
		"operations":  func(s *subscription.Subscription) { s.Operations = s.Operations[:1] },
		"rate":        func(s *subscription.Subscription) { s.RequestsPerSecond = 0 },
		"app key":     func(s *subscription.Subscription) { s.AppKey = "" },
		"channel":     func(s *subscription.Subscription) { s.Channel = "x" },
		"teller":      func(s *subscription.Subscription) { s.TellerName = "x" },
		"caller id":   func(s *subscription.Subscription) { s.RequireCallerID = false },
		"certificate": func(s *subscription.Subscription) { s.ClientCertificate = "x" },
		"keys":        func(s *subscription.Subscription) { s.PrimaryHash, s.SecondaryHash = s.SecondaryHash, s.PrimaryHash },
		"created":     func(s *subscription.Subscription) { s.Created = at.Add(1e9) },
		"expires":     func(s *subscription.Subscription) { s.SecondaryKey.Expires = at },
		"key created": func(s *subscription.Subscription) { s.PrimaryKey.Created = at.Add(1e9) },
	} {
		s := aSubscription()
		alter(s)
		require.NotEqual(t, before, of(s), name)
	}
	used := aSubscription()
	used.PrimaryKey.Used, used.WithoutCallerID = at, at
	require.Equal(t, before, of(used), "a use changes nothing")
}

func TestASumHasEveryRowOnceInAnyOrder(t *testing.T) {
	t.Parallel()
	of := func(s *proof.Sum) proof.Entry { l := proof.OfAct(id, nil, s, nil); return l.Entry() }
	both := of(sumOf(adjustment(), credit()))
	require.Equal(t, both, of(sumOf(credit(), adjustment())))
	require.NotEqual(t, both, of(sumOf(adjustment())))
	require.NotEqual(t, both, of(sumOf(adjustment(), adjustment())))
	for _, original := range []func() *fund.PostingEntry{adjustment, credit} {
		before := of(sumOf(original()))
		n := fieldsOf(reflect.ValueOf(original()).Elem(), "", func(string, reflect.Value) {})
		for k := range n {
			changed, path, seen := original(), "", 0
			fieldsOf(reflect.ValueOf(changed).Elem(), "", func(p string, v reflect.Value) {
				if seen == k {
					path = p
					change(t, p, v)
				}
				seen++
			})
			require.NotEqual(t, before, of(sumOf(changed)), "%s is not in the sum", path)
		}
	}
	other := proof.NewSum(proof.NewKeys([]byte("other")))
	other.Adjustment(adjustment())
	require.NotEqual(t, of(sumOf(adjustment())), of(other), "the sum has a key")
	message := erasedMessage()
	message.Values.Subject = "a text that somebody added"
	ofErased := func(s *proof.Sum) proof.Entry { l := proof.OfAct(id, nil, nil, s); return l.Entry() }
	require.NotEqual(t, ofErased(sumOfErased(erasedMessage())), ofErased(sumOfErased(message)))
}

func TestALeafHasNoTextOfAMessage(t *testing.T) {
	t.Parallel()
	l := proof.Leaves(keys, pushed())[0].Leaf
	require.NotContains(t, string(l.Content()), "session")
	d, err := proof.Decode(l.Content())
	require.NoError(t, err)
	require.Equal(t, "push", d.Kind)
}

// What a book decides and what is stored of it have the same leaves.
func TestTheEntriesOfABookAreThoseOfWhatIsStored(t *testing.T) {
	t.Parallel()
	var register idempotency.Register
	done, waits, no, back := completed(), recorded(), refused(), reversed()
	key, _ := idempotency.KeyOf(operation.BuyFundFromCustomer, &done.Envelope)
	register.Add(idempotency.Record{Key: key, Fingerprint: fingerprintOf("content"), Outcome: operation.Outcome{ID: id}})
	require.Equal(t, proof.Of(keys, done), proof.OfBook(&fund.Changes{Sales: done.Sales}, &register))
	require.Equal(t, proof.Of(keys, waits), proof.OfBook(&fund.Changes{Sales: waits.Sales}, &register))
	decision := operation.Decision{Envelope: no.Envelope, Operation: no.Operation, State: no.State, Faults: no.Faults}
	refusedAt := no.Sales
	refusedAt[0].SettledAt = time.Time{}
	require.Equal(t, proof.Of(keys, no), proof.OfBook(&fund.Changes{Refusals: []operation.Decision{decision}, RefusedSales: refusedAt}, &register))
	ended := cancelled()
	require.Equal(t, proof.Of(keys, ended)[1:], proof.OfBook(&fund.Changes{
		Settled: ended.Sales, Ended: []fund.Ended{{Number: 4, OperationID: id, State: operation.Failed, Faults: ended.Faults}},
	}, &register))
	require.Equal(t, proof.Of(keys, back)[2:], proof.OfBook(&fund.Changes{
		Reversals: []fund.Reversal{*back.Reversal}, Ended: []fund.Ended{{Number: 5, OperationID: id, Reversed: true}},
	}, &register))

	o := &push.Operation{Envelope: envelope()}
	p := pushed()
	require.Equal(t, proof.Of(keys, p), proof.OfInbox(keys, []push.Accepted{{Operation: o, Fingerprint: p.Fingerprint, Identities: p.Identities}}))
}
