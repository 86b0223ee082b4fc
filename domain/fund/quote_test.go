package fund_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// withoutPrice leaves the PriceID out.
func withoutPrice(f *fund.SaleFields) { f.FundToProcess.PriceID = decimal.Decimal{} }

// quote quotes the sales on Friday.
func (b *bank) quote(t *testing.T, fields ...fund.SaleFields) []fund.Quote {
	t.Helper()
	request := fund.NewQuoteRequest(fields, len(fields), on(friday))
	require.Empty(t, request.Faults)
	o := &fund.Operation{Sales: request.Sales, Today: on(friday)}
	book := b.loadSet(fund.QuoteSet(o, on(friday)), 1)
	return book.Quote(o, now, on(friday))
}

func TestAQuoteTakesTheCurrentPrice(t *testing.T) {
	t.Parallel()
	b := newBank()
	for _, priceID := range []decimal.Decimal{{}, number("0"), number("1")} {
		quotes := b.quote(t, asked(func(f *fund.SaleFields) { f.FundToProcess.PriceID = priceID }))
		require.Equal(t, operation.Completed, quotes[0].State)
		require.Empty(t, quotes[0].Faults)
		require.Equal(t, b.prices[1], quotes[0].Price)
		require.Equal(t, "125.00", quotes[0].Proceeds.String())
		require.False(t, quotes[0].Estimate)
	}
	require.Equal(t, "1000", b.units("AFA"), "a quote changes nothing")
}

func TestAQuoteForALaterDayIsAnEstimate(t *testing.T) {
	t.Parallel()
	b := newBank()
	quotes := b.quote(t, asked(withoutPrice, func(f *fund.SaleFields) {
		f.SelectedTransactionDate = saturday
		f.FundAmount = number("5000") // the holding is not checked before the day
	}))
	require.Equal(t, operation.Recorded, quotes[0].State)
	require.True(t, quotes[0].Estimate)
	require.Equal(t, b.prices[1], quotes[0].Price, "the price of today")
	require.Equal(t, "6250.00", quotes[0].Proceeds.String())
}

func TestARefusedQuoteNamesTheCurrentPrice(t *testing.T) {
	t.Parallel()
	b := newBank()
	quotes := b.quote(t, asked(func(f *fund.SaleFields) { f.FundToProcess.PriceID = number("3") }))
	require.Equal(t, operation.Failed, quotes[0].State)
	require.Equal(t, map[string]string{"/Parameters/0/FundToProcess/PriceID": fault.PriceNotCurrent}, byPointer(t, quotes[0].Faults))
	require.Equal(t, b.prices[1], quotes[0].Price)
	require.Equal(t, "125.00", quotes[0].Proceeds.String())
}

func TestAFundWithoutAPriceHasAQuoteWithoutOne(t *testing.T) {
	t.Parallel()
	for _, day := range []string{"", saturday} {
		quotes := newBank().quote(t, asked(withoutPrice, func(f *fund.SaleFields) {
			f.FundToProcess.IMKBCode, f.SelectedTransactionDate = "NONE", day
		}))
		require.Equal(t, operation.Failed, quotes[0].State)
		require.Equal(t, fault.PriceNotFound, byPointer(t, quotes[0].Faults)["/Parameters/0/FundToProcess/PriceID"])
		require.Zero(t, quotes[0].Price)
		require.Zero(t, quotes[0].Proceeds)
	}
}

// The third sale asks for units that the first one has sold. The second one is refused, and
// takes none.
func TestQuotesSeeEachOther(t *testing.T) {
	t.Parallel()
	units := func(n string) func(*fund.SaleFields) {
		return func(f *fund.SaleFields) { f.FundAmount = number(n) }
	}
	quotes := newBank().quote(t, asked(units("600")), asked(units("600")), asked(units("400")))
	require.Equal(t, operation.Completed, quotes[0].State)
	require.Equal(t, operation.Failed, quotes[1].State)
	require.Equal(t, map[string]string{"/Parameters/1/FundAmount": fault.HoldingInsufficient}, byPointer(t, quotes[1].Faults))
	require.Equal(t, operation.Completed, quotes[2].State)
}

func TestASaleWithoutAPriceIDIsQuotedOnly(t *testing.T) {
	t.Parallel()
	_, faults := fund.NewQuotedSale(asked(withoutPrice))
	require.Empty(t, faults)
	for _, priceID := range []string{"-1", "1.5"} {
		_, faults = fund.NewQuotedSale(asked(func(f *fund.SaleFields) { f.FundToProcess.PriceID = number(priceID) }))
		require.Len(t, faults, 1)
		require.Equal(t, "/FundToProcess/PriceID", faults[0].Pointer)
		require.Equal(t, "An integer, 0 or greater, at most 2^63-1.", faults[0].Detail, "0 takes the current price")
	}
	_, faults = fund.NewSale(asked(withoutPrice))
	require.Equal(t, map[string]string{"/FundToProcess/PriceID": fault.Required}, byPointer(t, faults))
}

// A partner decides how many of its sales are refused, and others wait for their turn meanwhile.
func TestTheCostOfARefusalDoesNotGrowWithTheArray(t *testing.T) { //nolint:paralleltest // it counts allocations
	b := newBank()
	refused := func(f *fund.SaleFields) { f.FundToProcess.PriceID = number("3") }
	for name, decide := range map[string]func([]fund.SaleFields){
		"quotes": func(fields []fund.SaleFields) { b.quote(t, fields...) },
		"sales": func(fields []fund.SaleFields) {
			request := fund.NewRequest(fields, len(fields), on(friday))
			require.Empty(t, request.Faults)
			operations := []*fund.Operation{{Sales: request.Sales, Today: on(friday)}}
			b.load(operations, on(friday)).Settle(operations, now, on(friday))
		},
	} {
		cost := func(sales int) float64 {
			fields := make([]fund.SaleFields, sales)
			for i := range fields {
				fields[i] = asked(refused)
			}
			return testing.AllocsPerRun(1, func() { decide(fields) }) / float64(sales)
		}
		require.Less(t, cost(1000), 2*cost(50), name)
	}
}
