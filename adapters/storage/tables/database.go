package tables

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
)

// Engine has what an engine does for the tables of a book, besides its dialect.
type Engine interface {
	// Check returns nil while the database is still the one that was opened. It is called
	// before each commit, except the commit of a batch.
	Check() error
	// Find returns a condition that is true for every row of the table with this value. The
	// engine can use it to find these rows in a large table. It may be true for other rows too.
	// alias is the name of the table in the query, with a point, or empty.
	Find(prefix, alias, table, column string, value any) (condition string, arguments []any)
	// Unfound counts the rows that Find does not find, or will not find, by the table and column,
	// like "sales by customer_no". Somebody has changed what Find searches.
	Unfound(tx *gorm.DB, prefix string) (map[string]int64, error)
	// LeaveRoom makes the inserts of a transaction into a table leave free space in its pages,
	// for later updates of its rows. The transaction must end with the returned requests. After
	// an error the transaction runs again without LeaveRoom.
	LeaveRoom(ctx context.Context, s batch.Session, table string) ([]batch.Request, error)
	// Align makes two transactions that have read nothing yet see the same state of the
	// database. After an error the caller rolls back both.
	Align(ctx context.Context, first, second *sql.Tx) error
}

// Database is shared by all repositories.
type Database struct {
	DB     *batch.DB
	Engine Engine
	// OneWriter: nothing that a writing transaction has read can change before it ends.
	OneWriter bool
	Prefix    string
	// Writes and Reads are gorm handles without a model.
	Writes, Reads *gorm.DB
	Now           func() time.Time
	// secret is the key for records of erased messages. It is empty before the schema check.
	secret *atomic.Pointer[[]byte]

	Holdings      Statements[HoldingRow]
	Accounts      Statements[AccountRow]
	Prices        Statements[PriceRow]
	Operations    Statements[OperationRow] // Find claims a recorded operation that no other replica has claimed, and Put ends it
	Sales         Statements[SaleRow]      // Put settles it
	Adjustments   Statements[AdjustmentRow]
	Notifications Statements[NotificationRow]
	Subscriptions Statements[SubscriptionRow]
	Audits        Statements[AuditRow]
	Outcomes      Statements[OutcomeRow]
	Properties    Statements[PropertyRow] // Find locks them
	Requests      Statements[RequestRow]
	Replicas      *batch.Table[ReplicaRow]
	TrailBatches  *batch.Table[TrailBatchRow]
	TrailHashes   *batch.Table[TrailHashRow]
	AllPostings   *batch.Table[PostingRow] // the text AllPostings: its name needs an alias

	// What lists show, with the columns of the operations.
	ListedSales         Listed[ListedSaleRow]
	ListedNotifications Listed[ListedNotificationRow]
	ListedOutcomes      Listed[ListedOutcomeRow]
	// Erasable are the columns of notifications that an erasure changes.
	Erasable []batch.Column

	// FindCurrentPrice takes the fund, and the day in ValidFrom. FindPriceBefore takes the same, and
	// finds the price of an earlier day. FindEarlierPrice also takes the currency.
	FindCurrentPrice, FindPriceBefore, FindEarlierPrice *batch.Query[PriceRow]
	FindPriceAct                                        *batch.Query[PriceRow] // the act that imported it; locks the price
	// FindNewerBatch takes an ID. It finds the batch with the greatest ID, if that is greater.
	FindNewerBatch *batch.Query[TrailBatchRow]
	// ReadHolding and ReadAccount are Holdings.Find and Accounts.Find without locks.
	ReadHolding      *batch.Query[HoldingRow]
	ReadAccount      *batch.Query[AccountRow]
	UseSubscription  *batch.Statement[SubscriptionRow]
	FindCaller       *batch.Query[CallerRow]    // the operation of a CallerId
	LockOperation    *batch.Query[OperationRow] // its state and its reversal
	ReverseOperation *batch.Statement[OperationRow]
	EraseSession     *batch.Statement[OperationRow]
	FindRules        *batch.Query[PropertyRow]
	// LockRulesOfNewBook finds the rules only if the book has no operations, and locks them.
	LockRulesOfNewBook *batch.Query[PropertyRow]

	// TableNames are the names of the tables with the book and its records. Relied has an entry
	// for each table, also for the properties and the trail.
	TableNames []string
	Relied     []Relied
}

// Statements is a table with its statements. Statements that are not needed are nil.
type Statements[R any] struct {
	*batch.Table[R]
	Find     *batch.Query[R]
	Add, Put *batch.Statement[R]
}

// Transaction returns the transaction of a host that uses database/sql or gorm. On SQLite the
// host must have begun it as an immediate transaction.
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

// Ready returns an error if the schema does not match.
func (d *Database) Ready(ctx context.Context) error { return d.DB.Ready(ctx) }

// Transact runs work in a transaction of a batch: see batch.DB.
func (d *Database) Transact(ctx context.Context, work func(batch.Session) error) error {
	return d.DB.Transact(ctx, work)
}

// Session returns a transaction of gorm as one of a batch, without its end.
func (d *Database) Session(tx *gorm.DB) batch.Session {
	return d.DB.Dialect.Within(tx.Statement.ConnPool)
}

// Send sends requests in a transaction of gorm.
func (d *Database) Send(ctx context.Context, tx *gorm.DB, requests ...batch.Request) error {
	return d.Session(tx).Exchange(ctx, requests...)
}

// Translate gives an error its kind of package fault. nil stays nil.
func (d *Database) Translate(err error) error { return d.DB.Translate(err) }

// Query returns gorm for a query outside transactions. It fails if the schema does not match.
func (d *Database) Query(ctx context.Context) *gorm.DB {
	tx := d.Reads.WithContext(ctx)
	_ = tx.AddError(d.DB.Ready(ctx)) // every call on tx returns it
	return tx
}

// Change runs work in a transaction that writes through gorm, and retries it if it loses a
// race. Each statement sees what was committed before it began, whatever the default of the server
// is: so after a lock it sees what it waited for. The error has a kind of package fault.
func (d *Database) Change(ctx context.Context, work func(tx *gorm.DB) error) error {
	return d.DB.Retry(ctx, func() error {
		if err := d.DB.MayWrite(ctx); err != nil {
			return err
		}
		isDone := false
		err := d.Writes.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			err := InTurn(func() error { return d.prepare(tx, batch.Change) }, func() error { return work(tx) }, d.Engine.Check)
			if err != nil {
				return err
			}
			isDone = true
			return nil
		}, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if isDone && err != nil && d.mayHaveCommitted(ctx, err) {
			err = batch.FailureError{Failure: batch.Interrupted, Cause: err}
		}
		return err
	})
}

// mayHaveCommitted reports whether a commit with this error may have taken effect. Only an error of
// the database itself says that it has not.
func (d *Database) mayHaveCommitted(ctx context.Context, err error) bool {
	_, isNetwork := errors.AsType[net.Error](err) // also a timeout, after which nothing is known
	return ctx.Err() != nil || isNetwork || d.DB.Classify(err) == batch.Broken
}

// Snapshot runs read in a transaction that sees the book as of its first statement. read may
// take long. The error has a kind of package fault.
func (d *Database) Snapshot(ctx context.Context, read func(tx *gorm.DB) error) error {
	return d.DB.Translate(d.Reads.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		return InTurn(func() error { return d.prepare(tx, batch.Snapshot) }, func() error { return read(tx) })
	}, &sql.TxOptions{ReadOnly: true}))
}

// Snapshots is Snapshot with a second transaction that sees the same state, if the engine can
// align them and a connection is free. On two cores, two readers of a SQLite book take 0.7 of
// the time of one reader.
func (d *Database) Snapshots(ctx context.Context, read func(transactions []*gorm.DB) error) error {
	var transactions []*gorm.DB
	for _, tx := range d.beginAligned(ctx) {
		defer tx.Rollback() //nolint:errcheck // there is nothing to undo
		transactions = append(transactions, d.Over(ctx, tx))
	}
	if len(transactions) == 0 {
		return d.Snapshot(ctx, func(tx *gorm.DB) error { return read([]*gorm.DB{tx}) })
	}
	for _, tx := range transactions {
		if err := d.prepare(tx, batch.Snapshot); err != nil {
			return d.DB.Translate(err)
		}
	}
	return d.DB.Translate(read(transactions))
}

// beginAligned begins two transactions that see the same state. It returns nil if this fails.
func (d *Database) beginAligned(ctx context.Context) (begun []*sql.Tx) {
	pool, isPool := d.Reads.Statement.ConnPool.(*batch.Pool)
	for isPool && len(begun) < 2 {
		// Readers that wait for a second connection could wait for each other.
		s := pool.DB().Stats()
		if len(begun) > 0 && s.MaxOpenConnections > 0 && s.InUse >= s.MaxOpenConnections {
			break
		}
		tx, err := pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			break
		}
		begun = append(begun, tx)
	}
	if len(begun) == 2 && d.Engine.Align(ctx, begun[0], begun[1]) == nil {
		return begun
	}
	for _, tx := range begun {
		_ = tx.Rollback()
	}
	return nil
}

// Over returns gorm on another pool, or on a transaction. With a context, gorm copies the
// statement. Without one, it would be shared.
func (d *Database) Over(ctx context.Context, pool gorm.ConnPool) *gorm.DB {
	tx := d.Writes.Session(&gorm.Session{NewDB: true, Context: ctx})
	tx.Statement.ConnPool = pool
	return tx
}

func (d *Database) prepare(tx *gorm.DB, p batch.Purpose) error {
	for _, statement := range d.DB.Prepare(p) {
		if err := tx.Exec(statement).Error; err != nil {
			return err
		}
	}
	return nil
}

// Relied has the properties of a table that the program relies on. If one is missing, no
// statement fails, but an answer may be wrong: without the key a repeat sells again, and
// without the check a holding can fall below zero.
type Relied struct {
	Table string
	// Columns are the columns that the program knows, Keys the sorted columns of the primary
	// key.
	Columns, Keys []string
	// Kinds are the kinds of the values in Columns.
	Kinds []string
	// Nullable are the columns that may be NULL, Defaults those that an insert may leave out.
	Nullable, Defaults []string
	// Unique is a column that identifies the rows that satisfy Where, or "". Both engines write
	// Where in this form.
	Unique, Where string
	// Checks are check constraints, as the server writes them.
	Checks []string
	// Rights are the permissions that the service and its commands need.
	Rights []string

	Copies copies `json:"-"`
}

// copies copies the rows of a table. It belongs to the table of the target.
type copies interface {
	// Copy writes the rows of the source that are newer than the newest row of the target. If
	// isFull is true, it writes all rows.
	Copy(ctx context.Context, target *Database, source *gorm.DB, isFull bool, done func(int64)) error
	Sum(tx *gorm.DB, done func(int64)) (tableSum, error)
}

// tableSum is equal for tables with the same rows, in any order.
type tableSum struct {
	Rows   int64
	hashes [4]uint64
}
