package command

import (
	"bufio"
	"fmt"

	"github.com/spf13/cobra"

	"bankingapi/application/bookfile"
)

func reconcileCommand(p program) *cobra.Command {
	return addChoice(p.onBook(described("reconcile"), nil, reconcile), "format", "format of the list", "csv", "ndjson")
}

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
