package main

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

// exports are the kinds of rows, each with the flags that can narrow it.
var exports = []exportOf{
	{"prices", []string{"since", "until"}},
	{"holdings", []string{"customer"}},
	{"accounts", []string{"customer"}},
	{"sales", []string{"customer", "since", "until", "state"}},
	{"postings", []string{"customer", "since", "until"}},
	{"notifications", []string{"user", "since", "until"}},
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
	var format, since, until, state string
	var filter bootstrap.ExportFilter
	cmd := &cobra.Command{
		Use:   "export prices|holdings|accounts|sales|postings|notifications",
		Short: "Write rows of the book, or notifications, to standard output",
		Long: `Writes all rows as they were at one moment, with the columns that import takes. These flags
narrow them:

  prices         --since --until (by ValidFrom)
  holdings       --customer
  accounts       --customer
  sales          --customer --since --until --state
  postings       --customer --since --until
  notifications  --user --since --until

--since and --until take a day of the bank (2026-11-20), both days included, or an instant
(2026-11-20T09:30:00+03:00), from --since on and before --until.`,
		Example: `  bankingapi export holdings > holdings.csv
  bankingapi export sales --format ndjson --state failed --since 2026-11-01 --until 2026-11-30
  bankingapi export notifications --user u-1001`,
		Args:        named("what to export"),
		Annotations: mentionSettings(),
		ValidArgs:   exportKinds(),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := slices.IndexFunc(exports, func(e exportOf) bool { return e.kind == args[0] })
			if at < 0 {
				return wrongUsef("cannot export %q: %s", args[0], strings.Join(exportKinds(), ", "))
			}
			for _, name := range []string{"customer", "user", "since", "until", "state"} {
				if cmd.Flags().Changed(name) && !slices.Contains(exports[at].flags, name) {
					return wrongUsef("--%s does not narrow %s", name, args[0])
				}
			}
			if format != "csv" && format != "ndjson" {
				return wrongUsef("--format must be csv or ndjson")
			}
			if cmd.Flags().Changed("customer") && filter.Customer <= 0 {
				return wrongUsef("--customer must be greater than 0")
			}
			if state != "" {
				if filter.State = saleStates[strings.ToLower(state)]; filter.State == 0 {
					return wrongUsef("--state must be recorded, completed or failed")
				}
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
			return open(cmd, inForeground(loaded.Settings), func(app *bootstrap.App) error {
				return export(cmd, app, args[0], format, filter)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&format, "format", "csv", "csv or ndjson")
	flags.Int64Var(&filter.Customer, "customer", 0, "only rows of this customer `number`")
	flags.StringVar(&filter.User, "user", "", "only notifications of this `UserId`")
	flags.StringVar(&since, "since", "", "only rows from this `day` or instant on")
	flags.StringVar(&until, "until", "", "only rows up to this `day`, or before this instant")
	flags.StringVar(&state, "state", "", "only sales in this `state`: recorded, completed or failed")
	complete(cmd, "format", "csv", "ndjson")
	complete(cmd, "state", "recorded", "completed", "failed")
	return cmd
}

// moment reads a day of the bank, which has a start and an end, or an instant,
// which is both. No text is the zero time.
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
	return start, end, wrongUsef("--%s must be a day like 2026-11-20, or an instant like 2026-11-20T09:30:00+03:00", flag)
}

func export(cmd *cobra.Command, app *bootstrap.App, kind, format string, filter bootstrap.ExportFilter) error {
	out := bufio.NewWriterSize(cmd.OutOrStdout(), 1<<16)
	watch := func(int64) {}
	if !isTerminal(cmd.OutOrStdout()) { // there, the rows themselves show how far it is
		work := startProgress(cmd.ErrOrStderr(), "exporting "+kind, 0)
		defer work.stop()
		watch = work.rows.Store
	}
	if err := app.Export(cmd.Context(), kind, format, filter, out, watch); err != nil {
		return err
	}
	return out.Flush()
}
