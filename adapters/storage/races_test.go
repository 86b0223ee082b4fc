package storage_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(sellerFile); file != "" {
		sellForEver(file)
	}
	runFourAtOnce()
	goleak.VerifyTestMain(m)
}

// runFourAtOnce raises -parallel to 4: most tests of this package wait for Postgres, so as many as
// there are cores leave two cores idle for a third of the time.
func runFourAtOnce() {
	flag.Parse()
	given, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String())
	if err != nil {
		panic(err)
	}
	err = flag.Set("test.parallel", strconv.Itoa(max(4, given)))
	if err != nil {
		panic(err)
	}
}

// 21 sellers on three replicas, each with a connection of its own, sell from 8 holdings to one
// account. Rows are locked in one order, so there are no deadlocks and no retries.
func TestHotRows(t *testing.T) {
	t.Parallel()
	const replicas, sellers, batches, holdings = 3, 21, 60, 8
	dsn := testdb.Postgres(t)
	b := newBank(t, storekit.OpenPostgres(t, dsn), holdings)
	var lost atomic.Int64
	var stores []*store.Store
	for range replicas {
		engine, err := storekit.Started(postgres.NewEngine(storage.Options{DSN: dsn, MaxConnections: sellers / replicas, StatementTimeout: statementTimeout}))
		require.NoError(t, err)
		engine = storekit.With(engine, counting{engine.Dialect(), &lost})
		store := bind(t, engine, "")
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		stores = append(stores, store)
	}
	var done sync.WaitGroup
	for seller := range sellers {
		done.Go(func() {
			for i := range batches {
				// All holdings, each seller in another order.
				var batch []*fund.Operation
				for step := range holdings {
					from := 1 + (seller+step*(1+2*(i%4)))%holdings
					batch = append(batch, order(nextID(), nextID().String(), sale(1, from, 1)))
				}
				if err := settle(t.Context(), stores[seller%replicas], today, batch...); err != nil {
					t.Errorf("seller %d: %v", seller, err)
				}
			}
		})
	}
	done.Wait()
	require.Zero(t, lost.Load(), "transactions that had to be run again")
	proof := b.holds()
	require.EqualValues(t, sellers*batches*holdings, proof.Sales)
	account := all(t, b.Backoffice.Reader.Accounts(t.Context(), backoffice.Query{CustomerNo: 1}))[0]
	require.EqualValues(t, sellers*batches*holdings*250, account.Balance.Minor())
}

// Replicas sell more units than there are, in batches with refused sales. They sell every unit, once.
// Batches with a repeated sale take another way than batches without one.
func TestSoldOutAtAllReplicas(t *testing.T) {
	t.Parallel()
	for name, isRepeated := range map[string]bool{"with repeated sales": true, "with new sales": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireSoldOut(t, isRepeated)
		})
	}
}

func requireSoldOut(t *testing.T, isRepeated bool) {
	t.Helper()
	const holdings, units, batches = 4, 20, 12
	dsn := testdb.Postgres(t)
	b := newBank(t, storekit.OpenPostgres(t, dsn), 1)
	b.stock(holdings, units)
	stores := []*store.Store{b.Store, storekit.OpenPostgres(t, dsn), storekit.OpenPostgres(t, dsn)}
	var completed, refused atomic.Int64
	var done sync.WaitGroup
	for i, s := range stores {
		done.Go(func() {
			callerID := nextID().String()
			for n := range batches {
				if !isRepeated {
					callerID = nextID().String()
				}
				orders := []*fund.Operation{order(nextID(), callerID, sale(1, 1, 1)), order(nextID(), "", sale(1, 9, 1)), order(nextID(), "", sale(1, 1, 9))}
				for step := range holdings {
					from := 2 + (i+n+step)%holdings
					orders = append(orders, order(nextID(), "", sale(1, from, 1)))
				}
				if err := settle(t.Context(), s, today, orders...); err != nil {
					t.Errorf("replica %d: %v", i, err)
					return
				}
				for k, o := range orders {
					switch outcome, _ := o.Outcome(); {
					case k == 0 && outcome.State == operation.Completed && outcome.Replayed == (isRepeated && n > 0):
					case k > 2 && outcome.State == operation.Completed:
						completed.Add(1)
					case k > 0 && outcome.State == operation.Failed:
						refused.Add(1)
					default:
						t.Errorf("operation %d of batch %d: %v", k, n, outcome)
					}
				}
			}
		})
	}
	done.Wait()
	require.EqualValues(t, holdings*units, completed.Load())
	require.EqualValues(t, int64(len(stores)*batches*(2+holdings)-holdings*units), refused.Load())
	firstOnes := len(stores)
	if !isRepeated {
		firstOnes *= batches
	}
	require.EqualValues(t, holdings*units+firstOnes, b.holds().Sales)
	b.isSoldOut(holdings)
}

// The same CallerId at several replicas at once has one effect, and the same
// answer from all.
func TestOneCallerIDAtAllReplicas(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	b := newBank(t, storekit.OpenPostgres(t, dsn), 2)
	stores := []*store.Store{b.Store, storekit.OpenPostgres(t, dsn), storekit.OpenPostgres(t, dsn)}
	const rounds = 30
	for round := range rounds {
		var done sync.WaitGroup
		orders := make([]*fund.Operation, len(stores))
		for i, s := range stores {
			orders[i] = order(nextID(), "caller "+strconv.Itoa(round), sale(1, 1, 2))
			done.Go(func() {
				if err := settle(t.Context(), s, today, orders[i]); err != nil {
					t.Errorf("replica %d: %v", i, err)
				}
			})
		}
		done.Wait()
		effects := 0
		for _, o := range orders {
			outcome, err := o.Outcome()
			require.NoError(t, err)
			require.Equal(t, operation.Completed, outcome.State)
			if !outcome.Replayed {
				effects++
			}
		}
		require.Equal(t, 1, effects)
	}
	require.EqualValues(t, rounds, b.holds().Sales)
}

const sellerFile = "BANKINGAPI_TEST_SELL_FROM"

// sellForEver is another process on the same SQLite file.
func sellForEver(file string) {
	ctx := context.Background()
	engine, err := storekit.Started(sqlite.NewEngine(storage.Options{DSN: file, StatementTimeout: statementTimeout}))
	if err != nil {
		panic(err)
	}
	store, err := storage.Open(engine, storage.Options{Now: clock.Now})
	if err != nil {
		panic(err)
	}
	for i := byte(0); ; i++ {
		id := operation.ID{0xee, byte(os.Getpid() >> 8), byte(os.Getpid())}
		if _, err := os.Stdout.Write([]byte{'.'}); err != nil { // the parent process has ended
			os.Exit(1)
		}
		now := clock.Now().UnixNano()
		for b := range 8 {
			id[8+b] = byte(now >> (56 - 8*b))
		}
		if err := settle(ctx, store, today, order(id, id.String(), sale(1, 1, 2), sale(1, 2, 1))); err != nil {
			panic(err)
		}
	}
}

// Two processes share one SQLite file; one of them is killed in the middle of
// its work, several times.
func TestTwoProcessesOnOneFile(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short; run: make test")
	}
	file := testdb.SQLite(t)
	b := newBank(t, storekit.OpenSQLite(t, file), 2)
	mine := int64(0)
	sellMine := func() {
		require.NoError(t, settle(t.Context(), b.Store, today, order(nextID(), nextID().String(), sale(1, 1, 1))))
		mine++
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for range 3 {
		other := exec.CommandContext(t.Context(), self)
		other.Env = append(os.Environ(), sellerFile+"="+file)
		other.Stderr = os.Stderr
		output, err := other.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, other.Start())
		one := make([]byte, 1)
		for range 20 { // both sell, side by side
			_, err := output.Read(one)
			require.NoError(t, err)
			sellMine()
		}
		require.NoError(t, other.Process.Kill())
		require.Error(t, other.Wait())
		sellMine()
	}
	proof := b.holds()
	require.Greater(t, proof.Sales, mine+3*2*10)
	db := testdb.Open(t, testdb.EngineSQLite, file)
	var integrity string
	require.NoError(t, db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&integrity))
	require.Equal(t, "ok", integrity)
}

// Two stores of one process on one file, and an import between their sales.
func TestTwoStoresOnOneFile(t *testing.T) {
	t.Parallel()
	file := testdb.SQLite(t)
	b := newBank(t, storekit.OpenSQLite(t, file), 20)
	other := storekit.OpenSQLite(t, file)
	var done sync.WaitGroup
	const each = 50
	for i, store := range []*store.Store{b.Store, b.Store, other, other} {
		done.Go(func() {
			for n := range each {
				o := order(nextID(), nextID().String(), sale(1, 1+(i+n)%20, 1+(i*n)%20))
				if err := settle(t.Context(), store, today, o); err != nil {
					t.Errorf("store %d: %v", i, err)
				}
			}
		})
	}
	require.NoError(t, importHoldings(t.Context(), other, nextID(), manyHoldings(several, unitsAtFirst), quiet))
	done.Wait()
	require.EqualValues(t, 4*each, b.holds().Sales)
}

// A lost race is run again, a bounded number of times; nothing else is.
func TestOnlyLostRacesAreRunAgain(t *testing.T) {
	t.Parallel()
	for failure, want := range map[batch.Failure]int{
		batch.LostRace: 24, batch.Unreachable: 1, batch.Interrupted: 1, batch.Unknown: 1,
	} {
		t.Run(string(rune('0'+failure)), func(t *testing.T) {
			t.Parallel()
			engine, err := storekit.Started(sqlite.NewEngine(storage.Options{DSN: testdb.SQLite(t), StatementTimeout: statementTimeout}))
			require.NoError(t, err)
			_, err = bind(t, engine, "").Schema.Up(t.Context())
			require.NoError(t, err)
			tried := 0
			engine = storekit.With(engine, failing{engine.Dialect(), &tried, failure})
			store := bind(t, engine, "")
			defer store.Close()
			require.Error(t, settle(t.Context(), store, today, order(nextID(), "", sale(1, 1, 1))))
			require.Equal(t, want, tried)

			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			tried = 0
			require.Error(t, settle(ctx, store, today, order(nextID(), "", sale(1, 1, 1))))
			require.LessOrEqual(t, tried, 1, "no transaction waits any more")
		})
	}
}

// counting counts the errors of transactions.
type counting struct {
	batch.Dialect
	errors *atomic.Int64
}

func (c counting) Classify(err error) batch.Failure {
	c.errors.Add(1)
	return c.Dialect.Classify(err)
}

// failing cannot begin a transaction, and calls each error a certain failure.
type failing struct {
	batch.Dialect
	tried   *int
	failure batch.Failure
}

func (f failing) Begin(context.Context) (batch.Session, error) {
	*f.tried++
	return nil, errors.New("cannot begin")
}

func (f failing) Classify(error) batch.Failure { return f.failure }
