package client_test

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/client"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/demo"
	"bankingapi/test/kit/value"
)

// unreliable passes requests on to a service and loses many answers, in the
// ways a proxy does.
type unreliable struct {
	service http.Handler
	cuts    atomic.Int64
	left    atomic.Int64 // when it is below 0, everything passes
}

func (u *unreliable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := rand.IntN(8)
	if fault > 5 || u.left.Add(-1) < 0 {
		u.service.ServeHTTP(w, r)
		return
	}
	u.cuts.Add(1)
	if fault == 0 { // cut before the service sees the request
		panic(http.ErrAbortHandler)
	}
	if fault == 1 { // a gateway that has no upstream
		w.Header().Set("Retry-After", "0")
		http.Error(w, "bad gateway", http.StatusBadGateway)
		return
	}
	answer := httptest.NewRecorder()
	u.service.ServeHTTP(answer, r)
	switch fault {
	case 2: // a gateway that lost the answer
		http.Error(w, "gateway timeout", http.StatusGatewayTimeout)
	case 3: // cut in the middle of the answer
		w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	default: // cut after the service has carried the request out
		panic(http.ErrAbortHandler)
	}
}

// TestCutAnswers loses answers until CUTS of them are lost (400, or the
// environment's), while several callers sell. Afterwards the book has each sale
// once, and each amount to the last decimal.
func TestCutAnswers(t *testing.T) {
	t.Parallel()
	cuts := 400
	if text := os.Getenv("CUTS"); text != "" {
		var err error
		cuts, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	service, store := demo.New(t, nil)
	proxy := &unreliable{service: service}
	proxy.left.Store(int64(cuts))
	server := httptest.NewServer(proxy)
	defer server.Close()
	c := newClient(t, server.URL, client.Options{Attempts: 3, Backoff: time.Millisecond})

	var sold, proceeds, count, repeated atomic.Int64
	sell := func(i int64) {
		units := fund.Units(1_000_000 + i)
		order := client.NewBuyFund(bulkSale(t, units))
		for {
			answer, err := c.BuyFund(t.Context(), order)
			var failure *client.Error
			if errors.As(err, &failure) && failure.Unknown {
				repeated.Add(1)
				continue // what a careful program does: the same operation again
			}
			if err != nil || answer.State != operation.Completed {
				t.Errorf("sale %d: %v %v", i, answer.State, err)
				return
			}
			break
		}
		count.Add(1)
		sold.Add(int64(units))
		amount, _ := fund.Proceeds(units, 125_000_000, bulkSale(t, units).Terms().Account.Currency)
		proceeds.Add(amount.Minor())
	}
	var next atomic.Int64
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for proxy.left.Load() > 0 && !t.Failed() {
				sell(next.Add(1))
			}
		})
	}
	callers.Wait()

	require.EqualValues(t, cuts, proxy.cuts.Load())
	require.Len(t, store.Sales(), int(count.Load()), "a sale is there twice, or is missing")
	for _, holding := range store.Holdings() {
		if holding.Key.CustomerNo == 1002 {
			require.Equal(t, 1_000_000_000_000_000-sold.Load(), int64(holding.Units))
		}
	}
	for _, account := range store.Accounts() {
		if account.Key.AccountSuffix == 1 {
			require.Equal(t, proceeds.Load(), account.Balance.Minor())
		}
	}
	t.Logf("%d cut answers, %d sales, %d of them sent again by their program: none twice, none missing", cuts, count.Load(), repeated.Load())
}

// bulkSale is a sale of the customer with the large holding.
func bulkSale(t testing.TB, units fund.Units) fund.Sale {
	t.Helper()
	s, faults := fund.NewSale(fund.SaleFields{
		CustomerNo:         decimal.Int(1002),
		TransactionType:    decimal.Int(fund.SaleTransaction),
		FundAmount:         value.Number(units.String()),
		DestinationAccount: &fund.AccountFields{BranchCode: decimal.Int(1), CustomerNo: decimal.Int(1001), AccountSuffix: decimal.Int(1), CurrencyCode: "TRY"},
		FundToProcess:      &fund.FundFields{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", PriceID: decimal.Int(1)},
	})
	if len(faults) > 0 {
		t.Errorf("faults: %v", faults)
	}
	return s
}
