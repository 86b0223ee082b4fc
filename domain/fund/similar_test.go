package fund_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
)

func TestFundsThatLookAlike(t *testing.T) {
	t.Parallel()
	demo := fund.Fund{IMKBCode: "AFO1", HolderCorporationName: "Demo Portföy A.Ş."}
	for _, c := range []struct {
		other fund.Fund
		want  bool
	}{
		{fund.Fund{IMKBCode: "AFO1", HolderCorporationName: "DEMO PORTFOY AŞ"}, true},
		{fund.Fund{IMKBCode: "AFO1", HolderCorporationName: "Demo  Portföy A.Ş."}, true},
		{fund.Fund{IMKBCode: "AFO1", HolderCorporationName: "Dem\u200bo Portföy A.Ş."}, true},
		{fund.Fund{IMKBCode: "AFO1", HolderCorporationName: "Dem\u3164o\u2800 Port\u034ff\u115föy A.Ş."}, true},
		{fund.Fund{IMKBCode: "AFO1", HolderCorporationName: "Dеmo Portföy A.Ş."}, true},
		{fund.Fund{IMKBCode: "AFO1", HolderCorporationName: "Ｄｅｍｏ Portföy A.Ş."}, true},
		{fund.Fund{IMKBCode: "AF0I", HolderCorporationName: "Demo Portföy A.Ş."}, true},
		{fund.Fund{IMKBCode: "AFO2", HolderCorporationName: "Demo Portföy A.Ş."}, false},
		{fund.Fund{IMKBCode: "AFO1", HolderCorporationName: "Demo Bank A.Ş."}, false},
	} {
		require.Equal(t, c.want, demo.AsRead() == c.other.AsRead(), c.other)
	}
}

// Nobody sees a blank at the end of a name, and a sale that names the fund without it would not
// find the holding.
func TestHolderWithOuterWhiteSpaceIsRefused(t *testing.T) {
	t.Parallel()
	for _, holder := range []string{" H", "H ", "H\u00a0", "\u2007H", "H\u200b", "\ufeffH", "H\u202e", "H\t", "H\r\n", "\u3000H", "\u3164H", "H\u115f", "H\u2800", "H\u034f", "H\x1b", "H\u2028"} {
		_, faults := fund.NewHolding(fund.HoldingFields{CustomerNo: decimal.Int(1), IMKBCode: "AFA", HolderCorporationName: holder, Units: decimal.Int(1)})
		require.Len(t, faults, 1, "%q", holder)
		require.Equal(t, "/HolderCorporationName", faults[0].Pointer)
		_, faults = fund.NewPrice(fund.PriceFields{PriceID: decimal.Int(1), IMKBCode: "AFA", HolderCorporationName: holder, Price: decimal.Int(1), CurrencyCode: "TRY", ValidFrom: "2026-11-27"})
		require.Len(t, faults, 1, "%q", holder)
	}
	_, faults := fund.NewHolding(fund.HoldingFields{CustomerNo: decimal.Int(1), IMKBCode: "AFA\u00a0", HolderCorporationName: "H I", Units: decimal.Int(1)})
	require.Len(t, faults, 1)
	require.Contains(t, faults[0].Detail, "white space")
}
