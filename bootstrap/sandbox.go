package bootstrap

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"

	"go.uber.org/fx"

	"bankingapi/adapters/bookfile"
	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/sandbox"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/fault"
)

// sandboxFolder is the folder of a sandbox unless its database is in another one.
const sandboxFolder = "sandbox"

// Sandbox is the service for a partner who develops a client: the real service
// with a book of its own, a clock that the partner moves, and faults that the
// partner orders. All of it is also on the API, under /_sandbox/, for callers
// with the key.
type Sandbox struct {
	*App
	*sandbox.Sandbox
	// Key is the subscription key of the sandbox.
	Key   string
	guide Demo
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
	box := &Sandbox{App: app, Sandbox: app.sandbox, guide: app.guide("sandbox.key")}
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
	if err := b.Prepare(ctx); err != nil {
		return fault.Explain(err)
	}
	if err := b.guide.ReadKey(); err != nil {
		return err
	}
	if b.guide.Key != "" { // does it open the subscription?
		found, err := subscriptions.NewDirectory(b.store.Subscriptions, b.options.now).Find(ctx, b.guide.Key)
		if err != nil || found != nil {
			b.Key = b.guide.Key
			return fault.Explain(err)
		}
	}
	err := b.guide.Create(ctx, b.manager, sandbox.Mark)
	if errors.Is(err, subscriptions.ErrNameTaken) {
		err = b.guide.Renew(ctx, b.manager, sandbox.Mark)
	}
	b.Key = b.guide.Key
	return fault.Explain(err)
}

// Guide returns instructions for trying the sandbox for the first time.
func (b *Sandbox) Guide() Demo { return b.guide }

// SandboxRequest is a request to the API and its answer.
type SandboxRequest = sandbox.Request

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
	box, err := sandbox.New(sandbox.Options{
		Clock: o.sandbox, Zone: zone, Marker: s.Marker, Office: office, CountDue: s.CountDue, Settle: buyer.SettleDue,
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
	})
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StartHook(func(ctx context.Context) error { return fault.Explain(box.Restore(ctx)) }))
	return box, nil
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
