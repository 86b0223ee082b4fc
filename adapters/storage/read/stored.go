package read

import (
	"cmp"
	"slices"
	"time"

	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// Stored converts the rows to what has leaves. contradicts says that rows of one operation
// contradict each other, or have values that the service never writes.
func (o *StoredOperation) Stored() (stored proof.Stored, contradicts bool) {
	if o.IsPush() {
		return o.storedPush()
	}
	stored = proof.Stored{Operation: operation.BuyFundFromCustomer}
	stored.ID = operation.ID(o.ID)
	rows := o.Sales
	if o.Refusal != nil {
		contradicts = contradicts || o.Twice || len(rows) > 0 || len(o.Asked) == 0
		refusal, _ := o.Refusal.Decision() // never fails
		rows = o.Asked
		stored.Envelope, stored.State, stored.Faults = refusal.Envelope, refusal.State, refusal.Faults
		stored.Operation = refusal.Operation
		contradicts = contradicts || int64(refusal.State) != o.Refusal.State || int64(refusal.Operation) != o.Refusal.Operation ||
			!tables.IsFaults(o.Refusal.Faults)
	} else {
		contradicts = contradicts || len(o.Asked) > 0
	}
	var err error
	stored.Sales, err = tables.AppendEntries(nil, rows, (*tables.SaleRow).Entry)
	contradicts = contradicts || err != nil || len(stored.Sales) == 0
	for i := range stored.Sales {
		s := &stored.Sales[i]
		if i == 0 && o.Refusal == nil {
			stored.Envelope, stored.State, stored.EndedAt = s.Envelope, s.State, s.SettledAt
		}
		contradicts = contradicts || s.Envelope != stored.Envelope || s.State != stored.State || !s.SettledAt.Equal(stored.EndedAt)
	}
	if o.Reversal != nil {
		reversal := o.Reversal.Reversal()
		stored.Reversal = &reversal
	}
	contradicts = contradicts || !o.arePostingsOf(stored.Sales)
	o.recorded(&stored)
	contradicts = o.known(&stored) || contradicts
	return stored, contradicts
}

// arePostingsOf reports whether the postings are those that follow from the sales, and from the
// reversal.
func (o *StoredOperation) arePostingsOf(sales []fund.SaleEntry) bool {
	var wanted, undone []fund.Posting
	var at time.Time
	for i := range sales {
		s := &sales[i]
		if s.State != operation.Completed {
			continue
		}
		at = s.SettledAt
		wanted = append(wanted,
			fund.UnitPosting(fund.SalePosting, s.ID, s.Index, s.Terms.Holding, -s.Terms.Units),
			fund.MoneyPosting(fund.SalePosting, s.ID, s.Index, s.Terms.Account, s.Proceeds.Minor()))
		if o.Reversal != nil {
			id := operation.ID(o.Reversal.ReversalID)
			undone = append(undone,
				fund.UnitPosting(fund.ReversalPosting, id, s.Index, s.Terms.Holding, s.Terms.Units),
				fund.MoneyPosting(fund.ReversalPosting, id, s.Index, s.Terms.Account, -s.Proceeds.Minor()))
		}
	}
	if !arePostings(slices.Concat(o.Units, o.Money), wanted, at) {
		return false
	}
	if o.Reversal != nil {
		at = o.Reversal.ReversedAt.Time
	}
	return arePostings(o.reversed, undone, at)
}

// arePostings reports whether the rows are the wanted postings of that time, in any order.
func arePostings(rows []tables.PostingRow, wanted []fund.Posting, at time.Time) bool {
	left := make(map[fund.Posting]int)
	for _, p := range wanted {
		left[p]++
	}
	for i := range rows {
		p, err := rows[i].Entry()
		if err != nil || !rows[i].IsShaped() || !p.PostedAt.Equal(at) || left[p.Posting] == 0 {
			return false
		}
		left[p.Posting]--
	}
	return len(rows) == len(wanted)
}

// recorded sets what is known of an operation that was recorded first.
func (o *StoredOperation) recorded(stored *proof.Stored) {
	if len(stored.Sales) == 0 || stored.State != operation.Recorded && o.outcome == nil {
		return
	}
	stored.DueOn = stored.Sales[0].Terms.SelectedDay
	if o.outcome != nil && stored.State == operation.Failed {
		stored.Faults = tables.ParseFaults(o.outcome.Faults)
	}
}

// known sets what is known of the CallerId. It reports whether this contradicts the operation.
func (o *StoredOperation) known(stored *proof.Stored) (contradicts bool) {
	r := o.Record
	if r == nil {
		return false
	}
	fingerprint, err := idempotency.ParseFingerprint(r.Fingerprint)
	stored.Fingerprint = fingerprint
	return err != nil || r.OperationID != o.ID || r.State != int64(stored.State) || !tables.IsFaults(r.Faults) ||
		tables.FormatFaults(stored.Faults) != r.Faults
}

func (o *StoredOperation) storedPush() (stored proof.Stored, contradicts bool) {
	first, err := o.Notifications[0].Entry()
	stored = proof.Stored{Envelope: first.Envelope, Operation: operation.AddPushNotificationResponse, State: operation.Completed}
	contradicts = err != nil
	for i := range o.Notifications {
		row := &o.Notifications[i]
		m, err := row.Entry()
		stored.Messages = append(stored.Messages, m)
		if len(row.SessionHash) > 0 {
			stored.SessionHash, stored.Header.ChannelSessionID = row.SessionHash, ""
		}
		other := m.Envelope
		other.Header.ChannelSessionID = first.Header.ChannelSessionID // an erasure empties it
		contradicts = contradicts || err != nil && m.Erasure == nil || other != first.Envelope ||
			m.Erasure == nil && m.Header.ChannelSessionID != cmp.Or(stored.Header.ChannelSessionID, m.Header.ChannelSessionID)
	}
	stored.Identities = proof.IdentitiesOf(stored.Messages)
	return stored, o.known(&stored) || contradicts
}
