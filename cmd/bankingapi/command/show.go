package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

type showOperationCommand struct {
	callerID, subscription, requestID string

	id operation.ID // if the argument names it
}

func (o *showOperationCommand) flags(f *flags) {
	f.json()
	f.set.StringVar(&o.callerID, "caller-id", "", "`CallerId` of the operation, with --subscription")
	f.set.StringVar(&o.subscription, "subscription", "", "`name` of the subscription that sent the CallerId")
	f.set.StringVar(&o.requestID, "request-id", "", "`X-Request-Id` of the answer")
}

func (o *showOperationCommand) check(c *call) (err error) {
	given := len(c.args)
	for _, text := range []string{o.callerID, o.requestID} {
		if text != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return wrongUsef("give an ID, or --caller-id and --subscription, or --request-id")
	case (o.callerID == "") != (o.subscription == ""):
		return wrongUsef("--caller-id and --subscription go together: each subscription has CallerIds of its own")
	case len(c.args) > 0:
		o.id, err = parseID(c.args[0])
	}
	return err
}

func (o *showOperationCommand) run(c *call) error {
	all, what, err := o.named(c)
	if errors.Is(err, backoffice.ErrNotFound) {
		return fmt.Errorf("not found: %s", what)
	}
	if err != nil {
		return err
	}
	for i := range all {
		c.look(audit.CommandShow, "operation", all[i].ID.String())
		shown := shownOperationOf(&all[i])
		act, err := c.office.Correction(c.cmd.Context(), &all[i])
		if err != nil {
			return err
		}
		if act != nil {
			shown.Corrected = &correction{act.Actor, act.Reason}
		}
		if shown.WaitsFor, err = missingPrices(c, &all[i]); err != nil {
			return err
		}
		if err := c.write("operation", shown); err != nil {
			return err
		}
	}
	return nil
}

// named returns the operations that the flags or the argument name, and a description of the
// search.
func (o *showOperationCommand) named(c *call) (all []backoffice.Operation, what string, err error) {
	switch {
	case o.callerID != "":
		all, err = c.operationsOf(o.subscription, o.callerID)
		what = "an operation with this CallerId of this subscription. "
	case o.requestID != "":
		all, err = c.office.OperationsOfRequest(c.cmd.Context(), o.requestID)
		what = "an operation with this X-Request-Id. "
	default:
		one, err := c.office.Operation(c.cmd.Context(), o.id)
		return []backoffice.Operation{one}, "operation " + c.args[0] + ". Use --request-id if it is an X-Request-Id", err
	}
	if errors.Is(err, backoffice.ErrNotFound) {
		what += answered(c, backoffice.Query{CallerID: o.callerID, RequestID: o.requestID, Subscription: o.subscription})
	}
	return all, what, err
}

// operationsOf finds the operations that a subscription sent with a CallerId.
func (c *call) operationsOf(subscription, callerID string) ([]backoffice.Operation, error) {
	found, err := c.office.OperationsOf(c.cmd.Context(), subscription, callerID)
	if errors.Is(err, backoffice.ErrNotFound) {
		_, unknown := c.subscription(subscription)
		err = cmp.Or(unknown, err)
	}
	return found, err
}

// answered describes the answer to the last request without an operation. With --format json it
// also writes the row of that answer, as export requests does.
func answered(c *call, of backoffice.Query) string {
	of.Order = backoffice.Newest
	of.Limit = 1
	for a, err := range c.office.Reader.Requests(c.cmd.Context(), of) {
		if err != nil {
			continue
		}
		if c.format == "json" {
			err = c.write("", bookfile.JSON(bookfile.Requests, &a))
			if err != nil {
				continue
			}
		}
		if a.Replayed {
			return fmt.Sprintf("It was answered at %s as a repeat of operation %s", a.At.UTC().Format(time.RFC3339), a.OperationID)
		}
		return fmt.Sprintf("It was answered %d %s at %s, and nothing was stored", a.Status, strings.Join(a.Codes, " "), a.At.UTC().Format(time.RFC3339))
	}
	return "Repeats, 4xx and 5xx answers leave none, and the log of requests does not have it: the log of the replica that answered may have it, as request_id"
}

// missingPrices returns the prices that a due operation waits for.
func missingPrices(c *call, o *backoffice.Operation) (prices []awaited, err error) {
	prices = []awaited{}
	if len(o.Sales) == 0 || o.Sales[0].State != operation.Recorded {
		return prices, nil
	}
	due, err := c.app.Buyer().CountDue(c.cmd.Context())
	for _, of := range due.ForPrice {
		if slices.ContainsFunc(o.Sales, func(s fund.SaleEntry) bool { return s.PriceDay() == of.PriceDay }) {
			prices = append(prices, awaitedPrice(of.PriceDay))
		}
	}
	return prices, err
}

// shownOperation is what show operation prints. Its names are those of export operations.
type shownOperation struct {
	OperationID   string          `json:"OperationId"`
	Operation     *string         // its name, or nil for an import or a correction
	Subscription  *string         `json:",omitempty"`
	CallerID      *string         `json:"CallerId,omitempty"`
	RequestID     *string         `json:"RequestId,omitempty"`
	ReceivedAt    *moment         `json:",omitempty"`
	State         operation.State `json:",omitempty"`
	Refused       bool
	CancelledAt   *moment     `json:",omitempty"`
	SettledAt     *moment     `json:",omitempty"`
	Errors        []refusal   // why it was refused or has failed, as in answers
	Reversed      *reversal   `json:",omitempty"`
	Corrected     *correction `json:",omitempty"`
	Erased        []erased
	WaitsFor      []awaited
	Sales         []sale
	Postings      []posting
	Notifications []notification
	Repeated      []repeated
}

type refusal struct {
	Code    string `json:"code"`
	Pointer string `json:"pointer"`
}

type reversal struct {
	At         *moment
	ReversalID string `json:"ReversalId"`
}

type correction struct{ By, Reason string }

type erased struct {
	Position int
	At       *moment
	Reason   string
}

// repeated is a message that was stored before, by another operation or by an earlier record.
type repeated struct {
	Position          int
	StoredOperationID string `json:"StoredOperationId"`
	StoredPosition    int
}

type notification struct {
	Position int
	PushID   string `json:"PushId"`
	UserID   string `json:"UserId"`
}

// sale is a sale of an operation or of a customer. As JSON it is the row of export sales.
type sale struct{ Entry fund.SaleEntry }

// MarshalJSON implements json.Marshaler.
func (s sale) MarshalJSON() ([]byte, error) { return bookfile.JSON(bookfile.Sales, &s.Entry), nil }

func (s sale) Fund() string { return fundText(s.Entry.Terms.Holding.Fund) }

func (s sale) Account() string {
	account := s.Entry.Terms.Account
	return accountText(account) + " " + account.Currency.Code()
}

// Price is the price at which the sale was settled, or - before.
func (s sale) Price() string {
	if s.Entry.PriceID == 0 {
		return "-"
	}
	return s.Entry.PerUnit.String()
}

// Proceeds are what the sale has brought, or - before.
func (s sale) Proceeds() string {
	if s.Entry.PriceID == 0 {
		return "-"
	}
	return s.Entry.Proceeds.String() + " " + s.Entry.Terms.Account.Currency.Code()
}

func (s sale) ReceivedAt() *moment { return instant(s.Entry.ReceivedAt) }

func (s sale) EndedAt() *moment { return instant(s.Entry.SettledAt) }

func (s sale) ReversedAt() *moment { return instant(s.Entry.ReversedAt) }

// posting is a posting of an operation. As JSON it is the row of export postings, for the
// customer's side.
type posting struct{ Entry fund.PostingEntry }

// MarshalJSON implements json.Marshaler.
func (p posting) MarshalJSON() ([]byte, error) {
	return bookfile.JSON(bookfile.Postings, &p.Entry), nil
}

func (p posting) Position() string { return positionText(&p.Entry) }

func (p posting) By() string { return p.Entry.Format(p.Entry.Quantity) }

func (p posting) PostedAt() *moment { return instant(p.Entry.PostedAt) }

func shownOperationOf(o *backoffice.Operation) shownOperation {
	of := shownOperation{
		OperationID: o.ID.String(), Refused: o.Refusal != nil,
		Errors: []refusal{}, Erased: []erased{}, WaitsFor: []awaited{}, Sales: []sale{}, Postings: []posting{}, Notifications: []notification{}, Repeated: []repeated{},
	}
	if was, ok := o.Decision(); ok {
		requestID := cmp.Or(was.Header.RequestID, of.OperationID)
		name := was.Operation.String()
		of.Operation = &name
		of.ReceivedAt = instant(was.ReceivedAt)
		of.State = was.State
		of.Subscription = &was.Subscription
		of.CallerID = &was.Header.CallerID
		of.RequestID = &requestID
	}
	for _, f := range o.Faults() {
		of.Errors = append(of.Errors, refusal{f.Code, f.Pointer})
	}
	if o.Reversal != nil {
		of.Reversed = &reversal{instant(o.Reversal.At), o.Reversal.ID.String()}
	}
	for _, s := range slices.Concat(o.Sales, o.RefusedSales) {
		of.Sales = append(of.Sales, sale{s})
	}
	at := o.CancelledAt()
	if !at.IsZero() {
		of.CancelledAt = instant(at)
	} else if len(o.Sales) > 0 {
		of.SettledAt = instant(o.Sales[0].SettledAt)
	}
	for _, p := range slices.Concat(o.Postings, o.ReversalPostings) {
		of.Postings = append(of.Postings, posting{p})
	}
	for i := range o.Notifications {
		n := &o.Notifications[i]
		of.Notifications = append(of.Notifications, notification{n.Index, n.Values.PushID, n.Values.UserID})
		if n.Erasure != nil {
			of.Erased = append(of.Erased, erased{n.Index, instant(n.Erasure.At()), n.Erasure.Reason})
		}
	}
	for _, r := range o.Repeated {
		of.Repeated = append(of.Repeated, repeated{r.Index, r.StoredBy.String(), r.StoredIndex})
	}
	return of
}

func fundText(f fund.Fund) string { return f.IMKBCode + " " + quoted(f.HolderCorporationName) }

func accountText(a fund.AccountKey) string {
	return fmt.Sprintf("%d-%d-%d", a.BranchCode, a.CustomerNo, a.AccountSuffix)
}

// positionText names the holding or account of a posting.
func positionText(p *fund.PostingEntry) string {
	if p.IsMoney() {
		return "account " + accountText(p.Account) + " " + p.Account.Currency.Code()
	}
	return fundText(p.Holding.Fund)
}

type showCustomerCommand struct {
	at, since string
	limit     optional[int64]

	query backoffice.Query
}

func (o *showCustomerCommand) flags(f *flags) {
	f.json()
	f.set.StringVar(&o.at, "at", "", "at the end of this `day`, or before this time")
	f.set.StringVar(&o.since, "since", "", "only postings and sales from this `day` or time on")
	f.set.Var(number(&o.limit), "limit", "only the newest postings and sales, at most this `number` of each list")
}

func (o *showCustomerCommand) check(c *call) (err error) {
	q := &o.query
	q.Order = backoffice.Newest
	q.Limit = int(o.limit.value)
	q.CustomerNo, err = strconv.ParseInt(c.args[0], 10, 64)
	if err != nil || q.CustomerNo <= 0 {
		return wrongUsef("NUMBER must be a customer number greater than 0")
	}
	if q.Limit < 0 {
		return wrongUsef("--limit must be 1 or more, or 0 for no limit")
	}
	return nil
}

func (o *showCustomerCommand) dates(c *call) (err error) {
	o.query.Since, o.query.Until, err = c.period("since", o.since, "at", o.at)
	return err
}

// shownCustomer is what show customer prints.
type shownCustomer struct {
	CustomerNo int64
	Holdings   []holding
	Accounts   []account
	Statement  []statementLine
	Sales      []sale
	Refused    []sale
}

// holding is a holding of a customer. As JSON it is the row of export holdings.
type holding struct{ Entry fund.Holding }

// MarshalJSON implements json.Marshaler.
func (h holding) MarshalJSON() ([]byte, error) {
	return bookfile.JSON(bookfile.Holdings, &h.Entry), nil
}

func (h holding) Fund() string { return fundText(h.Entry.Key.Fund) }

// account is an account of a customer. As JSON it is the row of export accounts.
type account struct{ Entry fund.Account }

// MarshalJSON implements json.Marshaler.
func (a account) MarshalJSON() ([]byte, error) {
	return bookfile.JSON(bookfile.Accounts, &a.Entry), nil
}

func (a account) Number() string { return accountText(a.Entry.Key) }

func (a account) Balance() string {
	return a.Entry.Balance.String() + " " + a.Entry.Key.Currency.Code()
}

// statementLine is a posting, with what the customer has after it. As JSON it is the row that the
// console downloads as the statement.
type statementLine struct{ Line backoffice.Line }

// MarshalJSON implements json.Marshaler.
func (l statementLine) MarshalJSON() ([]byte, error) {
	return bookfile.JSON(bookfile.Statement, &l.Line), nil
}

func (l statementLine) Position() string { return positionText(&l.Line.Posting) }

func (l statementLine) By() string { return l.Line.Posting.Format(l.Line.Posting.Quantity) }

func (l statementLine) After() string { return l.Line.Posting.Format(l.Line.After) }

func (l statementLine) PostedAt() *moment { return instant(l.Line.Posting.PostedAt) }

func (o *showCustomerCommand) run(c *call) error {
	c.look(audit.CommandShow, "customer", strconv.FormatInt(o.query.CustomerNo, 10))
	customer, err := c.office.Customer(c.cmd.Context(), o.query.CustomerNo, o.query.Until)
	if err != nil {
		return err
	}
	shown := shownCustomer{
		CustomerNo: o.query.CustomerNo, Holdings: []holding{}, Accounts: []account{}, Sales: []sale{}, Refused: []sale{},
	}
	for _, h := range customer.Holdings {
		shown.Holdings = append(shown.Holdings, holding{h})
	}
	for _, a := range customer.Accounts {
		shown.Accounts = append(shown.Accounts, account{a})
	}
	if shown.Statement, err = o.statement(c); err != nil {
		return err
	}
	if err := o.addSales(c, &shown); err != nil {
		return err
	}
	if len(shown.Holdings)+len(shown.Accounts)+len(shown.Statement)+len(shown.Sales)+len(shown.Refused) == 0 {
		return o.notFound()
	}
	return c.write("customer", shown)
}

// statement returns the newest lines of the statement, the oldest of them first.
func (o *showCustomerCommand) statement(c *call) ([]statementLine, error) {
	lines := []statementLine{}
	for line, err := range c.office.Statement(c.cmd.Context(), o.query.CustomerNo, o.query.Until) {
		if err != nil {
			return nil, err
		}
		if line.Posting.PostedAt.Before(o.query.Since) { // it only counts for later balances
			continue
		}
		if o.query.Limit > 0 && len(lines) == o.query.Limit {
			lines = lines[1:]
		}
		lines = append(lines, statementLine{line})
	}
	return lines, nil
}

// addSales adds the sales, and those that were refused at once.
func (o *showCustomerCommand) addSales(c *call, shown *shownCustomer) error {
	of := o.query
	for s, err := range c.office.Reader.Sales(c.cmd.Context(), of) {
		if err != nil {
			return err
		}
		shown.Sales = append(shown.Sales, sale{s})
	}
	of.Refused = true
	for s, err := range c.office.Reader.Sales(c.cmd.Context(), of) {
		if err != nil {
			return err
		}
		shown.Refused = append(shown.Refused, sale{s})
	}
	slices.Reverse(shown.Sales)
	slices.Reverse(shown.Refused)
	return nil
}

func (o *showCustomerCommand) notFound() error {
	has := "has"
	when := ""
	if o.since != "" {
		when = " since " + o.since
	}
	if o.at != "" {
		has = "had"
		when = when + " up to " + o.at
	}
	return fmt.Errorf("not found: customer %d %s no holding, no account, no posting and no sale%s", o.query.CustomerNo, has, when)
}

// look records in the audit that a person read data of customers, because commands do not mask
// it. It reports whether the act was recorded. A standby cannot record it: then look prints a
// warning and continues. A signal does not stop look.
func (c *call) look(action, object, details string) bool {
	ctx := context.WithoutCancel(c.cmd.Context())
	err := c.office.Audit.Keep(ctx, c.office.Acts.New(ctx, action, object, details))
	if err != nil {
		c.cmd.PrintErrf("Warning: the audit does not have that you read this: %v\n", fault.Explain(err))
		return false
	}
	return true
}
