// Package sandbox_test uses the sandbox as a partner does: over HTTP, with its
// key, following the documentation.
package sandbox_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"bankingapi/bootstrap"
	"bankingapi/bootstrap/parts"
	"bankingapi/domain/fault"
	"bankingapi/test/fake"
	"bankingapi/test/kit/testdb"
)

const (
	sellPath = "/BankingApiV01/BuyFundFromCustomer"
	pushPath = "/BankingApiV01/AddPushNotificationResponse"
	demoSale = `{"CustomerNo":1001,"TransactionType":2,"FundAmount":12.5,` +
		`"DestinationAccount":{"BranchCode":1,"CustomerNo":1001,"AccountSuffix":1,"CurrencyCode":"TRY"},` +
		`"FundToProcess":{"IMKBCode":"AFA","HolderCorporationName":"Demo Portfoy","PriceID":1}}`
)

// now is the clock of the machine: around noon in Istanbul, so that no test
// passes midnight.
var now = fake.Running(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))

var drivers = bootstrap.Options(
	bootstrap.WithClock(now),
	parts.All(),
	bootstrap.WithLogger(zap.NewNop()),
)

// settingsIn returns the settings of a sandbox whose requests have much time, so that none fails
// on a busy machine.
func settingsIn(folder string) bootstrap.Settings {
	s := bootstrap.SandboxSettings(folder)
	s.Storage.StatementTimeout, s.HTTP.WriteTimeout = 50*time.Second, 2*time.Minute
	return s
}

// partner is a client of a sandbox.
type partner struct {
	*testing.T
	bank *bootstrap.Sandbox
	url  string
	ctx  context.Context // of its requests
}

// newPartner copies a sandbox that was new when it was closed: to make one takes longer
// than most tests. partnerOf makes one.
func newPartner(t *testing.T, more ...bootstrap.Option) partner {
	t.Helper()
	folder := t.TempDir()
	made, err := newSandbox()
	require.NoError(t, err)
	for name, content := range made {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
	return open(t, settingsIn(folder), bootstrap.WithDataFolder(folder), bootstrap.Options(more...))
}

// newSandbox is the files of a sandbox, by name.
var newSandbox = sync.OnceValues(func() (map[string][]byte, error) {
	folder, err := os.MkdirTemp("", "bankingapi-sandbox-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	bank, err := bootstrap.OpenSandbox(context.Background(), settingsIn(folder), drivers, bootstrap.WithDataFolder(folder))
	if err == nil {
		err = bank.Close(context.Background())
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(folder)
	files := map[string][]byte{}
	for _, entry := range entries {
		if !entry.IsDir() && err == nil {
			files[entry.Name()], err = os.ReadFile(filepath.Join(folder, entry.Name()))
		}
	}
	return files, err
})

func partnerOf(t *testing.T, settings bootstrap.Settings, more ...bootstrap.Option) partner {
	t.Helper()
	return open(t, settings, bootstrap.WithDataFolder(t.TempDir()), bootstrap.Options(more...))
}

func open(t *testing.T, settings bootstrap.Settings, more ...bootstrap.Option) partner {
	t.Helper()
	bank, err := bootstrap.OpenSandbox(t.Context(), settings, drivers, bootstrap.Options(more...))
	require.NoError(t, err)
	server := httptest.NewServer(bank.Handler())
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, bank.Close(context.WithoutCancel(t.Context())))
	})
	return partner{t, bank, server.URL, t.Context()}
}

// onEachEngine runs a test with the settings of an empty sandbox on each engine.
func onEachEngine(t *testing.T, test func(t *testing.T, settings bootstrap.Settings)) {
	t.Helper()
	for engine, dsn := range map[string]func(testing.TB) string{bootstrap.SQLite: testdb.SQLite, bootstrap.Postgres: testdb.Postgres} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			settings := settingsIn(t.TempDir())
			settings.Storage.Driver, settings.Storage.DSN = engine, bootstrap.Secret(dsn(t))
			test(t, settings)
		})
	}
}

// answer is a response. Status 0 means that no whole answer came.
type answer struct {
	status int
	header http.Header
	body   string
}

// send sends a request with the key. headers are pairs of name and value that
// replace the default ones.
func (p partner) send(method, path, body string, header ...string) answer {
	p.Helper()
	r, err := http.NewRequestWithContext(p.ctx, method, p.url+path, strings.NewReader(body))
	require.NoError(p, err)
	r.Header.Set("Ocp-Apim-Subscription-Key", p.bank.Key)
	for i := 0; i < len(header); i += 2 {
		r.Header.Del(header[i])
		if header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil { // the answer was cut in its middle
		return answer{}
	}
	got := answer{response.StatusCode, response.Header, string(content)}
	got.requireFamily(p.T)
	return got
}

// requireFamily reads an answer as the clients of the family of banking APIs do. They know only
// {Error, Data}: a success is an answer whose Error is absent or has no Description.
func (a answer) requireFamily(t *testing.T) {
	t.Helper()
	var known struct {
		Error *struct {
			Code        int64
			Description string
		}
		Detail string `json:"detail"`
	}
	if json.Unmarshal([]byte(a.body), &known) != nil {
		return // the page of a proxy: no client takes it for a success
	}
	isSuccess := known.Error == nil || known.Error.Description == ""
	require.Equal(t, a.status < 300 && a.state() != 8, isSuccess, "the client of the family is told an untruth: %d %s", a.status, a.body)
	if isSuccess {
		require.Nil(t, known.Error, a.body)
		return
	}
	require.Equal(t, known.Detail, known.Error.Description, a.body)
	if codes := a.codes(); len(codes) > 0 {
		require.EqualValues(t, fault.NumberOf(codes[0]), known.Error.Code, a.body)
	}
}

// sell sends sales. An empty callerID sends none.
func (p partner) sell(callerID, sales string, header ...string) answer {
	p.Helper()
	head := `{}`
	if callerID != "" {
		head = `{"CallerId":"` + callerID + `"}`
	}
	return p.send(http.MethodPost, sellPath, `{"Header":`+head+`,"Parameters":[`+sales+`]}`, header...)
}

// codes returns the error codes of an answer.
func (a answer) codes() (codes []string) {
	var problem struct{ Errors []struct{ Code string } }
	_ = json.Unmarshal([]byte(a.body), &problem)
	for _, e := range problem.Errors {
		codes = append(codes, e.Code)
	}
	return codes
}

// state returns Data.State, or 0 if the answer has none.
func (a answer) state() int {
	var state struct{ Data struct{ State int } }
	_ = json.Unmarshal([]byte(a.body), &state)
	return state.Data.State
}

// on returns a sale for a later day.
func on(day, sale string) string {
	return strings.TrimSuffix(sale, "}") + `,"SelectedTransactionDate":"` + day + `"}`
}

// day returns the day of the bank plus a number of days.
func (p partner) day(in int) string {
	return p.bank.Controls.Now().AddDate(0, 0, in).Format(time.DateOnly)
}

// saleWith returns the demo sale with other values.
func saleWith(t *testing.T, values []value) string {
	t.Helper()
	var sale map[string]any
	decoder := json.NewDecoder(strings.NewReader(demoSale))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&sale))
	for _, v := range values {
		object := sale
		name := v.path
		if outer, inner, nested := strings.Cut(v.path, "."); nested {
			object, name = sale[outer].(map[string]any), inner
		}
		if v.path != "Amount" {
			require.Contains(t, object, name)
		}
		object[name] = json.RawMessage(v.json)
	}
	text, err := json.Marshal(sale)
	require.NoError(t, err)
	return string(text)
}

// row is a row of the book.
type row = map[string]any

// book reads the book of the sandbox.
func (p partner) book() map[string][]row {
	p.Helper()
	a := p.send(http.MethodGet, "/_sandbox/book", "")
	require.Equal(p, http.StatusOK, a.status, a.body)
	var book map[string][]row
	require.NoError(p, json.Unmarshal([]byte(a.body), &book))
	return book
}

// sales counts the sales in the book.
func (p partner) sales() int { p.Helper(); return len(p.book()["sales"]) }

// moveClock moves the clock and returns the answer.
func (p partner) moveClock(move string) (moved struct {
	Now     time.Time
	Settled struct{ Completed, Failed int }
}) {
	p.Helper()
	a := p.send(http.MethodPut, "/_sandbox/clock", move)
	require.Equal(p, http.StatusOK, a.status, a.body)
	require.NoError(p, json.Unmarshal([]byte(a.body), &moved))
	return moved
}
