package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
)

var importKinds = []string{"prices", "holdings", "accounts", "calendar"}

// importOptions are the flags of import.
type importOptions struct {
	backoffice.ImportOptions
	asOf string
}

func importCommand(p program) *cobra.Command {
	var o importOptions
	cmd := p.onBook(&cobra.Command{
		Use:   "import prices|holdings|accounts|calendar FILE",
		Short: "Load prices, holdings, accounts or closed days from a CSV file",
		Long: `Loads a CSV file with a header line. - reads standard input. The import is all or nothing. It
reports every bad line with its number and column.

  prices    PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom
  holdings  CustomerNo,IMKBCode,HolderCorporationName,Units
  accounts  BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance
  calendar  Day,Reason

If a holding or account exists, it is set to the new value, with a balancing posting. A price never
changes: importing the same line again is fine, another value is refused.

The calendar has the days on which the bank is closed. The file is the whole calendar: days that it
does not have are open again. Every service takes it into account within 5 seconds.

A file of positions is true at one moment. With --as-of the import is refused if a position that it
changes had sales since: setting it would undo them.`,
		Example: `  bankingapi import prices prices.csv
  zcat holdings.csv.gz | bankingapi import holdings -`,
		Args: named("what to import", "FILE"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return importKinds, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
	}, o.check, o.run)
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "say what would change, and change nothing")
	cmd.Flags().StringVar(&o.asOf, "as-of", "", "when the file was true: a `day` (its start) or a time. Refuse it if positions were sold from since")
	return addActor(cmd)
}

func (o *importOptions) check(c *call) (err error) {
	if !slices.Contains(importKinds, c.args[0]) {
		return wrongUsef("cannot import %q: want %s", c.args[0], strings.Join(importKinds, ", "))
	}
	o.AsOf, _, err = moment(c.settings.Bank, "as-of", o.asOf)
	return err
}

func (o *importOptions) run(c *call) error {
	kind, name := c.args[0], c.args[1]
	file, size, err := c.openInput(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if name == "-" {
		name = "standard input"
	}
	importing := "importing " + kind
	work := startProgress(c.ErrOrStderr(), importing+", reading", size)
	defer work.stop()
	imported, err := bookfile.Import(backoffice.WithImport(c.Context(), o.ImportOptions), c.office, kind, work.reading(file), bookfile.Watch{
		Name:     name,
		Progress: work.rows.Store,
		Phase: func(phase string, lines int64) {
			if phase != "reading" { // startProgress counts its bytes
				work.enter(importing+", "+phase, lines)
			}
		},
		Fault: func(f bookfile.Fault) { work.printf("%s:%s\n", name, f) },
	})
	if err != nil {
		return err
	}
	if kind == "calendar" {
		kind = "closed days"
	}
	done := "Imported"
	if o.DryRun {
		done = "Dry run, nothing was written:"
	}
	work.printf("%s %s: %s.\n", done, counted(imported.Lines(), strings.TrimSuffix(kind, "s")), imported)
	return nil
}
