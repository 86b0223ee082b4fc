package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"bankingapi/adapters/bookfile"
	"bankingapi/adapters/storage"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// ImportWatch is told how an Import gets on; both may be nil.
type ImportWatch struct {
	// Progress is told how many lines are written, though not yet for good.
	Progress func(lines int64)
	// Fault is told each bad line, up to a hundred.
	Fault func(LineFault)
}

// LineFault is a rule that a line of a file breaks.
type LineFault struct {
	Line   int64
	Column string // empty when it is the line as a whole
	Rule   string // a sentence, without the value
}

// Import sets prices, holdings or accounts to what a CSV file says, all lines
// or none, and returns how many. The error of a file that breaks rules counts
// its bad lines; watch.Fault was told them before.
func (a *App) Import(ctx context.Context, kind string, r io.Reader, watch ImportWatch) (lines int64, err error) {
	if err := a.usable(ctx); err != nil {
		return 0, err
	}
	if watch.Progress == nil {
		watch.Progress = func(int64) {}
	}
	switch kind {
	case "prices":
		lines, err = importFile(ctx, r, bookfile.ReadPrices, func(l storage.Lines[fund.Price]) error {
			return a.store.ImportPrices(ctx, l, watch.Progress)
		})
	case "holdings":
		lines, err = importFile(ctx, r, bookfile.ReadHoldings, func(l storage.Lines[fund.Holding]) error {
			return a.store.ImportHoldings(ctx, newID(), l, watch.Progress)
		})
	case "accounts":
		lines, err = importFile(ctx, r, bookfile.ReadAccounts, func(l storage.Lines[fund.Account]) error {
			return a.store.ImportAccounts(ctx, newID(), l, watch.Progress)
		})
	default:
		return 0, unknownKind(kind, "prices", "holdings", "accounts")
	}
	return lines, watch.tell(err)
}

func importFile[T any](ctx context.Context, r io.Reader, read func(context.Context, io.Reader) (*bookfile.Sorted[T], error), write func(storage.Lines[T]) error) (int64, error) {
	file, err := read(ctx, r)
	if err != nil {
		return 0, err
	}
	return file.Len(), errors.Join(write(file.Each), file.Close())
}

// tell hands the bad lines of an import's error on, and says what it came to.
func (w ImportWatch) tell(err error) error {
	var faults []bookfile.Fault
	if bad, ok := errors.AsType[*bookfile.Faults](err); ok {
		faults = bad.List
	} else if changed, ok := errors.AsType[*storage.ChangedPrices](err); ok {
		for _, c := range changed.List {
			faults = append(faults, bookfile.Fault{Line: c.Line, Column: c.Column,
				Rule: "The price is there with another value: a price never changes. Give the new one a PriceID of its own."})
		}
	} else {
		return explain(err)
	}
	slices.SortStableFunc(faults, func(a, b bookfile.Fault) int { return int(a.Line - b.Line) })
	if w.Fault != nil {
		for _, f := range faults {
			w.Fault(LineFault(f))
		}
	}
	return fmt.Errorf("nothing was imported: %w", err)
}

func unknownKind(kind string, known ...string) error {
	return fmt.Errorf("there is no file of %q: it is one of %s", kind, strings.Join(known, ", "))
}

// ExportFilter narrows an Export; the zero value takes everything. What makes
// no sense for a kind is left aside.
type ExportFilter struct {
	Customer     int64
	User         string
	Since, Until time.Time // from Since on, and before Until
	State        int       // Data.State of sales
}

// Export writes prices, holdings, accounts, sales, postings or notifications
// as csv or ndjson, as they are at one moment. It streams: memory does not
// grow with what there is. progress is told how many rows were written.
func (a *App) Export(ctx context.Context, kind, format string, filter ExportFilter, w io.Writer, progress func(rows int64)) (err error) {
	if err := a.usable(ctx); err != nil {
		return err
	}
	f, ok := bookfile.ParseFormat(format)
	if !ok {
		return fmt.Errorf("there is no format %q: it is csv or ndjson", format)
	}
	state := operation.State(filter.State) //nolint:gosec // checked in the next line
	if filter.State != 0 && (filter.State != int(state) || state.String() == "none") {
		return fmt.Errorf("there is no state %d: it is 1 (recorded), 2 (completed) or 8 (failed)", filter.State)
	}
	narrow := storage.Filter{
		CustomerNo: filter.Customer, UserID: filter.User, Since: filter.Since, Until: filter.Until,
		Zone: a.zone, State: state,
	}
	switch kind {
	case "prices":
		err = bookfile.WritePrices(w, f, counted(a.store.ExportPrices(ctx, narrow), progress))
	case "holdings":
		err = bookfile.WriteHoldings(w, f, counted(a.store.ExportHoldings(ctx, narrow), progress))
	case "accounts":
		err = bookfile.WriteAccounts(w, f, counted(a.store.ExportAccounts(ctx, narrow), progress))
	case "sales":
		err = bookfile.WriteSales(w, f, counted(a.store.ExportSales(ctx, narrow), progress))
	case "postings":
		err = bookfile.WritePostings(w, f, counted(a.store.ExportPostings(ctx, narrow), progress))
	case "notifications":
		err = bookfile.WriteNotifications(w, f, counted(a.store.ExportNotifications(ctx, narrow), progress))
	default:
		return unknownKind(kind, "prices", "holdings", "accounts", "sales", "postings", "notifications")
	}
	return explain(err)
}

// counted tells progress of every thousandth row, and of the last.
func counted[T any](rows iter.Seq2[T, error], progress func(int64)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var n int64
		defer func() { progress(n) }()
		for row, err := range rows {
			if !yield(row, err) {
				return
			}
			if n++; n%1000 == 0 {
				progress(n)
			}
		}
	}
}

// Proof is what Verify looked at. No Findings prove the book.
type Proof struct{ Holdings, Accounts, Sales, Postings, Findings int64 }

// VerifyWatch is told how Verify gets on.
type VerifyWatch struct {
	Progress func(rows int64)
	Finding  func(text string) // a place that does not hold, in one line
}

// Verify proves the book at one moment: every balance and holding is the sum
// of its postings, units and money sum to zero, every completed sale has its
// postings. What does not hold is a finding and no error.
func (a *App) Verify(ctx context.Context, watch VerifyWatch) (Proof, error) {
	if err := a.usable(ctx); err != nil {
		return Proof{}, err
	}
	p, err := a.store.Verify(ctx, storage.Watch{Found: watch.Finding, Progress: watch.Progress})
	return Proof{p.Holdings, p.Accounts, p.Sales, p.Postings, p.Findings}, explain(err)
}
