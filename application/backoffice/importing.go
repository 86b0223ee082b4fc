package backoffice

import (
	"context"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// Lines is the content of a checked file. It calls yield for each line, in the
// order of the keys and each key once, and returns yield's first error or its
// own. It may be called more than once and yields the same lines each time.
type Lines[T any] func(yield func(line int64, value T) error) error

// LinesOf returns the values, which are in the order of their keys, as lines from 1 on.
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

// Imports writes files into the book. Each method is one transaction. In a transaction of a
// host (see store.Store) the import does not undo anything: the host must roll back after an
// error. Then a dry run is not possible.
//
//  1. nil: all lines are on disk.
//  2. fault.Unavailable: nothing was written. A later attempt may succeed.
//  3. fault.Indeterminate: the commit was sent and not confirmed. The same import may be
//     run again. It does not change values that are already correct.
//  4. any other error: nothing was written. An error of lines is returned as it is.
//
// The import calls lines again if the transaction lost a race. If the storage has several writers,
// sales continue during an import, and wait only for the positions that the import has written.
// Otherwise they wait for its end.
type Imports interface {
	// Prices adds prices. It does not change a price that exists with the same values. The
	// error is *Faults, by PriceID, if prices exist with other values, or differ too much from
	// the fund's price before.
	Prices(ctx context.Context, lines Lines[fund.Price], o ImportOptions) (Imported, error)
	// Holdings sets holdings to what the lines say. A new holding gets an opening posting. A
	// holding whose units change gets an adjustment. Both postings have o.ID and the line. A new
	// holding of zero units has its opening posting too.
	Holdings(ctx context.Context, lines Lines[fund.Holding], o ImportOptions) (Imported, error)
	// Accounts sets accounts in the same way as Holdings sets holdings.
	Accounts(ctx context.Context, lines Lines[fund.Account], o ImportOptions) (Imported, error)
	// ClosedDays replaces the calendar of the bank with the lines. It removes days that are not
	// in the lines.
	ClosedDays(ctx context.Context, lines Lines[fund.ClosedDay], o ImportOptions) (Imported, error)
}

// Import is a method of Imports.
type Import[T any] func(context.Context, Lines[T], ImportOptions) (Imported, error)

// ImportOptions control how to import.
type ImportOptions struct {
	// ID is the ID of the postings of holdings and accounts, and required for them. If ctx carries an
	// act, use its ID: so the audit says who made the postings.
	ID operation.ID
	// DryRun does everything except the commit, so that nothing is written.
	DryRun bool
	// AsOf is the time at which the positions of the file were true. If a sale, a reversal or an
	// adjust has changed a position since InFlight before then, and the import would change it
	// too, the error is *ChangedSince and nothing is written. The zero time disables this check.
	AsOf time.Time
	// PriceChangeLimit is the maximum difference in percent between a new price and the newest
	// price of the fund of an earlier day, in the same currency. 0 means no limit.
	PriceChangeLimit int
	// SameCurrency refuses a new price in another currency than the newest price of the fund of an
	// earlier day. Sales that wait for such a price would fail.
	SameCurrency bool
	// Progress receives the number of lines that are written but not committed yet. If the
	// import calls lines again, the number starts again too. It may be nil.
	Progress func(lines int64)
}

// RequireID returns fault.Invalid if the ID is missing: postings without one look forged.
func (o *ImportOptions) RequireID() error {
	if o.ID == (operation.ID{}) {
		return fault.New(fault.Invalid, "The import has no ID (ImportOptions.ID), which its postings need.")
	}
	return nil
}

// CheckedAccounts returns the lines, with the error of fund.Account.Check.
func CheckedAccounts(lines Lines[fund.Account]) Lines[fund.Account] {
	return func(yield func(line int64, value fund.Account) error) error {
		return lines(func(line int64, account fund.Account) error {
			err := account.Check()
			if err != nil {
				return err
			}
			return yield(line, account)
		})
	}
}

// TellProgress calls Progress if it is set.
func (o *ImportOptions) TellProgress(lines int64) { orQuiet(o.Progress)(lines) }

// ChangedSince is the error of an import that would undo sales, reversals or adjusts.
type ChangedSince struct {
	// Line is the first line whose position was changed since the moment of the file.
	Line int64
}

// Error names the line.
func (c *ChangedSince) Error() string {
	return fmt.Sprintf("line %d: a sale, a reversal or an adjust has changed the position since a minute before the moment of the file", c.Line)
}

// Imported counts the lines of an import by what they changed in the book.
type Imported struct {
	New, Changed, Unchanged int64
	// Removed counts what the import removed because the lines did not have it. Only a calendar
	// can lose lines.
	Removed int64
	// NewFunds are the funds of the imported prices that had no price before, in the order of
	// the file's PriceIDs. A wrong letter in a code makes a new fund.
	NewFunds []fund.Fund
	// Unpriced are the funds of imported holdings without a price in the book, in the order of
	// the holdings. Package bookfile finds them when it checks holders.
	Unpriced []fund.Fund
	// FarAhead are the PriceIDs of imported prices for days that no sale can name yet. Package
	// bookfile finds them.
	FarAhead []int64
	// Outranked are the PriceIDs of the imported prices that are not used, because the book or the
	// file has a price of the same fund and day with a higher PriceID. They are in the order of the
	// file's PriceIDs.
	Outranked []int64
}

// Lines returns the number of all lines of the file.
func (i Imported) Lines() int64 { return i.New + i.Changed + i.Unchanged }

// String counts the lines in words: 3 new, 1 changed, 0 unchanged.
func (i Imported) String() string {
	text := fmt.Sprintf("%d new, %d changed, %d unchanged", i.New, i.Changed, i.Unchanged)
	if i.Removed > 0 {
		text += fmt.Sprintf(", %d removed", i.Removed)
	}
	return text
}

// Warning says which funds had or have no price, and which prices are not used or are for a far day.
// It is empty if there are none.
func (i Imported) Warning() string {
	var warnings []string
	if len(i.NewFunds) > 0 {
		warnings = append(warnings, Plural(len(i.NewFunds), "fund")+" had no price before: "+namesOf(i.NewFunds)+
			". If a code or a holder is mistyped, sales wait for the right one.")
	}
	if len(i.Unpriced) > 0 {
		verb := " have no price: "
		if len(i.Unpriced) == 1 {
			verb = " has no price: "
		}
		warnings = append(warnings, Plural(len(i.Unpriced), "fund")+verb+namesOf(i.Unpriced)+
			". Sales of them are refused until 'import prices' has one. If a code or a holder is mistyped, correct the file.")
	}
	if len(i.Outranked) > 0 {
		warnings = append(warnings, Plural(len(i.Outranked), "price")+" will not be used, because there is one with a higher PriceID for the same fund and day: PriceID "+
			idsOf(i.Outranked)+". To correct a price, give the new one a higher PriceID.")
	}
	if len(i.FarAhead) > 0 {
		verb := " are"
		if len(i.FarAhead) == 1 {
			verb = " is"
		}
		warnings = append(warnings, fmt.Sprintf("%s%s for a day more than %d days ahead: PriceID %s. If a year is mistyped, use 'bankingapi prices withdraw'.",
			Plural(len(i.FarAhead), "price"), verb, fund.MaxDaysAhead, idsOf(i.FarAhead)))
	}
	return strings.Join(warnings, "\n")
}

// maxNamed is how many funds or prices a warning names.
const maxNamed = 20

// namesOf returns the codes of the first funds.
func namesOf(funds []fund.Fund) string {
	var codes []string
	for _, of := range funds[:min(len(funds), maxNamed)] {
		codes = append(codes, fmt.Sprintf("%s %q", of.IMKBCode, of.HolderCorporationName))
	}
	return andMore(codes, len(funds))
}

// idsOf returns the first IDs.
func idsOf(ids []int64) string {
	var texts []string
	for _, id := range ids[:min(len(ids), maxNamed)] {
		texts = append(texts, strconv.FormatInt(id, 10))
	}
	return andMore(texts, len(ids))
}

// andMore lists the first texts of a number of them.
func andMore(first []string, all int) string {
	text := strings.Join(first, ", ")
	more := all - len(first)
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Fault is one reason why a file is not imported.
type Fault struct {
	// Line is counted from 1. For a record of several lines it is the first line.
	Line int64
	// Column is the name of the column. It is empty if the fault is in the whole line.
	Column string
	// Rule is the broken rule in a sentence, without the value.
	Rule string
}

// String returns "line: column: rule".
func (f Fault) String() string {
	if f.Column == "" {
		return fmt.Sprintf("%d: %s", f.Line, f.Rule)
	}
	return fmt.Sprintf("%d: %s: %s", f.Line, f.Column, f.Rule)
}

// faultsListed is the maximum number of faults in the list. Of the others only the lines are counted.
const faultsListed = 100

// Faults is the error of a file that breaks rules. Nothing of the file must be imported.
type Faults struct {
	// List has the first hundred, in the order in which they were found.
	List []Fault
	// Lines is the number of lines with faults, including the lines that are not listed.
	Lines int64

	last int64
}

// Error counts the lines.
func (f *Faults) Error() string { return Plural(f.Lines, "bad line") }

// Add adds a fault of a line. The faults of one line must be added one after the other.
func (f *Faults) Add(line int64, column, rule string) {
	if f.Lines == 0 || line != f.last {
		f.last = line
		f.Lines++
	}
	if len(f.List) < faultsListed {
		f.List = append(f.List, Fault{line, column, rule})
	}
}

// ComparePrice adds the line if its price differs from the existing price.
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

// CompareBefore adds the line if its price differs from the price before by more than limit
// percent.
func (f *Faults) CompareBefore(line int64, before, imported fund.Price, limit int) {
	percent := percentBetween(before, imported)
	if new(big.Rat).Abs(percent).Cmp(big.NewRat(int64(limit), 1)) <= 0 {
		return
	}
	f.Add(line, "Price", fmt.Sprintf("The price differs by %s %% from that of %s, %s. If it is right, import it with --force.",
		formatPercent(percent, 1), before.ValidFrom, before.PerUnit))
}

// CompareCurrency adds the line if its price has another currency than the price before.
func (f *Faults) CompareCurrency(line int64, before, imported fund.Price) {
	if before.Currency == imported.Currency {
		return
	}
	f.Add(line, "CurrencyCode", fmt.Sprintf("The price is in %s, but that of %s is in %s. If it is right, import it with --force.",
		imported.Currency.Code(), before.ValidFrom, before.Currency.Code()))
}

// orQuiet returns progress, or a function that does nothing if progress is nil.
func orQuiet(progress func(int64)) func(int64) {
	if progress == nil {
		return func(int64) {}
	}
	return progress
}
