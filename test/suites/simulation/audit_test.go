package simulation

import (
	"slices"
	"strings"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// audit checks what must be true of the rows of any bank, and that every answer
// was true. It does not use the model.
func (w *world) audit() {
	if w.failure != nil {
		return
	}
	entries := w.rows.Sales()
	sales := map[operation.ID][]fund.SaleEntry{}
	for _, e := range entries {
		sales[e.ID] = append(sales[e.ID], e)
	}
	w.auditOperations(sales)
	w.auditSums(entries)
	stored := w.auditNotifications()
	for _, a := range w.attempts {
		if a.done && !a.panicked && a.err == nil {
			w.auditAnswer(a, sales, stored)
		}
	}
}

// auditOperations checks that operations are complete, settled on their day,
// and that a CallerId has one operation.
func (w *world) auditOperations(sales map[operation.ID][]fund.SaleEntry) {
	mine := map[identity]operation.ID{}
	for id, rows := range sales {
		first := rows[0]
		for i, e := range rows {
			later := e.State == operation.Recorded // a sale for today is never recorded
			if e.Index != i || e.State != first.State || !e.SettledAt.Equal(first.SettledAt) || later && e.Terms.SelectedDay != first.Terms.SelectedDay {
				w.fail("sales of one operation have different states: %+v and %+v", first, e)
			}
			settled, on := e.State != operation.Recorded, day.Of(e.SettledAt, w.zone)
			if e.ReceivedAt.After(e.SettledAt) {
				on = day.Of(e.ReceivedAt, w.zone) // the clock was set back meanwhile
			}
			if settled && !e.Terms.SelectedDay.IsNone() && on.Before(e.Terms.SelectedDay) {
				w.fail("a sale was settled before its day: %+v", e)
			}
		}
		if first.Header.CallerID == "" {
			continue
		}
		key := identity{operation.BuyFundFromCustomer, first.Subscription, first.Header.CallerID}
		if other, exists := mine[key]; exists {
			w.fail("one CallerId has two operations: %v and %v", other, id)
		}
		mine[key] = id
	}
}

// auditSums checks that every position is its opening plus its postings.
func (w *world) auditSums(entries []fund.SaleEntry) {
	type leg struct {
		id       operation.ID
		position int
		isMoney  bool
	}
	legs := map[leg]int64{}
	units, balances := map[fund.HoldingKey]int64{}, map[fund.AccountKey]int64{}
	for _, p := range w.rows.Postings() {
		key := leg{p.OperationID, p.Index, p.IsMoney()}
		if _, exists := legs[key]; exists || p.Kind != fund.SalePosting {
			w.fail("unexpected posting: %+v", p)
		}
		legs[key] = p.Quantity
		if p.IsMoney() {
			balances[p.Account] += p.Quantity
		} else {
			units[p.Holding] += p.Quantity
		}
	}
	completed := 0
	for _, e := range entries {
		if e.State != operation.Completed {
			continue
		}
		completed++
		unitsLeg, moneyLeg := legs[leg{e.ID, e.Index, false}], legs[leg{e.ID, e.Index, true}]
		worth := proceeds(int64(e.Terms.Units), int64(e.PerUnit), e.Terms.Account.Currency.Decimals())
		if unitsLeg != -int64(e.Terms.Units) || moneyLeg != e.Proceeds.Minor() || moneyLeg <= 0 || !worth.IsInt64() || worth.Int64() != moneyLeg {
			w.fail("postings of %d and %d for %+v", unitsLeg, moneyLeg, e)
		}
	}
	if len(legs) != 2*completed {
		w.fail("%d postings for %d sales", len(legs), completed)
	}
	for _, h := range w.rows.Holdings() {
		if h.Units < 0 || int64(h.Units) != w.opening.units[h.Key]+units[h.Key] {
			w.fail("%+v, with an opening of %d and postings of %d", h, w.opening.units[h.Key], units[h.Key])
		}
		delete(units, h.Key)
	}
	for _, a := range w.rows.Accounts() {
		if a.Balance.Minor() < 0 || a.Balance.Minor() != w.opening.money[a.Key]+balances[a.Key] {
			w.fail("%+v, with an opening of %d and postings of %d", a, w.opening.money[a.Key], balances[a.Key])
		}
		delete(balances, a.Key)
	}
	if len(units)+len(balances) > 0 {
		w.fail("postings of positions that do not exist: %v %v", units, balances)
	}
}

// auditNotifications checks that every notification is stored once.
func (w *world) auditNotifications() map[string]bool {
	stored := map[string]bool{}
	for _, n := range w.rows.Notifications() {
		key := fingerprint(n.Subscription, n.Values.UserID, n.Values.PushID, n.Values.Subject, n.Values.HasPushInteractionID, n.Values.PushInteractionID, len(n.Values.TranData))
		if stored[key] {
			w.fail("a notification is stored twice: %s", key)
		}
		stored[key] = true
	}
	return stored
}

// auditAnswer compares one answer with the rows, as its caller could.
func (w *world) auditAnswer(a *attempt, sales map[operation.ID][]fund.SaleEntry, stored map[string]bool) {
	r := a.request
	if r.operation == operation.AddPushNotificationResponse {
		for i := range r.messages {
			m := &r.messages[i]
			interaction := max(0, int64(m.interaction))
			f := m.fields()
			if !stored[fingerprint(r.subscription.Name, f.UserID, f.PushID, f.Subject, m.interaction >= 0, interaction, len(f.TranData))] {
				w.fail("attempt %d was completed, but its message %d is missing", a.number, i)
			}
		}
		return
	}
	rows := sales[a.id]
	if a.outcome.Replayed {
		rows = nil
		for _, other := range sales {
			if other[0].Header.CallerID == r.callerID && other[0].Subscription == r.subscription.Name {
				rows = other
			}
		}
	}
	var states []string
	for _, e := range rows {
		states = append(states, e.State.String())
	}
	states = slices.Compact(states)
	var ok bool
	switch now := strings.Join(states, ","); a.outcome.State {
	case operation.Completed:
		ok = now == "completed"
	case operation.Recorded: // settled meanwhile if its day has come
		ok = now == "completed" || now == "failed" || now == "recorded" && rows[0].Terms.SelectedDay.String() > w.today()
	case operation.Failed:
		ok = now == "" || a.outcome.Replayed && now == "failed"
	}
	if !ok || len(rows) > 0 && len(rows) != len(r.sales) {
		w.fail("attempt %d was answered %q, but its rows say %v", a.number, a.answer(), states)
	}
}
