package read

import (
	"slices"
	"time"

	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// Stored converts the rows to what has leaves. contradicts says that rows of one operation
// contradict each other, or have values that the service never writes.
func (o *StoredOperation) Stored() (stored proof.Stored, contradicts bool) {
	if o.Row == nil {
		stored.ID = operation.ID(o.ID)
		stored.Operation = operation.BuyFundFromCustomer
		if len(o.Notifications) > 0 {
			stored.Operation = operation.AddPushNotificationResponse
		}
		return stored, true
	}
	decision, wrongNumber := o.Row.Decision()
	due, wrongDay := o.Row.Due()
	stored = proof.Stored{
		Envelope: decision.Envelope, Operation: decision.Operation, State: decision.State, Faults: decision.Faults,
		DueOn: due, EndedAt: o.Row.EndedAt.Time, Reversal: o.Row.Reversal(), SessionHash: o.Row.SessionHash,
	}
	contradicts = wrongNumber != nil || wrongDay != nil || !tables.IsFaults(o.Row.Faults) || o.fingerprint(&stored) ||
		(stored.Reversal == nil) != o.Row.ReversedAt.IsZero() || stored.State != operation.Failed && len(stored.Faults) > 0
	if stored.Operation == operation.AddPushNotificationResponse {
		return stored, o.messages(&stored) || contradicts
	}
	return stored, o.sales(&stored) || contradicts
}

// fingerprint sets the fingerprint. It reports whether it or the identity contradicts the
// operation.
func (o *StoredOperation) fingerprint(stored *proof.Stored) (contradicts bool) {
	key, hasKey := idempotency.KeyOf(stored.Operation, &stored.Envelope)
	if !hasKey {
		return o.Row.Identity != o.Row.OperationID || len(o.Row.Fingerprint) > 0
	}
	fingerprint, err := idempotency.ParseFingerprint(o.Row.Fingerprint)
	stored.Fingerprint = fingerprint
	return err != nil || o.Row.Identity != key.Identity()
}

// sales sets the sales. It reports whether they contradict the operation.
func (o *StoredOperation) sales(stored *proof.Stored) (contradicts bool) {
	var err error
	stored.Sales, err = tables.AppendEntries(nil, o.Sales, (*tables.SaleRow).Entry)
	contradicts = err != nil || len(stored.Sales) == 0 || len(o.Notifications) > 0 || len(o.Row.SessionHash) > 0
	for i := range stored.Sales {
		s := &stored.Sales[i]
		contradicts = contradicts || s.Envelope != stored.Envelope || s.State != stored.State || !s.SettledAt.Equal(stored.EndedAt)
		isOfDay := stored.DueOn.IsNone() || s.Terms.SelectedDay == stored.DueOn
		contradicts = contradicts || !isOfDay || s.State == operation.Recorded && hasResult(s)
	}
	return contradicts || !o.arePostingsOf(stored)
}

// hasResult reports whether the sale has a price, proceeds or a refusal.
func hasResult(s *fund.SaleEntry) bool {
	return s.PriceID != 0 || s.PerUnit != 0 || s.Proceeds != money.Amount{} || s.Refusal != ""
}

// arePostingsOf reports whether the postings are those that follow from the sales, and from the
// reversal.
func (o *StoredOperation) arePostingsOf(stored *proof.Stored) bool {
	var wanted, undone []fund.Posting
	var at time.Time
	for i := range stored.Sales {
		s := &stored.Sales[i]
		if s.State != operation.Completed {
			continue
		}
		at = s.SettledAt
		wanted = append(wanted,
			fund.UnitPosting(fund.SalePosting, s.ID, s.Index, s.Terms.Holding, -s.Terms.Units),
			fund.MoneyPosting(fund.SalePosting, s.ID, s.Index, s.Terms.Account, s.Proceeds.Minor()))
		if stored.Reversal != nil {
			id := stored.Reversal.ID
			undone = append(undone,
				fund.UnitPosting(fund.ReversalPosting, id, s.Index, s.Terms.Holding, s.Terms.Units),
				fund.MoneyPosting(fund.ReversalPosting, id, s.Index, s.Terms.Account, -s.Proceeds.Minor()))
		}
	}
	if !arePostings(slices.Concat(o.Units, o.Money), wanted, at) {
		return false
	}
	if stored.Reversal != nil {
		at = stored.Reversal.At
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

// messages sets the messages. It reports whether they contradict the operation.
func (o *StoredOperation) messages(stored *proof.Stored) (contradicts bool) {
	contradicts = len(o.Sales) > 0 || stored.Reversal != nil || !stored.DueOn.IsNone() || !stored.EndedAt.IsZero()
	for i := range o.Notifications {
		m, err := o.Notifications[i].Entry()
		stored.Messages = append(stored.Messages, m)
		other := m.Envelope
		if m.Erasure != nil || len(stored.SessionHash) > 0 {
			other.Header.ChannelSessionID = stored.Header.ChannelSessionID // an erasure empties it
		}
		contradicts = contradicts || err != nil && m.Erasure == nil || other != stored.Envelope ||
			m.Erasure == nil && o.Notifications[i].ErasureReason != ""
	}
	stored.Identities = proof.IdentitiesOf(stored.Messages)
	return contradicts
}
