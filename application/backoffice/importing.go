package backoffice

import (
	"context"
	"fmt"
	"math"
	"time"

	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// Lines is the content of a checked file. It calls yield for each line, in the
// order of the keys and each key once, and returns yield's first error or its
// own. It may be called more than once and yields the same lines each time.
type Lines[T any] func(yield func(line int64, value T) error) error

// LinesOf are values as lines from 1 on. They are in the order of their keys.
func LinesOf[T any](values ...T) Lines[T] {
	return func(yield func(line int64, value T) error) error {
		for i, v := range values {
			if err := yield(int64(i+1), v); err != nil {
				return err
			}
		}
		return nil
	}
}

// Imports writes files into the book. Each method is one transaction. In one of a host (see
// store.Store) nothing is undone: the host rolls back after an error. There is no dry run then.
//
//  1. nil: all lines are on disk.
//  2. fault.Unavailable: nothing was written; a later attempt may succeed.
//  3. fault.Indeterminate: the connection was lost during the commit. The same
//     import may be run again: it changes nothing that is already as it says.
//  4. any other error: nothing was written. An error of lines is returned as it is.
//
// lines is called again if the transaction lost a race. Sales continue during an import
// and wait only for the positions that it has written.
type Imports interface {
	// Prices adds prices. A price that exists with the same values is left as it
	// is. The error is *Faults, by PriceID, if some exist with other values, or differ
	// too much from the fund's price before.
	Prices(ctx context.Context, lines Lines[fund.Price], o ImportOptions) (Imported, error)
	// Holdings sets holdings to what the lines say. A new one gets an opening
	// posting and one whose units change an adjustment; both carry o.ID and the
	// line. A new holding of zero units has no posting.
	Holdings(ctx context.Context, lines Lines[fund.Holding], o ImportOptions) (Imported, error)
	// Accounts sets accounts as Holdings sets holdings.
	Accounts(ctx context.Context, lines Lines[fund.Account], o ImportOptions) (Imported, error)
	// ClosedDays makes the lines the whole calendar of the bank. Days that it had and
	// the lines do not have are removed.
	ClosedDays(ctx context.Context, lines Lines[fund.ClosedDay], o ImportOptions) (Imported, error)
}

// Import is a method of Imports.
type Import[T any] func(context.Context, Lines[T], ImportOptions) (Imported, error)

// ImportOptions are how to import.
type ImportOptions struct {
	// ID is the one under which the postings of holdings and accounts are found.
	ID operation.ID
	// DryRun does everything but the commit: nothing is written.
	DryRun bool
	// AsOf is when the positions of the file were true. If a position that the
	// import changes had sales or reversals since, the error is *SoldSince and
	// nothing is written. The zero time checks nothing.
	AsOf time.Time
	// PriceChangeLimit is by how many percent a new price may differ from the newest
	// price of the fund of an earlier day, in the same currency. 0 allows everything.
	PriceChangeLimit int
	// Progress is told how many lines are written, though not committed yet. It starts
	// again from the beginning with the lines. It may be nil.
	Progress func(lines int64)
}

// TellProgress tells Progress.
func (o *ImportOptions) TellProgress(lines int64) { orQuiet(o.Progress)(lines) }

// SoldSince is the error of an import that would undo sales.
type SoldSince struct {
	// Line is the first line whose position had sales or reversals since the
	// moment of the file.
	Line int64
}

// Error names the line.
func (s *SoldSince) Error() string {
	return fmt.Sprintf("line %d: the position had sales since the moment of the file", s.Line)
}

// Imported counts the lines of an import by what they changed in the book.
type Imported struct {
	New, Changed, Unchanged int64
	// Removed counts what the lines did not have, and what the import removed. Only a
	// calendar loses lines.
	Removed int64
}

// Lines is the number of all lines of the file.
func (i Imported) Lines() int64 { return i.New + i.Changed + i.Unchanged }

// String counts the lines in words: 3 new, 1 changed, 0 unchanged.
func (i Imported) String() string {
	text := fmt.Sprintf("%d new, %d changed, %d unchanged", i.New, i.Changed, i.Unchanged)
	if i.Removed > 0 {
		text += fmt.Sprintf(", %d removed", i.Removed)
	}
	return text
}

// Fault is one reason why a file is not taken.
type Fault struct {
	// Line is counted from 1. A record of several lines is at its first.
	Line int64
	// Column is the column's name. It is empty if it is the line as a whole.
	Column string
	// Rule is the rule that is broken, in a sentence without the value.
	Rule string
}

// String is line: column: rule.
func (f Fault) String() string {
	if f.Column == "" {
		return fmt.Sprintf("%d: %s", f.Line, f.Rule)
	}
	return fmt.Sprintf("%d: %s: %s", f.Line, f.Column, f.Rule)
}

// faultsListed is how many faults are listed. The rest is counted.
const faultsListed = 100

// Faults is the error of a file that breaks rules: nothing of it is to be imported.
type Faults struct {
	// List has the first hundred, in the order in which they were found.
	List []Fault
	// Lines is how many lines are at fault, also those that are not listed.
	Lines int64

	last int64
}

// Error counts the lines.
func (f *Faults) Error() string { return Plural(f.Lines, "bad line") }

// Add adds a fault of a line. Those of one line come together.
func (f *Faults) Add(line int64, column, rule string) {
	if f.Lines == 0 || line != f.last {
		f.last = line
		f.Lines++
	}
	if len(f.List) < faultsListed {
		f.List = append(f.List, Fault{line, column, rule})
	}
}

// ComparePrice adds the line if its price differs from the one that exists.
func (f *Faults) ComparePrice(line int64, existing, imported fund.Price) {
	column := "ValidFrom"
	switch {
	case existing == imported:
		return
	case existing.IsWithdrawn():
		f.Add(line, "PriceID", "This price was withdrawn. Give the new one a PriceID of its own.")
		return
	case existing.Fund.IMKBCode != imported.Fund.IMKBCode:
		column = "IMKBCode"
	case existing.Fund != imported.Fund:
		column = "HolderCorporationName"
	case existing.PerUnit != imported.PerUnit:
		column = "Price"
	case existing.Currency != imported.Currency:
		column = "CurrencyCode"
	}
	f.Add(line, column, "The price is there with another value: a price never changes. Give the new one a PriceID of its own.")
}

// CompareBefore adds the line if its price differs from the one before by more than limit
// percent.
func (f *Faults) CompareBefore(line int64, before, imported fund.Price, limit int) {
	was := float64(before.PerUnit) // a share is no money
	if percent := 100 * (float64(imported.PerUnit) - was) / was; math.Abs(percent) > float64(limit) {
		f.Add(line, "Price", fmt.Sprintf("The price differs by %+.1f %% from that of %s, %s. If it is right, import it with --force.",
			percent, before.ValidFrom, before.PerUnit))
	}
}

// orQuiet replaces a nil function by one that does nothing.
func orQuiet(progress func(int64)) func(int64) {
	if progress == nil {
		return func(int64) {}
	}
	return progress
}
