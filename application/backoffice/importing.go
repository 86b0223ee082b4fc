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

// Imports writes files into the book. Each method is one transaction:
//
//  1. nil: all lines are on disk.
//  2. fault.Unavailable: nothing was written; a later attempt may succeed.
//  3. fault.Indeterminate: the connection was lost during the commit. The same
//     import may be run again: it changes nothing that is already as it says.
//  4. any other error: nothing was written. An error of lines is returned as
//     it is.
//
// lines is called again if the transaction lost a race. written reports how
// many lines are written but not committed yet; it starts again from the
// beginning with lines. Sales continue during an import and wait only for the
// positions that it has written.
type Imports interface {
	// Prices adds prices. A price that exists with the same values is left as it
	// is. The error is *ChangedPrices if some exist with other values, or differ too
	// much from the fund's price before.
	Prices(ctx context.Context, lines Lines[fund.Price], written func(lines int64)) (Imported, error)
	// Holdings sets holdings to what the lines say. A new one gets an opening
	// posting and one whose units change an adjustment; both carry id and the
	// line. A new holding of zero units has no posting.
	Holdings(ctx context.Context, id operation.ID, lines Lines[fund.Holding], written func(lines int64)) (Imported, error)
	// Accounts sets accounts as Holdings sets holdings.
	Accounts(ctx context.Context, id operation.ID, lines Lines[fund.Account], written func(lines int64)) (Imported, error)
	// ClosedDays makes the lines the whole calendar of the bank. Days that it had and
	// the lines do not have are removed.
	ClosedDays(ctx context.Context, lines Lines[fund.ClosedDay], written func(lines int64)) (Imported, error)
}

// ImportOptions change an import. They travel in its context.
type ImportOptions struct {
	// DryRun does everything but the commit: nothing is written.
	DryRun bool
	// AsOf is when the positions of the file were true. If a position that the
	// import changes had sales or reversals since, the error is *SoldSince and
	// nothing is written. The zero time checks nothing.
	AsOf time.Time
	// PriceChangeLimit is by how many percent a new price may differ from the newest
	// price of the fund of an earlier day, in the same currency. 0 allows everything.
	PriceChangeLimit int
}

type optionsKey struct{}

// WithImport returns a context whose imports have the options.
func WithImport(ctx context.Context, o ImportOptions) context.Context {
	return context.WithValue(ctx, optionsKey{}, o)
}

// ImportOptionsOf returns the options of a context.
func ImportOptionsOf(ctx context.Context) ImportOptions {
	o, _ := ctx.Value(optionsKey{}).(ImportOptions)
	return o
}

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

// ChangedPrices is the error of an import whose prices exist with other values, or change
// too much.
type ChangedPrices struct {
	// List has the first hundred, by PriceID.
	List []ChangedPrice
	// Lines is the number of lines.
	Lines int64
}

// ChangedPrice is a line of an import, and the first column whose value differs
// from the price that exists. If it differs too much from an earlier price, Percent is
// by how much, and Before is that price.
type ChangedPrice struct {
	Line    int64
	Column  string
	Percent float64
	Before  fund.Price
}

// changesListed is how many changed prices are listed; the rest is counted.
const changesListed = 100

// Error counts the lines.
func (c *ChangedPrices) Error() string {
	return fmt.Sprintf("%d prices are in the book with another value, or change too much", c.Lines)
}

// Compare adds the line if its price differs from the one that exists.
func (c *ChangedPrices) Compare(line int64, existing, imported fund.Price) {
	var column string
	switch {
	case existing == imported:
		return
	case existing.IsWithdrawn():
		column = "PriceID"
	case existing.Fund.IMKBCode != imported.Fund.IMKBCode:
		column = "IMKBCode"
	case existing.Fund != imported.Fund:
		column = "HolderCorporationName"
	case existing.PerUnit != imported.PerUnit:
		column = "Price"
	case existing.Currency != imported.Currency:
		column = "CurrencyCode"
	default:
		column = "ValidFrom"
	}
	c.add(ChangedPrice{Line: line, Column: column})
}

// CompareBefore adds the line if its price differs from the one before by more than limit
// percent.
func (c *ChangedPrices) CompareBefore(line int64, before, imported fund.Price, limit int) {
	was := float64(before.PerUnit) // a share is no money
	if percent := 100 * (float64(imported.PerUnit) - was) / was; math.Abs(percent) > float64(limit) {
		c.add(ChangedPrice{line, "Price", percent, before})
	}
}

func (c *ChangedPrices) add(changed ChangedPrice) {
	if c.Lines++; len(c.List) < changesListed {
		c.List = append(c.List, changed)
	}
}

// Importer imports files through the port. Holdings and Accounts get the ID under which
// their postings are found.
type Importer struct {
	Imports
	NewID func() operation.ID
}

// Holdings is Imports.Holdings with a new ID.
func (i Importer) Holdings(ctx context.Context, lines Lines[fund.Holding], written func(int64)) (Imported, error) {
	return i.Imports.Holdings(ctx, i.NewID(), lines, written)
}

// Accounts is Imports.Accounts with a new ID.
func (i Importer) Accounts(ctx context.Context, lines Lines[fund.Account], written func(int64)) (Imported, error) {
	return i.Imports.Accounts(ctx, i.NewID(), lines, written)
}

func quiet(int64) {}

// orQuiet replaces a nil function by one that does nothing.
func orQuiet(progress func(int64)) func(int64) {
	if progress == nil {
		return quiet
	}
	return progress
}
