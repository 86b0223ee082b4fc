package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"

	"go.uber.org/fx"

	"bankingapi/adapters/guide"
	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/sandbox"
	"bankingapi/application/operator"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/fault"
)

// sandboxCutOff is the last minute of the day, so that a partner can provoke the
// refusal and nobody meets it by chance.
const sandboxCutOff = "23:59"

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
// without a data folder, as on Postgres, in ./sandbox or WithDataFolder. One
// program at a time may open a sandbox.
func OpenSandbox(ctx context.Context, settings Settings, all ...Option) (*Sandbox, error) {
	settings.Storage.Migrate = true
	settings.Trail.Interval = 0 // for receipts; a reset ends the log, so that nothing is sealed
	settings.HTTP.Outcomes, settings.Bank.CutOff = true, cmp.Or(settings.Bank.CutOff, sandboxCutOff)
	asSandbox := func(o *options) {
		o.sandbox, o.storage.Mark = sandbox.NewClock(o.now), sandbox.Mark
		o.storage.DataFolder = cmp.Or(o.storage.DataFolder, sandboxFolder)
	}
	app, err := Open(ctx, settings, Options(all...), asSandbox, func(o *options) {
		o.world = func(ctx context.Context, w *setup, callers httpapi.Callers, name string) (sandbox.World, error) {
			inner := settings
			inner.Ops.Address, inner.Console.Enabled, inner.Telemetry.OTLPEndpoint = "", false, ""
			inner.Storage.MaxConnections = worldConnections
			return Open(ctx, inner, Options(all...), asSandbox, func(o *options) {
				o.callers, o.logger, o.registerer = callers, w.log, nil
				o.storage.TablePrefix = sandbox.TablePrefix(o.storage.TablePrefix, name)
			})
		}
	})
	if err != nil {
		return nil, err
	}
	box := &Sandbox{App: app, Sandbox: app.parts.Sandbox, guide: guideTo(app, "sandbox.key")}
	box.guide.KeyPrefix, box.guide.Page, box.guide.About = sandbox.KeyPrefix, "/sandbox", sandbox.About
	find := sandbox.NewCallers(subscriptions.NewDirectory(app.parts.Store.Subscriptions, app.now).Find).Find
	if err := box.guide.KeepKey(ctx, app.parts.Manager, find, sandbox.Mark); err != nil {
		return nil, errors.Join(fault.Explain(err), app.Close(ctx))
	}
	box.Key = box.guide.Key
	return box, nil
}

// worldConnections is how many connections the world of a key has to the database.
const worldConnections = 2

// Guide returns instructions for trying the sandbox for the first time.
func (b *Sandbox) Guide() Demo { return b.guide }

// newSandbox returns nil unless the service is a sandbox. At the start the clock continues
// where it was, and a new sandbox gets its book.
func newSandbox(lc fx.Lifecycle, p coreParts) *sandbox.Sandbox {
	w := p.Setup
	if w.sandbox == nil {
		return nil
	}
	o := sandbox.Options{
		Clock: w.sandbox, Zone: w.zone, Marker: p.Store.Marker, Office: p.Office, DueFunds: p.Store.Books.DueFunds, Begins: w.settings.Settlement.Begins(),
		Settle: p.Buyer.SettleDue, CalendarChanged: p.Made.buyOptions.Calendar.Forget, ReceiptKey: p.Trail.VerifyingKey,
	}
	if w.callers == nil {
		o.Keys = p.Manager
	}
	if folder := p.Store.DataFolder; folder != "" {
		o.RequestsFile = filepath.Join(folder, w.storage.TablePrefix+"requests.ndjson")
	}
	box := sandbox.New(o)
	lc.Append(fx.StartHook(func(ctx context.Context) error {
		err := p.Store.Schema.Require(ctx)
		if err == nil {
			err = box.Prepare(ctx)
		}
		return fault.Explain(err)
	}))
	return box
}

// sandboxPage is nil outside a sandbox.
func sandboxPage(box *sandbox.Sandbox) *operator.Sandbox {
	if box == nil {
		return nil
	}
	return &operator.Sandbox{
		Requests: func() any { return box.Requests(0) },
		Advance:  box.AdvanceClock,
		Reset:    box.Reset,
		Faults: func(yield func(string, string) bool) {
			for _, f := range sandbox.Faults() {
				if !yield(f.Header, f.Effect) {
					return
				}
			}
		},
		Order: func(fault string, requests int) error {
			if requests == 0 {
				return box.ArmFaults()
			}
			return box.ArmFaults(sandbox.Armed{Fault: fault, Count: requests})
		},
		Ordered: func() (string, int) {
			for _, a := range box.ArmedFaults() {
				return a.Fault, a.Count
			}
			return "", 0
		},
	}
}

// guideTo is the guide to the service, without a key.
func guideTo(a *App, keyFile string) Demo {
	g := Demo{KeyFile: filepath.Join(a.parts.Store.DataFolder, keyFile)}
	for _, each := range a.parts.Operations {
		if name, body, _ := each.Describe(); body != "" {
			g.Examples = append(g.Examples, guide.Example{Path: httpapi.Path(name), Body: body})
		}
	}
	if a.settings.TLS.Mode == TLSSelfSigned {
		g.CAFile, _ = a.settings.TLS.Files(a.parts.Store.DataFolder)
	}
	return g
}

// Demo has instructions for trying the service for the first time. Its Key opens
// the subscription "demo"; it is empty where the store had other data before and
// no demo was loaded.
type Demo = guide.Guide

// LoadDemo loads a small book into an empty store and makes a subscription for
// it, whose key it keeps in demo.key in the data folder, readable only by its
// owner: the same commands work again after a restart. A store that has data
// of its own is left as it is.
func (a *App) LoadDemo(ctx context.Context) (Demo, error) {
	demo := guideTo(a, "demo.key")
	err := a.parts.Store.Schema.Require(ctx)
	if err == nil {
		err = fault.Explain(demo.LoadBook(ctx, a.parts.Office, a.parts.Manager, a.acts))
	}
	return demo, err
}
