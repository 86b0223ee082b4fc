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

// exports has the kinds of rows, each with the flags that can filter it.
var exports = map[string]string{
	"prices":        "since until",
	"holdings":      "customer",
	"accounts":      "customer",
	"sales":         "customer since until due-since due-until settled-since settled-until state subscription caller-id request-id operation-id price-id follow",
	"postings":      "customer since until operation-id",
	"notifications": "user push-id since until subscription caller-id request-id operation-id follow",
	"operations":    "customer since until state subscription caller-id request-id operation-id",
	"outcomes":      "subscription follow",
	"audit":         "since until actor action object",
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
	cmd := p.onBook(described("export"), o.check, o.run)
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
	fit := strings.Fields(exports[kind])
	for _, flags := range exports {
		for name := range strings.FieldsSeq(flags) {
			switch {
			case !c.Flags().Changed(name) || slices.Contains(fit, name):
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
	// Rows that can be asked for by customer or user have their data. Operations do not
	// name the customer.
	if flags := exports[kind]; o.filter.CustomerNo != 0 || kind != "operations" && strings.Contains(flags, "customer") || strings.Contains(flags, "user") {
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
