package bootstrap_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/zap"

	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/bootstrap"
	"bankingapi/domain/decimal"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

// A host stores an order and the push message about it in one transaction, on a database
// that it opened itself.
func ExampleApp_Within() {
	folder, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(folder)
	ctx := context.Background()
	db, _ := sql.Open("sqlite", "file:"+filepath.Join(folder, "host.db")+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)")
	defer db.Close()
	db.SetMaxOpenConns(1)
	app, err := bootstrap.Open(ctx, bootstrap.DefaultSettings(), bootstrap.WithDatabase(sqlite.Use(db, db)), bootstrap.WithLogger(zap.NewNop()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer app.Close(ctx)
	_, _ = db.Exec("CREATE TABLE orders (id TEXT PRIMARY KEY)")

	order := func(end func(*sql.Tx) error) {
		tx, _ := db.BeginTx(ctx, nil)
		_, _ = tx.Exec("INSERT INTO orders VALUES ('order-1')")
		within, err := app.Within(tx)
		if err != nil {
			fmt.Println(err)
			return
		}
		caller := &subscription.Subscription{Name: "orders"}
		outcome, err := within.Adder.Add(ctx, caller, operation.Header{CallerID: "order-1"}, []push.Fields{{
			ExternalApplicationCode: "ORDERS", UserID: "user-7", PushID: "order-1", Platform: decimal.Int(65), SendStatus: decimal.Int(1),
		}})
		fmt.Println(outcome.State, err, end(tx))
		var orders, messages int
		_ = db.QueryRow("SELECT (SELECT COUNT(*) FROM orders), (SELECT COUNT(*) FROM notifications)").Scan(&orders, &messages)
		fmt.Println(orders, "orders,", messages, "messages")
	}
	order((*sql.Tx).Rollback)
	order((*sql.Tx).Commit)
	// Output:
	// completed <nil> <nil>
	// 0 orders, 0 messages
	// completed <nil> <nil>
	// 1 orders, 1 messages
}

// A host has a pool of pgx: the service uses its connections and does not close it. It needs
// a server, so the tests only compile it.
func ExampleWithDatabase() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	settings := bootstrap.DefaultSettings()
	settings.Storage.Migrate = true
	app, err := bootstrap.Open(ctx, settings, bootstrap.WithDatabase(postgres.Use(db, db)), bootstrap.WithTablePrefix("bank_"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer app.Close(ctx)

	// An order is written with pgx, and a message with the service, in one transaction.
	conn, err := db.Conn(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	// Raw holds the connection, so the service cannot be called inside of it.
	err = conn.Raw(func(driver any) error {
		_, err := driver.(*stdlib.Conn).Conn().Exec(ctx, "INSERT INTO orders VALUES ($1)", "order-1")
		return err
	})
	within, wrong := app.Within(tx)
	if err = errors.Join(err, wrong); err == nil {
		_, err = within.Adder.Add(ctx, &subscription.Subscription{Name: "orders"}, operation.Header{CallerID: "order-1"}, []push.Fields{{
			ExternalApplicationCode: "ORDERS", UserID: "user-7", PushID: "order-1", Platform: decimal.Int(65), SendStatus: decimal.Int(1),
		}})
	}
	if err == nil {
		err = tx.Commit()
	}
	fmt.Println(err)
}
