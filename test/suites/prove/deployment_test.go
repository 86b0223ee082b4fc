package prove_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"bankingapi/bootstrap"
	"bankingapi/bootstrap/parts"
	"bankingapi/test/kit/pgproxy"
	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// deployment is a store, the services that use it, and a direct connection to
// the store for the tests.
type deployment struct {
	bank     *service.Bank
	key      string
	replicas []*replica
	client   *http.Client
	db       *sql.DB
	laterDay string
	pause    time.Duration // maximum time between two requests of a caller
	seen     map[int]bool  // what a test has sent, if it needs to know
	// past records sales for yesterday, which are due at once. It is nil unless backdate
	// was called.
	past      *timed
	yesterday string
	// unanswered counts the requests without a response.
	unanswered int64
}

// replica is one service of a deployment. Its address never changes.
type replica struct {
	bank    *service.Bank
	proxy   *pgproxy.Proxy // between it and Postgres; nil on SQLite
	process *service.Process
	app     *bootstrap.App // set instead of process if the service runs in the test process
}

// maxConnections is storage.max_connections of a replica: a server has 100 for all tests.
const maxConnections = "6"

// deploy starts the given number of replicas on an empty store with a book.
// adjust may change the settings of the services before they start.
func deploy(t *testing.T, engine string, replicas, groups int, adjust func(*service.Bank)) *deployment {
	t.Helper()
	return deployOn(t, service.NewBank(t, engine), replicas, groups, adjust)
}

func deployOn(t *testing.T, b *service.Bank, replicas, groups int, adjust func(*service.Bank)) *deployment {
	t.Helper()
	d := prepare(t, b, groups)
	for range replicas {
		r := &replica{bank: b.Replica(t)}
		if b.Engine == testdb.EnginePostgres {
			r.proxy = pgproxy.New(t, b.DSN)
			r.bank.On(r.proxy.DSN)
		}
		r.bank.Set("http.address", service.FreeAddress(t)).Set("ops.address", service.FreeAddress(t)).
			Set("tls.mode", "off").Set("log.level", "warn").Set("storage.statement_timeout", "2s").
			Set("storage.max_connections", maxConnections)
		if adjust != nil {
			adjust(r.bank)
		}
		r.start(t)
		d.replicas = append(d.replicas, r)
	}
	return d
}

// unhurried gives every request much time, for tests in which none may fail on a
// busy machine.
func unhurried(b *service.Bank) {
	b.Set("storage.statement_timeout", "50s").Set("http.write_timeout", service.Patience.String())
}

// prepare creates a store with a book and a trail, without a service.
func prepare(t testing.TB, b *service.Bank, groups int) *deployment {
	t.Helper()
	if b.Engine == testdb.EnginePostgres { // SQLite has a key beside the book
		file := filepath.Join(b.Folder, "log.key")
		b.Must(t, "trail", "keygen", "prove.example/log", "--file", file)
		b.Set("trail.key_file", file)
	}
	d := &deployment{bank: b, key: loadBook(t, b, groups), laterDay: time.Now().AddDate(0, 0, 200).Format(time.DateOnly), pause: 20 * time.Millisecond}
	transport := &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}
	d.client = &http.Client{Transport: transport, Timeout: 15 * time.Second}
	t.Cleanup(transport.CloseIdleConnections)
	d.db = openStore(t, b)
	return d
}

// openStore opens the store for the test's own statements.
func openStore(t testing.TB, b *service.Bank) *sql.DB {
	t.Helper()
	dsn := b.DSN
	if b.Engine == testdb.EnginePostgres { // with the name that terminate leaves alone
		separator := "?"
		if strings.Contains(dsn, "?") {
			separator = "&"
		}
		dsn += separator + "application_name=prove"
	}
	db := testdb.Open(t, b.Engine, dsn)
	db.SetMaxOpenConns(4)
	return db
}

// start starts the service and returns how long it took to be ready.
func (r *replica) start(t testing.TB) time.Duration {
	t.Helper()
	began := time.Now()
	r.process = r.bank.Serve(t)
	t.Cleanup(func() {
		if t.Failed() { // show where it hangs
			_ = r.process.Signal(syscall.SIGQUIT)
		}
	})
	eventually(t, service.Patience, "the service is ready", r.process.IsReady)
	return time.Since(began)
}

// inside starts a replica inside the test process, for faults that can only be
// injected there. It has the settings of a bank.
func inside(t testing.TB, b *service.Bank, options ...bootstrap.Option) *replica {
	t.Helper()
	b.Set("http.address", service.FreeAddress(t)).Set("ops.address", "").Set("tls.mode", "off").
		Set("storage.dsn", b.DSN).Set("storage.statement_timeout", "2s")
	loaded, err := bootstrap.Load(bootstrap.Sources{Environment: b.Command().Env})
	require.NoError(t, err)
	options = append([]bootstrap.Option{parts.All(), bootstrap.WithLogger(zap.NewNop()),
		bootstrap.WithDataFolder(filepath.Join(b.Folder, "data"))}, options...)
	app, err := bootstrap.Open(t.Context(), loaded.Settings, options...)
	require.NoError(t, err)
	require.NoError(t, app.Start(t.Context()))
	t.Cleanup(func() { _ = app.Close(context.Background()) })
	return &replica{bank: b, app: app}
}

func (r *replica) url() string { return "http://" + r.bank.Setting("http.address") }

// answer is the response to a request.
type answer struct {
	status   int
	replayed bool
	body     string
	// state is Data.State, or 0 if the response has none.
	state       int
	codes       []string
	operationID string
}

// post sends a body unchanged.
func (d *deployment) post(ctx context.Context, url, path, body string) (answer, error) {
	a, err := postTo(ctx, d.client, url+path, d.key, body)
	if err != nil {
		atomic.AddInt64(&d.unanswered, 1)
	}
	return a, err
}

func postTo(ctx context.Context, client *http.Client, url, key, body string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Ocp-Apim-Subscription-Key", key)
	response, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	return readAnswer(response.StatusCode, response.Header, string(text)), nil
}

func readAnswer(status int, header http.Header, body string) answer {
	a := answer{status: status, replayed: header.Get("Idempotent-Replayed") == "true", body: body, operationID: header.Get("Operation-Id")}
	var content struct {
		Data   *struct{ State int }
		Errors []struct{ Code string }
	}
	if json.Unmarshal([]byte(body), &content) == nil {
		if content.Data != nil {
			a.state = content.Data.State
		}
		for _, e := range content.Errors {
			a.codes = append(a.codes, e.Code)
		}
	}
	return a
}

// judge returns what an answer means to a caller who knows the contract. It
// reports false for an answer that no fault explains.
func judge(a answer, err error) (result, bool) {
	var dialing *net.OpError
	switch {
	case errors.As(err, &dialing) && dialing.Op == "dial" && errors.Is(err, syscall.ECONNREFUSED):
		return result{verdict: noEffect}, true
	case err != nil:
		return result{}, true
	}
	switch {
	case a.status == http.StatusOK && a.state == 2 && a.body == `{"Data":{"State":2}}`:
		return result{completed, a.replayed}, true
	case a.status == http.StatusOK && a.state == 1 && a.body == `{"Data":{"State":1}}`:
		return result{recorded, a.replayed}, true
	case a.status == http.StatusOK && a.state == 8 && slices.Equal(slices.Compact(a.codes), []string{"holding-insufficient"}):
		return result{refused, a.replayed}, true
	case strings.Contains(a.body, `"Data"`): // an earlier attempt may have succeeded
	case a.status == http.StatusUnprocessableEntity:
		return result{verdict: conflict}, true
	case a.status == http.StatusServiceUnavailable && slices.Contains(a.codes, "outcome-unknown"):
		return result{}, true
	case a.status == http.StatusServiceUnavailable:
		return result{verdict: noEffect}, true
	}
	return result{}, false
}

// lookAt reads a group's position, in one statement.
func (d *deployment) lookAt(ctx context.Context, group int) (position, error) {
	rows, err := d.db.QueryContext(ctx, `SELECT customer_no, units, 0 FROM holdings WHERE customer_no IN (`+ids(group)+`)
 UNION ALL SELECT customer_no, 0, balance FROM accounts WHERE customer_no IN (`+ids(group)+`)`)
	if err != nil {
		return position{}, err
	}
	defer rows.Close()
	var p position
	for rows.Next() {
		var of, units, balance int
		if err := rows.Scan(&of, &units, &balance); err != nil {
			return position{}, err
		}
		p.units[of-customer(group, 0)] += units / 1_000_000
		p.balance += balance
	}
	return p, rows.Err()
}

func ids(group int) string {
	texts := make([]string, customersOfGroup)
	for c := range texts {
		texts[c] = strconv.Itoa(customer(group, c))
	}
	return strings.Join(texts, ",")
}

// listOf reads a user's notifications.
func (d *deployment) listOf(ctx context.Context, group int) (stored, error) {
	rows, err := d.db.QueryContext(ctx, "SELECT push_id FROM notifications WHERE user_id = '"+user(group)+"'")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all stored
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(strings.TrimPrefix(id, "push-"))
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	slices.Sort(all)
	return all, rows.Err()
}
