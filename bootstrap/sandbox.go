package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"go.uber.org/fx"

	"bankingapi/adapters/console"
	"bankingapi/adapters/guide"
	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/sandbox"
	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
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
	settings.HTTP.Outcomes, settings.Bank.CutOff = true, cmp.Or(settings.Bank.CutOff, sandboxCutOff)
	app, err := Open(ctx, settings, Options(all...), func(o *options) {
		o.sandbox, o.dataFolder = sandbox.NewClock(o.now), cmp.Or(o.dataFolder, sandboxFolder)
	})
	if err != nil {
		return nil, err
	}
	box := &Sandbox{App: app, Sandbox: app.box, guide: app.guide("sandbox.key")}
	err = app.store.Schema.Require(ctx)
	if err == nil {
		err = box.Prepare(ctx) // the book
	}
	if err == nil {
		err = box.guide.KeepKey(ctx, app.manager, subscriptions.NewDirectory(app.store.Subscriptions, app.now).Find, sandbox.Mark)
	}
	if err != nil {
		return nil, errors.Join(fault.Explain(err), app.Close(ctx))
	}
	box.Key = box.guide.Key
	return box, nil
}

// Guide returns instructions for trying the sandbox for the first time.
func (b *Sandbox) Guide() Demo { return b.guide }

// SandboxRequest is a request to the API and its answer.
type SandboxRequest = sandbox.Request

// newSandbox returns nil unless the service is a sandbox. The clock continues
// where it was.
func newSandbox(lc fx.Lifecycle, w *setup, s *store.Store, office *backoffice.Office, buyer *buyfund.Buyer) *sandbox.Sandbox {
	if w.sandbox == nil {
		return nil
	}
	box := sandbox.New(sandbox.Options{
		Clock: w.sandbox, Zone: w.zone, Marker: s.Marker, Office: office, DueFunds: s.Books.DueFunds, Begins: w.settings.Settlement.Begins(), Settle: buyer.SettleDue,
		Import: func(ctx context.Context, kind string, r io.Reader, bad func(int64, string, string)) (int64, error) {
			imported, err := bookfile.Import(ctx, office, kind, r, bookfile.Watch{
				Fault: func(f bookfile.Fault) { bad(f.Line, f.Column, f.Rule) },
			})
			return imported.Lines(), err
		},
		Export: func(ctx context.Context, kind string, customer int64, out io.Writer) error {
			return bookfile.Export(ctx, office, kind, string(bookfile.NDJSON), bookfile.Query{Customer: customer}, out, nil)
		},
	})
	lc.Append(fx.StartHook(func(ctx context.Context) error { return fault.Explain(box.Restore(ctx)) }))
	return box
}

// sandboxPage is nil outside a sandbox.
func sandboxPage(box *sandbox.Sandbox) *console.Sandbox {
	if box == nil {
		return nil
	}
	return &console.Sandbox{
		Requests: func() (all []console.SandboxRequest) {
			for _, r := range box.Requests(0) {
				all = append(all, console.SandboxRequest{
					Number: r.Number, ReceivedAt: r.ReceivedAt, Method: r.Method, Path: r.Path, Fault: r.Fault, Body: r.Body,
					Answer: r.Answer.Body, Milliseconds: r.Milliseconds, Status: r.Answer.Status, Lost: r.Answer.Lost,
				})
			}
			return all
		},
		Advance: func(ctx context.Context, by time.Duration) (buyfund.Settlement, error) {
			moved, err := box.AdvanceClock(ctx, by)
			return moved.Settled, err
		},
		Reset:   box.Reset,
		Faults:  sandbox.Faults,
		Order:   box.OrderFault,
		Ordered: box.Ordered,
	}
}

// guide is the guide to the service, without a key.
func (a *App) guide(keyFile string) Demo {
	g := Demo{KeyFile: filepath.Join(a.store.DataFolder, keyFile)}
	for _, each := range a.operations {
		if body := each.ExampleRequest(); body != "" {
			g.Examples = append(g.Examples, guide.Example{Path: httpapi.Path(each.OperationName()), Body: body})
		}
	}
	if a.settings.TLS.Mode == TLSSelfSigned {
		g.CAFile, _ = a.settings.TLS.Files(a.store.DataFolder)
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
	demo := a.guide("demo.key")
	err := a.store.Schema.Require(ctx)
	if err == nil {
		err = fault.Explain(demo.LoadBook(ctx, a.office, a.manager, a.acts))
	}
	return demo, err
}
