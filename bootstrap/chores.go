package bootstrap

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"bankingapi/adapters/telemetry"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
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

// background is the service, with the methods of its chores.
type background struct{ *App }

const (
	// sealEvery is how often the service signs a checkpoint of the trail.
	sealEvery = time.Second
	// settleEvery is how often the service looks for due sales.
	settleEvery = 2 * time.Second
	// remindEvery is how often a failure that lasts is logged again.
	remindEvery = time.Minute
)

// chores returns the background work of the service. A command (MustExist is set) does not
// erase messages, log risks or update metrics: it leaves these to the service.
func (a background) chores() []chore {
	s, p, isService := a.setup.settings, a.parts, !a.setup.storage.MustExist
	migrate := func(ctx context.Context) error {
		return a.setup.migrator.Retry(a.setup.acts.Begin(unguarded(ctx), migrateAct, "", ""))
	}
	return []chore{
		{len(a.setup.guard.checks) > 0, guardEvery, false, zap.DebugLevel, "", a.setup.guard.watch},
		{true, 2 * time.Second, false, zap.WarnLevel, "the schema could not be migrated yet", migrate},
		{true, 2 * time.Second, true, zap.WarnLevel, "the rules of the bank could not be read", func(ctx context.Context) error { return a.setup.readRules(ctx, p.Store, p.Trail, p.Rules) }},
		{true, subscriptions.RefreshEvery, true, zap.WarnLevel, "subscriptions could not be read", p.Directory.Refresh},
		{true, time.Minute, true, zap.WarnLevel, usageFailed, func(ctx context.Context) error { return p.Directory.KeepUsage(ctx, p.Store.Usage) }},
		{isService, time.Second, true, zap.WarnLevel, requestsFailed, p.Requests.Write},
		{isService, p.Fleet.Every(), false, zap.DebugLevel, "the row of this replica could not be written", func(ctx context.Context) error { return p.Fleet.Keep(unguarded(ctx)) }},
		{isService, 10 * time.Minute, true, zap.WarnLevel, "old entries of the log of requests could not be deleted", a.forgetRequests},
		{true, time.Second, true, zap.DebugLevel, "lookups could not be prepared: they are slower", p.Store.Index},
		{a.setup.seals(), sealEvery, false, zap.WarnLevel, "the trail could not be sealed: it waits", p.Trail.Round},
		{isService, risksEvery, false, zap.DebugLevel, "the database could not be asked what may lose data", a.tellRisks()},
		{isService, 10 * time.Minute, false, zap.DebugLevel, "the last verify could not be read", a.watch()},
		{isService && s.Retention.Notifications > 0, time.Hour, false, zap.WarnLevel, "old messages could not be erased: the service tries again in an hour", a.eraseOldMessages},
		{s.Settlement.Enabled, settleEvery, false, 0, "", a.settleDueSales()},
	}
}

// hook runs the chores from the start of the service to its stop.
func (a background) hook() fx.Hook {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	chores := a.chores()
	return fx.StartStopHook(
		func() {
			for _, c := range chores {
				if c.isWanted {
					running.Go(func() { a.keepDoing(ctx, c) })
				}
			}
		},
		func() {
			cancel()
			running.Wait()
		},
	)
}

// keepDoing runs a chore until ctx ends. It does not log errors of cancelled rounds.
func (a background) keepDoing(ctx context.Context, c chore) {
	ticker := time.NewTicker(c.interval)
	defer ticker.Stop()
	for {
		if !c.waits {
			if err := c.do(ctx); err != nil && ctx.Err() == nil {
				a.setup.log.Log(c.level, c.failed, zap.Error(err))
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
func (a background) tellRisks() func(context.Context) error {
	told := false
	return func(ctx context.Context) error {
		if told {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, risksEvery)
		defer cancel()
		risks, err := a.parts.Store.Risks(ctx)
		if err != nil {
			return err
		}
		for _, r := range risks {
			a.setup.log.Warn("the database may lose data", zap.String("risk", r.Detail))
		}
		told = true
		return nil
	}
}

// watch adds to the metrics what an operator must not miss. The returned chore reads when the
// book was last verified.
func (a background) watch() func(context.Context) error {
	var last atomic.Pointer[audit.Act]
	p := a.parts
	p.Metrics.Watch(telemetry.Watched{
		Checks: p.Readiness.Results, CertificateEnd: p.API.server.CertificateEnd, KeyEnds: p.Directory.KeyEnds,
		Verified: func() (at time.Time, isCorrect bool) {
			if act := last.Load(); act != nil {
				return act.At, backoffice.BookHolds(act.Details)
			}
			return at, false
		},
	})
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, a.setup.settings.Storage.StatementTimeout)
		defer cancel()
		act, err := p.Office.LastVerified(ctx)
		if err != nil {
			return err
		}
		last.Store(act)
		return nil
	}
}

// forgetRequests deletes old requests from the log. To a clock that is ahead, all would be old.
func (a background) forgetRequests(ctx context.Context) error {
	if err := a.parts.Office.CheckClock(ctx); err != nil {
		return err
	}
	return a.parts.Requests.Forget(ctx)
}

// eraseOldMessages erases the personal data of old messages, once a day is over.
func (a background) eraseOldMessages(ctx context.Context) error {
	erased, err := a.parts.Office.Eraser().KeepFor(ctx, a.setup.settings.Retention.Notifications)
	if erased > 0 {
		a.setup.log.Info("old messages were erased", zap.Int64("messages", erased))
	}
	return err
}

// countShare times the duration of a count of the due sales is the pause before the next count,
// because millions of sales may wait for a price.
const countShare = 100

// settleDueSales returns a chore that settles, and itself reports errors and remaining sales.
func (a background) settleDueSales() func(context.Context) error {
	p := a.parts
	settle := p.Buyer.SettleDue
	if p.Sandbox != nil {
		settle = p.Sandbox.SettleDue
	}
	var count, remind time.Time // when to count the due sales again, and to log a failure that lasts
	return func(ctx context.Context) error {
		var settled buyfund.Settlement
		err := a.setup.guard.run(ctx)
		if err == nil {
			settled, err = settle(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		p.Metrics.Settlement(settled, err)
		counts := []zap.Field{zap.Int("completed", settled.Completed), zap.Int("failed", settled.Failed)}
		began := time.Now() //nolint:forbidigo // measures a duration: the clock of the service may be set
		if err == nil {
			remind = time.Time{}
		}
		switch {
		case err != nil && began.Before(remind):
		case err != nil:
			remind = began.Add(remindEvery)
			a.setup.log.Warn("due sales could not be settled: they stay due", append(counts, zap.Error(err))...)
		case settled != buyfund.Settlement{}:
			a.setup.log.Info("due sales are settled", counts...)
		}
		if began.Before(count) {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, a.setup.settings.Storage.StatementTimeout)
		defer cancel()
		if due, err := p.Buyer.CountDue(ctx); err == nil { // if the storage fails, settle has already reported it
			p.Metrics.Due(due.ForSettling, due.PriceSales, due.Lag(a.setup.bank()))
		}
		count = began.Add((1 + countShare) * time.Since(began))
		return nil
	}
}
