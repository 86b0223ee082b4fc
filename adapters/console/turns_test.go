package console

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/summary"
)

// Somebody whose download takes long keeps no other from one, and no check from running.
func TestLongWorkIsShared(t *testing.T) {
	t.Parallel()
	var p places
	require.True(t, p.take("slow"))
	require.False(t, p.take("slow"), "one for a session")
	require.True(t, p.take(checkPlace))
	require.False(t, p.take("other"), "two in all")
	p.give(checkPlace)
	require.True(t, p.take("other"))
	p.give("slow")
	require.True(t, p.take("slow"))
}

// While the API is busy, pages take a tenth of the time of two connections,
// however many are loaded. Otherwise nobody waits.
func TestPagesLeaveTimeToTheAPI(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := Open(Options{Machine: time.Now, Bank: time.Now, Zone: time.UTC})
		const takes = 20 * time.Millisecond
		load := func(pages int, takes time.Duration) time.Duration {
			begun := time.Now()
			for range pages {
				require.NoError(t, c.inTurn(t.Context(), func() error {
					time.Sleep(takes)
					return nil
				}))
			}
			return time.Since(begun)
		}
		requests := func(n int) {
			for range n {
				c.Request(&summary.Exchange{Operation: "BuyFundFromCustomer", Start: time.Now(), Status: 200})
			}
		}
		requests(busyRate - 1)
		require.Equal(t, 10*takes, load(10, takes))

		requests(1)
		require.InDelta(t, 10*takes/2*(1+restFactor), load(10, takes), float64(takes*(1+restFactor)))

		time.Sleep(maxRest)
		require.Zero(t, load(2, 0), "two pages at once need not wait")

		time.Sleep(2 * time.Second)
		require.Equal(t, 10*takes, load(10, takes), "the API is idle again")
	})
}
