package bookfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"bankingapi/application/backoffice"
)

// Watch is told how an Import gets on. Each function may be nil.
type Watch struct {
	// Name is the name of the file, for the audit.
	Name string
	// Phase is told what begins: reading, checking, writing, committing. lines is
	// how many lines the phase has; 0 if that is not known, or if it does not go
	// line by line.
	Phase func(name string, lines int64)
	// Progress is told how many lines are written, though not yet for good.
	Progress func(lines int64)
	// Fault is told each bad line, up to a hundred.
	Fault func(Fault)
}

// Import reads a file of prices, holdings, accounts or the calendar and imports it, all lines
// or none. Two equal lines of one price count as unchanged. The error wraps *Faults
// if lines break rules, also if a price exists with other values. The audit keeps the
// import as an act of the person in ctx.
func Import(ctx context.Context, office *backoffice.Office, kind string, r io.Reader, w Watch) (backoffice.Imported, error) {
	ctx, book := office.Acts.Begin(ctx, "import."+kind, w.Name, ""), office.Importer
	if w.Phase == nil {
		w.Phase = func(string, int64) {}
	}
	if w.Progress == nil {
		w.Progress = func(int64) {}
	}
	if w.Fault == nil {
		w.Fault = func(Fault) {}
	}
	var imported backoffice.Imported
	var err error
	switch kind {
	case "prices":
		imported, err = importFile(ctx, r, &prices, book.Prices, w)
	case "holdings":
		imported, err = importFile(ctx, r, &holdings, book.Holdings, w)
	case "accounts":
		imported, err = importFile(ctx, r, &accounts, book.Accounts, w)
	case "calendar":
		imported, err = importFile(ctx, r, &calendar, book.ClosedDays, w)
	default:
		return imported, unknownKind(kind, "prices", "holdings", "accounts", "calendar")
	}
	if bad, ok := errors.AsType[*Faults](err); ok {
		for _, f := range bad.List {
			w.Fault(f)
		}
		err = fmt.Errorf("nothing was imported: %w", bad)
	}
	if sold, ok := errors.AsType[*backoffice.SoldSince](err); ok {
		err = fmt.Errorf("nothing was imported: %w. Export the positions again, or correct them with adjust", sold)
	}
	return imported, err
}

// importer is a method of backoffice.Importer.
type importer[T any] func(context.Context, backoffice.Lines[T], func(int64)) (backoffice.Imported, error)

func importFile[T any](ctx context.Context, r io.Reader, k *kind[T], write importer[T], w Watch) (imported backoffice.Imported, err error) {
	w.Phase("reading", 0)
	file, err := read(ctx, r, k, func() { w.Phase("checking", 0) })
	if err != nil {
		return imported, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := func(yield func(int64, T) error) error { // called again after a lost race
		w.Phase("writing", file.Len())
		for e, err := range file.values(nil) {
			if err == nil {
				err = yield(e.Line, e.value)
			}
			if err != nil {
				return err
			}
		}
		w.Phase("committing", 0)
		return nil
	}
	imported, err = write(ctx, lines, w.Progress)
	if changed, ok := errors.AsType[*backoffice.ChangedPrices](err); ok {
		return imported, changedPrices(changed)
	}
	imported.Unchanged += max(0, file.Len()-imported.Lines())
	return imported, err
}

func changedPrices(changed *backoffice.ChangedPrices) *Faults {
	faults := &Faults{Lines: changed.Lines}
	for _, c := range changed.List {
		rule := "The price is there with another value: a price never changes. Give the new one a PriceID of its own."
		if c.Column == "PriceID" {
			rule = "This price was withdrawn. Give the new one a PriceID of its own."
		}
		if c.Percent != 0 {
			rule = fmt.Sprintf("The price differs by %+.1f %% from that of %s, %s. If it is right, import it with --force.", c.Percent, c.Before.ValidFrom, c.Before.PerUnit)
		}
		faults.List = append(faults.List, Fault{c.Line, c.Column, rule})
	}
	slices.SortStableFunc(faults.List, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	return faults
}

// Query narrows an Export. The zero value takes everything. What makes no sense for a
// kind is left aside.
type Query struct {
	backoffice.Query
	// Follow goes on with the sales, notifications or outcomes that come, until the
	// context ends, which is no error then. Flush is called after each part; it may be
	// nil.
	Follow bool
	Flush  func() error
}

// Export writes rows of that kind to w: prices, holdings, accounts, calendar, sales,
// postings, notifications, operations, outcomes or audit, in the format csv, ndjson or
// spreadsheet. It stops at the first error. progress may be nil.
func Export(ctx context.Context, from *backoffice.Office, kind, format string, q Query, w io.Writer, progress func(rows int64)) error {
	f := Format(format)
	if f != CSV && f != NDJSON && f != Spreadsheet && f != Excel {
		return fmt.Errorf("there is no format %q: it is csv, ndjson, spreadsheet or excel", format)
	}
	filter, office := q.Query, *from
	filter.Zone = from.Zone
	if q.Follow {
		if kind != "sales" && kind != "notifications" && kind != "outcomes" {
			return fmt.Errorf("%s cannot be followed: sales, notifications and outcomes can", kind)
		}
		follower := backoffice.Follower{Reader: office.Reader, Outcomes: office.Outcomes, Now: office.Acts.Now, Every: time.Second, Idle: q.Flush}
		if kind == "outcomes" {
			return Write(w, f, outcomeColumns, backoffice.Counted(follower.Ended(ctx, filter.Subscription, 0), progress), nil)
		}
		office.Reader = follower
	}
	switch kind {
	case "prices":
		return Write(w, f, priceColumns, backoffice.Counted(office.Reader.Prices(ctx, filter), progress), nil)
	case "holdings":
		return Write(w, f, holdingColumns, backoffice.Counted(office.Reader.Holdings(ctx, filter), progress), nil)
	case "accounts":
		return Write(w, f, accountColumns, backoffice.Counted(office.Reader.Accounts(ctx, filter), progress), nil)
	case "calendar":
		return Write(w, f, closedDayColumns, backoffice.Counted(office.Calendar.ClosedDays(ctx), progress), nil)
	case "outcomes":
		return Write(w, f, outcomeColumns, backoffice.Counted(backoffice.EachOutcome(ctx, office.Outcomes, filter.Subscription, 0), progress), nil)
	case "sales":
		return Write(w, f, Sales, backoffice.Counted(office.Reader.Sales(ctx, filter), progress), nil)
	case "postings":
		return Write(w, f, postingColumns, bothSides(backoffice.Counted(office.Reader.Postings(ctx, filter), progress)), nil)
	case "notifications":
		return Write(w, f, Notifications, backoffice.Counted(office.Reader.Notifications(ctx, filter), progress), nil)
	case "operations":
		return Write(w, f, decisionColumns, backoffice.Counted(office.Reader.Decisions(ctx, filter), progress), nil)
	case "audit":
		return Write(w, f, Acts, backoffice.Counted(office.Reader.Acts(ctx, filter), progress), nil)
	}
	return unknownKind(kind, "prices", "holdings", "accounts", "calendar", "sales", "postings", "notifications", "operations", "outcomes", "audit")
}

func unknownKind(kind string, known ...string) error {
	return fmt.Errorf("there is no file of %q: it is one of %s", kind, strings.Join(known, ", "))
}
