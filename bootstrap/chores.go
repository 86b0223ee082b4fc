package bootstrap

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"bankingapi/adapters/opsapi"
	"bankingapi/adapters/telemetry"
	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/fleet"
	"bankingapi/application/operator"
	"bankingapi/application/requestlog"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/audit"
)

// chore is periodic background work of the service. It runs at startup, unless waits is set,
// and then once in each interval.
type chore struct {
	isWanted bool
	interval time.Duration
	waits    bool
	level    zapcore.Level // the log level of an error; failed is its message
	failed   string
	do       func(context.Context) error
}

// background has the parts that the chores use.
type background struct {
	fx.In
	Settings    validSettings
	Book        bookSource
	Clocks      clocks
	Log         serviceLog
	Guard       *guard
	Migrator    *store.Migrator
	RuleBook    *ruleBook
	Certificate *apiCertificate
	Store       *store.Store
	Trail       *trail.Keeper
	Office      *backoffice.Office
	Directory   *subscriptions.Directory
	Requests    *requestlog.Log
	Buyer       *buyfund.Buyer
	Sandbox     operator.SandboxPart // nil outside a sandbox
	Fleet       *fleet.Watch
	Metrics     *telemetry.Metrics
	Readiness   *opsapi.Readiness
}

const (
	// sealEvery is how often the service signs a checkpoint of the trail.
	sealEvery = time.Second
	// settleEvery is how often the service looks for due sales.
	settleEvery = 2 * time.Second
	// remindEvery is how often a chore that still fails logs it again.
	remindEvery = time.Minute
)

// chores returns the background work of the service. A command does not erase messages, log risks
// or update metrics: it leaves these to the service.
func (b background) chores() []chore {
	isService := !b.Book.isCommand()
	keepFor := b.Settings.Retention.Notifications
	settles := b.Settings.Settlement.Enabled
	return []chore{
		{len(b.Guard.checks) > 0, guardEvery, false, zap.DebugLevel, "", b.Guard.watch},
		{true, 2 * time.Second, false, zap.WarnLevel, "the schema could not be migrated yet", b.migrate},
		{true, 2 * time.Second, true, zap.WarnLevel, "the rules of the bank could not be read", b.readRules},
		{true, subscriptions.RefreshEvery, true, zap.WarnLevel, "subscriptions could not be read", b.Directory.Refresh},
		{true, time.Minute, true, zap.WarnLevel, usageFailed, b.keepUsage},
		{isService, time.Second, true, zap.WarnLevel, requestsFailed, b.Requests.Write},
		{isService, b.Fleet.Every(), false, zap.DebugLevel, "the row of this replica could not be written", b.keepRow},
		{isService, 10 * time.Minute, true, zap.WarnLevel, "old entries of the log of requests could not be deleted", b.forgetRequests},
		{true, time.Second, true, zap.DebugLevel, "lookups could not be prepared: they are slower", b.Store.Index},
		{b.Book.seals(), sealEvery, false, zap.WarnLevel, "the trail could not be sealed: it waits", b.Trail.Round},
		{isService, risksEvery, false, zap.DebugLevel, "the database could not be asked what may lose data", b.tellRisks()},
		{isService, 10 * time.Minute, false, zap.DebugLevel, "the last verify could not be read", b.watch()},
		{isService && keepFor > 0, time.Hour, false, zap.WarnLevel, "old messages could not be erased: the service tries again in an hour", b.eraseOldMessages},
		{settles, settleEvery, false, zap.WarnLevel, "due sales could not be settled: they stay due", b.settleDueSales()},
		{isService && !settles, settleEvery, false, zap.DebugLevel, "the due sales could not be counted", b.countDueSales()},
	}
}

// migrate migrates a storage that could not be reached at startup.
func (b background) migrate(ctx context.Context) error {
	return b.Migrator.Retry(b.Clocks.acts().Begin(unguarded(ctx), audit.MigrateUp, "", ""))
}

func (b background) readRules(ctx context.Context) error { return b.RuleBook.read(ctx, b.Trail) }

func (b background) keepUsage(ctx context.Context) error {
	return b.Directory.KeepUsage(ctx, b.Store.Usage)
}

func (b background) keepRow(ctx context.Context) error { return b.Fleet.Keep(unguarded(ctx)) }

// hook runs the chores from the start of the service to its stop.
func (b background) hook() fx.Hook {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	chores := b.chores()
	return fx.StartStopHook(
		func() {
			for _, c := range chores {
				if c.isWanted {
					running.Go(func() { b.keepDoing(ctx, c) })
				}
			}
		},
		func() {
			cancel()
			running.Wait()
		},
	)
}

// keepDoing runs a chore until ctx ends. It does not log errors of cancelled rounds. A failure that
// lasts for an hour must not fill the log, so it is logged once in each remindEvery.
func (b background) keepDoing(ctx context.Context, c chore) {
	ticker := time.NewTicker(c.interval)
	defer ticker.Stop()
	var remind time.Time // when to log the failure again
	for {
		if !c.waits {
			err := c.do(ctx)
			now := time.Now() //nolint:forbidigo // measures a duration: the clock of the service may be set
			switch {
			case err == nil:
				remind = time.Time{}
			case ctx.Err() == nil && !now.Before(remind):
				remind = now.Add(remindEvery)
				b.Log.zap.Log(c.level, c.failed, zap.Error(err))
			}
		}
		c.waits = false
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// risksEvery is how often the service retries to ask the storage for its risks.
const risksEvery = 5 * time.Second

// tellRisks returns a chore that logs each risk once the storage answers.
func (b background) tellRisks() func(context.Context) error {
	told := false
	return func(ctx context.Context) error {
		if told {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, risksEvery)
		defer cancel()
		risks, err := b.Store.Risks(ctx)
		if err != nil {
			return err
		}
		for _, r := range risks {
			b.Log.zap.Warn("the database may lose data", zap.String("risk", r.Detail))
		}
		told = true
		return nil
	}
}

// watch adds to the metrics what an operator must not miss. The returned chore reads when the
// book was last verified.
func (b background) watch() func(context.Context) error {
	var last atomic.Pointer[audit.Act]
	b.Metrics.Watch(telemetry.Watched{
		Checks: b.Readiness.Results, CertificateEnd: b.Certificate.end, KeyEnds: b.Directory.KeyEnds,
		Verified: func() (at time.Time, isCorrect bool) {
			act := last.Load()
			if act != nil {
				return act.At, backoffice.BookHolds(act.Details)
			}
			return at, false
		},
	})
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, b.Settings.Storage.StatementTimeout)
		defer cancel()
		act, err := b.Office.LastVerified(ctx)
		if err != nil {
			return err
		}
		last.Store(act)
		return nil
	}
}

// forgetRequests deletes old requests from the log. To a clock that is ahead, all would be old.
func (b background) forgetRequests(ctx context.Context) error {
	if err := b.Office.CheckClock(ctx); err != nil {
		return err
	}
	return b.Requests.Forget(ctx)
}

// eraseOldMessages erases the personal data of old messages, once a day is over.
func (b background) eraseOldMessages(ctx context.Context) error {
	erased, err := b.Office.Eraser().KeepFor(ctx, b.Settings.Retention.Notifications)
	if erased > 0 {
		b.Log.zap.Info("old messages were erased", zap.Int64("messages", erased))
	}
	return err
}

// countShare times the duration of a count of the due sales is the pause before the next count,
// because millions of sales may wait for a price.
const countShare = 100

// settleGuarded settles if the checks of the guard pass.
func (b background) settleGuarded(ctx context.Context, settle func(context.Context) (buyfund.Settlement, error)) (buyfund.Settlement, error) {
	if err := b.Guard.run(ctx); err != nil {
		return buyfund.Settlement{}, err
	}
	return settle(ctx)
}

// settleDueSales returns a chore that settles, and counts the remaining sales.
func (b background) settleDueSales() func(context.Context) error {
	settle := b.Buyer.SettleDue
	if b.Sandbox != nil {
		settle = b.Sandbox.SettleDue
	}
	count := b.countDueSales()
	return func(ctx context.Context) error {
		settled, err := b.settleGuarded(ctx, settle)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the service stops: no failure
		}
		b.Metrics.Settlement(settled, err)
		if settled != (buyfund.Settlement{}) {
			b.Log.zap.Info("due sales are settled", zap.Int("completed", settled.Completed), zap.Int("failed", settled.Failed))
		}
		_ = count(ctx) // if the storage fails, settle has already reported it
		return err
	}
}

// countDueSales returns a chore that counts the due sales for the metrics. A service that does not
// settle counts them too: possibly no other program settles them either.
func (b background) countDueSales() func(context.Context) error {
	var next time.Time
	return func(ctx context.Context) error {
		began := time.Now() //nolint:forbidigo // measures a duration: the clock of the service may be set
		if began.Before(next) {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, b.Settings.Storage.StatementTimeout)
		defer cancel()
		due, err := b.Buyer.CountDue(ctx)
		next = began.Add((1 + countShare) * time.Since(began))
		if err != nil {
			return err
		}
		b.Metrics.Due(due.ForSettling, due.PriceSales, due.Lag(b.Clocks.bank()))
		return nil
	}
}
