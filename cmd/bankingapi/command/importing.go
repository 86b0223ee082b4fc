package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
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
		ImportOptions: o, Name: name,
		Phase: func(phase string, lines int64) {
			if phase != "reading" { // startProgress counts its bytes
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

// badLines lists the bad lines of a file that an error has, for people.
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
