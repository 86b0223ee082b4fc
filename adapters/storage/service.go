package storage

import (
	"context"
	"fmt"
	"time"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/adapters/storage/trail"
	"bankingapi/application/store"
)

// service implements the ports about the database as a whole, and store.Marker.
type service struct {
	trail.Writer
	engine Engine
	checks *checks
	mark   string // the database must have this mark
}

// ping runs the statements of requests without rows, so that nothing is changed or locked. A
// database that responds but cannot store a sale is not ready: it may be read-only, a
// permission or a table may be missing, or a pooler may not allow transactions.
func (d service) ping(ctx context.Context) error {
	if err := d.engine.Check(); err != nil {
		return err // a new connection would also fail, with a less helpful error
	}
	err := d.engine.Suits(ctx, d.Writes.Statement.ConnPool)
	if err != nil {
		return d.Translate(err)
	}
	err = d.Reads.WithContext(ctx).Exec("SELECT 1").Error
	if err != nil {
		return d.Translate(err)
	}
	if d.Ready(ctx) != nil {
		return nil //nolint:nilerr // if the schema does not fit, the check of the schema reports it
	}
	_, err = d.checks.Run(ctx, d.checks.pool)
	if err != nil {
		return d.Translate(err)
	}
	err = d.engine.Probe(ctx, d.probes())
	if err != nil {
		return d.Translate(err)
	}
	var none []tables.SubscriptionRow
	return d.Translate(d.Reads.WithContext(ctx).Table(d.Subscriptions.Name).Limit(0).Find(&none).Error)
}

// probes returns all statements of requests and of settling, without rows.
func (d service) probes() []batch.Request {
	probes := []batch.Request{
		d.Holdings.Find.Request(nil, nil), d.Accounts.Find.Request(nil, nil),
		d.Prices.Find.Request(nil, nil), d.FindCurrentPrice.Request(nil, nil),
		d.FindCaller.Request(nil, nil), d.Operations.Find.Request(nil, nil),
		d.Holdings.Put.Request(nil), d.Accounts.Put.Request(nil),
		d.Operations.Add.Request(nil), d.Operations.Put.Request(nil),
		d.Sales.Add.Request(nil), d.Sales.Put.Request(nil), d.Adjustments.Add.Request(nil),
		d.Properties.Find.Request(nil, nil), d.Properties.Put.Request(nil), d.Outcomes.Add.Request(nil),
		d.Notifications.Add.Request(nil),
	}
	if d.Keys() != nil {
		probes = append(probes, d.TrailBatches.Insert().Request(nil))
	}
	return probes
}

// risks implements Risks of store.Store.
func (d service) risks(ctx context.Context) ([]store.Risk, error) {
	risks, err := d.engine.Risks(ctx)
	return risks, d.Translate(err)
}

// index implements Index of store.Store.
func (d service) index(ctx context.Context) error {
	if err := d.Ready(ctx); err != nil {
		return err
	}
	return d.Translate(d.engine.Index(ctx, d.Prefix))
}

// clock implements Clock of store.Store.
func (d service) clock(ctx context.Context) (now, newest time.Time, err error) {
	var row struct{ Now, Newest batch.Instant }
	err = d.Query(ctx).Raw(fmt.Sprintf("SELECT %s AS now, (SELECT received_at FROM %s ORDER BY operation_id DESC LIMIT 1) AS newest",
		d.engine.Facts().Now, d.Operations.Name)).Scan(&row).Error
	return row.Now.Time, row.Newest.Time, d.Translate(err)
}
