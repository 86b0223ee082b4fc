package prove_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"bankingapi/application/bookfile"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/parts"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
	"bankingapi/test/kit/payload"
	"bankingapi/test/kit/service"
)

// timed is a service in the test process whose clock a test sets. It settles
// when the test calls settle.
type timed struct {
	*bootstrap.App
	clock *fake.Clock
	bank  *service.Bank
	key   string
}

// openTimed opens a service on its own bank in the given time zone. The lines
// are the price file of its book.
func openTimed(t *testing.T, engine, zone string, at time.Time, prices ...string) *timed {
	t.Helper()
	b := service.NewBank(t, engine).Migrate(t)
	b.Must(t, "rules", "change", "--time-zone", zone, "--reason", "test")
	s := openAnother(t, &timed{clock: fake.NewClock(at), bank: b})
	s.load(t, "prices", append([]string{"PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom"}, prices...)...)
	s.load(t, "holdings", "CustomerNo,IMKBCode,HolderCorporationName,Units", "1000,AFA,Prove Portfoy,1000000")
	s.load(t, "accounts", "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance", "1,1000,1,TRY,0")
	var err error
	manager, err := s.Manager(t.Context())
	require.NoError(t, err)
	key, _, err := manager.Create(t.Context(), subscription.Subscription{Name: "prove"})
	s.key = key.Reveal()
	require.NoError(t, err)
	return s
}

// openAnother opens a service on the same bank with the same clock.
func openAnother(t *testing.T, first *timed) *timed {
	t.Helper()
	command := first.bank.Set("settlement.enabled", "false").Set("storage.allow_unsafe", "true").Set("storage.dsn", first.bank.DSN).Command()
	loaded, err := bootstrap.Load(bootstrap.Sources{Environment: command.Env})
	require.NoError(t, err)
	app, err := bootstrap.Open(t.Context(), loaded.Settings, parts.All(), bootstrap.WithLogger(zap.NewNop()), bootstrap.WithClock(first.clock.Now),
		bootstrap.WithDataFolder(filepath.Join(first.bank.Folder, "data")))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.Background())) })
	return &timed{App: app, clock: first.clock, bank: first.bank, key: first.key}
}

func (s *timed) load(t *testing.T, kind string, lines ...string) {
	t.Helper()
	office, err := s.Backoffice(t.Context())
	require.NoError(t, err)
	_, err = bookfile.Import(t.Context(), office, kind, strings.NewReader(strings.Join(lines, "\n")+"\n"), bookfile.Options{})
	require.NoError(t, err)
}

// sell sells one unit, today or on the given day, and returns the answer.
func (s *timed) sell(callerID, day string, price int) answer {
	return s.post(saleBody(callerID, day, price))
}

func saleBody(callerID, day string, price int) string {
	return payload.Request(payload.CallerID(callerID), payload.Sale{CustomerNo: 1000, PaidTo: 1000, Units: "1", Holder: "Prove Portfoy", PriceID: price, Day: day}.String())
}

func (s *timed) post(body string) answer {
	r := httptest.NewRequest(http.MethodPost, buyFund, strings.NewReader(body))
	r.Header.Set("Ocp-Apim-Subscription-Key", s.key)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return readAnswer(w.Code, w.Result().Header, w.Body.String())
}

func (s *timed) settle(t *testing.T) int {
	t.Helper()
	settled, err := s.Settle(t.Context())
	require.NoError(t, err)
	require.Zero(t, settled.Failed)
	return settled.Completed
}

// price imports a price of a later day, whose due sales are settled at it.
func (s *timed) price(t *testing.T, id int, day string) {
	t.Helper()
	s.load(t, "prices", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom", fmt.Sprintf("%d,AFA,Prove Portfoy,1.25,TRY,%s", id, day))
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return at
}

const ancientPrice = "1,AFA,Prove Portfoy,1.25,TRY,2000-01-01"

// TestMidnightOnTwoReplicas lets midnight pass while two services sell and settle. The price
// changes with the day. Each due sale is settled once, at the price of its day, and a new sale
// is sold at the price of the day on which it arrived, or refused.
func TestMidnightOnTwoReplicas(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, engine string) {
		const due, rounds = 100, 100
		midnight := instant(t, "2026-11-20T21:00:00Z")
		first := openTimed(t, engine, "Europe/Istanbul", midnight.Add(-rounds/2*time.Millisecond),
			"1,AFA,Prove Portfoy,1,TRY,2000-01-01", "2,AFA,Prove Portfoy,4,TRY,2026-11-21")
		for i := range due {
			require.Equal(t, 1, first.sell(fmt.Sprint("due ", i), "2026-11-21", 1).state)
		}
		var wait sync.WaitGroup
		var sold [3]atomic.Int64 // by price
		var settled atomic.Int64
		for n, s := range []*timed{first, openAnother(t, first)} {
			for price := 1; price <= 2; price++ {
				wait.Go(func() {
					for i := range rounds {
						first.clock.Advance(250 * time.Microsecond) // a quarter of a millisecond; four callers
						switch a := s.sell(fmt.Sprint("new ", n, price, i), "", price); {
						case a.state == 2:
							sold[price].Add(1)
						case a.state != 8 || !strings.Contains(a.body, "price-not-current"):
							t.Errorf("%d %s", a.status, a.body)
						}
					}
				})
			}
			wait.Go(func() {
				for range rounds {
					done, err := s.Settle(context.Background())
					settled.Add(int64(done.Completed))
					if err != nil || done.Failed > 0 {
						t.Errorf("%+v %v", done, err)
					}
				}
			})
		}
		wait.Wait()
		settled.Add(int64(first.settle(t)))
		require.EqualValues(t, due, settled.Load())
		require.Positive(t, sold[1].Load())
		require.Positive(t, sold[2].Load())
		require.Equal(t, fmt.Sprintf("%d.00", 4*due+sold[1].Load()+4*sold[2].Load()), first.bank.Export(t, "accounts")[0]["Balance"])
		first.bank.Verify(t)
	})
}

// TestManyDue settles many sales that are due on one day in one run of the
// settle command. Its memory does not grow with the number of sales.
func TestManyDue(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, engine string) {
		const customers = 1000
		sales := setting(t, "PROVE_DUE", 2000)
		// The service that records them has a clock two days behind.
		now := time.Now()
		s := openTimed(t, engine, "Europe/Istanbul", now.Add(-48*time.Hour), ancientPrice)
		holdings, accounts := []string{"CustomerNo,IMKBCode,HolderCorporationName,Units"}, []string{"BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance"}
		for c := range customers {
			holdings = append(holdings, fmt.Sprintf("%d,AFA,Prove Portfoy,1000000", 2000+c))
			accounts = append(accounts, fmt.Sprintf("1,%d,1,TRY,0", 2000+c))
		}
		s.load(t, "holdings", holdings...)
		s.load(t, "accounts", accounts...)
		day := dayBefore(t, now)
		s.price(t, 2, day)
		var wait sync.WaitGroup
		var next, recorded atomic.Int64
		for range 64 {
			wait.Go(func() {
				for {
					n := int(next.Add(1))
					if n > sales {
						return
					}
					body := strings.ReplaceAll(saleBody(fmt.Sprint("sale ", n), day, 1), "1000,", fmt.Sprintf("%d,", 2000+n%customers))
					got := s.post(body)
					for got.status == http.StatusServiceUnavailable && t.Context().Err() == nil {
						got = s.post(body) // a busy machine: repeat with the same CallerId, so it is recorded once
					}
					if got.state != 1 {
						t.Errorf("sale %d: %s", n, got.body)
						return
					}
					recorded.Add(1)
				}
			})
		}
		wait.Wait()
		require.EqualValues(t, sales, recorded.Load())

		command := s.bank.Set("settlement.enabled", "true").Command("settle")
		var out bytes.Buffer
		command.Stdout = &out // standard error contains warnings about the server
		began := time.Now()
		require.NoError(t, service.Start(command))
		peak := awaitWithMemory(command)
		took := time.Since(began)
		require.Equal(t, fmt.Sprintf("%d completed, 0 failed\n", sales), out.String())
		figure(t, "%d due sales settled in one run: %s, %d a second, at most %d MiB resident",
			sales, took.Round(10*time.Millisecond), int(float64(sales)/took.Seconds()), peak>>20)
		require.Less(t, peak, int64(256<<20), "memory does not grow with the number of sales")
		s.bank.Verify(t)
	})
}
