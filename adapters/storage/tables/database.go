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

// Engine is what the rooms ask of an engine, beside its dialect.
type Engine struct {
	// OneWriter says that what a transaction which writes has read stays so until it ends.
	OneWriter bool
	// Check returns nil while the database is still the one that was opened. It
	// is called before each commit that is not that of a batch.
	Check func() error
	// Find returns a condition that is true of every row of the table with that value, and by
	// which the engine finds these rows in a large table. It need not be false of other rows.
	Find func(prefix, table, column string, value any) (condition string, arguments []any)
	// LeaveRoom makes the inserts of a transaction into a table leave room in its
	// pages, where the changes of its rows find place. The transaction ends with the
	// requests that it returns. After an error the transaction is run again without it.
	LeaveRoom func(ctx context.Context, s batch.Session, table string) ([]batch.Request, error)
	// Align makes two transactions that have read nothing yet see the same state of
	// the database. After an error both are rolled back.
	Align func(ctx context.Context, first, second *sql.Tx) error
}

// LeaveNoRoom is LeaveRoom where nothing leaves room.
func LeaveNoRoom(context.Context, batch.Session, string) ([]batch.Request, error) { return nil, nil }

// Database is shared by all repositories.
type Database struct {
	*batch.DB
	Engine
	Prefix string
	// Writes and Reads are gorm's, without a model.
	Writes, Reads *gorm.DB
	Now           func() time.Time
	// secret is the key of what is kept of messages. It is empty until the schema was checked.
	secret *atomic.Pointer[[]byte]

	Holdings      Statements[HoldingRow]
	Accounts      Statements[AccountRow]
	Prices        Statements[PriceRow]
	Operations    Statements[OperationRow]
	Sales         Statements[SaleRow] // Find finds a sale that is recorded and not claimed by another replica, and Put settles it
	Postings      Statements[PostingRow]
	Transfers     Statements[TransferRow]
	Notifications Statements[NotificationRow]
	Subscriptions Statements[SubscriptionRow]
	Refusals      Statements[RefusalRow]
	// RefusedSales are those of operations that were refused at once. Refusals of versions
	// with a schema up to 11 have none.
	RefusedSales   Statements[SaleRow]
	Reversals      Statements[ReversalRow]
	Audits         Statements[AuditRow]
	Calendars      Statements[CalendarRow]
	Outcomes       Statements[OutcomeRow]
	OutcomeCounter Statements[OutcomeCounterRow] // Find locks it
	Requests       Statements[RequestRow]
	Marks          *batch.Table[MarkRow]
	Properties     *batch.Table[PropertyRow]
	TrailBatches   *batch.Table[TrailBatchRow]
	TrailHashes    *batch.Table[TrailHashRow]
	TrailLogs      *batch.Table[TrailLogRow]
	ListedSales    *batch.Table[ListedSaleRow] // sales, as lists show them
	AllPostings    *batch.Table[PostingRow]    // AllPostings: its name needs an alias

	// FindCurrentPrice takes the fund, and in ValidFrom the day. FindEarlierPrice also takes
	// the currency, and finds the price of an earlier day.
	FindCurrentPrice, FindEarlierPrice *batch.Query[PriceRow]
	UseSubscription                    *batch.Statement[SubscriptionRow]
	RemoveNotification                 *batch.Statement[NotificationRow]
	FindErased                         *batch.Query[NotificationRow] // any of them
	// RemoveErased removes added notifications that were stored before and erased since.
	// It comes after Add: an erasure that runs at the same moment makes Add wait.
	RemoveErased *batch.Statement[IdentityRow]

	// TableNames are the names of the tables that hold the book and its records. Relied has an
	// entry for each table, also for those of the mark, the properties and the trail.
	TableNames []string
	Relied     []Relied
}

// Statements is a table with its statements. Those that nothing needs are nil.
type Statements[R any] struct {
	*batch.Table[R]
	Find     *batch.Query[R]
	Add, Put *batch.Statement[R]
	// Leaves says how the rows enter the trail, unless they do so with an operation.
	Leaves *leafKind[R]
}

// Transaction takes the transaction of a host that uses database/sql or gorm.
// On SQLite it must have begun as an immediate one.
func Transaction(given any) (batch.Tx, error) {
	tx := given
	if g, ok := tx.(*gorm.DB); ok && g != nil && g.Statement != nil {
		tx = g.Statement.ConnPool
		if prepared, ok := tx.(*gorm.PreparedStmtTX); ok {
			tx = prepared.Tx
		}
	}
	native, ok := tx.(*sql.Tx)
	if !ok || native == nil {
		return nil, fmt.Errorf("a transaction must be a *sql.Tx, or a *gorm.DB that has begun one, and not a %T", given)
	}
	return native, nil
}

// Query is gorm for a query beside all transactions. It fails while the schema does not fit.
func (d *Database) Query(ctx context.Context) *gorm.DB {
	tx := d.Reads.WithContext(ctx)
	_ = tx.AddError(d.Ready(ctx)) // every call on tx returns it
	return tx
}

// Change runs work in a transaction that writes through gorm, and retries it
// when it loses a race. The error has its kind.
func (d *Database) Change(ctx context.Context, work func(tx *gorm.DB) error) error {
	return d.Retry(ctx, func() error {
		isDone := false
		err := d.Writes.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			err := InTurn(func() error { return d.prepare(tx, batch.Change) }, func() error { return work(tx) }, d.Check)
			isDone = err == nil
			return err
		})
		if isDone && d.Classify(err) == batch.Broken { // in the commit, which may have taken effect
			err = batch.FailureError{Failure: batch.Interrupted, Cause: err}
		}
		return err
	})
}

// Snapshot runs read in a transaction that sees the book as it is at its first
// statement, and may take its time. The error has its kind.
func (d *Database) Snapshot(ctx context.Context, read func(tx *gorm.DB) error) error {
	return d.Translate(d.Reads.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		return InTurn(func() error { return d.prepare(tx, batch.Snapshot) }, func() error { return read(tx) })
	}, &sql.TxOptions{ReadOnly: true}))
}

// Snapshots is Snapshot with a second transaction that sees the same, if the engine
// can align them and a connection is free. On two cores two readers of a SQLite book
// take 0.7 of the time of one.
func (d *Database) Snapshots(ctx context.Context, read func(all []*gorm.DB) error) error {
	var all []*gorm.DB
	for _, tx := range d.beginAligned(ctx) {
		defer tx.Rollback() //nolint:errcheck // there is nothing to undo
		all = append(all, d.Over(ctx, tx))
	}
	if len(all) == 0 {
		return d.Snapshot(ctx, func(tx *gorm.DB) error { return read([]*gorm.DB{tx}) })
	}
	for _, tx := range all {
		if err := d.prepare(tx, batch.Snapshot); err != nil {
			return d.Translate(err)
		}
	}
	return d.Translate(read(all))
}

// beginAligned begins two transactions that see the same. It returns none if that does
// not work.
func (d *Database) beginAligned(ctx context.Context) (begun []*sql.Tx) {
	pool, isPool := d.Reads.Statement.ConnPool.(*batch.Pool)
	for isPool && len(begun) < 2 {
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
	if len(begun) == 2 && d.Align(ctx, begun[0], begun[1]) == nil {
		return begun
	}
	for _, tx := range begun {
		_ = tx.Rollback()
	}
	return nil
}

// Over is gorm over another pool, or over a transaction. With a context gorm copies the
// statement, which is shared otherwise.
func (d *Database) Over(ctx context.Context, pool gorm.ConnPool) *gorm.DB {
	over := d.Writes.Session(&gorm.Session{NewDB: true, Context: ctx})
	over.Statement.ConnPool = pool
	return over
}

func (d *Database) prepare(tx *gorm.DB, p batch.Purpose) error {
	for _, statement := range d.Dialect.Prepare(p) {
		if err := tx.Exec(statement).Error; err != nil {
			return err
		}
	}
	return nil
}

// Relied is a table with what the program relies on. Without it an answer may be
// false although no statement fails: a repeat sells again without its key, a holding
// falls below zero without its condition.
type Relied struct {
	Table string
	// Columns are those that the program knows, and Keys those of the primary key, sorted.
	Columns, Keys []string
	// Checks are conditions of a row, as the server writes them.
	Checks []string
	// Rights are those that a sale, a push and a refusal need.
	Rights []string

	Copies copies `json:"-"`
}

// copies moves the rows of a table. It is made for the table of the target.
type copies interface {
	// Copy writes the rows of the source that come after the newest of the target, or
	// all of them.
	Copy(ctx context.Context, from, to *Database, source *gorm.DB, all bool, done func(int64)) error
	Sum(tx *gorm.DB, done func(int64)) (tableSum, error)
}

// tableSum is equal for tables with the same rows, in whatever order.
type tableSum struct {
	Rows   int64
	hashes [4]uint64
}
