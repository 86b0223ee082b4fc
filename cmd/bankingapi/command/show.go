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
		c.look("show", "operation", all[i].ID.String())
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

// answer is the answer to a request without an operation.
type answer struct {
	Answered     *time.Time
	Status       int
	Codes        []string
	Replayed     bool
	OperationID  any `json:"OperationId"`
	Name         string
	Subscription string
	CallerID     string `json:"CallerId"`
	RequestID    string `json:"RequestId"`
}

// answered describes the answer to the last request without an operation. With --format json it
// also writes that answer.
func answered(c *call, of backoffice.Query) string {
	of.Order, of.Limit = backoffice.Newest, 1
	for a, err := range c.office.Reader.Requests(c.cmd.Context(), of) {
		if err != nil {
			continue
		}
		if c.format == "json" {
			err = c.write("", answer{
				Answered: instant(a.At), Status: a.Status, Codes: slices.Concat([]string{}, a.Codes), Replayed: a.Replayed,
				OperationID: a.OperationID, Name: a.Operation, Subscription: a.Subscription, CallerID: a.CallerID, RequestID: a.RequestID,
			})
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

// shownOperation is what show operation prints.
type shownOperation struct {
	Operation, Name    string
	Subscription       *string    `json:",omitempty"`
	CallerID           *string    `json:"CallerId,omitempty"`
	RequestID          *string    `json:"RequestId,omitempty"`
	Received           *time.Time `json:",omitempty"`
	State              string     `json:",omitempty"`
	StateNumber        int        `json:",omitempty"`
	Refused            bool
	Cancelled, Settled *time.Time `json:",omitempty"`
	Reason             []reason
	Reversed           *reversal   `json:",omitempty"`
	Corrected          *correction `json:",omitempty"`
	Erased             []erased
	WaitsFor           []awaited
	Sales              []shownSale
	Postings           []posting
	Notifications      []notification
	Repeated           []repeated
}

type reason struct{ Code, Pointer string }

type reversal struct {
	At       *time.Time
	Reversal string
}

type correction struct{ By, Reason string }

type erased struct {
	Notification int
	At           *time.Time
	Reason       string
}

type posting struct {
	Posted             *time.Time
	Kind, Position, By string
}

// repeated is a message that was stored before, by another operation or by an earlier record.
type repeated struct {
	Notification       int
	StoredBy           string
	StoredNotification int
}

type notification struct {
	Notification int
	PushID       string `json:"PushId"`
	UserID       string `json:"UserId"`
}

// saleTerms is what a sale requested, and why it was refused.
type saleTerms struct{ Fund, Units, Account, Day, Refusal string }

// saleResult is a sale with its result. Price and Proceeds are null until it is completed.
type saleResult struct {
	saleTerms
	State           string
	Price, Proceeds *string
}

// shownSale is a sale of an operation.
type shownSale struct {
	saleResult
	Sale     int
	Customer int64
}

func shownOperationOf(o *backoffice.Operation) shownOperation {
	of := shownOperation{
		Operation: o.ID.String(), Name: "import or correction", Refused: o.Refusal != nil,
		Reason: []reason{}, Erased: []erased{}, WaitsFor: []awaited{}, Sales: []shownSale{}, Postings: []posting{}, Notifications: []notification{}, Repeated: []repeated{},
	}
	if was, ok := o.Decision(); ok {
		of.Name, of.Received = was.Operation.String(), instant(was.ReceivedAt)
		of.Subscription, of.CallerID, of.RequestID = &was.Subscription, &was.Header.CallerID, &was.Header.RequestID
		if was.State != 0 {
			of.State, of.StateNumber = was.State.String(), int(was.State)
		}
	}
	for _, f := range o.Faults() {
		of.Reason = append(of.Reason, reason{f.Code, f.Pointer})
	}
	if o.Reversal != nil {
		of.Reversed = &reversal{instant(o.Reversal.At), o.Reversal.ID.String()}
	}
	for _, s := range slices.Concat(o.Sales, o.RefusedSales) {
		of.Sales = append(of.Sales, shownSale{resultOf(&s), s.Index, s.Terms.Holding.CustomerNo})
	}
	if at := o.CancelledAt(); !at.IsZero() {
		of.Cancelled = instant(at)
	} else if len(o.Sales) > 0 {
		of.Settled = instant(o.Sales[0].SettledAt)
	}
	for _, p := range slices.Concat(o.Postings, o.ReversalPostings) {
		of.Postings = append(of.Postings, posting{instant(p.PostedAt), p.Kind.String(), p.Position(), p.Format(p.Quantity)})
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

func termsOf(s *fund.SaleEntry) saleTerms {
	h, a := s.Terms.Holding, s.Terms.Account
	return saleTerms{
		Fund: h.IMKBCode + " " + quoted(h.HolderCorporationName), Units: s.Terms.Units.String(),
		Account: accountText(a) + " " + a.Currency.Code(), Day: s.Terms.SelectedDay.String(), Refusal: s.Refusal,
	}
}

func resultOf(s *fund.SaleEntry) saleResult {
	of := saleResult{saleTerms: termsOf(s), State: s.State.String()}
	if s.PriceID != 0 {
		price, proceeds := s.PerUnit.String(), s.Proceeds.String()+" "+s.Terms.Account.Currency.Code()
		of.Price, of.Proceeds = &price, &proceeds
	}
	return of
}

func accountText(a fund.AccountKey) string {
	return fmt.Sprintf("%d-%d-%d", a.BranchCode, a.CustomerNo, a.AccountSuffix)
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
	q.Order, q.Limit = backoffice.Newest, int(o.limit.value)
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
	Positions []position
	Statement []statementLine
	Sales     []customerSale
	Refused   []refusedSale
}

type position struct{ Position, Has string }

type statementLine struct {
	posting
	Operation, After string
}

type refusedSale struct {
	saleTerms
	Received  *time.Time
	Operation string
}

type customerSale struct {
	saleResult
	Received, Settled, Reversed *time.Time
	Operation                   string
}

func (o *showCustomerCommand) run(c *call) error {
	c.look("show", "customer", strconv.FormatInt(o.query.CustomerNo, 10))
	customer, err := c.office.Customer(c.cmd.Context(), o.query.CustomerNo, o.query.Until)
	if err != nil {
		return err
	}
	shown := shownCustomer{positionsOf(customer), []statementLine{}, []customerSale{}, []refusedSale{}}
	if shown.Statement, err = o.statement(c); err != nil {
		return err
	}
	if err := o.addSales(c, &shown); err != nil {
		return err
	}
	if len(shown.Positions)+len(shown.Statement)+len(shown.Sales)+len(shown.Refused) == 0 {
		return o.notFound()
	}
	return c.write("customer", shown)
}

func positionsOf(customer backoffice.Customer) []position {
	positions := []position{}
	for _, h := range customer.Holdings {
		positions = append(positions, position{h.Key.IMKBCode + " " + quoted(h.Key.HolderCorporationName), h.Units.String()})
	}
	for _, a := range customer.Accounts {
		positions = append(positions, position{"account " + accountText(a.Key), a.Balance.String() + " " + a.Key.Currency.Code()})
	}
	return positions
}

// statement returns the newest lines of the statement, the oldest of them first.
func (o *showCustomerCommand) statement(c *call) ([]statementLine, error) {
	lines := []statementLine{}
	for line, err := range c.office.Statement(c.cmd.Context(), o.query.CustomerNo, o.query.Until) {
		if err != nil {
			return nil, err
		}
		if line.PostedAt.Before(o.query.Since) { // it only counts for later balances
			continue
		}
		if o.query.Limit > 0 && len(lines) == o.query.Limit {
			lines = lines[1:]
		}
		of := posting{instant(line.PostedAt), line.Kind.String(), line.Position(), line.Format(line.Quantity)}
		lines = append(lines, statementLine{of, line.OperationID.String(), line.Format(line.After)})
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
		shown.Sales = append(shown.Sales, customerSale{resultOf(&s), instant(s.ReceivedAt), instant(s.SettledAt), instant(s.ReversedAt), s.ID.String()})
	}
	of.Refused = true
	for s, err := range c.office.Reader.Sales(c.cmd.Context(), of) {
		if err != nil {
			return err
		}
		shown.Refused = append(shown.Refused, refusedSale{termsOf(&s), instant(s.ReceivedAt), s.ID.String()})
	}
	slices.Reverse(shown.Sales)
	slices.Reverse(shown.Refused)
	return nil
}

func (o *showCustomerCommand) notFound() error {
	has, when := "has", ""
	if o.since != "" {
		when = " since " + o.since
	}
	if o.at != "" {
		has, when = "had", when+" up to "+o.at
	}
	return fmt.Errorf("not found: customer %d %s no holding, no account, no posting and no sale%s", o.query.CustomerNo, has, when)
}

// look records in the audit that a person read data of customers, because commands do not mask
// it. It reports whether the act was recorded. A standby cannot record it: then look prints a
// warning and continues. A signal does not stop look.
func (c *call) look(action, object, details string) bool {
	ctx := context.WithoutCancel(c.cmd.Context())
	err := c.office.Audit.Keep(ctx, c.office.Acts.New(ctx, "command."+action, object, details))
	if err != nil {
		c.cmd.PrintErrf("Warning: the audit does not have that you read this: %v\n", fault.Explain(err))
		return false
	}
	return true
}
