package command

import (
	"bufio"
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"bankingapi/application/bookfile"
	"bankingapi/bootstrap"
	"bankingapi/domain/day"
	"bankingapi/domain/operation"
)

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

func (o *exportOptions) flags() flags {
	q := &o.filter
	return flags{
		"spreadsheet": &o.spreadsheet, "follow": &q.Follow, "customer": &q.CustomerNo, "price-id": &q.PriceID, "state": &o.state,
		"since": &o.since, "until": &o.until, "settled-since": &o.settledSince, "settled-until": &o.settledUntil,
		"due-since": &o.dueSince, "due-until": &o.dueUntil, "user": &q.UserID, "push-id": &q.PushID,
		"subscription": &q.Subscription, "caller-id": &q.CallerID, "request-id": &q.RequestID, "operation-id": &o.operationID,
		"actor": &q.Actor, "action": &q.Action, "object": &q.Object,
	}
}

// check refuses flags that do not fit, and completes the filter.
func (o *exportOptions) check(c *call) error {
	kind := c.args[0]
	fit := strings.Fields(told(c.Command, kind))
	for name := range o.flags() {
		switch {
		case !c.Flags().Changed(name) || name == "spreadsheet" || slices.Contains(fit, name):
		case name == "follow":
			return wrongUsef("--follow is for sales, notifications and outcomes")
		default:
			return wrongUsef("--%s does not filter %s", name, kind)
		}
	}
	if o.spreadsheet && c.text("format") != "csv" {
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
	bank := c.settings.Bank
	var errs [7]error
	if o.operationID != "" {
		o.filter.OperationID, errs[6] = parseID(o.operationID)
	}
	o.filter.Since, _, errs[0] = moment(bank, "since", o.since)
	_, o.filter.Until, errs[1] = moment(bank, "until", o.until)
	o.filter.SettledSince, _, errs[2] = moment(bank, "settled-since", o.settledSince)
	_, o.filter.SettledUntil, errs[3] = moment(bank, "settled-until", o.settledUntil)
	o.filter.DueSince, errs[4] = theDay("due-since", o.dueSince, "2026-11-20")
	o.filter.DueUntil, errs[5] = theDay("due-until", o.dueUntil, "2026-11-20")
	return cmp.Or(errs[:]...)
}

func (o *exportOptions) run(c *call) error {
	kind, format := c.args[0], c.text("format")
	if o.spreadsheet {
		format = "spreadsheet"
	}
	// Rows that can be asked for by customer or user have their data. Operations do not
	// name the customer.
	if flags := told(c.Command, kind); o.filter.CustomerNo != 0 || kind != "operations" && strings.Contains(flags, "customer") || strings.Contains(flags, "user") {
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
	err := bookfile.Export(c.Context(), c.office, kind, format, o.filter, out, watch)
	if err == nil {
		err = out.Flush()
	}
	if err == nil && o.filter.Follow { // only a signal ends it
		c.Annotations["interrupted"] = "the output has everything up to then"
		err = context.Cause(c.Context())
	}
	return err
}

// theDay parses a day. An empty text is no day.
func theDay(flag, text, example string) (d day.Day, err error) {
	if text != "" {
		if d, err = day.Parse(text); err != nil {
			err = wrongUsef("--%s must be a day like %s", flag, example)
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
