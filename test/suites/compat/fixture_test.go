// Package compat_test opens what released versions have written: books of both engines, with their
// trail, receipts, proofs and settings. The folder of a version in testdata never changes after
// the release. "make fixtures" writes the folder of the version that comes next.
package compat_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

var write = flag.Bool("fixtures", false, "write the fixtures of this version")

func TestMain(m *testing.M) { os.Exit(service.Main(m)) }

const (
	sell  = "/BankingApiV01/BuyFundFromCustomer"
	push  = "/BankingApiV01/AddPushNotificationResponse"
	admin = "--as=fixture"
)

// kinds are the exports whose rows a later version has too.
var kinds = []string{"prices", "holdings", "accounts", "calendar", "sales", "postings", "notifications", "operations", "outcomes", "audit"}

// exchange is a request, and what the version that wrote the book answered to a repeat of it.
type exchange struct {
	Path, Body  string
	Status      int
	Answer      string
	OperationID string `json:",omitempty"`
	Receipt     string `json:",omitempty"` // of the first answer
}

// fixture is a book that a version has written, beside the files of its database and trail.
type fixture struct {
	Key        string // of the subscription
	PublicKey  string // of the trail
	Checkpoint string
	Proof      string
	Exchanges  []exchange
	Outcomes   string // the first page of outcomes
	Cursor     string // behind it
	Exports    map[string][]json.RawMessage
}

// TestWriteFixtures writes the fixtures of this version.
func TestWriteFixtures(t *testing.T) {
	if !*write {
		t.Skip("SKIPPED: it writes the fixtures of this version: make fixtures")
	}
	require.NotContains(t, tags(t), "v"+version(t), "this version is released, so its fixtures never change")
	writeVersion(t, filepath.Join("testdata", version(t)))
}

// writeVersion writes the book of this version on both engines, and its settings, to a folder.
func writeVersion(t *testing.T, folder string) {
	t.Helper()
	settings, err := os.ReadFile("../../../cmd/bankingapi/example.yaml")
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(folder))
	require.NoError(t, os.MkdirAll(folder, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "settings.yaml"), settings, 0o644))
	for _, engine := range []string{testdb.EngineSQLite, testdb.EnginePostgres} {
		if engine == testdb.EnginePostgres && !hasDump() && !*write {
			continue // the engine of this version is tested elsewhere
		}
		to := filepath.Join(folder, engine)
		require.NoError(t, os.Mkdir(to, 0o755))
		b := newBank(t, engine)
		written := writeBook(t, b)
		text, err := json.MarshalIndent(written, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(to, "fixture.json"), append(text, '\n'), 0o644))
		key, err := os.ReadFile(b.Setting("trail.key_file"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(to, "trail.key"), key, 0o600))
		pack(t, filepath.Join(to, "book.gz"), dump(t, b))
	}
}

// hasDump reports whether a Postgres can be dumped here.
func hasDump() bool {
	_, err := exec.LookPath("pg_dump")
	return err == nil && os.Getenv("TEST_POSTGRES_DSN") != ""
}

// program is the service without a bank.
func program(t *testing.T) *service.Bank {
	t.Helper()
	return service.Open(testdb.EngineSQLite, t.TempDir(), service.Build(t, "bankingapi/cmd/bankingapi"))
}

// version is the version of the service.
func version(t *testing.T) string {
	t.Helper()
	return strings.Fields(program(t).Must(t, "version"))[1]
}

// tags are the tags of the repository; none outside a clone.
func tags(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "tag", "--list", "v*").Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
}

// newBank returns a bank without a database file, or with an empty database.
func newBank(t *testing.T, engine string) *service.Bank {
	t.Helper()
	folder := t.TempDir()
	b := service.Open(engine, folder, service.Build(t, "bankingapi/cmd/bankingapi"))
	b.Set("tls.mode", "off").Set("trail.key_file", filepath.Join(folder, "trail.key"))
	if engine == testdb.EngineSQLite {
		return b.On(filepath.Join(folder, "data", "bankingapi.db"))
	}
	return b.Set("storage.allow_unsafe", "true").Set("shutdown.delay", "0s").On(testdb.Postgres(t))
}

// writeBook fills the book with every kind of decision, and returns what its partners know.
func writeBook(t *testing.T, b *service.Bank) (f fixture) {
	t.Helper()
	f.PublicKey = strings.TrimSpace(b.Must(t, "trail", "keygen", "fixture.example/log", "--file", b.Setting("trail.key_file")))
	b.Migrate(t)
	today := time.Now()
	day := func(in int) string { return today.AddDate(0, 0, in).Format(time.DateOnly) }
	b.Load(t, "prices", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom",
		"1,AFA,Demo Portfoy,1.25,TRY,2024-01-01", "2,GAF.F1,Demo Portfoy,2.12345678,USD,2024-01-01", "3,AFA,Demo Portfoy,1.26,TRY,"+day(1))
	b.Load(t, "holdings", "CustomerNo,IMKBCode,HolderCorporationName,Units",
		"1001,AFA,Demo Portfoy,1000", "1002,AFA,Demo Portfoy,10.5", "1002,GAF.F1,Demo Portfoy,0.000001")
	b.Load(t, "accounts", "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance", "1,1001,1,TRY,0", "1,1002,2,USD,12.34", "7,1003,1,JPY,5")
	b.Load(t, "calendar", "Day,Reason", day(40)+",Feast")
	f.Key = b.Subscribe(t, "partner", "--rate", "1000", "--channel", "MOBILE")
	b.Subscribe(t, "suspended")
	b.Must(t, "subscriptions", "suspend", "suspended", admin)

	later := func(callerID, units, day string) exchange {
		sale := `{"CustomerNo":1001,"TransactionType":2,"FundAmount":` + units + `,"SelectedTransactionDate":"` + day + `",` +
			`"DestinationAccount":{"BranchCode":1,"CustomerNo":1001,"AccountSuffix":1,"CurrencyCode":"TRY"},` +
			`"FundToProcess":{"IMKBCode":"AFA","HolderCorporationName":"Demo Portfoy","PriceID":1}}`
		return exchange{Path: sell, Body: `{"Header":{"CallerId":"` + callerID + `"},"Parameters":[` + sale + `]}`}
	}
	message := func(callerID, user string) exchange {
		return exchange{Path: push, Body: `{"Header":{"CallerId":"` + callerID + `","ChannelSessionId":"s"},"Parameters":[` +
			`{"ExternalApplicationCode":"APP","UserId":"` + user + `","PushId":"p1","PushInteractionId":7,"Platform":65,"Subject":"İ","Content":"text","DeepLinkUrl":"app://x","SendStatus":1,"SendDate":"2026-11-20","TranData":[{"Code":"c","Name":"n"}]},` +
			`{"ExternalApplicationCode":"APP","UserId":"` + user + `","PushId":"p2","Platform":73,"SendStatus":0}]}`}
	}
	sold, reversed, refused := later("sold", "12.5", ""), later("reversed", "1", ""), later("refused", "99999999", "")
	recorded, cancelled := later("recorded", "2", day(360)), later("cancelled", "3", day(360))
	conflict := later("sold", "13", "")
	all := []*exchange{&sold, &reversed, &refused, &recorded, &cancelled, &conflict}
	pushed, erased := message("pushed", "user-1"), message("erased", "user-2")
	all = append(all, &pushed, &erased)

	p := b.Serve(t)
	for _, e := range all {
		answer := send(t, p, f.Key, *e)
		e.OperationID, e.Receipt = answer.OperationID, answer.Receipt
	}
	b.Must(t, "sales", "reverse", reversed.OperationID, "--reason", "a mistake", admin)
	b.Must(t, "sales", "cancel", cancelled.OperationID, "--reason", "the customer died", admin)
	b.Must(t, "adjust", "holding", "--customer", "1002", "--fund", "AFA", "--holder", "Demo Portfoy", "--by", "-0.5", "--reason", "a count", admin)
	b.Must(t, "adjust", "account", "--branch", "7", "--customer", "1003", "--suffix", "1", "--currency", "JPY", "--by", "10", "--reason", "a fee", admin)
	b.Must(t, "notifications", "erase", "--user", "user-2", "--reason", "asked for", admin)
	for _, e := range all {
		e.answered(send(t, p, f.Key, *e))
		f.Exchanges = append(f.Exchanges, *e)
	}
	f.Outcomes = get(t, p, f.Key, "/outcomes")
	f.Cursor = next(t, f.Outcomes)
	f.Checkpoint = b.Must(t, "trail", "checkpoint")
	f.Proof = b.Must(t, "trail", "prove", "--operation", sold.OperationID)
	p.Stop(t)
	b.Must(t, "verify")
	f.Exports = map[string][]json.RawMessage{}
	for _, kind := range kinds {
		f.Exports[kind] = export(t, b, kind)
	}
	return f
}

// answered takes over what a repeat answered.
func (e *exchange) answered(repeat exchange) { e.Status, e.Answer = repeat.Status, repeat.Answer }

func export(t *testing.T, b *service.Bank, kind string) (rows []json.RawMessage) {
	t.Helper()
	rows = []json.RawMessage{}
	for line := range strings.Lines(b.Must(t, "export", kind, "--format", "ndjson")) {
		rows = append(rows, json.RawMessage(strings.TrimSpace(line)))
	}
	return rows
}

// send sends the request of an exchange, and returns it with the answer.
func send(t *testing.T, p *service.Process, key string, e exchange) exchange {
	t.Helper()
	status, header, body := request(t, http.MethodPost, p.URL+e.Path, key, e.Body)
	e.Status, e.Answer, e.OperationID, e.Receipt = status, body, header.Get("Operation-Id"), header.Get("Receipt")
	return e
}

func get(t *testing.T, p *service.Process, key, path string) string {
	t.Helper()
	status, _, body := request(t, http.MethodGet, p.URL+path, key, "")
	require.Equal(t, http.StatusOK, status, body)
	return body
}

func request(t *testing.T, method, url, key, body string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Ocp-Apim-Subscription-Key", key)
	r.Header.Set("Want-Receipt", "1")
	r.Header.Set("X-Request-Id", "fixture") // so that answers are equal
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, answer.Header, string(text)
}

func next(t *testing.T, outcomes string) string {
	t.Helper()
	var page struct{ Next string }
	require.NoError(t, json.Unmarshal([]byte(outcomes), &page))
	return page.Next
}

// dump returns the database of the bank: the file, or the statements that make it.
func dump(t *testing.T, b *service.Bank) []byte {
	t.Helper()
	if b.Engine == testdb.EngineSQLite {
		content, err := os.ReadFile(b.DSN)
		require.NoError(t, err)
		return content
	}
	out, err := exec.CommandContext(t.Context(), "pg_dump", "--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=100", b.DSN).Output()
	require.NoError(t, err)
	var statements bytes.Buffer
	for line := range bytes.Lines(out) {
		if !bytes.HasPrefix(line, []byte(`\`)) { // a command of psql
			statements.Write(line)
		}
	}
	return statements.Bytes()
}

// pack writes a compressed file.
func pack(t *testing.T, file string, content []byte) {
	t.Helper()
	var packed bytes.Buffer
	compressor, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	require.NoError(t, err)
	_, err = compressor.Write(content)
	require.NoError(t, err)
	require.NoError(t, compressor.Close())
	require.NoError(t, os.WriteFile(file, packed.Bytes(), 0o644))
}

// open returns a bank with the database of a fixture, and what its partners know.
func open(t *testing.T, folder, engine string) (*service.Bank, fixture) {
	t.Helper()
	from := filepath.Join(folder, engine)
	text, err := os.ReadFile(filepath.Join(from, "fixture.json"))
	require.NoError(t, err)
	var f fixture
	require.NoError(t, json.Unmarshal(text, &f))
	packed, err := os.Open(filepath.Join(from, "book.gz"))
	require.NoError(t, err)
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	require.NoError(t, err)
	content, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	b := newBank(t, engine)
	key, err := os.ReadFile(filepath.Join(from, "trail.key"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(b.Setting("trail.key_file"), key, 0o600))
	if engine == testdb.EngineSQLite {
		require.NoError(t, os.MkdirAll(filepath.Dir(b.DSN), 0o700))
		require.NoError(t, os.WriteFile(b.DSN, content, 0o600))
		return b, f
	}
	restoreDump(t, b.DSN, content)
	return b, f
}

// restoreDump runs the statements of a dump in an empty database.
func restoreDump(t *testing.T, dsn string, dumped []byte) {
	t.Helper()
	db := testdb.Open(t, testdb.EnginePostgres, dsn+"&default_query_exec_mode=simple_protocol")
	statements := strings.ReplaceAll(string(dumped), "SET transaction_timeout", "-- SET transaction_timeout") // only Postgres 17 and later have it
	_, err := db.ExecContext(t.Context(), statements)
	require.NoError(t, err)
}
