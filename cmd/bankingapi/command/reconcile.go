package command

import (
	"bufio"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"bankingapi/application/bookfile"
)

type reconcileOptions struct{ format string }

func (p program) reconcileCommand() *cobra.Command {
	var o reconcileOptions
	cmd := p.command(&cobra.Command{
		Use:   "reconcile holdings|accounts FILE",
		Short: "Compare a file of the core bank with the book",
		Long: `Reads a CSV file with the columns of import and lists every position that differs, is missing here
(in the book) or is missing there (in the file). - reads standard input. It changes nothing. The exit
status is 0 if all are equal, and 1 if there are differences.`,
		Example: `  bankingapi reconcile holdings core-bank.csv
  bankingapi reconcile accounts core-bank.csv --format ndjson > differences.ndjson`,
		Args:      named("what to compare", "FILE"),
		ValidArgs: importKinds[1:],
	}, o.run)
	cmd.Flags().StringVar(&o.format, "format", "csv", "csv or ndjson")
	complete(cmd, "format", "csv", "ndjson")
	return cmd
}

func (o *reconcileOptions) run(c *call) error {
	kind, name := c.args[0], c.args[1]
	switch {
	case !slices.Contains(importKinds[1:], kind):
		return wrongUsef("cannot compare %q: want holdings or accounts", kind)
	case o.format != "csv" && o.format != "ndjson":
		return wrongUsef("--format must be csv or ndjson")
	}
	file, _, err := openInput(c.Command, name)
	if err != nil {
		return err
	}
	defer file.Close()
	office, err := c.office()
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(c.OutOrStdout(), 1<<16)
	compared, err := bookfile.Reconcile(c.Context(), office, kind, o.format, file, out, func(f bookfile.Fault) { c.tell("%s:%s\n", name, f) })
	if err == nil {
		err = out.Flush()
	}
	if err == nil && !compared.IsEqual() {
		err = fmt.Errorf("the file and the book differ: %s", compared)
	}
	if err == nil {
		c.tell("The file and the book say the same: %s.\n", compared)
	}
	return err
}
