package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/day"
	"bankingapi/domain/operation"
)

func readImport(c *call) (o backoffice.ImportOptions, err error) {
	force := c.is("force")
	if force && c.args[0] != "prices" && c.args[0] != "holdings" {
		return o, wrongUsef("--force is for prices and holdings")
	}
	if format := bookfile.Format(c.text("format")); format != "" && format != bookfile.CSV && format != bookfile.Excel {
		return o, wrongUsef("--format must be csv or excel")
	}
	if !force {
		o.PriceChangeLimit = c.settings.Import.PriceChangeLimit
	}
	o.DryRun = c.is("dry-run")
	o.AsOf, _, err = c.moment("as-of")
	return o, err
}

func importFile(c *call, o backoffice.ImportOptions) error {
	kind, name := c.args[0], c.args[1]
	file, err := c.openInput(name)
	if err != nil {
		return err
	}
	defer file.Close()
	var size int64 // 0 if it is unknown
	if name == "-" {
		name = "standard input"
	} else if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	importing := "importing " + kind
	work := startProgress(c.ErrOrStderr(), importing+", reading", size)
	defer work.stop()
	o.Progress = work.rows.Store
	imported, err := bookfile.Import(c.Context(), c.office, kind, io.TeeReader(file, work), bookfile.Options{
		ImportOptions: o,
		Name:          name,
		Format:        bookfile.Format(c.text("format")),
		CheckHolders:  !c.is("force"),
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
	if kind == "calendar" {
		kind = "closed days"
	}
	done := "Imported"
	if o.DryRun {
		done = "Dry run, nothing was written:"
	}
	work.printf("%s %s: %s.\n", done, backoffice.Plural(imported.Lines(), strings.TrimSuffix(kind, "s")), imported)
	return nil
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

func reconcile(c *call) error {
	kind, name := c.args[0], c.args[1]
	if isClosed(c.OutOrStdout()) {
		return errClosedOutput
	}
	file, err := c.openInput(name)
	if err != nil {
		return err
	}
	defer file.Close()
	out := bufio.NewWriterSize(c.OutOrStdout(), 1<<16)
	compared, err := bookfile.Reconcile(c.Context(), c.office, kind, c.text("format"), file, out)
	c.PrintErr(badLines(name, err))
	if err == nil {
		err = out.Flush()
	}
	if err == nil && !compared.IsEqual() {
		err = fmt.Errorf("the file and the book differ: %s", compared)
	}
	if err == nil {
		c.PrintErrf("The file and the book say the same: %s.\n", compared)
	}
	return err
}

var saleStates = map[string]operation.State{
	"": 0, "recorded": operation.Recorded, "1": operation.Recorded, "completed": operation.Completed, "2": operation.Completed,
	"failed": operation.Failed, "8": operation.Failed,
}

// readFilter reads the flags, and refuses flags that do not apply.
func readFilter(c *call) (q bookfile.Query, err error) {
	kind := c.args[0]
	fit := append(strings.Fields(told(c.Command, kind)), "format", "spreadsheet", "config")
	c.Flags().Visit(func(flag *pflag.Flag) {
		switch {
		case err != nil || isSetting(flag) || slices.Contains(fit, flag.Name):
		case flag.Name == "follow":
			err = wrongUsef("--follow is for sales, notifications and outcomes")
		default:
			err = wrongUsef("--%s does not filter %s", flag.Name, kind)
		}
	})
	if err != nil {
		return q, err
	}
	q.Follow, q.CustomerNo, q.PriceID, q.UserID, q.PushID = c.is("follow"), c.number("customer"), c.number("price-id"), c.text("user"), c.text("push-id")
	q.Subscription, q.CallerID, q.RequestID = c.text("subscription"), c.text("caller-id"), c.text("request-id")
	q.Actor, q.Action, q.Object = c.text("actor"), c.text("action"), c.text("object")
	var isKnown bool
	q.State, isKnown = saleStates[strings.ToLower(c.text("state"))]
	switch {
	case c.is("spreadsheet") && c.text("format") != "csv":
		return q, wrongUsef("--spreadsheet is for --format csv")
	case c.Flags().Changed("customer") && q.CustomerNo <= 0:
		return q, wrongUsef("--customer must be greater than 0")
	case !isKnown:
		return q, wrongUsef("--state must be recorded, completed or failed")
	}
	var errs [7]error
	q.Since, _, errs[0] = c.moment("since")
	_, q.Until, errs[1] = c.moment("until")
	q.SettledSince, _, errs[2] = c.moment("settled-since")
	_, q.SettledUntil, errs[3] = c.moment("settled-until")
	q.DueSince, errs[4] = c.day("due-since", "2026-11-20")
	q.DueUntil, errs[5] = c.day("due-until", "2026-11-20")
	if id := c.text("operation-id"); id != "" {
		q.OperationID, errs[6] = parseID(id)
	}
	return q, cmp.Or(errs[:]...)
}

func export(c *call, filter bookfile.Query) error {
	if isClosed(c.OutOrStdout()) {
		return errClosedOutput
	}
	kind, format, isKept := c.args[0], c.text("format"), false
	flags := told(c.Command, kind)
	if c.is("spreadsheet") {
		format = "spreadsheet"
	}
	var narrowed []string
	for _, name := range strings.Fields(flags) {
		if flag := c.Flags().Lookup(name); flag.Changed && slices.Contains([]string{"customer", "user", "object"}, name) { // these name a person
			narrowed = append(narrowed, name)
		} else if flag.Changed {
			narrowed = append(narrowed, name+"="+flag.Value.String())
		}
	}
	details := strings.TrimRight(format+", in full, "+strings.Join(narrowed, " "), ", ")
	// Rows that can be filtered by customer or user contain their data. Operations do not name
	// the customer.
	if filter.CustomerNo != 0 || kind != "operations" && strings.Contains(flags, "customer") || strings.Contains(flags, "user") {
		isKept = c.look("export", kind, details)
	}
	filter.Rows = new(int64)
	waiting := newSpool(c.OutOrStdout())
	if filter.Follow {
		waiting.patience = math.MaxInt64 // it keeps no state of the book
	}
	out := bufio.NewWriterSize(waiting, 1<<16)
	filter.Flush = out.Flush
	watch := func(int64) {}
	if !filter.Follow && !isTerminal(c.OutOrStdout()) { // on a terminal the rows themselves show the progress
		work := startProgress(c.ErrOrStderr(), "exporting "+kind, 0)
		defer work.stop()
		watch = work.rows.Store
	}
	err := bookfile.Export(c.Context(), c.office, kind, format, filter, out, watch)
	if err == nil {
		err = out.Flush()
	}
	closed := waiting.Close(c.Context())
	if err == nil {
		err = closed
	}
	if details = backoffice.Plural(*filter.Rows, "row") + ", " + details; err != nil {
		details = "broken off after " + details
	}
	if isKept {
		c.look("exported", kind, details)
	}
	if err == nil && filter.Follow { // only a signal stops it
		c.Annotations["interrupted"] = "the output has everything up to then"
		err = context.Cause(c.Context())
	}
	return err
}

// day parses the day of a flag. An empty text is no day.
func (c *call) day(flag, example string) (d day.Day, err error) {
	if text := c.text(flag); text != "" {
		if d, err = day.Parse(text); err != nil {
			err = wrongUsef("--%s must be a day like %s", flag, example)
		}
	}
	return d, err
}

// moment parses the text of a flag: a day in the bank's time zone, with its start and end, or a
// time, which is both start and end. For an empty text it returns zero times.
func (c *call) moment(flag string) (start, end time.Time, err error) {
	text := c.text(flag)
	if text == "" {
		return start, end, nil
	}
	if start, end, err = c.settings.Bank.Day(text); err == nil {
		return start, end, nil
	}
	if start, err = time.Parse(time.RFC3339, text); err == nil {
		return start, start, nil
	}
	return start, end, wrongUsef("--%s must be a day like 2026-11-20, or a time like 2026-11-20T09:30:00+03:00", flag)
}
