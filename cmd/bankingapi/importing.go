package main

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

var importKinds = []string{"prices", "holdings", "accounts"}

func (p program) importCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import prices|holdings|accounts FILE",
		Short: "Load prices, holdings or accounts from a CSV file",
		Long: `Loads a CSV file with a header line; - is standard input. All of it or nothing: every bad line is
named with its number and column.

  prices    PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom
  holdings  CustomerNo,IMKBCode,HolderCorporationName,Units
  accounts  BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance

A holding or account that exists is set anew, with a balancing posting. A price never changes once
it is there: the same line again is fine, another value is refused.`,
		Example: `  bankingapi import prices prices.csv
  zcat holdings.csv.gz | bankingapi import holdings -`,
		Args:        named("what to import", "FILE"),
		Annotations: mentionSettings(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(importKinds, args[0]) {
				return wrongUsef("cannot import %q: %s", args[0], strings.Join(importKinds, ", "))
			}
			file, size, err := openInput(cmd, args[1])
			if err != nil {
				return err
			}
			defer file.Close()
			return p.withApp(cmd, func(app *bootstrap.App) error {
				return importFile(cmd, app, args[0], args[1], file, size)
			})
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return importKinds, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
}

func importFile(cmd *cobra.Command, app *bootstrap.App, kind, name string, file io.Reader, size int64) error {
	if name == "-" {
		name = "standard input"
	}
	work := startProgress(cmd.ErrOrStderr(), "importing "+kind, size)
	defer work.stop()
	lines, err := app.Import(cmd.Context(), kind, work.reading(file), bootstrap.ImportWatch{
		Progress: work.rows.Store,
		Fault: func(f bootstrap.LineFault) {
			if f.Column == "" {
				work.printf("%s:%d: %s\n", name, f.Line, f.Rule)
			} else {
				work.printf("%s:%d: %s: %s\n", name, f.Line, f.Column, f.Rule)
			}
		},
	})
	if err != nil {
		return err
	}
	work.printf("Imported %d %s.\n", lines, kind)
	return nil
}

// openInput opens a file, or standard input as -. The size is 0 where it is
// not known.
func openInput(cmd *cobra.Command, name string) (io.ReadCloser, int64, error) {
	if name == "-" {
		return io.NopCloser(cmd.InOrStdin()), 0, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return file, 0, nil //nolint:nilerr // a pipe, or something else that can only be read
	}
	return file, info.Size(), nil
}
