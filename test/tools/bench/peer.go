package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// peerName is the fair peer: a service with the same requests, answers and rows,
// as most would write it. It uses net/http and pgx, with one transaction for each
// request and one statement for each step. It checks little and keeps no log.
const peerName = "plain service"

// peerCommand makes this binary the peer. Its argument is a database with the
// tables of sql/postgres.sql.
const peerCommand = "peer"

// peerConnections is how many connections the peer has. More make it slower.
const peerConnections = 32

// peerIdle is how long the peer keeps a connection that it does not use.
const peerIdle = 200 * time.Millisecond

// isPeer runs the peer if the command line requests it, and reports whether it
// did.
func isPeer() bool {
	if len(os.Args) != 3 || os.Args[1] != peerCommand {
		return false
	}
	if err := servePeer(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "bench: plain service:", err)
		os.Exit(1)
	}
	return true
}

// peer is the side that runs the peer as a process of its own.
type peer struct {
	cmd     *exec.Cmd
	address string
}

func startPeer(ctx context.Context, dsn string) (*peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, peerCommand, dsn)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &peer{cmd: cmd}
	if _, err := fmt.Fscanln(out, &p.address); err != nil {
		return nil, errors.Join(fmt.Errorf("the plain service did not start: %w", err), p.stop())
	}
	return p, nil
}

func (p *peer) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.cmd.Wait()
}

func (p *peer) name() string { return peerName }

func (p *peer) run(ctx context.Context, w work, connections int, length time.Duration) (_ measure, err error) {
	if w.mixed { // it supports only clean sales
		if w, err = findWork("sale"); err != nil {
			return measure{}, err
		}
	}
	t, err := load{address: p.address, work: w, connections: connections, length: length}.run(ctx)
	if err != nil {
		return measure{}, err
	}
	if t.completed == 0 {
		return measure{}, fmt.Errorf("nothing completed (%s); one answer: %s", t, t.example)
	}
	time.Sleep(3 * peerIdle) // its connections are closed when pgbench needs them
	return measure{
		records: float64(t.completed*w.records) / length.Seconds(),
		p50:     t.latency.quantile(0.5), p99: t.latency.quantile(0.99), failed: t.failed(),
	}, nil
}

// servePeer runs the peer until SIGTERM. It prints its address.
func servePeer(dsn string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return err
	}
	config.MaxConns = peerConnections
	// Postgres as installed takes 100 connections, and pgbench needs 64 next.
	config.MaxConnIdleTime, config.HealthCheckPeriod = peerIdle, peerIdle
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /BankingApiV01/BuyFundFromCustomer", answering(pool, sell))
	mux.HandleFunc("POST /BankingApiV01/AddPushNotificationResponse", answering(pool, storePush))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: answerLimit}
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.Background()) })
	fmt.Println(listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// answering decodes a request and runs do in a transaction.
func answering[Record any](pool *pgxpool.Pool, do func(context.Context, pgx.Tx, *peerHeader, *Record, []byte) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request struct {
			Header     peerHeader
			Parameters []Record
		}
		if err == nil {
			err = json.Unmarshal(body, &request)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		err = pgx.BeginFunc(r.Context(), pool, func(tx pgx.Tx) error {
			for i := range request.Parameters {
				if err := do(r.Context(), tx, &request.Header, &request.Parameters[i], body); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(completedBody)
	}
}

type peerHeader struct{ AppKey, Channel, TellerName, CallerID string }

type peerSale struct {
	CustomerNo         int64
	FundAmount         json.Number
	DestinationAccount struct {
		BranchCode, CustomerNo, AccountSuffix int64
		CurrencyCode                          string
	}
	FundToProcess struct {
		IMKBCode, HolderCorporationName string
		PriceID                         int64
	}
}

// sell is sql/sale.sql.
func sell(ctx context.Context, tx pgx.Tx, h *peerHeader, s *peerSale, body []byte) error {
	var units, price int64
	whole, decimals, _ := strings.Cut(s.FundAmount.String(), ".")
	if _, err := fmt.Sscan(whole+(decimals + "000000")[:6], &units); err != nil {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	fingerprint := sha256.Sum256(body)
	a, f := &s.DestinationAccount, &s.FundToProcess
	one := func(sql string, arguments ...any) error {
		tag, err := tx.Exec(ctx, sql, arguments...)
		if err == nil && tag.RowsAffected() == 0 {
			err = errors.New("refused")
		}
		return err
	}
	if err := one("INSERT INTO operations VALUES ($1, 'bench', 2, $2, $3, 2)", h.CallerID, id, fingerprint[:]); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, "SELECT price FROM prices WHERE price_id = $1", f.PriceID).Scan(&price); err != nil {
		return err
	}
	proceeds := (units*(price/10000) + 50000000) / 100000000
	if err := one("UPDATE holdings SET units = units - $1 WHERE customer_no = $2 AND imkb_code = $3 AND holder_corporation_name = $4 AND units >= $1",
		units, s.CustomerNo, f.IMKBCode, f.HolderCorporationName); err != nil {
		return err
	}
	if err := one("UPDATE accounts SET balance = balance + $1 WHERE customer_no = $2 AND branch_code = $3 AND account_suffix = $4 AND currency_code = $5",
		proceeds, a.CustomerNo, a.BranchCode, a.AccountSuffix, a.CurrencyCode); err != nil {
		return err
	}
	if err := one("INSERT INTO sales VALUES ($1, $2, 0, 'bench', $3, $4, $5, $6, now(), $7, $8, $9, $10, $11, $12, $13, $14, $15, 2)",
		s.CustomerNo, id, h.AppKey, h.Channel, h.TellerName, h.CallerID, units, f.IMKBCode, f.HolderCorporationName, f.PriceID,
		a.CustomerNo, a.BranchCode, a.AccountSuffix, a.CurrencyCode, proceeds); err != nil {
		return err
	}
	return one("INSERT INTO transfers VALUES ($1, 0, $2, - $3::bigint, $4, $5, $6, $7, now(), $8, $9, $10)",
		id, s.CustomerNo, units, a.CustomerNo, a.BranchCode, a.AccountSuffix, proceeds, f.IMKBCode, f.HolderCorporationName, a.CurrencyCode)
}

type peerPush struct {
	ExternalApplicationCode, ExternalTranCode, UserID, PushID, Subject, Content, DeepLinkURL, SendDate string
	PushInteractionID                                                                                  int64
	Platform, SendStatus                                                                               int
	TranData                                                                                           json.RawMessage
}

// storePush is sql/push.sql.
func storePush(ctx context.Context, tx pgx.Tx, h *peerHeader, p *peerPush, body []byte) error {
	digest := sha256.Sum256(append([]byte(p.PushID), body...))
	_, err := tx.Exec(ctx, "INSERT INTO notifications VALUES ($1, $2, 'bench', $3, now(), $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT DO NOTHING",
		p.UserID, digest[:], h.Channel, p.ExternalApplicationCode, p.ExternalTranCode, p.PushID, p.PushInteractionID, p.Platform,
		p.Subject, p.Content, p.DeepLinkURL, p.SendStatus, p.SendDate, string(p.TranData))
	return err
}
