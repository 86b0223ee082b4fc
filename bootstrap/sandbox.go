package bootstrap

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/fx"

	"bankingapi/adapters/guide"
	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/operator"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

const (
	// sandboxCutOff is the last minute of the day, so that a partner can provoke the refusal,
	// but rarely gets it by chance.
	sandboxCutOff = "23:59"
	// sandboxFolder is the folder of a sandbox, unless its database is in another folder.
	sandboxFolder = "sandbox"
	// worldConnections is how many connections the world of a key has to the database.
	worldConnections = 2
	// worldsInUse is how many worlds requests may use at the same time.
	worldsInUse = 64
	// worldsOnServer is the same for a database server. Their connections and those of the sandbox
	// itself stay below the 100 that Postgres usually allows.
	worldsOnServer = 32
	// worldBodies is http.bodies_limit of all worlds together, unless http.body_limit needs more.
	worldBodies = 64 << 20

	// worldSize is the maximum size of the SQLite file of a world.
	worldSize = 64 << 20

	aboutSandbox = "This is a sandbox, and never a bank: PUT /_sandbox/clock moves its clock, PUT /_sandbox/faults arms faults,\n" +
		"POST /_sandbox/keys makes a key with a book, a clock and faults of its own."
)

// Sandbox is the service for a partner who develops a client. It is the real service with its
// own book, a clock that the partner moves, and faults that the partner orders. Callers with
// the key can also use all of this through the API, under /_sandbox/.
type Sandbox struct {
	*App
	// Controls move the clock and arm faults.
	Controls operator.Sandbox
	// Key is the subscription key of the sandbox.
	Key string
	// Guide has instructions for trying the sandbox for the first time.
	Guide Demo
}

// SandboxDSN returns the default storage.dsn of a sandbox.
func SandboxDSN() Secret { return Secret(filepath.Join(sandboxFolder, "bankingapi.db")) }

// SandboxSettings returns settings for a sandbox in a test: a SQLite file in folder, which may
// be t.TempDir(), no documentation, no health listener, and plain HTTP on a free port if the
// test calls Start. Each test has its own sandbox.
func SandboxSettings(folder string) Settings {
	s := DefaultSettings()
	s.Storage.DSN = Secret(filepath.Join(folder, "sandbox.db"))
	s.HTTP.Address = "127.0.0.1:0"
	s.Ops.Address = ""
	s.HTTP.Docs = false
	s.TLS.Mode = TLSOff
	s.Log.Level = "error"
	return s
}

// OpenSandbox opens the service as a sandbox, like Open. The database must be empty or already
// a sandbox: OpenSandbox rejects any other database before it changes anything. A new sandbox
// has the demo book, and the customers and funds of the documentation. It keeps the key in
// sandbox.key in the data folder, readable only by the owner. Without a data folder, as on
// Postgres, it uses ./sandbox or WithDataFolder. Only one program may open a sandbox.
func OpenSandbox(ctx context.Context, settings Settings, all ...Option) (*Sandbox, error) {
	settings.Storage.Migrate = true
	settings.Rules.CutOff = cmp.Or(settings.Rules.CutOff, sandboxCutOff)
	asSandbox := func(o *options) {
		o.storage.Mark = store.SandboxMark
		o.storage.DataFolder = cmp.Or(o.storage.DataFolder, sandboxFolder)
	}
	var app *App
	app, err := Open(ctx, settings, Options(all...), asSandbox, func(o *options) {
		inFiles := o.database == nil && settings.Storage.Driver == SQLite
		bodiesLimit := max(worldBodies, 4*settings.HTTP.BodyLimit) // a quarter must take one body
		bodies := httpapi.NewBodies(int64(bodiesLimit))
		open := func(ctx context.Context, name string) (*App, error) {
			inner := settings
			inner.Ops.Address = ""
			inner.Console.Enabled = false
			inner.Telemetry.OTLPEndpoint = ""
			inner.Storage.MaxConnections = worldConnections
			inner.HTTP.BodiesLimit = bodiesLimit
			if inFiles {
				inner.Storage.DSN = Secret(filepath.Join(worldFolder(settings, name), "bankingapi.db"))
			}
			return Open(ctx, inner, Options(all...), asSandbox, func(o *options) {
				o.bindsFirst = false
				o.sandbox.callers = app.parts.Sandbox
				o.sandbox.bodies = bodies
				o.storage.MaxSize = worldSize
				o.logger = app.parts.Log.zap
				o.registerer = nil
				if !inFiles {
					o.storage.TablePrefix += worldName(name)[:11] + "_"
				}
			})
		}
		o.sandbox.worldsInUse = worldsInUse
		if !inFiles {
			o.sandbox.worldsInUse = worldsOnServer
		}
		o.sandbox.openWorld = func(ctx context.Context, name string) (operator.World, error) { return open(ctx, name) }
		o.sandbox.deleteWorld = func(ctx context.Context, name string) error {
			if inFiles {
				return os.RemoveAll(worldFolder(settings, name))
			}
			world, err := open(ctx, name)
			if err != nil {
				return err
			}
			return errors.Join(world.parts.Sandbox.Reset(ctx), world.Close(ctx))
		}
	})
	if err != nil {
		return nil, err
	}
	box := &Sandbox{App: app, Controls: app.parts.Sandbox, Guide: guideTo(app, "sandbox.key")}
	box.Guide.KeyPrefix = operator.SandboxKeyPrefix
	box.Guide.Page = "/sandbox"
	box.Guide.About = aboutSandbox
	find := subscriptions.NewDirectory(app.parts.Store.Subscriptions, app.parts.Clocks.now).Find
	err = box.Guide.KeepKey(ctx, app.parts.Manager, find, store.SandboxMark)
	if err != nil {
		return nil, errors.Join(fault.Explain(err), app.Close(ctx))
	}
	box.Key = box.Guide.Key
	return box, nil
}

// worldName returns a name for the world of a subscription that a file and a table may have.
func worldName(subscription string) string {
	return fmt.Sprintf("w%.10x", sha256.Sum256([]byte(subscription)))
}

// worldFolder returns the folder of a world's SQLite file.
func worldFolder(settings Settings, subscription string) string {
	return filepath.Join(filepath.Dir(settings.Storage.File()), "worlds", worldName(subscription))
}

// sandboxParts are the parts that a sandbox uses.
type sandboxParts struct {
	fx.In
	Options   sandboxOptions
	Book      bookSource
	Clocks    clocks
	Store     *store.Store
	Trail     *trail.Keeper
	Office    *backoffice.Office
	Manager   *subscriptions.Manager
	Directory *subscriptions.Directory
	Rules     *buyfund.Rules
	RuleBook  *ruleBook
	Buyer     *buyfund.Buyer
}

// newSandbox returns nil unless the service is a sandbox. At startup the clock continues from
// its last time, and a new sandbox gets its book.
func newSandbox(lc fx.Lifecycle, p sandboxParts) (operator.SandboxPart, error) {
	switch {
	case !p.Book.isSandbox():
		return nil, nil
	case p.Options.open == nil:
		return nil, errors.New("this program has no sandbox: pass bootstrap.WithSandbox(sandbox.Open)")
	}
	o := operator.SandboxOptions{
		Rules: func() fund.Rules { return p.Rules.Known().Rules }, Machine: p.Clocks.now, Bank: p.Clocks.bank, SetAhead: p.Clocks.setAhead,
		Marker: p.Store.Marker, Office: p.Office, DueFunds: p.Store.Books.DueFunds,
		BeginRules: func(ctx context.Context) error { return p.RuleBook.read(ctx, p.Trail) },
		Settle:     p.Buyer.SettleDue, CalendarChanged: p.Rules.Forget, ReceiptKey: p.Trail.VerifyingKey,
		Keys: p.Manager, Find: p.Directory.Find, OpenWorld: p.Options.openWorld, DeleteWorld: p.Options.deleteWorld, WorldsInUse: p.Options.worldsInUse,
	}
	if p.Store.DataFolder != "" {
		o.RequestsFile = filepath.Join(p.Store.DataFolder, p.Book.options.TablePrefix+"requests.ndjson")
	}
	box := p.Options.open(o)
	lc.Append(fx.StartStopHook(func(ctx context.Context) error {
		err := p.Store.Schema.Require(ctx)
		if err != nil {
			return fault.Explain(err)
		}
		return fault.Explain(box.Prepare(ctx))
	}, box.Close))
	return box, nil
}

// withFaults returns an operation to which the sandbox applies its faults, unless the request
// breaks a rule.
func withFaults[Record any](box operator.SandboxPart, o httpapi.Operation[Record]) httpapi.Operation[Record] {
	do := o.Do
	faults := o.Faults
	o.Do = func(ctx context.Context, caller *subscription.Subscription, header operation.Header, records []Record) (operation.Outcome, error) {
		if breaksRule(caller, header, append(caller.Missing(header), faults(header, records)...)) {
			return do(ctx, caller, header, records)
		}
		return box.Do(ctx, func(ctx context.Context) (operation.Outcome, error) { return do(ctx, caller, header, records) })
	}
	return o
}

// breaksRule reports whether a request has faults in its fields, or contradicts what is defined for
// its caller. It then gets its own answer, and no fault of the sandbox: 400 and 403 come before 503
// (the contract, section 1).
func breaksRule(caller *subscription.Subscription, header operation.Header, faults []fault.Fault) bool {
	_, _, err := caller.Check(header)
	return err != nil || len(faults) > 0
}

// quotesWithFaults makes quotes to which the sandbox applies its faults, unless the request breaks
// a rule.
type quotesWithFaults struct {
	httpapi.Quoter
	sandbox operator.SandboxPart
}

// Quote implements httpapi.Quoter.
func (q quotesWithFaults) Quote(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []fund.SaleFields) (quoted []fund.Quote, err error) {
	if breaksRule(caller, header, q.QuoteFaults(header, parameters)) {
		return q.Quoter.Quote(ctx, caller, header, parameters)
	}
	_, err = q.sandbox.Do(ctx, func(ctx context.Context) (operation.Outcome, error) {
		quoted, err = q.Quoter.Quote(ctx, caller, header, parameters)
		return operation.Outcome{}, err
	})
	return quoted, err
}

// guideTo returns the guide to the service, without a key.
func guideTo(a *App, keyFile string) Demo {
	g := Demo{KeyFile: filepath.Join(a.parts.Store.DataFolder, keyFile)}
	for _, each := range a.parts.Operations {
		if name, body, _ := each.Describe(); body != "" {
			g.Examples = append(g.Examples, guide.Example{Path: httpapi.Path(name), Body: body})
		}
	}
	if a.parts.Settings.TLS.Mode == TLSSelfSigned {
		g.CAFile, _ = a.parts.Settings.TLS.Files(a.parts.Store.DataFolder)
	}
	return g
}

// Demo has instructions for trying the service for the first time. Its Key opens the
// subscription "demo". Key is empty if the store already had other data, so that no demo was
// loaded.
type Demo = guide.Guide

// LoadDemo loads a small book into an empty store and makes the subscription "demo" for it. It
// keeps the key in demo.key in the data folder, readable only by its owner. If the store has
// data, it loads nothing. Then, if the file is missing, it renews the primary key of "demo".
func (a *App) LoadDemo(ctx context.Context) (Demo, error) {
	demo := guideTo(a, "demo.key")
	err := a.parts.Store.Schema.Require(ctx)
	if err != nil {
		return demo, err
	}
	return demo, fault.Explain(demo.LoadBook(ctx, a.parts.Office, a.parts.Manager, a.parts.Clocks.acts()))
}
