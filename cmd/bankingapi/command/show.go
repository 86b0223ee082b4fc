package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// readShown returns the ID of the operation if the argument names it.
func readShown(c *call) (id operation.ID, err error) {
	given := len(c.args)
	for _, flag := range []string{"caller-id", "request-id"} {
		if c.text(flag) != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return id, wrongUsef("give an ID, or --caller-id and --subscription, or --request-id")
	case (c.text("caller-id") == "") != (c.text("subscription") == ""):
		return id, wrongUsef("--caller-id and --subscription go together: each subscription has CallerIds of its own")
	case len(c.args) > 0:
		return readID(c)
	}
	return id, nil
}

func showOperation(c *call, id operation.ID) error {
	all, what, err := namedOperations(c, id)
	if errors.Is(err, backoffice.ErrNotFound) {
		return fmt.Errorf("not found: %s", what)
	}
	if err != nil {
		return err
	}
	for i := range all {
		c.look("show", "operation", all[i].ID.String())
		act, err := c.office.Correction(c.Context(), &all[i])
		if err != nil {
			return err
		}
		found := operationObject(&all[i])
		if act != nil {
			found["Corrected"] = object{"By": act.Actor, "Reason": act.Reason}
		}
		if found["WaitsFor"], err = missingPrices(c, &all[i]); err != nil {
			return err
		}
		if err := c.write("operation", found); err != nil {
			return err
		}
	}
	return nil
}

// namedOperations returns the operations that the flags or the argument name, and a description
// of the search.
func namedOperations(c *call, id operation.ID) (all []backoffice.Operation, what string, err error) {
	of := backoffice.Query{CallerID: c.text("caller-id"), RequestID: c.text("request-id"), Subscription: c.text("subscription")}
	switch {
	case of.CallerID != "":
		all, err = c.office.OperationsOf(c.Context(), of.Subscription, of.CallerID)
		what = "an operation with this CallerId of this subscription. "
	case of.RequestID != "":
		all, err = c.office.OperationsOfRequest(c.Context(), of.RequestID)
		what = "an operation with this X-Request-Id. "
	default:
		one, err := c.office.Operation(c.Context(), id)
		return []backoffice.Operation{one}, "operation " + c.args[0], err
	}
	if errors.Is(err, backoffice.ErrNotFound) {
		what += answered(c, of)
	}
	return all, what, err
}

// answered describes the answer to the last request without an operation. With --format json it
// also writes that answer.
func answered(c *call, of backoffice.Query) string {
	of.Order, of.Limit = backoffice.Newest, 1
	for a, err := range c.office.Reader.Requests(c.Context(), of) {
		if err == nil && c.text("format") == "json" {
			err = c.write("", object{
				"Answered": instant(a.At), "Status": a.Status, "Codes": slices.Concat([]string{}, a.Codes), "Replayed": a.Replayed,
				"OperationId": a.OperationID, "Name": a.Operation, "Subscription": a.Subscription, "CallerId": a.CallerID, "RequestId": a.RequestID,
			})
		}
		switch {
		case err != nil:
		case a.Replayed:
			return fmt.Sprintf("It was answered at %s as a repeat of operation %s", a.At.UTC().Format(time.RFC3339), a.OperationID)
		default:
			return fmt.Sprintf("It was answered %d %s at %s, and nothing was stored", a.Status, strings.Join(a.Codes, " "), a.At.UTC().Format(time.RFC3339))
		}
	}
	return "Repeats, 4xx and 5xx answers leave none, and the log of requests does not have it: the log of the replica that answered may have it, as request_id"
}

// missingPrices returns the prices that a due operation waits for.
func missingPrices(c *call, o *backoffice.Operation) (prices []object, err error) {
	prices = []object{}
	if len(o.Sales) == 0 || o.Sales[0].State != operation.Recorded {
		return prices, nil
	}
	due, err := c.app.Buyer().CountDue(c.Context())
	for _, of := range due.ForPrice {
		if slices.ContainsFunc(o.Sales, func(s fund.SaleEntry) bool { return priceDay(&s) == of.PriceDay }) {
			prices = append(prices, waitingFund(of.PriceDay))
		}
	}
	return prices, err
}

func operationObject(o *backoffice.Operation) object {
	sales, postings, notifications := []object{}, []object{}, []object{}
	reasons, erased := []object{}, []object{}
	of := object{"Operation": o.ID.String(), "Name": "import or correction", "Refused": o.Refusal != nil}
	var state operation.State
	if was, ok := o.Decision(); ok {
		state = was.State
		of["Name"], of["Subscription"], of["Received"] = was.Operation.String(), was.Subscription, instant(was.ReceivedAt)
		of["CallerId"], of["RequestId"] = was.Header.CallerID, was.Header.RequestID
	}
	if state != 0 {
		of["State"], of["StateNumber"] = state.String(), int(state)
	}
	for _, f := range o.Faults() {
		reasons = append(reasons, object{"Code": f.Code, "Pointer": f.Pointer})
	}
	if o.Reversal != nil {
		of["Reversed"] = object{"At": instant(o.Reversal.At), "Reversal": o.Reversal.ID.String()}
	}
	for _, s := range slices.Concat(o.Sales, o.RefusedSales) {
		sale := resultObject(&s)
		sale["Sale"], sale["Customer"] = s.Index, s.Terms.Holding.CustomerNo
		sales = append(sales, sale)
	}
	if at := o.CancelledAt(); !at.IsZero() {
		of["Cancelled"] = instant(at)
	} else if len(o.Sales) > 0 {
		of["Settled"] = instant(o.Sales[0].SettledAt)
	}
	for _, p := range slices.Concat(o.Postings, o.ReversalPostings) {
		postings = append(postings, object{"Posted": instant(p.PostedAt), "Kind": p.Kind.String(), "Position": p.Position(), "By": p.Format(p.Quantity)})
	}
	for i := range o.Notifications {
		n := &o.Notifications[i]
		notifications = append(notifications, object{"Notification": n.Index, "PushId": n.Values.PushID, "UserId": n.Values.UserID})
		if n.Erasure != nil {
			erased = append(erased, object{"Notification": n.Index, "At": instant(n.Erasure.At()), "Reason": n.Erasure.Reason})
		}
	}
	of["Reason"], of["Erased"], of["Sales"], of["Postings"], of["Notifications"] = reasons, erased, sales, postings, notifications
	return of
}

// saleObject returns what a sale requested, and why it was refused.
func saleObject(s *fund.SaleEntry) object {
	h, a := s.Terms.Holding, s.Terms.Account
	return object{
		"Fund": h.IMKBCode + " " + quoted(h.HolderCorporationName), "Units": s.Terms.Units.String(),
		"Account": accountText(a) + " " + a.Currency.Code(), "Day": s.Terms.SelectedDay.String(), "Refusal": s.Refusal,
	}
}

// resultObject returns saleObject with the result of the sale.
func resultObject(s *fund.SaleEntry) object {
	of := saleObject(s)
	of["State"], of["Price"], of["Proceeds"] = s.State.String(), nil, nil
	if s.PriceID != 0 {
		of["Price"], of["Proceeds"] = s.PerUnit.String(), s.Proceeds.String()+" "+s.Terms.Account.Currency.Code()
	}
	return of
}

func accountText(a fund.AccountKey) string {
	return fmt.Sprintf("%d-%d-%d", a.BranchCode, a.CustomerNo, a.AccountSuffix)
}

func readCustomer(c *call) (of backoffice.Query, err error) {
	of.Order, of.Limit = backoffice.Newest, int(c.number("limit"))
	if of.CustomerNo, err = strconv.ParseInt(c.args[0], 10, 64); err != nil || of.CustomerNo <= 0 {
		return of, wrongUsef("NUMBER must be a customer number greater than 0")
	}
	if of.Limit < 0 {
		return of, wrongUsef("--limit must be 1 or more, or 0 for no limit")
	}
	if _, of.Until, err = c.moment("at"); err == nil {
		of.Since, _, err = c.moment("since")
	}
	return of, err
}

func showCustomer(c *call, of backoffice.Query) error {
	c.look("show", "customer", strconv.FormatInt(of.CustomerNo, 10))
	customer, err := c.office.Customer(c.Context(), of.CustomerNo, of.Until)
	if err != nil {
		return err
	}
	positions, statement, sales, refused := []object{}, []object{}, []object{}, []object{}
	for _, h := range customer.Holdings {
		positions = append(positions, object{"Position": h.Key.IMKBCode + " " + quoted(h.Key.HolderCorporationName), "Has": h.Units.String()})
	}
	for _, a := range customer.Accounts {
		positions = append(positions, object{"Position": "account " + accountText(a.Key), "Has": a.Balance.String() + " " + a.Key.Currency.Code()})
	}
	for line, err := range c.office.Statement(c.Context(), of.CustomerNo, of.Until) {
		if err != nil {
			return err
		}
		if line.PostedAt.Before(of.Since) { // it only counts for later balances
			continue
		}
		if of.Limit > 0 && len(statement) == of.Limit {
			statement = statement[1:]
		}
		statement = append(statement, object{
			"Posted": instant(line.PostedAt), "Operation": line.OperationID.String(), "Kind": line.Kind.String(),
			"Position": line.Position(), "By": line.Format(line.Quantity), "After": line.Format(line.After),
		})
	}
	for _, list := range []*[]object{&sales, &refused} {
		of.Refused = list == &refused
		for s, err := range c.office.Reader.Sales(c.Context(), of) {
			if err != nil {
				return err
			}
			sale := saleObject(&s)
			if !of.Refused {
				sale = resultObject(&s)
				sale["Settled"], sale["Reversed"] = instant(s.SettledAt), instant(s.ReversedAt)
			}
			sale["Received"], sale["Operation"] = instant(s.ReceivedAt), s.ID.String()
			*list = append(*list, sale)
		}
		slices.Reverse(*list)
	}
	if len(positions)+len(statement)+len(sales)+len(refused) == 0 {
		has, when := "has", ""
		if since := c.text("since"); since != "" {
			when = " since " + since
		}
		if at := c.text("at"); at != "" {
			has, when = "had", when+" up to "+at
		}
		return fmt.Errorf("not found: customer %d %s no holding, no account, no posting and no sale%s", of.CustomerNo, has, when)
	}
	return c.write("customer", object{"Positions": positions, "Statement": statement, "Sales": sales, "Refused": refused})
}

func showNotification(c *call) error {
	pushID := c.text("push-id")
	c.look("show", "notification", pushID)
	var found int64
	of := bookfile.Query{Query: backoffice.Query{PushID: pushID}}
	err := bookfile.Export(c.Context(), c.office, "notifications", "ndjson", of, c.OutOrStdout(), func(rows int64) { found = rows })
	if err == nil && found == 0 {
		err = errors.New("not found: a notification with this PushId")
	}
	return err
}

// look records in the audit that a person read data of customers, because commands do not mask
// it. It reports whether the act was recorded. A standby cannot record it: then look prints a
// warning and continues. A signal does not stop look.
func (c *call) look(action, object, details string) bool {
	ctx := context.WithoutCancel(c.Context())
	err := c.office.Audit.Keep(ctx, c.office.Acts.New(ctx, "command."+action, object, details))
	if err != nil {
		c.PrintErrf("Warning: the audit does not have that you read this: %v\n", fault.Explain(err))
	}
	return err == nil
}
