package command

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
)

func readImport(c *call) (o backoffice.ImportOptions, err error) {
	force := c.is("force")
	if force && c.args[0] != "prices" {
		return o, wrongUsef("--force is for prices")
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
	o.Progress = work.rows.Store
	imported, err := bookfile.Import(c.Context(), c.office, kind, io.TeeReader(file, work), bookfile.Options{
		ImportOptions: o, Name: name,
		Phase: func(phase string, lines int64) {
			if phase != "reading" { // startProgress counts its bytes
				work.enter(importing+", "+phase, lines)
			}
		},
		Fault: func(f backoffice.Fault) { work.printf("%s:%s\n", name, f) },
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
	tell := func(f backoffice.Fault) { c.PrintErrf("%s:%s\n", name, f) }
	compared, err := bookfile.Reconcile(c.Context(), c.office, kind, c.text("format"), file, out, tell)
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
