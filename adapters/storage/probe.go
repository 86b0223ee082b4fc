package storage

import (
	"context"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/store"
)

// ping asks of the database what requests ask of it: without rows, so that
// nothing changes and nothing is locked. A database that answers but cannot
// store a sale is not ready: it is read-only, a right or a table is missing, or
// a pooler allows no transaction.
func (d service) ping(ctx context.Context) error {
	if err := d.engine.Check(); err != nil {
		return err // a new connection would fail too, and could not say why
	}
	err := d.reads.WithContext(ctx).Exec("SELECT 1").Error
	if err == nil && d.Ready(ctx) == nil { // if the schema does not fit, that is said of the schema
		err = inTurn(
			func() error { return d.checks.isAsRelied(ctx) },
			func() error { return d.engine.Probe(ctx, d.probes()) },
			func() error { return d.subscribers(ctx) },
		)
	}
	return d.Translate(err)
}

// probes are all statements of sales, refusals and pushes, without rows.
func (d service) probes() []batch.Request {
	probes := []batch.Request{
		d.holdings.find.Request(nil, nil),
		d.accounts.find.Request(nil, nil),
		d.prices.find.Request(nil, nil),
		d.prices.findCurrent.Request(nil, nil),
		d.operations.find.Request(nil, nil),
		d.sales.find.Request(nil, nil),
		d.holdings.put.Request(nil),
		d.accounts.put.Request(nil),
		d.operations.add.Request(nil),
		d.operations.put.Request(nil),
		d.sales.add.Request(nil),
		d.sales.put.Request(nil),
		d.transfers.add.Request(nil),
		d.postings.add.Request(nil),
		d.notifications.add.Request(nil),
		d.refusals.add.Request(nil),
		d.reversals.find.Request(nil, nil),
	}
	if d.trail.on.Load() != nil {
		probes = append(probes, d.trail.add.Request(nil))
	}
	return probes
}

// subscribers reads no subscription.
func (d service) subscribers(ctx context.Context) error {
	var none []SubscriptionRow
	return d.reads.WithContext(ctx).Session(&gorm.Session{}).Table(d.subscriptions.Name).Limit(0).Find(&none).Error
}

// risks is store.Store's Risks.
func (d service) risks(ctx context.Context) ([]store.Risk, error) {
	found, err := d.engine.Risks(ctx)
	return found, d.Translate(err)
}

// index is store.Store.Index.
func (d service) index(ctx context.Context) error {
	if err := d.Ready(ctx); err != nil {
		return err
	}
	return d.Translate(d.engine.Index(ctx, d.prefix))
}
