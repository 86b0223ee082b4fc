package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/fx"

	"bankingapi/adapters/bookfile"
	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/sandbox"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

const (
	// sandboxMark is the mark of a sandbox in its database.
	sandboxMark = "sandbox"
	// sandboxName is the subscription of a sandbox.
	sandboxName = "sandbox"
	// sandboxFolder is the folder of a sandbox unless its database is in another
	// one.
	sandboxFolder = "sandbox"
)

// Sandbox is the service for a partner who develops a client: the real service
// with a book of its own, a clock that the partner moves, and faults that the
// partner orders. All of it is also on the API, under /_sandbox/, for callers
// with the key.
type Sandbox struct {
	*App
	// Key is the subscription key of the sandbox.
	Key string
}

// SandboxDSN is the storage.dsn of a sandbox that has no other.
func SandboxDSN() Secret { return Secret(filepath.Join(sandboxFolder, "bankingapi.db")) }

// SandboxSettings returns settings for a sandbox in a test: a SQLite file in
// folder, which may be t.TempDir(), no documentation, no health listener, and
// plain HTTP on a free port if the test calls Start. Each test has its own
// sandbox.
func SandboxSettings(folder string) Settings {
	s := DefaultSettings()
	s.Storage.DSN = Secret(filepath.Join(folder, "sandbox.db"))
	s.HTTP.Address, s.Ops.Address = "127.0.0.1:0", ""
	s.HTTP.Docs = false
	s.TLS.Mode = TLSOff
	s.Log.Level = "error"
	return s
}

// OpenSandbox opens the service as a sandbox, like Open. The database must be
// empty or a sandbox already: any other is refused before it is changed. A new
// sandbox has the demo book, and the customers and funds of the documentation.
// The key is kept in sandbox.key in the data folder, readable only by its owner;
// without a data folder, as on Postgres, in ./sandbox or WithDataFolder. One program at a time may open a sandbox.
func OpenSandbox(ctx context.Context, settings Settings, all ...Option) (*Sandbox, error) {
	o := collect(all)
	o.sandbox = sandbox.NewClock(o.now)
	if o.dataFolder == "" {
		o.dataFolder = sandboxFolder
	}
	settings.Storage.Migrate = true
	app, err := assemble(settings, o)
	if err != nil {
		return nil, err
	}
	if err := app.open(ctx); err != nil {
		return nil, err
	}
	box := &Sandbox{App: app}
	if err := box.prepare(ctx); err != nil {
		return nil, errors.Join(err, app.Close(ctx))
	}
	return box, nil
}

// prepare loads the book and makes the key.
func (b *Sandbox) prepare(ctx context.Context) error {
	if err := b.usable(ctx); err != nil {
		return err
	}
	note, err := b.store.Marker.Note(ctx)
	if err == nil && note == "" { // new, or a reset that was interrupted
		err = b.sandbox.Reset(ctx)
	}
	if err != nil {
		return fault.Explain(err)
	}
	b.Key, err = b.subscriptionKey(ctx, sandboxName, b.keyFile())
	return err
}

func (b *Sandbox) keyFile() string { return filepath.Join(b.store.DataFolder, "sandbox.key") }

// Guide returns instructions for trying the sandbox for the first time.
func (b *Sandbox) Guide() Demo { return b.demo(b.Key, b.keyFile()) }

// SandboxMove is the answer to a move of the clock.
type SandboxMove = sandbox.Moved

// SandboxRequest is a request to the API and its answer.
type SandboxRequest = sandbox.Request

// Now returns the time of the bank, in its time zone.
func (b *Sandbox) Now() time.Time { return b.sandbox.Now() }

// MoveClock moves the clock of the bank forward. It returns when all sales that
// are due by then are settled, each on its day.
func (b *Sandbox) MoveClock(ctx context.Context, to time.Time) (SandboxMove, error) {
	moved, err := b.sandbox.Move(ctx, to)
	return moved, fault.Explain(err)
}

// AdvanceClock moves the clock forward by a duration, as MoveClock does.
func (b *Sandbox) AdvanceClock(ctx context.Context, by time.Duration) (SandboxMove, error) {
	moved, err := b.sandbox.Advance(ctx, by)
	return moved, fault.Explain(err)
}

// OrderFault makes the next requests to operations fail, unless they order a
// fault of their own. name is a value of the header Sandbox-Fault. 0 requests take
// the order back.
func (b *Sandbox) OrderFault(name string, requests int) error {
	return fault.Explain(b.sandbox.OrderNext(name, requests))
}

// Reset brings the book back to its beginning and the clock to the real time.
// The key stays.
func (b *Sandbox) Reset(ctx context.Context) error { return fault.Explain(b.sandbox.Reset(ctx)) }

// Requests returns the last requests with a number above after, newest first.
// There are at most a thousand. Keys are masked.
func (b *Sandbox) Requests(after int64) []SandboxRequest { return b.sandbox.Requests(after) }

// newSandbox returns nil unless the service is a sandbox. The clock continues
// where it was.
func newSandbox(lc fx.Lifecycle, settings Settings, o *options, s *store.Store, office *backoffice.Office, buyer *buyfund.Buyer) (*sandbox.Sandbox, error) {
	if o.sandbox == nil {
		return nil, nil //nolint:nilnil // the other parts ask for nil
	}
	zone, err := settings.Bank.Location()
	if err != nil {
		return nil, err
	}
	if s.Marker == nil {
		return nil, errors.New("this storage cannot be a sandbox: its store.Store has no Marker")
	}
	lc.Append(fx.StartHook(func(ctx context.Context) error {
		note, err := s.Marker.Note(ctx)
		if err != nil || note == "" {
			return fault.Explain(err)
		}
		ahead, err := time.ParseDuration(note)
		o.sandbox.SetAhead(ahead)
		return err
	}))
	keep := func(ctx context.Context, ahead time.Duration) error { return s.Marker.SetNote(ctx, ahead.String()) }
	return sandbox.New(sandbox.Options{
		Clock: o.sandbox, Zone: zone, Keep: keep, CountDue: s.CountDue, Settle: buyer.SettleDue,
		Cancel: func(ctx context.Context, customerNo int64) (int, error) {
			return cancelSales(ctx, office, customerNo, o.sandbox.Now, zone)
		},
		Reset: func(ctx context.Context) error {
			if err := s.Marker.Empty(ctx, ""); err != nil {
				return err
			}
			o.sandbox.SetAhead(0)
			if err := sandbox.Load(ctx, office.Importer, day.Of(o.sandbox.Now(), zone)); err != nil {
				return err
			}
			return keep(ctx, 0)
		},
		Import: func(ctx context.Context, kind string, r io.Reader) (int64, []sandbox.BadLine, error) {
			imported, err := bookfile.Import(ctx, office.Importer, kind, r, bookfile.Watch{})
			var bad []sandbox.BadLine
			if faults, ok := errors.AsType[*bookfile.Faults](err); ok {
				for _, f := range faults.List {
					bad = append(bad, sandbox.BadLine(f))
				}
			}
			return imported.Lines(), bad, err
		},
		Export: func(ctx context.Context, kind string, customer int64, w io.Writer) error {
			return bookfile.Export(ctx, office, kind, string(bookfile.NDJSON), backoffice.Filter{CustomerNo: customer, Zone: zone}, w, nil)
		},
	}), nil
}

// lastDay is how many days ahead a sale can be recorded (the contract, section 5).
const lastDay = 366

// cancelSales cancels the sales of a customer that are recorded for a later day.
func cancelSales(ctx context.Context, office *backoffice.Office, customerNo int64, now func() time.Time, zone *time.Location) (cancelled int, err error) {
	if office.Corrector == nil {
		return 0, nil
	}
	today := day.Of(now(), zone)
	waiting := map[operation.ID]bool{}
	for sale, err := range office.Finder.Waiting(ctx, today.Plus(lastDay)) {
		if err != nil {
			return 0, err
		}
		if sale.Terms.Holding.CustomerNo == customerNo && sale.Terms.SelectedDay.After(today) {
			waiting[sale.OperationID] = true
		}
	}
	for id := range waiting {
		if err := office.Corrector.Cancel(audit.By(ctx, audit.Who{Actor: sandboxName, Origin: sandboxName}), id); err != nil {
			return cancelled, err
		}
		cancelled++
	}
	return cancelled, nil
}

// sandboxHandler is the API of a sandbox.
func sandboxHandler(box *sandbox.Sandbox, operations []httpapi.Descriptor, directory *subscriptions.Directory, o httpapi.Options) (http.Handler, error) {
	o.Check = sandbox.Check
	for _, e := range box.Endpoints() {
		o.Routes = append(o.Routes, httpapi.Route(e))
	}
	api, err := httpapi.New(operations, sandbox.NewCallers(directory.Find), o)
	if err != nil {
		return nil, err
	}
	return box.Middleware(api), nil
}

// subscriptionKey returns the key in the file if it opens the subscription. If
// not, it makes the subscription, or a new primary key, and writes the file.
func (a *App) subscriptionKey(ctx context.Context, name, file string) (string, error) {
	kept, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the key: %w", err)
	}
	if key := strings.TrimSpace(string(kept)); key != "" {
		found, err := subscriptions.NewDirectory(a.store.Subscriptions, a.options.now).Find(ctx, key)
		if err != nil || found != nil {
			return key, fault.Explain(err)
		}
	}
	key, _, err := a.manager.Create(ctx, subscription.Subscription{Name: name})
	if errors.Is(err, subscriptions.ErrNameTaken) {
		key, err = a.manager.Regenerate(ctx, name, subscription.Primary)
	}
	if err != nil {
		return "", fault.Explain(err)
	}
	return key.Reveal(), keepKey(file, key.Reveal())
}
