package office

import (
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
		EndNumber: o.endNumber, ReversalNumber: o.reversalNumber,
	}
	contradicts = wrongNumber != nil || wrongDay != nil || !tables.IsFaults(o.Row.Faults) || o.fingerprint(&stored) ||
		(stored.Reversal == nil) != o.Row.ReversedAt.Time.IsZero() || stored.State != operation.Failed && len(stored.Faults) > 0
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
	stored.Sales, err = tables.AppendEntries(nil, o.Sales, func(r *tables.SaleRow) (fund.SaleEntry, error) {
		return r.Entry(stored.Envelope, stored.EndedAt)
	})
	contradicts = err != nil || len(stored.Sales) == 0 || len(o.Notifications) > 0 || len(o.Row.SessionHash) > 0 ||
		stored.Reversal != nil && stored.State != operation.Completed
	for i := range stored.Sales {
		s := &stored.Sales[i]
		isOfDay := stored.DueOn.IsNone() || s.Terms.SelectedDay == stored.DueOn
		contradicts = contradicts || s.State != stored.State || !isOfDay || s.State == operation.Recorded && hasResult(s)
	}
	return contradicts
}

// hasResult reports whether the sale has a price, proceeds or a refusal.
func hasResult(s *fund.SaleEntry) bool {
	return s.PriceID != 0 || s.PerUnit != 0 || s.Proceeds != money.Amount{} || s.Refusal != ""
}

// messages sets the messages. It reports whether they contradict the operation.
func (o *StoredOperation) messages(stored *proof.Stored) (contradicts bool) {
	contradicts = len(o.Sales) > 0 || stored.Reversal != nil || !stored.DueOn.IsNone() || !stored.EndedAt.IsZero()
	for i := range o.Notifications {
		m, err := o.Notifications[i].Entry(stored.Envelope)
		stored.Messages = append(stored.Messages, m)
		contradicts = contradicts || err != nil && m.Erasure == nil
	}
	stored.Identities = proof.IdentitiesOf(stored.Messages)
	return contradicts
}
