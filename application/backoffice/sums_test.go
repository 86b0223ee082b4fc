package backoffice_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// The close of a day has a sum for each fund and currency, in order. What was reversed is beside
// what was sold, and what failed is in none.
func TestTheSumsOfAClose(t *testing.T) {
	t.Parallel()
	euro, isKnown := money.ParseCurrency("EUR")
	require.True(t, isKnown)
	done := func(code string, of money.Currency, waited, reversed bool) backoffice.SalesKey {
		return backoffice.SalesKey{IMKBCode: code, Currency: of, State: operation.Completed, Waited: waited, Reversed: reversed}
	}
	sum := func(sales, proceeds int64) backoffice.SalesSum {
		return backoffice.SalesSum{Sales: sales, Proceeds: backoffice.SumOf(proceeds)}
	}
	closed := backoffice.Received{Sales: map[backoffice.SalesKey]backoffice.SalesSum{
		done("YAS", lira, false, false): sum(1, 100), done("AFA", lira, false, false): sum(2, 200), done("AFA", lira, true, false): sum(3, 300),
		done("AFA", lira, false, true): sum(4, 400), done("AFA", euro, false, false): sum(5, 500),
		{IMKBCode: "AFA", Currency: lira, State: operation.Failed}: sum(6, 0),
	}}.Closed()
	require.Equal(t, backoffice.FundSums{
		{IMKBCode: "AFA", Currency: euro, Sales: 5, Proceeds: backoffice.SumOf(500)},
		{IMKBCode: "AFA", Currency: lira, Sales: 5, Waited: 3, Reversed: 4, Proceeds: backoffice.SumOf(500), Returned: backoffice.SumOf(400)},
		{IMKBCode: "YAS", Currency: lira, Sales: 1, Proceeds: backoffice.SumOf(100)},
	}, closed)
	require.Equal(t, backoffice.FundSums{
		{Currency: euro, Sales: 5, Proceeds: backoffice.SumOf(500)},
		{Currency: lira, Sales: 6, Waited: 3, Reversed: 4, Proceeds: backoffice.SumOf(600), Returned: backoffice.SumOf(400)},
	}, closed.Currencies())
}
