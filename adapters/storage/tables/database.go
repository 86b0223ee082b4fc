package tables

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
)

// Database is shared by all repositories.
type Database struct {
	*batch.DB
	Prefix string
	// Writes and reads are gorm's, without a model.
	Writes, Reads *gorm.DB
	Now           func() time.Time
	// secret is the key of what is kept of messages. It is empty until the schema was checked.
	secret *atomic.Pointer[[]byte]
	// These are those of Engine.
	Check     func() error
	Align     func(ctx context.Context, first, second *sql.Tx) error
	Find      func(prefix, table, column string, value any) (condition string, arguments []any)
	LeaveRoom func(ctx context.Context, s batch.Session, table string) ([]batch.Request, error)
	OneWriter bool

	Holdings      Statements[HoldingRow]
	Accounts      Statements[AccountRow]
	Prices        prices
	Operations    operations
	Sales         sales
	Postings      postings
	Transfers     Statements[TransferRow]
	Notifications notifications
	Subscriptions subscriptionTable
	Refusals      refusals
	Reversals     reversals
	Audits        Statements[AuditRow]
	Calendars     Statements[CalendarRow]
	Outcomes      OutcomeTables
	Requests      Statements[RequestRow]
	Marks         *batch.Table[MarkRow]
	Properties    *batch.Table[PropertyRow]
	TrailBatches  *batch.Table[TrailBatchRow]
	TrailHashes   *batch.Table[TrailHashRow]
	TrailLogs     *batch.Table[TrailLogRow]

	// TableNames are the names of the tables that hold the book and its records. relied has an
	// entry for each table, also for those of the mark, the properties and the trail.
	TableNames []string
	Relied     []Relied
}

// Transaction takes the transaction of a host that uses database/sql or gorm.
// On SQLite it must have begun as an immediate one.
func Transaction(tx any) (*sql.Tx, error) {
	if g, ok := tx.(*gorm.DB); ok && g != nil && g.Statement != nil {
		tx = g.Statement.ConnPool
		if prepared, ok := tx.(*gorm.PreparedStmtTX); ok {
			tx = prepared.Tx
		}
	}
	native, ok := tx.(*sql.Tx)
	if !ok || native == nil {
		return nil, fmt.Errorf("a transaction must be a *sql.Tx, or a *gorm.DB that has begun one, and not %T", tx)
	}
	return native, nil
}

// Change runs work in a transaction that writes through gorm, and retries it
// when it loses a race. The error has its kind.
func (d *Database) Change(ctx context.Context, work func(tx *gorm.DB) error) error {
	return d.Retry(ctx, func() error {
		return d.Writes.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			return InTurn(func() error { return d.prepare(tx, batch.Change) }, func() error { return work(tx) }, d.Check)
		})
	})
}

// Snapshot runs read in a transaction that sees the book as it is at its first
// statement, and may take its time. The error has its kind.
func (d *Database) Snapshot(ctx context.Context, read func(tx *gorm.DB) error) error {
	return d.Translate(d.Reads.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		return InTurn(func() error { return d.prepare(tx, batch.Snapshot) }, func() error { return read(tx) })
	}, &sql.TxOptions{ReadOnly: true}))
}

// Snapshots is snapshot with a second transaction that sees the same, if the engine
// can align them and a connection is free. On two cores two readers of a SQLite book
// take 0.7 of the time of one.
func (d *Database) Snapshots(ctx context.Context, read func(all []*gorm.DB) error) error {
	all, end := d.beginAligned(ctx)
	if all == nil {
		return d.Snapshot(ctx, func(tx *gorm.DB) error { return read([]*gorm.DB{tx}) })
	}
	defer end()
	for _, tx := range all {
		if err := d.prepare(tx, batch.Snapshot); err != nil {
			return d.Translate(err)
		}
	}
	return d.Translate(read(all))
}

// beginAligned begins two transactions that see the same. It returns none if that does
// not work.
func (d *Database) beginAligned(ctx context.Context) (all []*gorm.DB, end func()) {
	pool, isPool := d.Reads.Statement.ConnPool.(*batch.Pool)
	if d.Align == nil || !isPool {
		return nil, nil
	}
	var begun []*sql.Tx
	end = func() {
		for _, tx := range begun {
			_ = tx.Rollback()
		}
	}
	for range 2 {
		// Readers that wait for a second connection could wait for each other.
		if s := pool.DB().Stats(); len(begun) > 0 && s.MaxOpenConnections > 0 && s.InUse >= s.MaxOpenConnections {
			break
		}
		tx, err := pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			break
		}
		begun = append(begun, tx)
	}
	if len(begun) < 2 || d.Align(ctx, begun[0], begun[1]) != nil {
		end()
		return nil, nil
	}
	for _, tx := range begun {
		all = append(all, d.Over(ctx, tx))
	}
	return all, end
}

// Over reads in a transaction. With a context gorm copies the statement, which is
// shared otherwise.
func (d *Database) Over(ctx context.Context, tx *sql.Tx) *gorm.DB {
	reads := d.Reads.Session(&gorm.Session{NewDB: true, Context: ctx})
	reads.Statement.ConnPool = tx
	return reads
}

func (d *Database) prepare(tx *gorm.DB, p batch.Purpose) error {
	for _, statement := range d.Dialect.Prepare(p) {
		if err := tx.Exec(statement).Error; err != nil {
			return err
		}
	}
	return nil
}
