package client_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/client"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/demo"
)

func TestQuotes(t *testing.T) {
	t.Parallel()
	api, _ := demo.New(t, nil)
	server := httptest.NewServer(api)
	defer server.Close()
	c, err := client.New(server.URL, demo.Key, client.Options{Attempts: 1})
	require.NoError(t, err)
	sale := client.Sale{
		CustomerNo: 1001, Units: "12.5", IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy",
		BranchCode: 1, AccountSuffix: 1, CurrencyCode: "TRY",
	}
	tooMany := sale
	tooMany.Units = "1000"
	quotes, err := c.Quotes(t.Context(), operation.Header{}, sale, tooMany)
	require.NoError(t, err)
	require.Len(t, quotes, 2)
	require.Equal(t, client.Quote{State: operation.Completed, PriceID: 1, Price: "1.25", CurrencyCode: "TRY", Proceeds: "15.63"}, quotes[0])
	require.Equal(t, operation.Failed, quotes[1].State)
	require.Equal(t, fault.HoldingInsufficient, quotes[1].Faults[0].Code)

	// The sale with the PriceID of its quote gives these proceeds.
	sale.PriceID, sale.Amount = quotes[0].PriceID, quotes[0].Proceeds.String()
	sales, err := client.NewSales(sale)
	require.NoError(t, err)
	answer, err := c.BuyFund(t.Context(), client.NewBuyFund(sales...))
	require.NoError(t, err)
	require.Equal(t, operation.Completed, answer.State)

	sale.Units = "a few"
	_, err = c.Quotes(t.Context(), operation.Header{}, sale)
	require.ErrorIs(t, err, client.Code(fault.InvalidFormat))
	wrong, err := client.New(server.URL, "another", client.Options{})
	require.NoError(t, err)
	sale.Units = "1"
	_, err = wrong.Quotes(t.Context(), operation.Header{}, sale)
	require.ErrorIs(t, err, client.Code(fault.KeyInvalid))
}
