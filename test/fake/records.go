package fake

import (
	"context"
	"iter"
	"slices"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// Refusal implements backoffice.Records.
func (r records) Refusal(ctx context.Context, id operation.ID) (found operation.Refusal, err error) {
	exists := false
	err = r.store.read(ctx, r.strike, func() {
		for _, each := range r.store.refusals {
			if each.ID == id {
				found, exists = each, true
			}
		}
	})
	if err == nil && !exists {
		err = backoffice.ErrNotFound
	}
	return found, err
}

// Reversal implements backoffice.Records.
func (r records) Reversal(ctx context.Context, id operation.ID) (found fund.Reversal, err error) {
	exists := false
	err = r.store.read(ctx, r.strike, func() { found, exists = r.store.reversals[id] })
	if err == nil && !exists {
		err = backoffice.ErrNotFound
	}
	return found, err
}

// Decisions implements backoffice.Records.
func (r records) Decisions(ctx context.Context, f backoffice.Filter) iter.Seq2[backoffice.Decision, error] {
	return stream(ctx, r.office, r.store.decisions, func(d *backoffice.Decision) bool {
		return during(f, d.ReceivedAt) && (f.State == 0 || f.State == d.State) && ofOperation(f, d.ID, d.Subscription, &d.Header)
	})
}

func (s *Store) decisions() (all []backoffice.Decision) {
	for _, sales := range s.sales {
		first := &sales[0]
		d := backoffice.Decision{
			ID: first.OperationID, Operation: operation.BuyFundFromCustomer, Subscription: first.Subscription,
			Header: first.Header, ReceivedAt: first.ReceivedAt, State: first.State,
		}
		refusal := ""
		for i := range sales {
			refusal = max(refusal, sales[i].Refusal)
		}
		if refusal != "" {
			d.Codes = []string{refusal}
		}
		all = append(all, d)
	}
	seen := map[operation.ID]bool{}
	for i := range s.notifications {
		n := &s.notifications[i]
		if !seen[n.OperationID] {
			seen[n.OperationID] = true
			all = append(all, backoffice.Decision{
				ID: n.OperationID, Operation: operation.AddPushNotificationResponse, Subscription: n.Subscription,
				Header: n.Header, ReceivedAt: n.ReceivedAt, State: operation.Completed,
			})
		}
	}
	for i := range s.refusals {
		r := &s.refusals[i]
		d := backoffice.Decision{
			ID: r.ID, Operation: r.Operation, Subscription: r.Subscription, Header: r.Header, ReceivedAt: r.ReceivedAt, State: operation.Failed,
		}
		for _, f := range r.Faults {
			d.Codes = append(d.Codes, f.Code)
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b backoffice.Decision) int { return compareIDs(a.ID, b.ID) })
	return all
}

// Acts implements backoffice.Records.
func (r records) Acts(ctx context.Context, f backoffice.Filter) iter.Seq2[audit.Act, error] {
	return stream(ctx, r.office,
		func() []audit.Act {
			return slices.SortedFunc(slices.Values(r.store.acts), func(a, b audit.Act) int { return compareIDs(a.ID, b.ID) })
		},
		func(a *audit.Act) bool { return during(f, a.At) })
}

// Record implements backoffice.Audit.
func (r records) Record(ctx context.Context, act audit.Act) error {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.store.audit(audit.With(ctx, act))
	return nil
}
