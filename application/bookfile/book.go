package bookfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
)

// Options control the import of a file.
type Options struct {
	// Import has the options of the import of its lines.
	Import backoffice.ImportOptions
	// Name is the name of the file, for the audit.
	Name string
	// Details say more of the import in the audit, such as which checks it left out.
	Details string
	// Format is CSV or Excel. If it is empty, the first line decides: semicolons are Excel.
	Format Format
	// CheckHolders refuses a fund without a price in the book if its name can be taken for
	// another one: if its IMKBCode has another holder, or if its holder, or its code and holder,
	// differ from others only in case, accents, blanks or similar characters.
	CheckHolders bool
	// Phase is called at the start of each phase: reading, checking, writing, committing. lines
	// is the number of lines of the phase. It is 0 if the number is not known, or if the phase
	// does not process single lines. Phase may be nil.
	Phase func(name string, lines int64)
}

// Import reads a file of prices, holdings, accounts or the calendar and imports all of its
// lines or none. If two lines of one price are equal, the second counts as unchanged. The error
// wraps *backoffice.Faults if lines break rules, also if a price exists with other values. A file
// cannot be of a later time than now. The audit records the import as an act of the person in ctx.
func Import(ctx context.Context, office *backoffice.Office, kind string, r io.Reader, o Options) (imported backoffice.Imported, err error) {
	if o.Format != "" && o.Format != CSV && o.Format != Excel {
		return imported, fmt.Errorf("there is no format %q: it is csv or excel", o.Format)
	}
	if o.Import.AsOf.After(office.Acts.Now()) { // the import would find no sale since then, and undo all of them
		return imported, fmt.Errorf("nothing was imported: the moment of the file, %s, is not over", o.Import.AsOf.Format(time.RFC3339))
	}
	act := office.Acts.New(ctx, "import."+kind, o.Name, o.Details) // audit.ImportPrices and so on
	ctx = audit.With(ctx, act)
	o.Import.ID = act.ID // postings name the act, which says whose import it was
	if o.Phase == nil {
		o.Phase = func(string, int64) {}
	}
	switch kind {
	case "prices":
		far := farPrices{office: office, after: day.Of(office.Acts.Now(), office.Zone()).Plus(fund.MaxDaysAhead)}
		imported, err = importFile(ctx, r, &prices, office, far.write, o)
		imported.Unpriced = nil // they have one now
		imported.FarAhead = far.ids
	case "holdings":
		imported, err = importFile(ctx, r, &holdings, office, office.Imports.Holdings, o)
	case "accounts":
		imported, err = importFile(ctx, r, &accounts, office, office.Imports.Accounts, o)
	case "calendar":
		imported, err = importFile(ctx, r, &calendar, office, office.Imports.ClosedDays, o)
	default:
		return imported, unknownKind(kind, "prices", "holdings", "accounts", "calendar")
	}
	if bad, ok := errors.AsType[*backoffice.Faults](err); ok {
		err = fmt.Errorf("nothing was imported: %w", bad)
	}
	if changed, ok := errors.AsType[*backoffice.ChangedSince](err); ok {
		err = fmt.Errorf("nothing was imported: %w. Export the positions again, or correct them with adjust", changed)
	}
	return imported, err
}

// farPrices imports prices, and notes those that are for a day after the last one that a sale can name.
type farPrices struct {
	office *backoffice.Office
	after  day.Day
	ids    []int64
}

func (f *farPrices) write(ctx context.Context, lines backoffice.Lines[fund.Price], o backoffice.ImportOptions) (backoffice.Imported, error) {
	noted := func(yield func(int64, fund.Price) error) error { // called again after a conflict
		f.ids = nil
		return lines(func(line int64, price fund.Price) error {
			if price.ValidFrom.After(f.after) && !price.IsWithdrawn() {
				f.ids = append(f.ids, price.ID)
			}
			return yield(line, price)
		})
	}
	return f.office.Imports.Prices(ctx, noted, o)
}

func importFile[T any](ctx context.Context, r io.Reader, k *kind[T], office *backoffice.Office, write backoffice.Import[T], o Options) (imported backoffice.Imported, err error) {
	o.Phase("reading", 0)
	file, err := read(ctx, r, k, o.Format, func() { o.Phase("checking", 0) })
	if err != nil {
		return imported, err
	}
	defer func() { err = errors.Join(err, file.close()) }()
	var unpriced []fund.Fund
	if o.CheckHolders && k.fundOf != nil {
		unpriced, err = checkHolders(ctx, office.Reader, file)
		if err != nil {
			return imported, err
		}
	}
	lines := func(yield func(int64, T) error) error { // called again after a conflict
		o.Phase("writing", file.count)
		for e, err := range file.values(nil) {
			if err != nil {
				return err
			}
			err = yield(e.Line, e.value)
			if err != nil {
				return err
			}
		}
		o.Phase("committing", 0)
		return nil
	}
	imported, err = write(ctx, lines, o.Import)
	if bad, ok := errors.AsType[*backoffice.Faults](err); ok {
		return imported, inOrder(bad)
	}
	imported.Unchanged += max(0, file.count-imported.Lines())
	imported.Unpriced = unpriced
	return imported, err
}

// Query filters an Export. The zero value selects all rows. Export ignores filters that do not
// apply to a kind.
type Query struct {
	Filter backoffice.Query
	// Follow continues with new sales, notifications or outcomes until the context ends. This
	// end is not an error. Flush is called after each part and may be nil. Rows, if it is not
	// nil, counts the written rows.
	Follow bool
	Flush  func() error
	Rows   *int64
}

// Export writes the rows of a kind to w. The kinds are prices, holdings, accounts, calendar,
// sales, postings, notifications, operations, outcomes, requests and audit. The formats are csv, ndjson,
// spreadsheet and excel. Export stops at the first error. progress may be nil.
func Export(ctx context.Context, source *backoffice.Office, kind string, format Format, q Query, w io.Writer, progress func(rows int64)) error {
	if format != CSV && format != NDJSON && format != Spreadsheet && format != Excel {
		return fmt.Errorf("there is no format %q: it is csv, ndjson, spreadsheet or excel", format)
	}
	if progress == nil {
		progress = func(int64) {}
	}
	filter := q.Filter
	office := *source
	style := Style{Format: format, Zone: source.Zone(), Rows: q.Rows}
	filter.Zone = source.Zone()
	if q.Follow {
		if kind != "sales" && kind != "notifications" && kind != "outcomes" {
			return fmt.Errorf("%s cannot be followed: sales, notifications and outcomes can", kind)
		}
		follower := backoffice.Follower{Reader: office.Reader, Outcomes: office.Outcomes, Now: office.Acts.Now, Every: time.Second, Idle: q.Flush}
		if kind == "outcomes" {
			return Write(w, style, outcomeColumns, countRows(q, follower.EachOutcome(ctx, filter.Subscription, 0), progress))
		}
		if err := source.CheckClock(ctx); err != nil {
			return err
		}
		office.Reader = follower
	}
	switch kind {
	case "prices":
		return Write(w, style, priceColumns, countRows(q, office.Reader.Prices(ctx, filter), progress))
	case "holdings":
		return Write(w, style, Holdings, countRows(q, office.Reader.Holdings(ctx, filter), progress))
	case "accounts":
		return Write(w, style, Accounts, countRows(q, office.Reader.Accounts(ctx, filter), progress))
	case "calendar":
		return Write(w, style, closedDayColumns, countRows(q, office.Reader.ClosedDays(ctx), progress))
	case "outcomes":
		return Write(w, style, outcomeColumns, countRows(q, backoffice.EachOutcome(ctx, office.Outcomes, filter.Subscription, 0), progress))
	case "sales":
		return Write(w, style, Sales, countRows(q, office.Reader.Sales(ctx, filter), progress))
	case "postings":
		return Write(w, style, postingColumns, bothSides(countRows(q, office.Reader.Postings(ctx, filter), progress)))
	case "notifications":
		return Write(w, style, Notifications, countRows(q, office.Reader.Notifications(ctx, filter), progress))
	case "operations":
		return Write(w, style, decisionColumns, countRows(q, office.Reader.Decisions(ctx, filter), progress))
	case "requests":
		return Write(w, style, Requests, countRows(q, office.Reader.Requests(ctx, filter), progress))
	case "audit":
		return Write(w, style, Acts, countRows(q, office.Reader.Acts(ctx, filter), progress))
	}
	return unknownKind(kind, "prices", "holdings", "accounts", "calendar", "sales", "postings", "notifications", "operations", "outcomes", "requests", "audit")
}

// countRows calls progress after every 1000 rows, and with the number of all rows at the end.
// It reads ahead, unless the query follows new rows.
func countRows[T any](q Query, rows iter.Seq2[T, error], progress func(rows int64)) iter.Seq2[T, error] {
	if !q.Follow {
		rows = ahead(rows)
	}
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

// ahead reads rows while the caller writes earlier ones, so two cores share the work.
func ahead[T any](rows iter.Seq2[T, error]) iter.Seq2[T, error] {
	type row struct {
		value T
		err   error
	}
	return func(yield func(T, error) bool) {
		next := make(chan row, 100)
		done := make(chan struct{})
		var panicked any
		go func() {
			defer close(next)
			defer func() { panicked = recover() }()
			for value, err := range rows {
				select {
				case next <- row{value, err}:
				case <-done:
					return
				}
			}
		}()
		defer func() {
			close(done)
			for range next { // wait until the reader has stopped
				continue
			}
			if panicked != nil {
				panic(panicked)
			}
		}()
		for r := range next {
			if !yield(r.value, r.err) {
				return
			}
		}
	}
}

func unknownKind(kind string, known ...string) error {
	return fmt.Errorf("there is no file of %q: it is one of %s", kind, strings.Join(known, ", "))
}
