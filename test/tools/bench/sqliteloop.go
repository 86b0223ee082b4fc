package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"
)

// sqliteLoop is the other side on SQLite: a loop with the same driver, one connection and
// prepared statements. Each transaction has one row or one sale and is synced to disk. There is
// no HTTP. More loops would only wait for each other, because SQLite has one writer.
type sqliteLoop struct {
	db         *sql.DB
	conn       *sql.Conn
	statements map[string]*sql.Stmt
	random     *rand.Rand
	ids
}

// openSQLiteLoop loads the same book into its own file.
func openSQLiteLoop(ctx context.Context, dir string) (*sqliteLoop, error) {
	dsn := "file:" + filepath.Join(dir, "loop.db") + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)"
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	l := &sqliteLoop{db: db, statements: map[string]*sql.Stmt{}, random: rand.New(rand.NewPCG(1, 2)), ids: ids{now: time.Now}}
	if err := l.prepare(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return l, nil
}

func (l *sqliteLoop) prepare(ctx context.Context) error {
	text, err := scripts.ReadFile("sql/tables.sql")
	if err != nil {
		return err
	}
	schema := strings.ReplaceAll(string(text), "\n);", "\n) WITHOUT ROWID;") // as the tables of the service
	if l.conn, err = l.db.Conn(ctx); err != nil {
		return err
	}
	if _, err := l.conn.ExecContext(ctx, schema); err != nil {
		return err
	}
	for _, text := range []string{begin, insertOperation, selectPrice, takeUnits, creditAccount, insertSale, insertPush, insertMessage, commit} {
		if l.statements[text], err = l.conn.PrepareContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

func (l *sqliteLoop) name() string { return "bare Go loop" }

func (l *sqliteLoop) close() error { return errors.Join(l.conn.Close(), l.db.Close()) }

func (l *sqliteLoop) pids() []int { return nil }

// run executes one transaction after the other. It ignores the number of connections.
func (l *sqliteLoop) run(ctx context.Context, w work, _ int, length time.Duration) (*tally, error) {
	t := &tally{}
	start := time.Now()
	for begun := start; begun.Sub(start) < length; {
		if err := l.transaction(ctx, w); err != nil {
			return nil, err
		}
		done := time.Now()
		t.Latency = append(t.Latency, done.Sub(begun))
		begun = done
	}
	t.Records = float64(len(t.Latency)*w.Records) / time.Since(start).Seconds()
	return t, nil
}

func (l *sqliteLoop) transaction(ctx context.Context, w work) error {
	if err := l.exec(ctx, begin); err != nil {
		return err
	}
	if w.Sellers != nobody {
		if err := l.sale(ctx, w); err != nil {
			return err
		}
	} else {
		if err := l.push(ctx, w.Records); err != nil {
			return err
		}
	}
	return l.exec(ctx, commit)
}

// exec runs a statement. It returns an error if the statement changes no row.
func (l *sqliteLoop) exec(ctx context.Context, text string, args ...any) error {
	result, err := l.statements[text].ExecContext(ctx, args...)
	if err != nil || len(args) == 0 {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, fmt.Errorf("no row changed by %s", text))
	}
	return nil
}

func (l *sqliteLoop) sale(ctx context.Context, w work) error {
	customer, account := w.Sellers.pick(l.random)
	units := 1_000_000 + l.random.IntN(4_000_000)
	callerID := l.id()
	operationID := sha256.Sum256([]byte("operation" + callerID))
	id := operationID[:16]
	identity := sha256.Sum256([]byte(callerID))

	now := time.Now().UTC().Format(time.RFC3339Nano)
	if err := l.exec(ctx, insertOperation, now, now, identity[:16], id, operationID[:], callerID); err != nil {
		return err
	}
	var price int
	var fund, holder, currency string
	if err := l.statements[selectPrice].QueryRowContext(ctx, firstPrice+customer%funds).Scan(&price, &fund, &holder, &currency); err != nil {
		return err
	}
	proceeds := (units*price + 500_000_000_000) / 1_000_000_000_000
	priceID := firstPrice + customer%funds
	return errors.Join(
		l.exec(ctx, takeUnits, units, customer, fund, holder),
		l.exec(ctx, creditAccount, proceeds, account, currency),
		l.exec(ctx, insertSale, customer, priceID, units, account, priceID, price, proceeds, id, currency, fund, holder),
	)
}

func (l *sqliteLoop) push(ctx context.Context, records int) error {
	of := sha256.Sum256([]byte(l.id()))
	operationID := of[:16]
	if err := l.exec(ctx, insertPush, time.Now().UTC().Format(time.RFC3339Nano), operationID); err != nil {
		return err
	}
	for range records {
		pushID := l.id()
		identity := sha256.Sum256([]byte(pushID))
		user := fmt.Sprintf("user-%d", customerNo(l.random.IntN(customers)))
		if err := l.exec(ctx, insertMessage, operationID, identity[:16], user, pushID); err != nil {
			return err
		}
	}
	return nil
}

// The statements of one sale, in order, and of one push.
const (
	begin           = `BEGIN IMMEDIATE`
	insertOperation = `INSERT INTO operations (received_at, ended_at, operation, state, identity, operation_id, fingerprint, subscription, app_key, channel, teller_name, caller_id) VALUES (?, ?, 2, 2, ?, ?, ?, 'bench', '', 'MOBILE', '', ?)`
	selectPrice     = `SELECT price, imkb_code, holder_corporation_name, currency_code FROM prices WHERE price_id = ?`
	takeUnits       = `UPDATE holdings SET units = units - ?1 WHERE customer_no = ? AND imkb_code = ? AND holder_corporation_name = ? AND units >= ?1`
	creditAccount   = `UPDATE accounts SET balance = balance + ? WHERE customer_no = ? AND branch_code = 101 AND account_suffix = 351 AND currency_code = ?`
	insertSale      = `INSERT INTO sales (customer_no, price_id, units, account_customer_no, branch_code, account_suffix, settled_price_id, settled_price, proceeds, position, state, operation_id, currency_code, imkb_code, holder_corporation_name) VALUES (?, ?, ?, ?, 101, 351, ?, ?, ?, 0, 2, ?, ?, ?, ?)`
	insertPush      = `INSERT INTO operations (received_at, operation, state, identity, operation_id, fingerprint, subscription, app_key, channel, teller_name, caller_id) VALUES (?, 1, 2, ?2, ?2, x'', 'bench', '', 'PUSH', '', '')`
	insertMessage   = `INSERT INTO notifications (push_interaction_id, send_date, position, platform, send_status, operation_id, identity, user_id, external_application_code, push_id, external_tran_code, subject, content, deep_link_url, tran_data) VALUES (42, '2026-11-20', 0, 73, 1, ?, ?, ?, 'MOBILBANK', ?, 'FUNDSALE', 'Fon satış talimatınız gerçekleşti', 'Sayın müşterimiz, fon satış talimatınız bugün gerçekleşmiştir. Satış tutarı hesabınıza aktarılmıştır. Ayrıntılar için uygulamamızı ziyaret edebilirsiniz.', 'examplebank://funds/sales/latest', '[{"Code":"FUND","Name":"F07"},{"Code":"LANG","Name":"TR"}]')`
	commit          = `COMMIT`
)
