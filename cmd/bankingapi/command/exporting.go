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
	"bankingapi/domain/day"
	"bankingapi/domain/operation"
)

// exports lists the kinds of rows, each with the flags that can filter it. Rows that
// are personal have data of customers.
var exports = []struct {
	kind, flags string
	personal    bool
}{
	{"prices", "since until", false},
	{"holdings", "customer", true},
	{"accounts", "customer", true},
	{"calendar", "", false},
	{"sales", "customer since until due-since due-until settled-since settled-until state subscription caller-id request-id operation-id price-id follow", true},
	{"postings", "customer since until operation-id", true},
	{"notifications", "user push-id since until subscription caller-id request-id operation-id follow", true},
	{"operations", "since until state subscription caller-id request-id operation-id", false},
	{"outcomes", "subscription follow", false},
	{"audit", "since until actor action object", false},
}

func exportKinds() (kinds []string) {
	for _, e := range exports {
		kinds = append(kinds, e.kind)
	}
	return kinds
}

var saleStates = map[string]operation.State{
	"recorded": operation.Recorded, "1": operation.Recorded, "completed": operation.Completed, "2": operation.Completed,
	"failed": operation.Failed, "8": operation.Failed,
}

// exportOptions are the flags of export.
type exportOptions struct {
	since, until, settledSince, settledUntil, dueSince, dueUntil, state, operationID string
	filter                                                                           bookfile.Query
	spreadsheet                                                                      bool
}

func exportCommand(p program) *cobra.Command {
	var o exportOptions
	cmd := p.onBook(&cobra.Command{
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

A file or a pipe gets every byte as it is stored. On a terminal, control characters are escaped. The
audit keeps who exported rows with data of customers.`,
		Example: `  bankingapi export holdings > holdings.csv
  bankingapi export sales --format ndjson --state failed --since 2026-11-01 --until 2026-11-30
  bankingapi export notifications --user u-1001`,
		Args:      named("what to export"),
		ValidArgs: exportKinds(),
	}, o.check, o.run)
	flags := cmd.Flags()
	flags.BoolVar(&o.spreadsheet, "spreadsheet", false, "write an apostrophe before texts that a spreadsheet would run as a formula")
	flags.BoolVar(&o.filter.Follow, "follow", false, "go on with the sales, notifications or outcomes that come, until interrupted. A sale comes again when it ends")
	flags.Int64Var(&o.filter.CustomerNo, "customer", 0, "only rows of this customer `number`")
	flags.Int64Var(&o.filter.PriceID, "price-id", 0, "only sales that were settled at the price with this `PriceID`")
	for _, f := range []struct {
		value       *string
		name, usage string
	}{
		{&o.since, "since", "only rows from this `day` or time on"},
		{&o.until, "until", "only rows up to this `day`, or before this time"},
		{&o.state, "state", "only sales in this `state`: recorded, completed or failed"},
		{&o.settledSince, "settled-since", "only sales that were settled from this `day` or time on"},
		{&o.settledUntil, "settled-until", "only sales that were settled up to this `day`, or before this time"},
		{&o.dueSince, "due-since", "only sales for this later `day` or a later one"},
		{&o.dueUntil, "due-until", "only sales for this later `day` or an earlier one"},
		{&o.filter.UserID, "user", "only notifications of this `UserId`"},
		{&o.filter.PushID, "push-id", "only notifications with this `PushId`"},
		{&o.filter.Subscription, "subscription", "only rows of the subscription with this `name`"},
		{&o.filter.CallerID, "caller-id", "only rows with this `CallerId`"},
		{&o.filter.RequestID, "request-id", "only rows with this `X-Request-Id` of the caller"},
		{&o.operationID, "operation-id", "only rows of this operation `ID`"},
		{&o.filter.Actor, "actor", "only acts of the person with this `name`"},
		{&o.filter.Action, "action", "only acts of this `kind`, like subscription.change"},
		{&o.filter.Object, "object", "only acts on this `object`, like the name of a subscription"},
	} {
		flags.StringVar(f.value, f.name, "", f.usage)
	}
	complete(cmd, "state", "recorded", "completed", "failed")
	return addChoice(cmd, "format", "format of the rows", "csv", "ndjson")
}

// check refuses flags that do not fit, and completes the filter.
func (o *exportOptions) check(c *call) (err error) {
	kind := c.args[0]
	at := slices.Index(exportKinds(), kind)
	if at < 0 {
		return wrongUsef("cannot export %q: want %s", kind, strings.Join(exportKinds(), ", "))
	}
	for _, each := range exports {
		for name := range strings.FieldsSeq(each.flags) {
			switch {
			case !c.Flags().Changed(name) || slices.Contains(strings.Fields(exports[at].flags), name):
			case name == "follow":
				return wrongUsef("--follow is for sales, notifications and outcomes")
			default:
				return wrongUsef("--%s does not filter %s", name, kind)
			}
		}
	}
	if o.spreadsheet && c.format() != "csv" {
		return wrongUsef("--spreadsheet is for --format csv")
	}
	if c.Flags().Changed("customer") && o.filter.CustomerNo <= 0 {
		return wrongUsef("--customer must be greater than 0")
	}
	if o.state != "" {
		if o.filter.State = saleStates[strings.ToLower(o.state)]; o.filter.State == 0 {
			return wrongUsef("--state must be recorded, completed or failed")
		}
	}
	if o.operationID != "" {
		if o.filter.OperationID, err = parseID(o.operationID); err != nil {
			return err
		}
	}
	bank := c.settings.Bank
	var errs [6]error
	o.filter.Since, _, errs[0] = moment(bank, "since", o.since)
	_, o.filter.Until, errs[1] = moment(bank, "until", o.until)
	o.filter.SettledSince, _, errs[2] = moment(bank, "settled-since", o.settledSince)
	_, o.filter.SettledUntil, errs[3] = moment(bank, "settled-until", o.settledUntil)
	o.filter.DueSince, errs[4] = theDay("due-since", o.dueSince)
	o.filter.DueUntil, errs[5] = theDay("due-until", o.dueUntil)
	return cmp.Or(errs[:]...)
}

func (o *exportOptions) run(c *call) error {
	kind, format := c.args[0], c.format()
	if o.spreadsheet {
		format = "spreadsheet"
	}
	if exports[slices.Index(exportKinds(), kind)].personal {
		c.look("export", kind, "")
	}
	out := bufio.NewWriterSize(c.OutOrStdout(), 1<<16)
	o.filter.Flush = out.Flush
	watch := func(int64) {}
	if !o.filter.Follow && !isTerminal(c.OutOrStdout()) { // on a terminal the rows themselves show the progress
		work := startProgress(c.ErrOrStderr(), "exporting "+kind, 0)
		defer work.stop()
		watch = work.rows.Store
	}
	if err := bookfile.Export(c.Context(), c.office, kind, format, o.filter, out, watch); err != nil {
		return err
	}
	return out.Flush()
}

// theDay parses a day. An empty text is no day.
func theDay(flag, text string) (d day.Day, err error) {
	if text != "" {
		if d, err = day.Parse(text); err != nil {
			err = wrongUsef("--%s must be a day like 2026-11-20", flag)
		}
	}
	return d, err
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
