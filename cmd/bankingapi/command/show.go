package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

func showCommand(p program) *cobra.Command {
	return group(described("show"), showOperationCommand(p), showCustomerCommand(p), showNotificationCommand(p))
}

type showOperationOptions struct {
	id                                operation.ID
	callerID, subscription, requestID string
}

func showOperationCommand(p program) *cobra.Command {
	var o showOperationOptions
	cmd := p.onBook(described("show operation"), o.check, o.run)
	flags := cmd.Flags()
	flags.StringVar(&o.callerID, "caller-id", "", "`CallerId` of the operation, with --subscription")
	flags.StringVar(&o.subscription, "subscription", "", "`name` of the subscription that sent the CallerId")
	flags.StringVar(&o.requestID, "request-id", "", "`X-Request-Id` of the answer")
	return addFormat(cmd)
}

func (o *showOperationOptions) check(c *call) error {
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
	case len(c.args) == 0:
		return nil
	}
	var err error
	o.id, err = parseID(c.args[0])
	return err
}

func (o *showOperationOptions) run(c *call) error {
	all, what, err := o.find(c)
	if errors.Is(err, backoffice.ErrNotFound) {
		return fmt.Errorf("not found: %s", what)
	}
	if err != nil {
		return err
	}
	zone, err := c.settings.Bank.Location()
	if err != nil {
		return err
	}
	documents := make([]document, len(all))
	for i := range all {
		c.look("show", "operation", all[i].ID.String())
		documents[i] = operationDocument(&all[i], zone)
		prices, err := missingPrices(c, &all[i])
		if err != nil {
			return err
		}
		if prices != "" {
			documents[i].fields = append(documents[i].fields, field{"Waits for", prices})
		}
	}
	return c.write(micros, documents...)
}

// find returns the operations, and what was looked for.
func (o *showOperationOptions) find(c *call) (all []backoffice.Operation, what string, err error) {
	switch {
	case o.callerID != "":
		all, err = c.office.OperationsOf(c.Context(), o.subscription, o.callerID)
		return all, "an operation with this CallerId of this subscription. A 4xx or 5xx answer leaves none: it is in the log of the replica that answered", err
	case o.requestID != "":
		all, err = c.office.OperationsOfRequest(c.Context(), o.requestID)
		return all, "an operation with this X-Request-Id. Repeats, 4xx and 5xx answers leave none: they are in the log of the replica that answered, as request_id", err
	}
	one, err := c.office.Operation(c.Context(), o.id)
	return []backoffice.Operation{one}, "operation " + c.args[0], err
}

// missingPrices names the prices that a due operation waits for.
func missingPrices(c *call, o *backoffice.Operation) (prices string, err error) {
	if len(o.Sales) == 0 || o.Sales[0].State != operation.Recorded {
		return "", nil
	}
	due, err := c.app.Buyer().CountDue(c.Context())
	var all []string
	for _, of := range due.ForPrice {
		sells := func(s fund.SaleEntry) bool { return s.Terms.Holding.Fund == of.Fund && s.Terms.SelectedDay == of.Day }
		if slices.ContainsFunc(o.Sales, sells) {
			all = append(all, fmt.Sprintf("a price of %s (%s), %s", of.Fund.IMKBCode, of.Fund.HolderCorporationName, of.Day))
		}
	}
	return strings.Join(all, "; "), err
}

func operationDocument(o *backoffice.Operation, zone *time.Location) document {
	var d document
	field := func(name string, value any) { d.fields = append(d.fields, field{name, value}) }
	field("Operation", o.ID.String())
	switch was, ok := o.Decision(); {
	case ok:
		field("Name", was.Operation.String())
		field("Subscription", was.Subscription)
		field("CallerId", was.Header.CallerID)
		field("RequestId", was.Header.RequestID)
		field("Received", was.ReceivedAt)
		state := fmt.Sprintf("%d %s", was.State, was.State)
		if o.Refusal != nil {
			state += ": refused at once, nothing was changed"
		}
		field("State", state)
		if len(o.Sales) > 0 {
			field("Settled", o.Sales[0].SettledAt)
		}
	case o.Record != nil:
		field("Name", o.Record.Key.Operation.String())
		field("Subscription", o.Record.Key.Subscription)
		field("CallerId", o.Record.Key.CallerID)
		field("State", fmt.Sprintf("%d %s", o.Record.Outcome.State, o.Record.Outcome.State))
	default:
		field("Name", "import or correction")
	}
	faults := o.Faults()
	reasons := make([]string, len(faults))
	for i, f := range faults {
		reasons[i] = f.Code + " at " + f.Pointer
	}
	field("Reason", reasons)
	if o.Reversal != nil {
		field("Reversed", o.Reversal.At.In(zone).Format(micros)+" by "+o.Reversal.ID.String())
	}
	if o.Refusal != nil && len(o.RefusedSales) == 0 {
		field("Asked", "not kept by the version that refused it")
	}
	sales := table{name: "Sales", columns: []string{"Sale", "Customer", "Fund", "Units", "Account", "Day", "State", "Price", "Proceeds", "Refusal"}}
	asked := slices.Concat(o.Sales, o.RefusedSales)
	for i := range asked {
		s := &asked[i]
		var price, proceeds string
		if s.PriceID != 0 {
			price, proceeds = s.PerUnit.String(), s.Proceeds.String()+" "+s.Terms.Account.Currency.Code()
		}
		fund, account := saleTexts(s)
		sales.add(s.Index, s.Terms.Holding.CustomerNo, fund, s.Terms.Units, account, s.Terms.SelectedDay.String(), s.State, optional(price), optional(proceeds), s.Refusal)
	}
	postings := table{name: "Postings", columns: []string{"Posted", "Kind", "Position", "By"}}
	for _, all := range [][]fund.PostingEntry{o.Postings, o.ReversalPostings} {
		for i := range all {
			postings.add(all[i].PostedAt, all[i].Kind, raw(all[i].Position()), raw(all[i].Format(all[i].Quantity)))
		}
	}
	notifications := table{name: "Notifications", columns: []string{"Notification", "PushId", "UserId"}, line: "notification %s: push %s to user %s\n"}
	for i := range o.Notifications {
		n := &o.Notifications[i]
		notifications.add(n.Index, n.Record.PushID, n.Record.UserID)
		if n.Erasure != nil {
			field("Erased", fmt.Sprintf("notification %d, %s: %s", n.Index, n.Erasure.At().In(zone).Format(micros), n.Erasure.Reason))
		}
	}
	d.tables = []table{sales, postings, notifications}
	return d
}

// saleTexts are the fund and the account of a sale.
func saleTexts(s *fund.SaleEntry) (of, account any) {
	h, a := s.Terms.Holding, s.Terms.Account
	return raw(h.IMKBCode + " " + oneWord(h.HolderCorporationName)), raw(accountText(a) + " " + a.Currency.Code())
}

func accountText(a fund.AccountKey) string {
	return fmt.Sprintf("%d-%d-%d", a.BranchCode, a.CustomerNo, a.AccountSuffix)
}

type showCustomerOptions struct {
	at, since    string
	limit        int
	number       int64
	until, after time.Time
}

func showCustomerCommand(p program) *cobra.Command {
	var o showCustomerOptions
	cmd := p.onBook(described("show customer"), o.check, o.run)
	cmd.Flags().StringVar(&o.at, "at", "", "at the end of this `day`, or before this time")
	cmd.Flags().StringVar(&o.since, "since", "", "only postings and refused sales from this `day` or time on")
	cmd.Flags().IntVar(&o.limit, "limit", 0, "only the newest postings and refused sales, at most this `number` of each")
	return addFormat(cmd)
}

func (o *showCustomerOptions) check(c *call) (err error) {
	if o.number, err = strconv.ParseInt(c.args[0], 10, 64); err != nil || o.number <= 0 {
		return wrongUsef("NUMBER must be a customer number greater than 0")
	}
	if o.limit < 0 {
		return wrongUsef("--limit must be 1 or more, or 0 for no limit")
	}
	if _, o.until, err = moment(c.settings.Bank, "at", o.at); err == nil {
		o.after, _, err = moment(c.settings.Bank, "since", o.since)
	}
	return err
}

func (o *showCustomerOptions) run(c *call) error {
	c.look("show", "customer", c.args[0])
	customer, err := c.office.Finder.Customer(c.Context(), o.number, o.until)
	if err != nil {
		return err
	}
	positions := table{name: "Positions", columns: []string{"Position", "Has"}}
	for _, h := range customer.Holdings {
		positions.add(raw(h.Key.IMKBCode+" "+oneWord(h.Key.HolderCorporationName)), h.Units)
	}
	for _, a := range customer.Accounts {
		positions.add(raw("account "+accountText(a.Key)), raw(a.Balance.String()+" "+a.Key.Currency.Code()))
	}
	statement := table{name: "Statement", columns: []string{"Posted", "Operation", "Kind", "Position", "By", "After"}}
	for line, err := range c.office.Finder.Statement(c.Context(), o.number, o.until) {
		if err != nil {
			return err
		}
		if line.PostedAt.Before(o.after) { // it counts for what comes after
			continue
		}
		if o.limit > 0 && len(statement.rows) == o.limit {
			statement.rows = statement.rows[1:]
		}
		statement.add(line.PostedAt, line.OperationID, line.Kind, raw(line.Position()), raw(line.Format(line.Quantity)), raw(line.Format(line.After)))
	}
	refused := table{name: "Refused", columns: []string{"Received", "Operation", "Fund", "Units", "Account", "Day", "Refusal"}}
	of := backoffice.Query{Refused: true, CustomerNo: o.number, Since: o.after, Until: o.until, Order: backoffice.Newest, Limit: o.limit}
	for s, err := range c.office.Reader.Sales(c.Context(), of) {
		if err != nil {
			return err
		}
		fund, account := saleTexts(&s)
		refused.add(s.ReceivedAt, s.OperationID, fund, s.Terms.Units, account, s.Terms.SelectedDay.String(), s.Refusal)
	}
	slices.Reverse(refused.rows)
	if len(positions.rows)+len(statement.rows)+len(refused.rows) == 0 {
		return fmt.Errorf("not found: customer %d has no holding, no account, no posting and no refused sale", o.number)
	}
	return c.write(micros, document{tables: []table{positions, statement, refused}})
}

func showNotificationCommand(p program) *cobra.Command {
	var pushID string
	cmd := p.onBook(described("show notification"), nil, func(c *call) error {
		c.look("show", "notification", pushID)
		var found int64
		err := bookfile.Export(c.Context(), c.office, "notifications", "ndjson", bookfile.Query{Query: backoffice.Query{PushID: pushID}}, c.OutOrStdout(), func(rows int64) { found = rows })
		if err == nil && found == 0 {
			err = errors.New("not found: a notification with this PushId")
		}
		return err
	})
	cmd.Flags().StringVar(&pushID, "push-id", "", "`PushId` of the notification")
	return addFormat(needs(cmd, "push-id"))
}

// look keeps in the audit that a person read data of customers, which commands do not
// mask. A standby cannot keep it: then it says so and goes on.
func (c *call) look(action, object, details string) {
	if err := c.office.Audit.Record(c.Context(), c.office.Acts.New(c.Context(), "command."+action, object, details)); err != nil {
		c.tell("Warning: the audit does not have that you read this: %v\n", fault.Explain(err))
	}
}
