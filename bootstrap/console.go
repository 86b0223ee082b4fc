package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/console"
	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/opsapi"
	"bankingapi/adapters/sandbox"
	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/application/summary"
)

// consolePages is the operator's console, or nothing if it is not enabled.
type consolePages struct {
	pages    *console.Console
	activity *console.Activity
	// checks are those of the ops listener, set before anything is served.
	checks func() []opsapi.Result
	// app is set before anything is served.
	app *App
}

const (
	// consoleConnections is how many connections the console reads with.
	consoleConnections = 2
	// consoleTimeout ends its statements.
	consoleTimeout = 2 * time.Second
)

func newConsole(lc fx.Lifecycle, settings Settings, o *options, observe *observer, s *store.Store, office *backoffice.Office, manager *subscriptions.Manager, box *sandbox.Sandbox, k *trail.Keeper) (*consolePages, error) {
	c := &consolePages{checks: func() []opsapi.Result { return nil }}
	if !settings.Console.Enabled {
		return c, nil
	}
	zone, err := settings.Bank.Location()
	if err != nil {
		return nil, fmt.Errorf("bank.time_zone: %w", err)
	}
	proxies, err := settings.Console.Proxies()
	if err != nil {
		return nil, fmt.Errorf("console.trusted_proxies: %w", err)
	}
	reads, err := consoleStore(lc, settings, o, s)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the database of the console: %w", err), s.Close())
	}
	c.activity = console.NewActivity(zone, o.now())
	read := backoffice.New(reads.Backoffice, o.acts(), zone)
	c.pages = console.New(console.Options{
		Office:         read,
		Subscriptions:  manager,
		Activity:       c.activity,
		Checks:         c.results,
		Zone:           zone,
		Now:            o.now,
		Bank:           o.bank(),
		UserHeader:     settings.Console.UserHeader,
		TrustedProxies: proxies,
		Operators:      settings.Console.Operators.Items(),
		Show:           o.consoleLink,
		Sandbox:        sandboxPage(box),
		Corrector:      office.Corrector,
		Audit:          office.Audit,
		Acts:           o.acts(),
		Looked: func(user, page string) {
			observe.logger.Info("unmasked data was shown", zap.String("user", user), zap.String("page", page))
		},
		Verify: func(ctx context.Context, watch backoffice.Watch) (backoffice.Proof, error) {
			return c.app.verify(ctx, read.Verifier, nil, watch)
		},
		Answer: httpapi.Answer,
		Trail:  consoleTrail(k),
		Failed: func(page string, err error) {
			observe.logger.Warn("a page of the console failed", zap.String("page", page), zap.Error(err))
		},
	})
	lc.Append(fx.StopHook(c.pages.Close))
	return c, nil
}

// consoleStore opens the database of console.dsn, or that of the service once
// more, so that the console never takes a connection from a request. A storage
// of the host's own cannot be opened twice: the console shares it.
func consoleStore(lc fx.Lifecycle, settings Settings, o *options, s *store.Store) (*store.Store, error) {
	own := settings.Storage.Driver == SQLite || settings.Storage.Driver == Postgres
	if o.database != nil || (!own && settings.Console.DSN == "") {
		return s, nil
	}
	settings.Storage.MaxConnections, settings.Storage.StatementTimeout = consoleConnections, consoleTimeout
	if settings.Console.DSN != "" {
		settings.Storage.DSN = settings.Console.DSN
	}
	reads, err := openStore(settings, o, nil)
	if err != nil {
		return nil, err
	}
	reads.Close = sync.OnceValue(reads.Close)
	lc.Append(fx.StopHook(reads.Close))
	return reads, nil
}

// consoleTrail is nil if the service keeps no trail.
func consoleTrail(k *trail.Keeper) *console.Trail {
	if k.Kept() != nil {
		return nil
	}
	return &console.Trail{Key: k.VerifyingKey(), Prove: k.Prove}
}

// handler is nil if the console is not enabled.
func (c *consolePages) handler() http.Handler {
	if c.pages == nil {
		return nil
	}
	return c.pages
}

func (c *consolePages) results() (all []console.Check) {
	for _, r := range c.checks() {
		all = append(all, console.Check{Name: r.Name, Problem: r.Problem})
	}
	return all
}

func (c *consolePages) link(address string) {
	if c.pages != nil {
		c.pages.Link(address)
	}
}

func (c *consolePages) request(x *summary.Exchange) {
	if c.activity != nil {
		c.activity.Request(x)
	}
}

func (c *consolePages) settled(s buyfund.Settlement, now time.Time) {
	if c.activity != nil {
		c.activity.Settled(s, now)
	}
}

// sandboxPage is nil outside a sandbox.
func sandboxPage(box *sandbox.Sandbox) *console.Sandbox {
	if box == nil {
		return nil
	}
	page := &console.Sandbox{
		Requests: func() (all []console.SandboxRequest) {
			for _, r := range box.Requests(0) {
				all = append(all, console.SandboxRequest{
					Number: r.Number, ReceivedAt: r.ReceivedAt, Method: r.Method, Path: r.Path, Fault: r.Fault, Body: r.Body,
					Answer: r.Answer.Body, Milliseconds: r.Milliseconds, Status: r.Answer.Status, Lost: r.Answer.Lost,
				})
			}
			return all
		},
		Advance: func(ctx context.Context, by time.Duration) (completed, failed int, err error) {
			moved, err := box.AdvanceClock(ctx, by)
			return moved.Settled.Completed, moved.Settled.Failed, err
		},
		Reset:   box.Reset,
		Order:   box.OrderFault,
		Ordered: box.Ordered,
	}
	for _, order := range sandbox.Orders() {
		page.Faults = append(page.Faults, console.SandboxFault{Name: order.Header, Effect: strings.ReplaceAll(order.Effect, "`", "")})
	}
	return page
}
