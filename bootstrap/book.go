package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"bankingapi/adapters/bookfile"
	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// ImportWatch is told how an Import gets on; each function may be nil.
type ImportWatch struct {
	// Name is the name of the file, for the audit.
	Name string
	// Phase is told what begins: reading, checking, writing, committing. lines is
	// how many lines the phase has; 0 if it has no such number.
	Phase func(name string, lines int64)
	// Progress is told how many lines are written, though not yet for good.
	Progress func(lines int64)
	// Fault is told each bad line, up to a hundred.
	Fault func(LineFault)
	// Imported is told once what the lines of a successful import changed.
	Imported func(added, changed, unchanged int64)
}

// LineFault is a rule that a line of a file breaks.
type LineFault = bookfile.Fault

// Import sets prices, holdings or accounts to what a CSV file says, all lines
// or none, and returns how many. The error of a file that breaks rules counts
// its bad lines; watch.Fault was told them before.
func (a *App) Import(ctx context.Context, kind string, r io.Reader, watch ImportWatch) (lines int64, err error) {
	if err := a.usable(ctx); err != nil {
		return 0, err
	}
	imported, err := bookfile.Import(a.options.acts().Begin(ctx, "import."+kind, watch.Name, ""), a.office.Importer, kind, r,
		bookfile.Watch{Phase: watch.Phase, Written: watch.Progress})
	if bad, ok := errors.AsType[*bookfile.Faults](err); ok {
		for _, f := range bad.List {
			if watch.Fault != nil {
				watch.Fault(f)
			}
		}
		return imported.Lines(), fmt.Errorf("nothing was imported: %w", err)
	}
	if sold, ok := errors.AsType[*backoffice.SoldSince](err); ok {
		return 0, fmt.Errorf("nothing was imported: %w. Export the positions again, or correct them with adjust", sold)
	}
	if err == nil && watch.Imported != nil {
		watch.Imported(imported.New, imported.Changed, imported.Unchanged)
	}
	return imported.Lines(), fault.Explain(err)
}

// ExportFilter narrows an Export; the zero value takes everything. What makes
// no sense for a kind is left aside.
type ExportFilter struct {
	Customer     int64
	User         string
	Since, Until time.Time // from Since on, and before Until
	State        int       // Data.State of sales and operations

	// DueSince and DueUntil are days, as YYYY-MM-DD: both are included. They take
	// sales for a later day.
	DueSince, DueUntil string
	// SettledSince and SettledUntil take sales by the time of their settlement.
	SettledSince, SettledUntil time.Time
	// The rest takes sales, notifications and operations of that subscription,
	// CallerId, X-Request-Id, operation or PushId.
	Subscription, CallerID, RequestID, OperationID, PushID string
	// Follow goes on with the sales or notifications that come, until the context
	// ends, which is no error then. Flush is called after each part; it may be nil.
	Follow bool
	Flush  func() error
}

// Export writes prices, holdings, accounts, sales, postings, notifications,
// operations or audit as csv, ndjson or spreadsheet, as they are at one moment. A
// spreadsheet is csv with an apostrophe before each text that a spreadsheet may
// run as a formula. It streams: memory does not grow with the number of rows. progress is told how many rows were written; it may
// be nil.
func (a *App) Export(ctx context.Context, kind, format string, filter ExportFilter, w io.Writer, progress func(rows int64)) error {
	if err := a.usable(ctx); err != nil {
		return err
	}
	state := operation.State(filter.State) //nolint:gosec // checked in the next line
	if filter.State != 0 && (filter.State != int(state) || state.String() == "none") {
		return fmt.Errorf("there is no state %d: it is 1 (recorded), 2 (completed) or 8 (failed)", filter.State)
	}
	f := backoffice.Filter{
		CustomerNo: filter.Customer, UserID: filter.User, Since: filter.Since, Until: filter.Until,
		Zone: a.zone, State: state, SettledSince: filter.SettledSince, SettledUntil: filter.SettledUntil,
		Subscription: filter.Subscription, CallerID: filter.CallerID, RequestID: filter.RequestID, PushID: filter.PushID,
	}
	var err error
	if filter.DueSince != "" {
		if f.DueSince, err = day.Parse(filter.DueSince); err != nil {
			return fmt.Errorf("%q is no day: %w", filter.DueSince, err)
		}
	}
	if filter.DueUntil != "" {
		if f.DueUntil, err = day.Parse(filter.DueUntil); err != nil {
			return fmt.Errorf("%q is no day: %w", filter.DueUntil, err)
		}
	}
	if filter.OperationID != "" {
		if f.OperationID, err = operation.ParseID(filter.OperationID); err != nil {
			return fmt.Errorf("%q is no ID of an operation", filter.OperationID)
		}
	}
	office := *a.office
	if filter.Follow {
		if kind != "sales" && kind != "notifications" {
			return fmt.Errorf("%s cannot be followed: sales and notifications can", kind)
		}
		office.History = backoffice.Follower{History: office.History, Now: a.options.bank(), Every: followEvery, Idle: filter.Flush}
	}
	return fault.Explain(bookfile.Export(ctx, &office, kind, format, f, w, progress))
}

// followEvery is how often an Export that follows reads what came.
const followEvery = time.Second

// Proof is the result of Verify. The book is correct if it has no Findings.
type Proof = backoffice.Proof

// VerifyWatch is told how Verify gets on; both may be nil.
type VerifyWatch struct {
	Progress func(rows int64)
	Finding  func(text string) // a place that does not hold, in one line
	// Against are earlier checkpoints of the trail, which its log must extend.
	Against []string
	// Report is filled with what an auditor files. Its Ended is zero if Verify
	// failed. It may be nil.
	Report *Report
}

// Report is what an auditor files of one run of Verify.
type Report = backoffice.Report

// Verify proves the book at one moment: every balance and holding is the sum
// of its postings, units and money sum to zero, every completed sale has its
// postings. What does not hold is a finding and no error.
//
// If ctx names who verifies, as By does, the check is recorded as an act.
func (a *App) Verify(ctx context.Context, watch VerifyWatch) (Proof, error) {
	if err := a.usable(ctx); err != nil {
		return Proof{}, err
	}
	report := cmp.Or(watch.Report, new(Report))
	found := func(f backoffice.Finding) {
		report.Found(f)
		if watch.Finding != nil {
			watch.Finding(f.Text)
		}
	}
	status, err := a.store.Schema.Status(ctx)
	if err != nil {
		return Proof{}, fault.Explain(err)
	}
	who := audit.Actor(ctx)
	report.Book, report.Schema, report.Program = bookName(a.settings.Storage), status.Version, a.options.version
	report.By = strings.Trim(who.Actor+" at "+who.Origin, " ")
	report.Started = a.options.now()
	report.Proof, err = a.verify(ctx, a.office.Verifier, watch.Against, backoffice.Watch{Found: found, Progress: watch.Progress})
	if err == nil {
		report.Ended = a.options.now()
	}
	return report.Proof, fault.Explain(err)
}

// verify proves the book, and records the act of a person. The check counts
// although it cannot be kept, as on a server that only reads.
func (a *App) verify(ctx context.Context, v *backoffice.Verifier, against []string, watch backoffice.Watch) (Proof, error) {
	act := a.options.acts().New(ctx, backoffice.VerifyAct, "", "")
	v, err := a.trail.Verifier(ctx, v, against)
	if err != nil {
		return Proof{}, err
	}
	proof, err := v.Verify(ctx, watch)
	if err == nil && act.Who != (audit.Who{}) && a.office.Audit != nil && a.trail.MayAct(ctx) {
		act.Details = proof.String()
		if err := a.office.Audit.Record(ctx, act); err != nil {
			a.observer.logger.Warn("it could not be recorded that the book was checked", zap.Error(err))
		}
	}
	return proof, err
}

// bookName names a book without secrets.
func bookName(s StorageSettings) string {
	switch dsn := string(s.DSN); s.Driver {
	case SQLite:
		file := strings.TrimPrefix(dsn, "file:")
		if path, err := filepath.Abs(file); err == nil {
			file = path
		}
		return "SQLite file " + file
	case Postgres:
		if config, err := url.Parse(dsn); err == nil && config.Host != "" {
			return "Postgres database " + strings.TrimPrefix(config.Path, "/") + " at " + config.Host
		}
		var known []string
		for word := range strings.FieldsSeq(dsn) { // host=… dbname=…
			if name, _, _ := strings.Cut(word, "="); slices.Contains([]string{"host", "hostaddr", "port", "dbname"}, name) {
				known = append(known, word)
			}
		}
		return strings.Join(append([]string{"Postgres database"}, known...), " ")
	}
	return "storage " + s.Driver
}
