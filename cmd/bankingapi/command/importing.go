package command

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
)

// importOptions are the flags of import.
type importOptions struct {
	backoffice.ImportOptions
	asOf  string
	force bool
}

func (o *importOptions) flags() flags {
	return flags{"dry-run": &o.DryRun, "as-of": &o.asOf, "force": &o.force}
}

func (o *importOptions) check(c *call) (err error) {
	if o.force && c.args[0] != "prices" {
		return wrongUsef("--force is for prices")
	}
	if !o.force {
		o.PriceChangeLimit = c.settings.Import.PriceChangeLimit
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
	imported, err := bookfile.Import(backoffice.WithImport(c.Context(), o.ImportOptions), c.office, kind, io.TeeReader(file, work), bookfile.Watch{
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

func reconcile(c *call) error {
	kind, name := c.args[0], c.args[1]
	file, _, err := c.openInput(name)
	if err != nil {
		return err
	}
	defer file.Close()
	out := bufio.NewWriterSize(c.OutOrStdout(), 1<<16)
	tell := func(f bookfile.Fault) { c.tell("%s:%s\n", name, f) }
	compared, err := bookfile.Reconcile(c.Context(), c.office, kind, c.text("format"), file, out, tell)
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
