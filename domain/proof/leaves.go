package proof

import (
	"slices"
	"time"

	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

// Named is a leaf with the kind and the ID of its entry.
type Named struct {
	Kind Kind
	ID   operation.ID
	Leaf Leaf
}

// Entry returns the entry of the leaf.
func (n *Named) Entry() Entry { return Entry{Kind: n.Kind, ID: n.ID, Leaf: n.Leaf.Hash()} }

// Leaves returns the leaves that a stored operation must have. A sale has one leaf as it was
// answered, one for its end if it was recorded first, and one for its reversal. A push has one
// leaf.
func Leaves(keys *Keys, o *Stored) []Named {
	if o.Operation == operation.AddPushNotificationResponse {
		return []Named{{Push, o.ID, pushLeaf(nil, keys, o)}}
	}
	leaves := []Named{{Sale, o.ID, saleLeaf(nil, o)}}
	if o.hasEnded() {
		leaves = append(leaves, Named{End, o.ID, endLeaf(nil, o)})
	}
	if o.Reversal != nil {
		leaves = append(leaves, Named{End, o.ID, reversalLeaf(nil, o)})
	}
	return leaves
}

// Of returns the entries that a stored operation must have.
func Of(keys *Keys, o *Stored) []Entry {
	var entries []Entry
	for _, l := range Leaves(keys, o) {
		e := l.Entry()
		if e.Kind == Push {
			e.Identities = o.Identities
		}
		entries = append(entries, e)
	}
	return entries
}

// OfBook returns the entries of what a settled book decided. register has the fingerprints of
// new operations. The sales of an operation are consecutive. Ended must have its numbers.
func OfBook(c *fund.Changes, register *idempotency.Register) []Entry {
	fingerprintOf := func(of *operation.Envelope) (f idempotency.Fingerprint) {
		known := register.FingerprintOf(operation.BuyFundFromCustomer, of)
		if known != nil {
			f = *known
		}
		return f
	}
	entries := make([]Entry, 0, len(c.Sales)+len(c.Ended)+len(c.Refusals))
	var buffer []byte
	add := func(kind Kind, id operation.ID, l Leaf) {
		entries = append(entries, Entry{Kind: kind, ID: id, Leaf: l.Hash()})
		buffer = l.content
	}
	for sales := c.Sales; len(sales) > 0; {
		o := storedSales(&sales)
		o.Fingerprint = fingerprintOf(&o.Envelope)
		if o.State == operation.Recorded {
			o.DueOn = o.Sales[0].Terms.SelectedDay
		}
		add(Sale, o.ID, saleLeaf(buffer, &o))
	}
	refused := c.RefusedSales
	for i := range c.Refusals {
		d := &c.Refusals[i]
		o := Stored{Envelope: d.Envelope}
		if len(refused) > 0 && refused[0].ID == d.ID {
			o = storedSales(&refused)
		}
		o.State = d.State
		o.Faults = d.Faults
		o.Fingerprint = fingerprintOf(&d.Envelope)
		add(Sale, o.ID, saleLeaf(buffer, &o))
	}
	for settled := c.Settled; len(settled) > 0; {
		o := storedSales(&settled)
		end := endOf(c, o.ID, false)
		if end != nil {
			o.Faults = end.Faults
			o.EndNumber = end.Number
		}
		add(End, o.ID, endLeaf(buffer, &o))
	}
	for i := range c.Reversals {
		r := &c.Reversals[i]
		o := Stored{Envelope: operation.Envelope{ID: r.OperationID}, State: operation.Completed, Reversal: r}
		end := endOf(c, o.ID, true)
		if end != nil {
			o.ReversalNumber = end.Number
		}
		add(End, o.ID, reversalLeaf(buffer, &o))
	}
	return entries
}

// endOf returns how an operation ended, or nil.
func endOf(c *fund.Changes, id operation.ID, reversed bool) *fund.Ended {
	at := slices.IndexFunc(c.Ended, func(e fund.Ended) bool { return e.OperationID == id && e.Reversed == reversed })
	if at < 0 {
		return nil
	}
	return &c.Ended[at]
}

// storedSales cuts the sales of the first operation off.
func storedSales(sales *[]fund.SaleEntry) Stored {
	first := &(*sales)[0]
	n := slices.IndexFunc(*sales, func(s fund.SaleEntry) bool { return s.ID != first.ID })
	if n < 0 {
		n = len(*sales)
	}
	o := Stored{
		Envelope: first.Envelope, Operation: operation.BuyFundFromCustomer, State: first.State, EndedAt: first.SettledAt, Sales: (*sales)[:n],
	}
	*sales = (*sales)[n:]
	return o
}

// OfInbox returns the entries of what an inbox accepted.
func OfInbox(keys *Keys, accepted []push.Accepted) []Entry {
	entries := make([]Entry, len(accepted))
	var buffer []byte
	for i := range accepted {
		a := &accepted[i]
		o := Stored{Envelope: a.Operation.Envelope, Fingerprint: a.Fingerprint, State: operation.Completed, Identities: a.Identities}
		l := pushLeaf(buffer, keys, &o)
		entries[i] = Entry{Kind: Push, ID: o.ID, Leaf: l.Hash(), Identities: a.Identities}
		buffer = l.content
	}
	return entries
}

// OfAct returns the leaf of an act, with the postings that it made and the messages that it
// erased. act is nil if only its ID is known. A sum may be nil.
func OfAct(id operation.ID, act *audit.Act, adjusted, erasedMessages *Sum) Named {
	l := newLeaf(nil, Act, id)
	if act != nil {
		l.time("At", act.At)
		l.text("Actor", act.Actor)
		l.text("SystemUser", act.SystemUser)
		l.text("Origin", act.Origin)
		l.text("Action", act.Action)
		l.text("Object", act.Object)
		l.text("Reason", act.Reason)
		l.text("Details", act.Details)
	}
	adjusted.encode(&l, "Adjustments")
	erasedMessages.encode(&l, "ErasedMessages")
	return Named{Act, id, l}
}

// OfPrice returns the leaf of a price, and of the act that imported it. act is zero if there is
// none.
func OfPrice(p *fund.Price, act operation.ID) Named {
	id := PriceID(p.ID)
	l := newLeaf(nil, Price, id)
	l.number("PriceID", p.ID)
	l.text("IMKBCode", p.Fund.IMKBCode)
	l.text("HolderCorporationName", p.Fund.HolderCorporationName)
	l.number("Price", int64(p.PerUnit))
	l.text("CurrencyCode", p.Currency.Code())
	l.text("ValidFrom", p.ValidFrom.String())
	if act != (operation.ID{}) {
		l.text("Act", act.String())
	}
	return Named{Price, id, l}
}

// OfCalendar returns the leaf of the closed days of the bank, in the order of days.
func OfCalendar(closed []fund.ClosedDay) Named {
	l := newLeaf(nil, Calendar, operation.ID{})
	for i := range closed {
		l.group("ClosedDay")
		l.text("Day", closed[i].Day.String())
		l.text("Reason", closed[i].Reason)
	}
	return Named{Calendar, operation.ID{}, l}
}

// OfSubscription returns the leaf of a subscription. The times of the last use are not in it.
func OfSubscription(s *subscription.Subscription) Named {
	id := NameID(s.Name)
	l := newLeaf(nil, Subscription, id)
	l.text("Name", s.Name)
	l.text("State", string(s.State))
	for _, name := range s.Operations {
		l.text("Operation", name)
	}
	l.optional("RequestsPerSecond", int64(s.RequestsPerSecond))
	l.text("AppKey", s.AppKey)
	l.text("Channel", s.Channel)
	l.text("TellerName", s.TellerName)
	if s.RequireCallerID {
		l.number("RequireCallerId", 1)
	}
	l.text("ClientCertificate", s.ClientCertificate)
	l.time("Created", s.Created)
	l.bytes("PrimaryKeyHash", s.PrimaryHash[:])
	l.time("PrimaryKeyCreated", s.PrimaryKey.Created)
	l.time("PrimaryKeyExpires", s.PrimaryKey.Expires)
	l.bytes("SecondaryKeyHash", s.SecondaryHash[:])
	l.time("SecondaryKeyCreated", s.SecondaryKey.Created)
	l.time("SecondaryKeyExpires", s.SecondaryKey.Expires)
	return Named{Subscription, id, l}
}

// saleLeaf has the operation as it was answered.
func saleLeaf(buffer []byte, o *Stored) Leaf {
	l := newLeaf(buffer, Sale, o.ID)
	l.envelope(&o.Envelope, &o.Fingerprint)
	l.text("ChannelSessionId", o.Header.ChannelSessionID)
	state := o.State
	if o.isRecordedFirst() {
		state = operation.Recorded
	}
	l.text("Day", o.DueOn.String())
	l.result(state, o)
	for i := range o.Sales {
		s := &o.Sales[i]
		l.group("Sale")
		l.number("Index", int64(s.Index))
		l.terms(&s.Terms)
		if !o.isRecordedFirst() {
			l.sold(s)
		}
	}
	return l
}

// endLeaf has the result of an operation that was recorded first, and its place among all ends.
func endLeaf(buffer []byte, o *Stored) Leaf {
	l := newLeaf(buffer, End, o.ID)
	l.optional("Outcome", o.EndNumber)
	l.result(o.State, o)
	for i := range o.Sales {
		s := &o.Sales[i]
		l.group("Sale")
		l.number("Index", int64(s.Index))
		l.sold(s)
	}
	return l
}

func reversalLeaf(buffer []byte, o *Stored) Leaf {
	l := newLeaf(buffer, End, o.ID)
	l.optional("Outcome", o.ReversalNumber)
	l.number("State", int64(operation.Completed))
	l.time("ReversedAt", o.Reversal.At)
	l.text("Reversal", o.Reversal.ID.String())
	return l
}

// pushLeaf has no text of a message. Its identities stand for the messages.
func pushLeaf(buffer []byte, keys *Keys, o *Stored) Leaf {
	l := newLeaf(buffer, Push, o.ID)
	l.envelope(&o.Envelope, &o.Fingerprint)
	l.bytes("ChannelSessionIdHash", slices.Concat(keys.text(o.Header.ChannelSessionID), o.SessionHash))
	l.number("State", int64(o.State))
	for i := range o.Identities {
		l.bytes("Message", o.Identities[i][:])
	}
	return l
}

// envelope adds what is kept of every operation. It does not add the ChannelSessionId, which is
// personal in a push.
func (l *Leaf) envelope(e *operation.Envelope, f *idempotency.Fingerprint) {
	l.text("Subscription", e.Subscription)
	l.time("ReceivedAt", e.ReceivedAt)
	l.text("AppKey", e.Header.AppKey)
	l.text("Channel", e.Header.Channel)
	l.text("TellerName", e.Header.TellerName)
	l.text("CallerId", e.Header.CallerID)
	l.text("ChannelRequestId", e.Header.ChannelRequestID)
	l.text("X-Request-Id", e.Header.RequestID)
	if !f.IsZero() {
		l.bytes("Fingerprint", f.Bytes())
	}
}

// result adds how the operation was decided, and when it ended. A Recorded operation has neither
// an end nor reasons.
func (l *Leaf) result(state operation.State, o *Stored) {
	l.number("State", int64(state))
	if state == operation.Recorded {
		return
	}
	l.time("EndedAt", o.EndedAt)
	for i := range o.Faults {
		l.fault(&o.Faults[i])
	}
}

func (l *Leaf) fault(f *fault.Fault) {
	l.group("Error")
	l.text("Code", f.Code)
	l.text("Pointer", f.Pointer)
	l.text("Named", f.Named)
}

func (l *Leaf) terms(t *fund.Terms) {
	l.number("CustomerNo", t.Holding.CustomerNo)
	l.number("FundAmount", int64(t.Units))
	l.number("DestinationAccount.BranchCode", t.Account.BranchCode)
	l.number("DestinationAccount.CustomerNo", t.Account.CustomerNo)
	l.number("DestinationAccount.AccountSuffix", t.Account.AccountSuffix)
	l.text("DestinationAccount.CurrencyCode", t.Account.Currency.Code())
	l.text("FundToProcess.IMKBCode", t.Holding.IMKBCode)
	l.text("FundToProcess.HolderCorporationName", t.Holding.HolderCorporationName)
	l.number("FundToProcess.PriceID", t.PriceID)
	l.optional("Amount", t.ControlTotal)
	l.text("SelectedTransactionDate", t.SelectedDay.String())
}

// sold adds the result of one sale.
func (l *Leaf) sold(s *fund.SaleEntry) {
	l.number("State", int64(s.State))
	l.optional("SettledPriceID", s.PriceID)
	l.optional("SettledPrice", int64(s.PerUnit))
	if s.State == operation.Completed || s.Proceeds != (money.Amount{}) {
		l.number("Proceeds", s.Proceeds.Minor())
		l.text("ProceedsCurrencyCode", s.Proceeds.Currency().Code())
	}
	l.text("Refusal", s.Refusal)
}

// adjustment encodes a posting of an import or a correction.
func adjustment(l *Leaf, p *fund.PostingEntry) {
	l.text("ID", p.OperationID.String())
	l.number("Line", int64(p.Index))
	l.number("Kind", int64(p.Kind))
	l.time("At", p.PostedAt)
	l.optional("Account.BranchCode", p.Account.BranchCode)
	l.optional("Account.CustomerNo", p.Account.CustomerNo)
	l.optional("Account.AccountSuffix", p.Account.AccountSuffix)
	l.text("Account.CurrencyCode", p.Account.Currency.Code())
	l.optional("Holding.CustomerNo", p.Holding.CustomerNo)
	l.text("Holding.IMKBCode", p.Holding.IMKBCode)
	l.text("Holding.HolderCorporationName", p.Holding.HolderCorporationName)
	l.number("Quantity", p.Quantity)
}

// erased encodes a message as it is since it was erased. It has every member, so that a text
// that somebody adds is found.
func erased(l *Leaf, m *push.Entry) {
	l.text("ID", m.ID.String())
	l.number("Index", int64(m.Index))
	l.bytes("Identity", m.Identity[:])
	for _, member := range push.Members {
		l.text(member.Name, member.Value(&m.Values))
	}
	for _, item := range m.Values.TranData {
		l.group("TranData")
		l.text("Code", item.Code)
		l.text("Name", item.Name)
	}
}

// Stored is an operation with everything that is stored of it. Of returns the leaves that it
// must have.
type Stored struct {
	operation.Envelope
	Operation operation.Name
	// Fingerprint is the fingerprint of the content. It is zero without a CallerId.
	Fingerprint idempotency.Fingerprint
	State       operation.State
	Faults      []fault.Fault // the reasons of Failed
	// DueOn is the day for which the operation was recorded. It is no day if the operation was
	// decided at once.
	DueOn day.Day
	// EndedAt is when the sales were carried out, or failed on their day. It is zero while the
	// operation is Recorded, if it was refused at once, and for a push.
	EndedAt time.Time
	// EndNumber and ReversalNumber are the places of the end and of the reversal in the order of
	// all ends: fund.Ended, Number. They are 0 if the operation has no such end.
	EndNumber, ReversalNumber int64
	// Reversal is nil unless the operation was reversed.
	Reversal *fund.Reversal
	// Sales are the sales in the order of the request. A sale of a refused operation is Failed.
	Sales []fund.SaleEntry
	// Messages are the messages that this operation stored first, in the order of the request.
	Messages []push.Entry
	// Identities are the identities of all messages of the request, in its order. A storage
	// keeps only Messages: the log has the identities of the others.
	Identities []push.Identity
	// SessionHash replaces the ChannelSessionId of a push after personal data was erased. See
	// SessionHash. It is empty otherwise.
	SessionHash []byte
}

// isRecordedFirst reports whether the operation was answered with Recorded.
func (o *Stored) isRecordedFirst() bool { return !o.DueOn.IsNone() }

// hasEnded reports whether a recorded operation was settled or cancelled.
func (o *Stored) hasEnded() bool { return o.isRecordedFirst() && o.State != operation.Recorded }

// IdentitiesOf returns the identities of stored messages, each at its index. The identity of a
// message that another operation has stored is not known then: it is zero. Only an adoption
// writes such an entry.
func IdentitiesOf(messages []push.Entry) (identities []push.Identity) {
	for i := range messages {
		m := &messages[i]
		if m.Index < 0 || m.Index >= maxMessages {
			continue // changed by hand
		}
		for len(identities) <= m.Index {
			identities = append(identities, push.Identity{})
		}
		identities[m.Index] = m.Identity
	}
	return identities
}

// maxMessages exceeds the number of messages of any request.
const maxMessages = 1 << 20

// SessionHash returns the keyed hash of the ChannelSessionId that is in the leaf of a push. An
// erasure keeps it instead of the text.
func SessionHash(keys *Keys, channelSessionID string) []byte { return keys.text(channelSessionID) }
