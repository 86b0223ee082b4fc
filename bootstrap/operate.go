package bootstrap

import (
	"context"
	"fmt"
	"io"
	"iter"

	"go.uber.org/zap"

	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/application/buyfund"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/subscription"
)

// usable returns an error if the store cannot be used. Call it before any work
// on the store.
func (a *App) usable(ctx context.Context) error { return fault.Explain(a.store.Schema.Require(ctx)) }

// Backoffice returns the use cases of people: import, lookups, corrections,
// verify, and the streams that exports read. It fails if the schema of the
// storage does not fit.
func (a *App) Backoffice(ctx context.Context) (*backoffice.Office, error) {
	return a.office, a.usable(ctx)
}

// Manager returns the use cases that create and change subscriptions. It fails if
// the schema of the storage does not fit.
func (a *App) Manager(ctx context.Context) (*subscriptions.Manager, error) {
	return a.manager, a.usable(ctx)
}

// Backup writes a consistent copy of the data to a new file, while the service
// runs. Not every storage can do this.
func (a *App) Backup(ctx context.Context, file string) error {
	return a.store.Backup(ctx, file) // also before a migration
}

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
	imported, err := bookfile.Import(a.acts.Begin(ctx, "import."+kind, watch.Name, ""), a.office.Importer, kind, r, watch)
	return imported.Lines(), fault.Explain(err)
}

// ExportFilter narrows an Export; the zero value takes everything. What makes
// no sense for a kind is left aside.
type ExportFilter = bookfile.Query

// Export writes prices, holdings, accounts, sales, postings, notifications,
// operations or audit as csv, ndjson or spreadsheet, as they are at one moment. A
// spreadsheet is csv with an apostrophe before each text that a spreadsheet may
// run as a formula. It streams: memory does not grow with the number of rows.
// progress is told how many rows were written; it may be nil.
func (a *App) Export(ctx context.Context, kind, format string, filter ExportFilter, w io.Writer, progress func(rows int64)) error {
	if err := a.usable(ctx); err != nil {
		return err
	}
	return fault.Explain(bookfile.Export(ctx, a.office, kind, format, filter, w, progress))
}

// Proof is the result of Verify. The book is correct if it has no Findings.
type Proof = backoffice.Proof

// VerifyWatch is told how Verify gets on; both may be nil.
type VerifyWatch struct {
	Progress func(rows int64)
	Finding  func(text string) // a place that does not hold, in one line
	// Against are the contents of files with earlier checkpoints of the trail, which its log must
	// extend (see CheckTrailCheckpoints).
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
	status, err := a.store.Schema.Status(ctx)
	if err != nil {
		return Proof{}, fault.Explain(err)
	}
	w := backoffice.Watch{Progress: watch.Progress, Report: watch.Report}
	if w.Report != nil {
		w.Report.Book, w.Report.Schema, w.Report.Program = a.settings.Storage.Name(), status.Version, a.version
		if a.revision != "" {
			w.Report.Program += ", commit " + a.revision
		}
	}
	if watch.Finding != nil {
		w.Found = func(f backoffice.Finding) { watch.Finding(f.Text) }
	}
	proof, err := a.office.Verify(ctx, watch.Against, w)
	return proof, fault.Explain(err)
}

// Trail returns the keeper of the trail. The error says why no trail is kept.
func (a *App) Trail() (*trail.Keeper, error) { return a.trail, a.trail.Kept() }

// Rekey begins another log of the trail (see trail.Keeper). Stop all other replicas first: CheckAlone,
// before Open, finds one that runs. Rekey returns the newest checkpoint of the log that ends, which is
// empty without its key. name is the origin of the new log.
func (a *App) Rekey(ctx context.Context, name string) (last string, err error) {
	if err := a.usable(ctx); err != nil {
		return "", err
	}
	if a.trail.Kept() == nil {
		if last, err = a.trail.Checkpoint(ctx); err != nil {
			a.log.Warn("the log that ends cannot be signed", zap.Error(fault.Explain(err)))
		}
	}
	if err = a.trail.Rekey(ctx, name); err == nil {
		err = a.office.Audit.Record(ctx, a.acts.New(ctx, "trail.rekey", a.trail.VerifyingKey(), ""))
	}
	return last, fault.Explain(err)
}

// CheckTrailProof checks a proof, or a receipt, with the public key of the
// service that made it. It needs no database. It returns what is proved, a line
// for each fact.
func CheckTrailProof(file []byte, key string) (facts []string, err error) {
	return trail.CheckFile(file, key)
}

// CheckTrailCheckpoints returns an error if the content of a file has no checkpoint of a trail.
func CheckTrailCheckpoints(content string) error { return trail.CheckCheckpoints(content) }

// NewTrailKey makes a key for a trail. The signing key belongs into the file of
// trail.key_file, the verifying key is public. name is the origin of the log,
// such as bank.example/log.
func NewTrailKey(name string) (signing, verifying string, err error) {
	return trail.GenerateKeys(name)
}

// Subscription is a caller of the API. Empty Operations are all of them, 0
// RequestsPerSecond no limit. Manager knows everything about a subscription.
type Subscription struct {
	Name, State                 string
	Operations                  []string
	RequestsPerSecond           int
	AppKey, Channel, TellerName string
}

// OperationNames are the operations of the bank. Manager.Operations has those of
// the host too.
func OperationNames() []string { return new(subscriptions.Manager).Operations() }

// CreateSubscription makes an active subscription and returns its two keys:
// the only time they can be seen.
func (a *App) CreateSubscription(ctx context.Context, s Subscription) (primary, secondary string, err error) {
	if err := a.usable(ctx); err != nil {
		return "", "", err
	}
	for _, name := range s.Operations {
		if a.manager.CheckOperations(name) != nil {
			return "", "", fmt.Errorf("there is no operation %q", name)
		}
	}
	fields := subscription.Subscription{
		Name: s.Name, RequestsPerSecond: s.RequestsPerSecond, AppKey: s.AppKey, Channel: s.Channel, TellerName: s.TellerName,
	}
	fields.Grant(s.Operations...)
	first, second, err := a.manager.Create(ctx, fields)
	return first.Reveal(), second.Reveal(), about(s.Name, err)
}

// Subscriptions lists all, by name.
func (a *App) Subscriptions(ctx context.Context) (all []Subscription, err error) {
	if err := a.usable(ctx); err != nil {
		return nil, err
	}
	found, err := a.manager.List(ctx)
	for _, s := range found {
		all = append(all, Subscription{
			Name: s.Name, State: string(s.State), Operations: s.Granted(), RequestsPerSecond: s.RequestsPerSecond,
			AppKey: s.AppKey, Channel: s.Channel, TellerName: s.TellerName,
		})
	}
	return all, fault.Explain(err)
}

// RegenerateKey replaces the primary or secondary key and returns the new one.
func (a *App) RegenerateKey(ctx context.Context, name, slot string) (string, error) {
	if err := a.usable(ctx); err != nil {
		return "", err
	}
	key, err := a.manager.Regenerate(ctx, name, subscription.Slot(slot))
	return key.Reveal(), about(name, err)
}

// SetSubscriptionState makes the subscription active, suspended or cancelled.
func (a *App) SetSubscriptionState(ctx context.Context, name, state string) error {
	if err := a.usable(ctx); err != nil {
		return err
	}
	return about(name, a.manager.SetState(ctx, name, subscription.State(state)))
}

func about(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("subscription %q: %w", name, fault.Explain(err))
}

// Settlement counts what one round of Settle settled.
type Settlement = buyfund.Settlement

// DueSales is how many sales are due, by the reason why they wait.
type DueSales = buyfund.Waits

// CountDue counts the sales that are due now.
func (a *App) CountDue(ctx context.Context) (DueSales, error) {
	if err := a.usable(ctx); err != nil {
		return DueSales{}, err
	}
	due, err := a.buyer.CountDue(ctx)
	return due, fault.Explain(err)
}

// Forecast yields what Settle would do with each sale that is due until that day, if
// that day were today. Empty text is the day until which sales are due now. It changes
// nothing.
func (a *App) Forecast(ctx context.Context, until string) (iter.Seq2[fund.SaleEntry, error], error) {
	if err := a.usable(ctx); err != nil {
		return nil, err
	}
	on := a.buyer.DueUntil()
	if until != "" {
		var err error
		if on, err = day.Parse(until); err != nil {
			return nil, err
		}
	}
	return a.buyer.Forecast(ctx, on), nil
}

// Settle settles the sales that are due now: one round of what the service
// does by itself. If sales are due, the act is kept before they are settled.
func (a *App) Settle(ctx context.Context) (Settlement, error) {
	if err := a.usable(ctx); err != nil {
		return Settlement{}, err
	}
	_, err := a.checkClock(ctx, a.store)
	var due buyfund.Waits
	if err == nil {
		due, err = a.buyer.CountDue(ctx)
	}
	if err == nil {
		err = a.office.BeginSettling(ctx, due.ForSettling)
	}
	if err != nil {
		return Settlement{}, fault.Explain(err)
	}
	settled, err := a.buyer.SettleDue(ctx)
	return settled, fault.Explain(err)
}
