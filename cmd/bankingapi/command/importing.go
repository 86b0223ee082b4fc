package command

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
)

// importOptions are the flags of import.
type importOptions struct {
	backoffice.ImportOptions
	asOf string
}

func importCommand(p program) *cobra.Command {
	var o importOptions
	cmd := p.onBook(described("import"), o.check, o.run)
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "say what would change, and change nothing")
	cmd.Flags().StringVar(&o.asOf, "as-of", "", "when the file was true: a `day` (its start) or a time. Refuse it if positions were sold from since")
	return addActor(cmd)
}

func (o *importOptions) check(c *call) (err error) {
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
