package console_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A sale for the day on which it was received never waited.
func TestTheTimeLineOfASaleForTheSameDay(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	today := time.Now().In(zone)
	id := s.call(t, "BuyFundFromCustomer", sale("same-day", "1", today.Format(time.DateOnly)))
	body := v.get("sale/" + id)
	require.Contains(t, body, "State 2 Completed")
	require.NotContains(t, body, "Recorded for")
	require.NotContains(t, body, "State 1")

	id = s.call(t, "BuyFundFromCustomer", sale("next-day", "1", today.AddDate(0, 0, 1).Format(time.DateOnly)))
	body = v.get("sale/" + id)
	require.Contains(t, body, "Recorded for")
	require.Contains(t, body, "answered State 1")
}
