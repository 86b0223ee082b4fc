package storage

import (
	"context"
	"fmt"
	"time"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/store"
)

// service implements the ports about the database as a whole, and store.Marker.
type service struct {
	db      *tables.Database
	journal journal.Journal
	engine  Engine
	checks  *checks
	mark    string // the database must have this mark
	copied  *readCopied
	// patience is the maximum time to look at the transaction of a host.
	patience time.Duration
}

// ping runs the statements of requests without rows, so that nothing is changed or locked. A
// database that responds but cannot store a sale is not ready: it may be read-only, a
// permission or a table may be missing, or a pooler may not allow transactions.
func (d service) ping(ctx context.Context) error {
	if err := d.engine.Check(); err != nil {
		return err // a new connection would also fail, with a less helpful error
	}
	err := suits(ctx, d.engine, d.db)
	if err != nil {
		return err
	}
	err = d.db.Reads.WithContext(ctx).Exec("SELECT 1").Error
	if err != nil {
		return d.db.Translate(err)
	}
	if d.db.Ready(ctx) != nil {
		return nil //nolint:nilerr // if the schema does not fit, the check of the schema reports it
	}
	_, err = d.checks.Run(ctx, d.checks.pool)
	if err != nil {
		return d.db.Translate(err)
	}
	err = d.engine.Probe(ctx, d.probes())
	if err != nil {
		return d.db.Translate(err)
	}
	err = d.db.RequireProperties(ctx)
	if err != nil {
		return err
	}
	var none []tables.SubscriptionRow
	return d.db.Translate(d.db.Reads.WithContext(ctx).Limit(0).Find(&none).Error)
}

// suits returns an error if the database cannot hold a book. A host may read over other
// connections than it writes, and they may have other settings.
func suits(ctx context.Context, e Engine, db *tables.Database) error {
	writes := db.Writes.Statement.ConnPool
	reads := db.Reads.Statement.ConnPool
	err := e.Suits(ctx, writes)
	if err != nil {
		return db.Translate(err)
	}
	if reads == writes {
		return nil
	}
	return db.Translate(e.Suits(ctx, reads))
}

// probes returns all statements of requests and of settling, without rows.
func (d service) probes() []batch.Request {
	probes := []batch.Request{
		d.db.Holdings.Find.Request(nil, nil), d.db.Accounts.Find.Request(nil, nil),
		d.db.Prices.Find.Request(nil, nil), d.db.FindCurrentPrice.Request(nil, nil),
		d.db.FindCaller.Request(nil, nil), d.db.Operations.Find.Request(nil, nil),
		d.db.Holdings.Put.Request(nil), d.db.Accounts.Put.Request(nil),
		d.db.Operations.Add.Request(nil), d.db.Operations.Put.Request(nil),
		d.db.Sales.Add.Request(nil), d.db.Sales.Put.Request(nil), d.db.Adjustments.Add.Request(nil),
		d.db.Properties.Find.Request(nil, nil), d.db.Properties.Put.Request(nil), d.db.Outcomes.Add.Request(nil),
		d.db.Notifications.Add.Request(nil),
	}
	if d.journal.Keys() != nil {
		probes = append(probes, d.db.TrailBatches.Insert().Request(nil))
	}
	return probes
}

// risks implements Risks of store.Store.
func (d service) risks(ctx context.Context) ([]store.Risk, error) {
	risks, err := d.engine.Risks(ctx)
	return risks, d.db.Translate(err)
}

// index implements Index of store.Store.
func (d service) index(ctx context.Context) error {
	if err := d.db.Ready(ctx); err != nil {
		return err
	}
	return d.db.Translate(d.engine.Index(ctx, d.db.Prefix))
}

// clock implements Clock of store.Store.
func (d service) clock(ctx context.Context) (now, newest time.Time, err error) {
	var row struct{ Now, Newest batch.Instant }
	err = d.db.Query(ctx).Raw(fmt.Sprintf("SELECT %s AS now, (SELECT received_at FROM %s ORDER BY operation_id DESC LIMIT 1) AS newest",
		d.engine.Facts().Now, d.db.Operations.Name)).Scan(&row).Error
	return row.Now.Time, row.Newest.Time, d.db.Translate(err)
}
