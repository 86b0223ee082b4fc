package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/application/operator"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

type importCommand struct {
	format, asOf string
	force        bool

	options backoffice.ImportOptions
}

func (o *importCommand) flags(f *flags) {
	f.as()
	f.dryRun("say what would change, and change nothing")
	f.set.StringVar(&o.asOf, "as-of", "", "when the file was true: a `day` (its start) or a time. Refuse a file whose positions were sold or adjusted since")
	f.set.BoolVar(&o.force, "force", false, "import prices that differ by more than import.price_change_limit or are in another currency than before, and new funds that may be taken for others")
	formats := []string{string(bookfile.CSV), string(bookfile.Excel)}
	f.set.Var(&choice{&o.format, formats}, "format", "`format` of the file: csv or excel (default: the first line decides)")
	f.complete("format", formats...)
}

func (o *importCommand) check(c *call) error {
	if o.force && c.args[0] != "prices" && c.args[0] != "holdings" {
		return wrongUsef("--force is for prices and holdings")
	}
	if o.asOf != "" && c.args[0] != "holdings" && c.args[0] != "accounts" {
		return wrongUsef("--as-of is for holdings and accounts")
	}
	if !o.force {
		o.options.PriceChangeLimit = c.settings.Import.PriceChangeLimit
		o.options.SameCurrency = true
	}
	o.options.DryRun = c.dryRun
	return nil
}

func (o *importCommand) dates(c *call) (err error) {
	o.options.AsOf, _, err = c.moment("as-of", o.asOf)
	return err
}

func (o *importCommand) run(c *call) error {
	kind := c.args[0]
	name := c.args[1]
	file, err := c.openInput(name)
	if err != nil {
		return err
	}
	defer file.Close()
	name, size := inputOf(name)
	importing := "importing " + kind
	work := startProgress(c.cmd.ErrOrStderr(), importing+", reading", size)
	defer work.stop()
	o.options.Progress = work.rows.Store
	imported, err := bookfile.Import(c.cmd.Context(), c.office, kind, io.TeeReader(file, work), bookfile.Options{
		Import:       o.options,
		Name:         name,
		Details:      o.details(),
		Format:       bookfile.Format(o.format),
		CheckHolders: !o.force,
		Phase: func(phase string, lines int64) {
			if phase != "reading" { // startProgress already counts its bytes
				work.enter(importing+", "+phase, lines)
			}
		},
	})
	if err != nil {
		work.printf("%s", badLines(name, err))
		return err
	}
	return sayImported(c, work, kind, imported)
}

// details says for the audit that a person has left out the checks.
func (o *importCommand) details() string {
	if o.force {
		return "with --force"
	}
	return ""
}

// inputOf returns how an input is called, and its size in bytes, or 0 if that is unknown.
func inputOf(name string) (called string, size int64) {
	if name == "-" {
		return "standard input", 0
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return name, 0
	}
	return name, info.Size()
}

func sayImported(c *call, work *progress, kind string, imported backoffice.Imported) error {
	if kind == "calendar" {
		kind = "closed days"
	}
	done := "Imported"
	if c.dryRun {
		done = "Dry run, nothing was written:"
	}
	work.printf("%s %s: %s.\n", done, backoffice.Plural(imported.Lines(), strings.TrimSuffix(kind, "s")), imported)
	if imported.Lines() == 0 && kind != "closed days" { // a calendar without lines opens all days
		work.printf("The file has only its header.\n")
	}
	if warning := imported.Warning(); warning != "" {
		work.printf("%s\n", warning)
	}
	if kind != "closed days" || c.dryRun {
		return nil
	}
	warning, err := c.office.ClosedWarning(c.cmd.Context())
	if warning != "" {
		work.printf("%s\n", warning)
	}
	return err
}

// badLines lists the bad lines of a file in an error, for people.
func badLines(name string, err error) string {
	var text strings.Builder
	if bad, ok := errors.AsType[*backoffice.Faults](err); ok {
		for _, f := range bad.List {
			fmt.Fprintf(&text, "%s:%s\n", name, f)
		}
	}
	return text.String()
}

type reconcileCommand struct{ format string }

func (o *reconcileCommand) flags(f *flags) {
	f.oneOf(&o.format, "format", "format of the list", "csv", "json", "ndjson")
}

func (o *reconcileCommand) run(c *call) error {
	kind := c.args[0]
	name := c.args[1]
	if err := c.requireOutput(); err != nil {
		return err
	}
	file, err := c.openInput(name)
	if err != nil {
		return err
	}
	defer file.Close()
	c.look(audit.CommandShow, kind, "compared with a file")
	out := bufio.NewWriterSize(c.cmd.OutOrStdout(), 1<<16)
	compared, err := bookfile.Reconcile(c.cmd.Context(), c.office, kind, rowFormat(o.format), file, out)
	c.cmd.PrintErr(badLines(name, err))
	if err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if !compared.IsEqual() {
		return fmt.Errorf("the file and the book differ: %s", compared)
	}
	c.cmd.PrintErrf("The file and the book say the same: %s.\n", compared)
	return nil
}

var saleStates = map[string]operation.State{
	"": 0, "recorded": operation.Recorded, "1": operation.Recorded, "completed": operation.Completed, "2": operation.Completed,
	"failed": operation.Failed, "8": operation.Failed,
}

// filters are the flags that filter the rows of each kind.
var filters = map[string][]string{
	"prices":   {"since", "until"},
	"holdings": {"customer"},
	"accounts": {"customer"},
	"calendar": nil,
	"sales": {
		"customer", "since", "until", "due-since", "due-until", "settled-since", "settled-until", "state", "subscription",
		"caller-id", "request-id", "operation-id", "price-id", "follow",
	},
	"postings":      {"customer", "since", "until", "operation-id"},
	"notifications": {"user", "push-id", "since", "until", "subscription", "caller-id", "request-id", "operation-id", "follow"},
	"operations":    {"customer", "since", "until", "state", "subscription", "caller-id", "request-id", "operation-id"},
	"outcomes":      {"subscription", "follow"},
	"requests":      {"since", "until", "subscription", "caller-id", "request-id"},
	"audit":         {"since", "until", "actor", "action", "object", "customer"},
}

// personalFilters name a person or an object: the audit does not keep their values.
var personalFilters = []string{"customer", "user", "object"}

type exportCommand struct {
	format, state, operationID               string
	since, until, settledSince, settledUntil string
	spreadsheet                              bool
	customer, priceID                        optional[int64]

	query bookfile.Query
}

func (o *exportCommand) flags(f *flags) {
	q := &o.query
	f.oneOf(&o.format, "format", "format of the rows; json is ndjson, a line for each row", "csv", "json", "ndjson", "excel")
	f.set.BoolVar(&o.spreadsheet, "spreadsheet", false, "write an apostrophe before texts that a spreadsheet would run as a formula")
	f.set.BoolVar(&q.Follow, "follow", false, "continue with new sales, notifications or outcomes until interrupted. A sale comes again when it ends")
	f.set.Var(number(&o.customer), "customer", "only rows of this customer `number`, or acts that showed this customer")
	f.set.Var(number(&o.priceID), "price-id", "only sales that were settled at the price with this `PriceID`")
	f.set.StringVar(&o.since, "since", "", "only rows from this `day` or time on")
	f.set.StringVar(&o.until, "until", "", "only rows up to this `day`, or before this time")
	f.set.StringVar(&o.state, "state", "", "only sales or operations in this `state`: recorded, completed or failed")
	f.complete("state", "recorded", "completed", "failed")
	f.set.StringVar(&o.settledSince, "settled-since", "", "only sales that were settled from this `day` or time on")
	f.set.StringVar(&o.settledUntil, "settled-until", "", "only sales that were settled up to this `day`, or before this time")
	f.set.Var(&dayValue{&q.Filter.DueSince, "2026-11-20"}, "due-since", "only sales for this later `day` or a later one")
	f.set.Var(&dayValue{&q.Filter.DueUntil, "2026-11-20"}, "due-until", "only sales for this later `day` or an earlier one")
	f.set.StringVar(&q.Filter.UserID, "user", "", "only notifications of this `UserId`")
	f.set.StringVar(&q.Filter.PushID, "push-id", "", "only notifications with this `PushId`")
	f.set.StringVar(&q.Filter.Subscription, "subscription", "", "only rows of the subscription with this `name`")
	f.set.StringVar(&q.Filter.CallerID, "caller-id", "", "only rows with this `CallerId`")
	f.set.StringVar(&q.Filter.RequestID, "request-id", "", "only rows with this `X-Request-Id` of the caller")
	f.set.StringVar(&o.operationID, "operation-id", "", "only rows of this operation `ID`")
	f.set.StringVar(&q.Filter.Actor, "actor", "", "only acts of the person with this `name`")
	f.set.StringVar(&q.Filter.Action, "action", "", "only acts with this `action`, like subscriptions.change: the words of the command")
	f.complete("action", audit.Actions()...)
	f.set.StringVar(&q.Filter.Object, "object", "", "only acts on this `object`, like the name of a subscription")
}

// checkAction refuses an action that is most likely misspelt: no act would have it. A host may have
// actions of its own.
func checkAction(action string) error {
	known := audit.Actions()
	if action == "" || slices.Contains(known, action) {
		return nil
	}
	closest, isClose := fault.Closest(action, slices.Values(known), 4)
	if isClose {
		return wrongUsef("--action: there is no action %s: did you mean %s?", action, closest)
	}
	return nil
}

// check reads the flags, and refuses flags that do not apply.
func (o *exportCommand) check(c *call) (err error) {
	kind := c.args[0]
	q := &o.query
	if err := checkFilters(c, kind); err != nil {
		return err
	}
	var isKnown bool
	q.Filter.CustomerNo = o.customer.value
	q.Filter.PriceID = o.priceID.value
	q.Filter.State, isKnown = saleStates[strings.ToLower(o.state)]
	err = checkAction(q.Filter.Action)
	if err != nil {
		return err
	}
	switch {
	case o.spreadsheet && o.format != "csv":
		return wrongUsef("--spreadsheet is for --format csv")
	case o.customer.isGiven && o.customer.value <= 0:
		return wrongUsef("--customer must be greater than 0")
	case o.priceID.isGiven && o.priceID.value <= 0:
		return wrongUsef("--price-id must be greater than 0")
	case kind == "audit" && q.Filter.CustomerNo != 0 && q.Filter.Object != "":
		return wrongUsef("use --customer or --object, not both")
	case !q.Filter.DueUntil.IsNone() && q.Filter.DueUntil.Before(q.Filter.DueSince):
		return emptyPeriod("due-since", "due-until")
	case !isKnown:
		return wrongUsef("--state must be recorded, completed or failed")
	}
	if o.operationID != "" {
		q.Filter.OperationID, err = parseID(o.operationID)
	}
	return err
}

func (o *exportCommand) dates(c *call) (err error) {
	q := &o.query
	q.Filter.Since, q.Filter.Until, err = c.period("since", o.since, "until", o.until)
	if err != nil {
		return err
	}
	q.Filter.SettledSince, q.Filter.SettledUntil, err = c.period("settled-since", o.settledSince, "settled-until", o.settledUntil)
	return err
}

// checkFilters returns an error if a flag is given that does not filter the kind.
func checkFilters(c *call, kind string) error {
	for _, of := range slices.Sorted(maps.Keys(filters)) { // each filter is that of some kind
		for _, name := range filters[of] {
			switch {
			case !c.cmd.Flags().Lookup(name).Changed || slices.Contains(filters[kind], name):
			case name == "follow":
				return wrongUsef("--follow is for sales, notifications and outcomes")
			default:
				return wrongUsef("--%s does not filter %s", name, kind)
			}
		}
	}
	return nil
}

// customerObject returns what acts of the console call a customer that they showed. Without the
// key of the trail only acts of commands can be found.
func (c *call) customerObject(customerNo int64) string {
	if c.keeper.Missing() != nil {
		c.cmd.PrintErrf("Warning: without the key of the trail (trail.key_file) the acts of the console cannot be found. These are those of commands.\n")
		return "customer without a key"
	}
	return audit.CustomerObject(c.keeper.Secret(operator.ConsoleKey), customerNo)
}

// rowFormat returns the format of rows that --format names. Rows of JSON are NDJSON.
func rowFormat(format string) bookfile.Format {
	if format == "json" {
		return bookfile.NDJSON
	}
	return bookfile.Format(format)
}

// details says for the audit how rows are exported: the format and the filter. It does not name
// persons.
func (o *exportCommand) details(c *call, format bookfile.Format) string {
	var narrowed []string
	for _, name := range filters[c.args[0]] {
		flag := c.cmd.Flags().Lookup(name)
		switch {
		case !flag.Changed:
		case slices.Contains(personalFilters, name):
			narrowed = append(narrowed, name)
		default:
			narrowed = append(narrowed, name+"="+flag.Value.String())
		}
	}
	return strings.TrimRight(string(format)+", in full, "+strings.Join(narrowed, " "), ", ")
}

// showsCustomers reports whether rows of the kind have data of customers. Operations and acts do
// not name the customer unless they are filtered by one.
func (o *exportCommand) showsCustomers(kind string) bool {
	isOfCustomers := slices.Contains(filters[kind], "customer") && kind != "operations" && kind != "audit"
	return o.query.Filter.CustomerNo != 0 || isOfCustomers || slices.Contains(filters[kind], "user")
}

func (o *exportCommand) run(c *call) error {
	if err := c.requireOutput(); err != nil {
		return err
	}
	kind := c.args[0]
	format := rowFormat(o.format)
	if o.spreadsheet {
		format = bookfile.Spreadsheet
	}
	switch {
	case o.query.Filter.CustomerNo == 0:
	case kind == "audit":
		o.query.Filter.Object = c.customerObject(o.query.Filter.CustomerNo)
	default: // so that it is found among the acts that showed the customer
		c.look(audit.CommandShow, "customer", strconv.FormatInt(o.query.Filter.CustomerNo, 10))
	}
	details := o.details(c, format)
	isKept := o.showsCustomers(kind) && c.look(audit.CommandExport, kind, details)
	rows, err := o.write(c, kind, format)
	details = backoffice.Plural(rows, "row") + ", " + details
	if err != nil {
		details = "broken off after " + details
	}
	if isKept {
		c.look(audit.CommandExported, kind, details)
	}
	if err != nil {
		return err
	}
	if rows == 0 && o.query.Filter.Subscription != "" {
		if _, err := c.subscription(o.query.Filter.Subscription); err != nil {
			return err
		}
	}
	if o.query.Follow { // only a signal stops it
		c.cmd.Annotations["interrupted"] = "the output has everything up to then"
		return context.Cause(c.cmd.Context())
	}
	return nil
}

// write writes the rows, and returns how many it wrote.
func (o *exportCommand) write(c *call, kind string, format bookfile.Format) (rows int64, err error) {
	spooled := newSpool(c.cmd.OutOrStdout())
	if o.query.Follow {
		spooled.patience = math.MaxInt64 // it keeps no state of the book
	}
	rows, err = o.writeTo(c, spooled, kind, format)
	closed := spooled.Close(c.cmd.Context())
	return rows, cmp.Or(err, closed)
}

func (o *exportCommand) writeTo(c *call, output io.Writer, kind string, format bookfile.Format) (rows int64, err error) {
	out := bufio.NewWriterSize(output, 1<<16)
	query := o.query
	query.Rows = &rows
	query.Flush = out.Flush
	watch := func(int64) {}
	if !query.Follow && !isTerminal(c.cmd.OutOrStdout()) { // on a terminal the rows themselves show the progress
		work := startProgress(c.cmd.ErrOrStderr(), "exporting "+kind, 0)
		defer work.stop()
		watch = work.rows.Store
	}
	err = bookfile.Export(c.cmd.Context(), c.office, kind, format, query, out, watch)
	if err != nil {
		return rows, err
	}
	return rows, out.Flush()
}

// period parses the texts of the two flags of a period. A day counts whole. A flag without a text
// does not limit the period.
func (c *call) period(from, begin, to, end string) (since, until time.Time, err error) {
	since, _, err = c.moment(from, begin)
	if err != nil {
		return since, until, err
	}
	_, until, err = c.moment(to, end)
	if err != nil {
		return since, until, err
	}
	if !until.IsZero() && !until.After(since) {
		return since, until, emptyPeriod(from, to)
	}
	return since, until, nil
}

func emptyPeriod(from, to string) error {
	return wrongUsef("the period from --%s to --%s is empty", from, to)
}

// moment parses the text of a flag: a day in the bank's time zone, with its start and end, or a
// time, which is both start and end. For an empty text it returns zero times.
func (c *call) moment(flag, text string) (start, end time.Time, err error) {
	if text == "" {
		return start, end, nil
	}
	if of, err := day.Parse(text); err == nil {
		return of.Start(c.zone()), of.Plus(1).Start(c.zone()), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return start, end, wrongUsef("--%s must be a day like 2026-11-20, or a time like 2026-11-20T09:30:00+03:00", flag)
	}
	return at, at, nil
}
