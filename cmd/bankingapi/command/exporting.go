package command

import (
	"bufio"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
	{"sales", []string{
		"customer", "since", "until", "due-since", "due-until", "settled-since", "settled-until", "state",
		"subscription", "caller-id", "request-id", "operation-id",
	}},
	{"postings", []string{"customer", "since", "until"}},
	{"notifications", []string{"user", "push-id", "since", "until", "subscription", "caller-id", "request-id", "operation-id"}},
	{"operations", []string{"since", "until", "state", "subscription", "caller-id", "request-id", "operation-id"}},
	{"audit", []string{"since", "until"}},
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

func (p program) exportCommand() *cobra.Command {
	var format, since, until, settledSince, settledUntil, state string
	var filter bootstrap.ExportFilter
	var spreadsheet bool
	cmd := &cobra.Command{
		Use:   "export prices|holdings|accounts|sales|postings|notifications|operations|audit",
		Short: "Write the book or the notifications to standard output",
		Long: `Writes all rows as of one moment, with the columns that import reads. These flags filter them:

  prices         --since --until (by ValidFrom)
  holdings       --customer
  accounts       --customer
  sales          --customer --since --until (when it was received), --due-since --due-until (the later day
                 that it is for), --settled-since --settled-until (when it was settled), --state
                 --subscription --caller-id --request-id --operation-id
  postings       --customer --since --until (when it was posted)
  notifications  --user --push-id --since --until (when it was received) --subscription --caller-id
                 --request-id --operation-id
  operations     --since --until (when it was received) --state --subscription --caller-id --request-id
                 --operation-id. Every decided operation, refused ones too
  audit          --since --until. Who administered what, when, from where and why

--since and --until take a day in the bank's time zone (2026-11-20), and both days are included. They
also take a time (2026-11-20T09:30:00+03:00): from --since on, and before --until.

A spreadsheet runs a cell that begins with = + - @ as a formula, and callers of the API choose many
of the texts. For a spreadsheet use --spreadsheet: it writes an apostrophe before such texts, and
before a tab or a line end. import does not take the apostrophe away.

A file or a pipe gets every byte as it is stored. On a terminal, control characters are escaped.`,
		Example: `  bankingapi export holdings > holdings.csv
  bankingapi export sales --format ndjson --state failed --since 2026-11-01 --until 2026-11-30
  bankingapi export notifications --user u-1001`,
		Args:        named("what to export"),
		Annotations: mentionSettings(),
		ValidArgs:   exportKinds(),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := slices.IndexFunc(exports, func(e exportOf) bool { return e.kind == args[0] })
			if at < 0 {
				return wrongUsef("cannot export %q: want %s", args[0], strings.Join(exportKinds(), ", "))
			}
			for _, name := range exportFlags() {
				if cmd.Flags().Changed(name) && !slices.Contains(exports[at].flags, name) {
					return wrongUsef("--%s does not filter %s", name, args[0])
				}
			}
			if format != "csv" && format != "ndjson" {
				return wrongUsef("--format must be csv or ndjson")
			}
			if spreadsheet {
				if format != "csv" {
					return wrongUsef("--spreadsheet is for --format csv")
				}
				format = "spreadsheet"
			}
			if cmd.Flags().Changed("customer") && filter.Customer <= 0 {
				return wrongUsef("--customer must be greater than 0")
			}
			if state != "" {
				if filter.State = saleStates[strings.ToLower(state)]; filter.State == 0 {
					return wrongUsef("--state must be recorded, completed or failed")
				}
			}
			if filter.Follow && args[0] != "sales" && args[0] != "notifications" {
				return wrongUsef("--follow is for sales and notifications")
			}
			loaded, err := p.load(cmd)
			if err != nil {
				return err
			}
			bank := loaded.Settings.Bank
			if filter.Since, _, err = moment(bank, "since", since); err != nil {
				return err
			}
			if _, filter.Until, err = moment(bank, "until", until); err != nil {
				return err
			}
			if filter.SettledSince, _, err = moment(bank, "settled-since", settledSince); err != nil {
				return err
			}
			if _, filter.SettledUntil, err = moment(bank, "settled-until", settledUntil); err != nil {
				return err
			}
			return p.openBook(cmd, loaded.Settings, func(app *bootstrap.App) error {
				return export(cmd, app, args[0], format, filter)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&format, "format", "csv", "csv or ndjson")
	flags.BoolVar(&spreadsheet, "spreadsheet", false, "write an apostrophe before texts that a spreadsheet would run as a formula")
	flags.Int64Var(&filter.Customer, "customer", 0, "only rows of this customer `number`")
	flags.StringVar(&filter.User, "user", "", "only notifications of this `UserId`")
	flags.StringVar(&since, "since", "", "only rows from this `day` or time on")
	flags.StringVar(&until, "until", "", "only rows up to this `day`, or before this time")
	flags.StringVar(&state, "state", "", "only sales in this `state`: recorded, completed or failed")
	flags.StringVar(&filter.DueSince, "due-since", "", "only sales for this later `day` or a later one")
	flags.StringVar(&filter.DueUntil, "due-until", "", "only sales for this later `day` or an earlier one")
	flags.StringVar(&settledSince, "settled-since", "", "only sales that were settled from this `day` or time on")
	flags.StringVar(&settledUntil, "settled-until", "", "only sales that were settled up to this `day`, or before this time")
	flags.StringVar(&filter.Subscription, "subscription", "", "only rows of the subscription with this `name`")
	flags.StringVar(&filter.CallerID, "caller-id", "", "only rows with this `CallerId`")
	flags.StringVar(&filter.RequestID, "request-id", "", "only rows with this `X-Request-Id` of the caller")
	flags.StringVar(&filter.OperationID, "operation-id", "", "only rows of this operation `ID`")
	flags.StringVar(&filter.PushID, "push-id", "", "only notifications with this `PushId`")
	flags.BoolVar(&filter.Follow, "follow", false, "go on with the sales or notifications that come, until interrupted")
	complete(cmd, "format", "csv", "ndjson")
	complete(cmd, "state", "recorded", "completed", "failed")
	return cmd
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

func export(cmd *cobra.Command, app *bootstrap.App, kind, format string, filter bootstrap.ExportFilter) error {
	out := bufio.NewWriterSize(cmd.OutOrStdout(), 1<<16)
	watch := func(int64) {}
	filter.Flush = out.Flush
	if !filter.Follow && !isTerminal(cmd.OutOrStdout()) { // on a terminal the rows themselves show the progress
		work := startProgress(cmd.ErrOrStderr(), "exporting "+kind, 0)
		defer work.stop()
		watch = work.rows.Store
	}
	if err := app.Export(cmd.Context(), kind, format, filter, out, watch); err != nil {
		return err
	}
	return out.Flush()
}
