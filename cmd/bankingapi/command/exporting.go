package command

import (
	"bufio"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bankingapi/application/bookfile"
	"bankingapi/bootstrap"
)

type exportOf struct {
	kind  string
	flags []string
}

// exports lists the kinds of rows, each with the flags that can filter it.
var exports = []exportOf{
	{"prices", []string{"since", "until"}},
	{"holdings", []string{"customer"}},
	{"accounts", []string{"customer"}},
	{"calendar", nil},
	{"sales", []string{
		"customer", "since", "until", "due-since", "due-until", "settled-since", "settled-until", "state",
		"subscription", "caller-id", "request-id", "operation-id", "price-id",
	}},
	{"postings", []string{"customer", "since", "until", "operation-id"}},
	{"notifications", []string{"user", "push-id", "since", "until", "subscription", "caller-id", "request-id", "operation-id"}},
	{"operations", []string{"since", "until", "state", "subscription", "caller-id", "request-id", "operation-id"}},
	{"outcomes", []string{"subscription"}},
	{"audit", []string{"since", "until", "actor", "action", "object"}},
}

// exportFlags are the flags that filter something.
func exportFlags() []string {
	var all []string
	for _, e := range exports {
		all = append(all, e.flags...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func exportKinds() []string {
	var kinds []string
	for _, e := range exports {
		kinds = append(kinds, e.kind)
	}
	return kinds
}

var saleStates = map[string]int{"recorded": 1, "1": 1, "completed": 2, "2": 2, "failed": 8, "8": 8}

// exportOptions are the flags of export.
type exportOptions struct {
	format, since, until, settledSince, settledUntil, state string
	filter                                                  bookfile.Query
	spreadsheet                                             bool
}

func (p program) exportCommand() *cobra.Command {
	var o exportOptions
	cmd := p.command(&cobra.Command{
		Use:   "export prices|holdings|accounts|calendar|sales|postings|notifications|operations|outcomes|audit",
		Short: "Write the book or the notifications to standard output",
		Long: `Writes all rows as of one moment, with the columns that import reads. These flags filter them:

  prices         --since --until (by ValidFrom)
  holdings       --customer
  accounts       --customer
  calendar       all days on which the bank is closed
  sales          --customer --since --until (when it was received), --due-since --due-until (the later day
                 that it is for), --settled-since --settled-until (when it was settled), --state
                 --subscription --caller-id --request-id --operation-id --price-id
  postings       --customer --since --until (when it was posted) --operation-id
  notifications  --user --push-id --since --until (when it was received) --subscription --caller-id
                 --request-id --operation-id
  operations     --since --until (when it was received) --state --subscription --caller-id --request-id
                 --operation-id. Every decided operation, refused ones too
  outcomes       --subscription. How operations ended after they were answered: settled on their day,
                 cancelled or reversed, in the order in which they ended
  audit          --since --until --actor --action --object. Who administered what, when, from where
                 and why

--since and --until take a day in the bank's time zone (2026-11-20), and both days are included. They
also take a time (2026-11-20T09:30:00+03:00): from --since on, and before --until.

A spreadsheet runs a cell that begins with = + - @ as a formula, and callers of the API choose many
of the texts. For a spreadsheet use --spreadsheet: it writes an apostrophe before such texts, and
before a tab or a line end. import does not take the apostrophe away.

A file or a pipe gets every byte as it is stored. On a terminal, control characters are escaped.`,
		Example: `  bankingapi export holdings > holdings.csv
  bankingapi export sales --format ndjson --state failed --since 2026-11-01 --until 2026-11-30
  bankingapi export notifications --user u-1001`,
		Args:      named("what to export"),
		ValidArgs: exportKinds(),
	}, o.run)
	flags := cmd.Flags()
	flags.StringVar(&o.format, "format", "csv", "csv or ndjson")
	flags.BoolVar(&o.spreadsheet, "spreadsheet", false, "write an apostrophe before texts that a spreadsheet would run as a formula")
	flags.Int64Var(&o.filter.Customer, "customer", 0, "only rows of this customer `number`")
	flags.StringVar(&o.filter.User, "user", "", "only notifications of this `UserId`")
	flags.StringVar(&o.since, "since", "", "only rows from this `day` or time on")
	flags.StringVar(&o.until, "until", "", "only rows up to this `day`, or before this time")
	flags.StringVar(&o.state, "state", "", "only sales in this `state`: recorded, completed or failed")
	flags.StringVar(&o.filter.DueSince, "due-since", "", "only sales for this later `day` or a later one")
	flags.StringVar(&o.filter.DueUntil, "due-until", "", "only sales for this later `day` or an earlier one")
	flags.StringVar(&o.settledSince, "settled-since", "", "only sales that were settled from this `day` or time on")
	flags.StringVar(&o.settledUntil, "settled-until", "", "only sales that were settled up to this `day`, or before this time")
	flags.StringVar(&o.filter.Subscription, "subscription", "", "only rows of the subscription with this `name`")
	flags.StringVar(&o.filter.CallerID, "caller-id", "", "only rows with this `CallerId`")
	flags.StringVar(&o.filter.RequestID, "request-id", "", "only rows with this `X-Request-Id` of the caller")
	flags.StringVar(&o.filter.OperationID, "operation-id", "", "only rows of this operation `ID`")
	flags.Int64Var(&o.filter.PriceID, "price-id", 0, "only sales that were settled at the price with this `PriceID`")
	flags.StringVar(&o.filter.Actor, "actor", "", "only acts of the person with this `name`")
	flags.StringVar(&o.filter.Action, "action", "", "only acts of this `kind`, like subscription.change")
	flags.StringVar(&o.filter.Object, "object", "", "only acts on this `object`, like the name of a subscription")
	flags.StringVar(&o.filter.PushID, "push-id", "", "only notifications with this `PushId`")
	flags.BoolVar(&o.filter.Follow, "follow", false, "go on with the sales, notifications or outcomes that come, until interrupted. A sale comes again when it ends")
	complete(cmd, "format", "csv", "ndjson")
	complete(cmd, "state", "recorded", "completed", "failed")
	return cmd
}

// check refuses flags that do not fit, and completes the filter.
func (o *exportOptions) check(c *call, kind string) (err error) {
	at := slices.IndexFunc(exports, func(e exportOf) bool { return e.kind == kind })
	if at < 0 {
		return wrongUsef("cannot export %q: want %s", kind, strings.Join(exportKinds(), ", "))
	}
	for _, name := range exportFlags() {
		if c.Flags().Changed(name) && !slices.Contains(exports[at].flags, name) {
			return wrongUsef("--%s does not filter %s", name, kind)
		}
	}
	switch {
	case o.format != "csv" && o.format != "ndjson":
		return wrongUsef("--format must be csv or ndjson")
	case o.spreadsheet && o.format != "csv":
		return wrongUsef("--spreadsheet is for --format csv")
	case o.spreadsheet:
		o.format = "spreadsheet"
	}
	if c.Flags().Changed("customer") && o.filter.Customer <= 0 {
		return wrongUsef("--customer must be greater than 0")
	}
	if o.state != "" {
		if o.filter.State = saleStates[strings.ToLower(o.state)]; o.filter.State == 0 {
			return wrongUsef("--state must be recorded, completed or failed")
		}
	}
	if o.filter.Follow && kind != "sales" && kind != "notifications" && kind != "outcomes" {
		return wrongUsef("--follow is for sales, notifications and outcomes")
	}
	bank := c.loaded.Settings.Bank
	var errs [4]error
	o.filter.Since, _, errs[0] = moment(bank, "since", o.since)
	_, o.filter.Until, errs[1] = moment(bank, "until", o.until)
	o.filter.SettledSince, _, errs[2] = moment(bank, "settled-since", o.settledSince)
	_, o.filter.SettledUntil, errs[3] = moment(bank, "settled-until", o.settledUntil)
	return cmp.Or(errs[:]...)
}

func (o *exportOptions) run(c *call) error {
	kind := c.args[0]
	if err := o.check(c, kind); err != nil {
		return err
	}
	office, err := c.office()
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(c.OutOrStdout(), 1<<16)
	o.filter.Flush = out.Flush
	watch := func(int64) {}
	if !o.filter.Follow && !isTerminal(c.OutOrStdout()) { // on a terminal the rows themselves show the progress
		work := startProgress(c.ErrOrStderr(), "exporting "+kind, 0)
		defer work.stop()
		watch = work.rows.Store
	}
	if err := bookfile.Export(c.Context(), office, kind, o.format, o.filter, out, watch); err != nil {
		return err
	}
	return out.Flush()
}

// moment parses a day in the bank's time zone, which has a start and an end, or a
// time, which is both. An empty text returns zero times.
func moment(bank bootstrap.BankSettings, flag, text string) (start, end time.Time, err error) {
	if text == "" {
		return start, end, nil
	}
	if start, end, err = bank.Day(text); err == nil {
		return start, end, nil
	}
	if start, err = time.Parse(time.RFC3339, text); err == nil {
		return start, start, nil
	}
	return start, end, wrongUsef("--%s must be a day like 2026-11-20, or a time like 2026-11-20T09:30:00+03:00", flag)
}
