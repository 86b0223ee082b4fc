package backoffice_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/domain/fund"
)

// The limit is exact, however large the prices are: a float does not know all of their digits.
func TestAPriceIsComparedExactly(t *testing.T) {
	t.Parallel()
	const large = fund.MaxUnitPrice - 2
	for _, tt := range []struct {
		before, price fund.UnitPrice
		refused       bool
	}{
		{100, 150, false}, {100, 151, true}, {100, 50, false}, {100, 49, true}, {3, 4, false},
		{large, large / 2, false}, {large, large/2 - 1, true}, {0, 1_000, true},
	} {
		var f backoffice.Faults
		f.CompareBefore(1, fund.Price{PerUnit: tt.before}, fund.Price{PerUnit: tt.price}, 50)
		require.Equal(t, tt.refused, f.Lines > 0, "%s to %s", tt.before, tt.price)
	}
}

func TestTheChangeOfAPrice(t *testing.T) {
	t.Parallel()
	for want, price := range map[string]fund.UnitPrice{"+0.00": 300, "+33.33": 400, "-66.67": 100, "+100.00": 600, "-0.33": 299} {
		p := backoffice.FundPrice{Before: &fund.Price{PerUnit: 300}, Price: &fund.Price{PerUnit: price}}
		require.Equal(t, want, p.Change())
	}
}
