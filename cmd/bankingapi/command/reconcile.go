package command

import (
	"bufio"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"bankingapi/application/bookfile"
)

func reconcileCommand(p program) *cobra.Command {
	return addChoice(p.onBook(&cobra.Command{
		Use:   "reconcile holdings|accounts FILE",
		Short: "Compare a file of the core bank with the book",
		Long: `Reads a CSV file with the columns of import and lists every position that differs, is missing here
(in the book) or is missing there (in the file). - reads standard input. It changes nothing. The exit
status is 0 if all are equal, and 1 if there are differences.`,
		Example: `  bankingapi reconcile holdings core-bank.csv
  bankingapi reconcile accounts core-bank.csv --format ndjson > differences.ndjson`,
		Args:      named("what to compare", "FILE"),
		ValidArgs: positions,
	}, func(c *call) error {
		if !slices.Contains(positions, c.args[0]) {
			return wrongUsef("cannot compare %q: want holdings or accounts", c.args[0])
		}
		return nil
	}, reconcile), "format", "format of the list", "csv", "ndjson")
}

// positions are the kinds of rows that a core bank has too.
var positions = []string{"holdings", "accounts"}

func reconcile(c *call) error {
	kind, name := c.args[0], c.args[1]
	file, _, err := c.openInput(name)
	if err != nil {
		return err
	}
	defer file.Close()
	out := bufio.NewWriterSize(c.OutOrStdout(), 1<<16)
	compared, err := bookfile.Reconcile(c.Context(), c.office, kind, c.format(), file, out, func(f bookfile.Fault) { c.tell("%s:%s\n", name, f) })
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
