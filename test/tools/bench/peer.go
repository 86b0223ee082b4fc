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
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"bankingapi/test/kit/service"
)

// The peers are services with the same requests, answers and rows. They use net/http
// and pgx, with one transaction for each request. They check little and keep no log.
const (
	// peerName is as most would write it: one statement for each step.
	peerName = "plain service"
	// pipelinedName sends all steps in one round trip, which ends with the commit. The
	// constraints of the tables end the transaction if there are too few units. It does not
	// notice that a holding or an account is missing, which a real one must.
	pipelinedName = "pipelined service"
)

// peerCommand makes this binary a peer. Its arguments are the name of the peer and a
// database with the tables of sql/tables.sql.
const peerCommand = "peer"

// peerConnections is how many connections the peer has. More make it slower.
const peerConnections = 32

// peerIdle is how long the peer keeps a connection that it does not use.
const peerIdle = 200 * time.Millisecond

// isPeer runs the peer if the command line requests it, and reports whether it did.
func isPeer() bool {
	if len(os.Args) != 4 || os.Args[1] != peerCommand {
		return false
	}
	if err := servePeer(os.Args[3], os.Args[2] == pipelinedName); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", os.Args[2]+":", err)
		os.Exit(1)
	}
	return true
}

// peer is the side that runs the peer as a process of its own.
type peer struct {
	title, dsn string
	process    *service.Process
	address    string
}

func startPeer(t service.T, dsn, title string) (*peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	process := new(service.Bank).StartCommand(t, exec.Command(self, peerCommand, title, dsn))
	return &peer{title: title, dsn: dsn, process: process, address: process.Await(t, process.Out, `(\S+)\n`)}, nil
}

func (p *peer) name() string { return p.title }

func (p *peer) pids() []int { return []int{p.process.Pid} }

func (p *peer) run(ctx context.Context, w work, connections int, length time.Duration) (*tally, error) {
	w.Mixed = false // it supports only clean sales
	t, err := load{Addresses: []string{p.address}, Keys: []string{""}, Work: w, Connections: connections, Length: length}.run(ctx)
	time.Sleep(3 * peerIdle) // its connections are closed when pgbench needs them
	return t, err
}

// servePeer runs the peer until its process is killed. It prints its address.
func servePeer(dsn string, pipelined bool) error {
	ctx := context.Background()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return err
	}
	config.MaxConns = peerConnections
	// Postgres as installed takes 100 connections, and pgbench needs 64 next.
	config.MaxConnIdleTime = peerIdle
	config.HealthCheckPeriod = peerIdle
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
	var send sender = oneByOne
	if pipelined {
		send = together
	}
	mux.HandleFunc("POST /BankingApiV01/BuyFundFromCustomer", answering[*peerSale](pool, send))
	mux.HandleFunc("POST /BankingApiV01/AddPushNotificationResponse", answering[*peerPush](pool, send))
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: answerLimit}
	return server.Serve(listener)
}

// A step is a statement of a transaction.
type step struct {
	sql       string
	arguments []any
}

// A price is an SQL expression for the price of a sale, and its argument $1.
type price struct {
	expression string
	argument   int64
}

// A record of a request has steps. One that has no price ignores it.
type record interface {
	priceID() int64 // 0 if the record has no price
	steps(h *peerHeader, body []byte, p price) ([]step, error)
}

// A sender carries out the steps of the records of a request.
type sender func(ctx context.Context, pool *pgxpool.Pool, h *peerHeader, body []byte, records []record) error

// oneByOne reads the price and sends each step when it has the result of the one before.
func oneByOne(ctx context.Context, pool *pgxpool.Pool, h *peerHeader, body []byte, records []record) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, record := range records {
			p := price{expression: "$1::bigint"}
			id := record.priceID()
			if id != 0 {
				if err := tx.QueryRow(ctx, "SELECT price FROM prices WHERE price_id = $1", id).Scan(&p.argument); err != nil {
					return err
				}
			}
			steps, err := record.steps(h, body, p)
			if err != nil {
				return err
			}
			for _, s := range steps {
				tag, err := tx.Exec(ctx, s.sql, s.arguments...)
				if err != nil {
					return err
				}
				if tag.RowsAffected() == 0 && !strings.HasSuffix(s.sql, "DO NOTHING") {
					return errors.New("refused")
				}
			}
		}
		return nil
	})
}

// together sends all steps as one transaction in one round trip.
func together(ctx context.Context, pool *pgxpool.Pool, h *peerHeader, body []byte, records []record) error {
	var batch pgx.Batch
	for _, record := range records {
		steps, err := record.steps(h, body, price{"(SELECT price FROM prices WHERE price_id = $1)", record.priceID()})
		if err != nil {
			return err
		}
		for _, s := range steps {
			batch.Queue(s.sql, s.arguments...)
		}
	}
	return pool.SendBatch(ctx, &batch).Close()
}

// answering decodes a request and carries out the steps of its records.
func answering[Record record](pool *pgxpool.Pool, send sender) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Header     peerHeader
			Parameters []Record
		}
		body, err := io.ReadAll(r.Body)
		err = errors.Join(err, json.Unmarshal(body, &request))
		if err == nil {
			var records []record
			for _, each := range request.Parameters {
				records = append(records, each)
			}
			err = send(r.Context(), pool, &request.Header, body, records)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(completedBody)
	}
}

type peerHeader struct {
	AppKey, Channel, TellerName, CallerID string

	id uuid.UUID // of the operation, once its row is among the steps
}

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

func (s *peerSale) priceID() int64 { return s.FundToProcess.PriceID }

// steps are those of sql/sale.sql.
func (s *peerSale) steps(h *peerHeader, body []byte, p price) ([]step, error) {
	var units int64
	whole, decimals, _ := strings.Cut(s.FundAmount.String(), ".")
	if _, err := fmt.Sscan(whole+(decimals + "000000")[:6], &units); err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	fingerprint := sha256.Sum256(body)
	a := &s.DestinationAccount
	f := &s.FundToProcess
	proceeds := "($2::bigint * (" + p.expression + " / 10000) + 50000000) / 100000000"
	return []step{
		{"INSERT INTO operations VALUES (now(), now(), 2, 2, $1, $2, $3, 'bench', $4, $5, $6, $7)",
			[]any{identityOf([]byte(h.CallerID)), id, fingerprint[:], h.AppKey, h.Channel, h.TellerName, h.CallerID}},
		{"UPDATE holdings SET units = units - $1 WHERE customer_no = $2 AND imkb_code = $3 AND holder_corporation_name = $4",
			[]any{units, s.CustomerNo, f.IMKBCode, f.HolderCorporationName}},
		{"UPDATE accounts SET balance = balance + " + proceeds + " WHERE customer_no = $3 AND branch_code = $4 AND account_suffix = $5 AND currency_code = $6",
			[]any{p.argument, units, a.CustomerNo, a.BranchCode, a.AccountSuffix, a.CurrencyCode}},
		{"INSERT INTO sales VALUES ($3, $7, $2, $8, $9, $10, $7, " + p.expression + ", " + proceeds + ", 0, 2, $4, $11, $5, $6)",
			[]any{p.argument, units, s.CustomerNo, id, f.IMKBCode, f.HolderCorporationName, f.PriceID, a.CustomerNo, a.BranchCode, a.AccountSuffix, a.CurrencyCode}},
	}, nil
}

// identityOf is the first half of a SHA-256.
func identityOf(content []byte) (identity uuid.UUID) {
	sum := sha256.Sum256(content)
	copy(identity[:], sum[:])
	return identity
}

type peerPush struct {
	ExternalApplicationCode, ExternalTranCode, UserID, PushID, Subject, Content, DeepLinkURL, SendDate string
	PushInteractionID                                                                                  int64
	Platform, SendStatus                                                                               int
	TranData                                                                                           json.RawMessage
}

func (*peerPush) priceID() int64 { return 0 }

// steps are those of sql/push.sql.
func (p *peerPush) steps(h *peerHeader, body []byte, _ price) ([]step, error) {
	var steps []step
	if h.id == (uuid.UUID{}) { // of the first record
		id, err := uuid.NewV7()
		if err != nil {
			return nil, err
		}
		h.id = id
		steps = append(steps, step{"INSERT INTO operations VALUES (now(), NULL, 1, 2, $1, $1, '', 'bench', $2, $3, $4, $5)",
			[]any{id, h.AppKey, h.Channel, h.TellerName, h.CallerID}})
	}
	return append(steps, step{
		"INSERT INTO notifications VALUES ($1, $2, 0, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT DO NOTHING",
		[]any{p.PushInteractionID, p.SendDate, p.Platform, p.SendStatus, h.id, identityOf(append([]byte(p.PushID), body...)), p.UserID,
			p.ExternalApplicationCode, p.PushID, p.ExternalTranCode, p.Subject, p.Content, p.DeepLinkURL, string(p.TranData)},
	}), nil
}
