package console

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// waitsFor yields n sales of one fund that wait for a day, as operations of one sale. Each asks for
// the most units that a sale can: nobody holds them before the day.
func waitsFor(n int, of day.Day, yield func(fund.Forecast, error) bool) bool {
	for range n {
		var f fund.Forecast
		f.State, f.Terms.SelectedDay, f.Terms.Holding.IMKBCode, f.Terms.Units = operation.Completed, of, "AFA", fund.MaxUnits
		if !yield(f, nil) {
			return false
		}
	}
	return true
}

// The sales of the days before do not hide those of a chosen day.
func TestTheForecastOfADayBehindManySales(t *testing.T) {
	t.Parallel()
	o := operate(t)
	today := day.Of(o.console.o.Bank(), o.console.o.Zone())
	o.console.o.Forecast = func(_ context.Context, until day.Day) iter.Seq2[fund.Forecast, error] {
		return func(yield func(fund.Forecast, error) bool) {
			if waitsFor(maxForecast+1, today.Plus(1), yield) && until == today.Plus(3) {
				waitsFor(20, today.Plus(3), yield)
			}
		}
	}
	status, body := o.get("due?day=" + today.Plus(3).String())
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `data-name="Sales" class="n">20</td>`)
	require.Contains(t, body, `data-name="Units" class="n">20,000,000,000,000.000000</td>`)
	require.Contains(t, body, "that would complete or fail, for "+calendar(today.Plus(3))+": 20")
	require.NotContains(t, body, "says it of all")

	_, body = o.get("due?day=" + today.Plus(1).String())
	require.Contains(t, body, "The first 10,000 sales.")
}

// A sale whose fund has its price waits for the price of another sale: to import its own would not help.
func TestASaleWaitsForThePriceOfAnother(t *testing.T) {
	t.Parallel()
	o := operate(t)
	o.console.o.Forecast = func(_ context.Context, until day.Day) iter.Seq2[fund.Forecast, error] {
		return func(yield func(fund.Forecast, error) bool) {
			for _, isPriced := range []bool{true, false} {
				f := fund.Forecast{IsPriced: isPriced}
				f.State, f.PriceID, f.Terms.SelectedDay, f.Terms.Holding.IMKBCode = operation.Recorded, 1, until, "AFA"
				if !yield(f, nil) {
					return
				}
			}
		}
	}
	_, body := o.get("due?result=wait")
	const another, estimate = "for the price of another sale of the request", "at the newest price"
	require.Equal(t, 2, strings.Count(body, another), "in the groups, and in the list")
	require.Equal(t, 1, strings.Count(body, estimate))
}
