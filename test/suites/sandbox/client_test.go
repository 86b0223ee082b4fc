package sandbox_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/client"
	"bankingapi/application/backoffice"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	numbers "bankingapi/test/kit/value"
)

// ordering adds Sandbox-Fault to the first attempts.
type ordering struct {
	next   http.RoundTripper
	faults []string
}

func (o *ordering) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(o.faults) > 0 {
		r = r.Clone(r.Context())
		r.Header.Set("Sandbox-Fault", o.faults[0])
		o.faults = o.faults[1:]
	}
	return o.next.RoundTrip(r)
}

// TestTheSandboxLosesAnswers practises with the Go client that a sale was done but its
// answer lost: the client repeats it, and the book has it once.
func TestTheSandboxLosesAnswers(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	requests := &ordering{http.DefaultTransport, []string{"cut-after", "unavailable-after", "cut-before", "internal"}}
	c, err := client.New(p.url, p.bank.Key, client.Options{
		HTTP: &http.Client{Transport: requests}, Attempts: 6, Backoff: time.Millisecond,
	})
	require.NoError(t, err)
	sale, faults := fund.NewSale(fund.SaleFields{
		CustomerNo: decimal.Int(1001), TransactionType: decimal.Int(fund.SaleTransaction), FundAmount: numbers.Number("12.5"),
		DestinationAccount: &fund.AccountFields{BranchCode: decimal.Int(1), CustomerNo: decimal.Int(1001), AccountSuffix: decimal.Int(1), CurrencyCode: "TRY"},
		FundToProcess:      &fund.FundFields{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", PriceID: decimal.Int(1)},
	})
	require.Empty(t, faults)
	answer, err := c.BuyFund(t.Context(), client.NewBuyFund(sale))
	require.NoError(t, err)
	require.Equal(t, operation.Completed, answer.State)
	require.Empty(t, requests.faults, "the client met every fault")
	office, err := p.bank.Backoffice(t.Context())
	require.NoError(t, err)
	proof, err := office.Verify(t.Context(), nil, backoffice.Watch{})
	require.NoError(t, err)
	require.EqualValues(t, 1, proof.Sales)
}
