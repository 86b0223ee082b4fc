package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.uber.org/zap"

	"bankingapi/adapters/bookfile"
	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
)

// ImportWatch is told how an Import gets on; each function may be nil.
type ImportWatch = bookfile.Watch

// LineFault is a rule that a line of a file breaks.
type LineFault = bookfile.Fault

// Import sets prices, holdings or accounts to what a CSV file says, all lines
// or none, and returns how many. The error of a file that breaks rules counts
// its bad lines; watch.Fault was told them before.
func (a *App) Import(ctx context.Context, kind string, r io.Reader, watch ImportWatch) (lines int64, err error) {
	if err := a.usable(ctx); err != nil {
		return 0, err
	}
	imported, err := bookfile.Import(a.options.acts().Begin(ctx, "import."+kind, watch.Name, ""), a.office.Importer, kind, r, watch)
	if bad, ok := errors.AsType[*bookfile.Faults](err); ok {
		return imported.Lines(), fmt.Errorf("nothing was imported: %w", bad)
	}
	if sold, ok := errors.AsType[*backoffice.SoldSince](err); ok {
		return 0, fmt.Errorf("nothing was imported: %w. Export the positions again, or correct them with adjust", sold)
	}
	return imported.Lines(), fault.Explain(err)
}

// ExportFilter narrows an Export; the zero value takes everything. What makes
// no sense for a kind is left aside.
type ExportFilter = bookfile.Query

// Export writes prices, holdings, accounts, sales, postings, notifications,
// operations or audit as csv, ndjson or spreadsheet, as they are at one moment. A
// spreadsheet is csv with an apostrophe before each text that a spreadsheet may
// run as a formula. It streams: memory does not grow with the number of rows. progress is told how many rows were written; it may
// be nil.
func (a *App) Export(ctx context.Context, kind, format string, filter ExportFilter, w io.Writer, progress func(rows int64)) error {
	if err := a.usable(ctx); err != nil {
		return err
	}
	narrowed, err := filter.Filter(a.zone)
	if err != nil {
		return err
	}
	office := *a.office
	if filter.Follow {
		if kind != "sales" && kind != "notifications" {
			return fmt.Errorf("%s cannot be followed: sales and notifications can", kind)
		}
		office.History = backoffice.Follower{History: office.History, Now: a.options.bank(), Every: time.Second, Idle: filter.Flush}
	}
	return fault.Explain(bookfile.Export(ctx, &office, kind, format, narrowed, w, progress))
}

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
	report.Book, report.Schema, report.Program = a.settings.Storage.Name(), status.Version, a.options.version
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
