package storage

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm/logger"

	"bankingapi/adapters/storage/batch"
)

// TestSlowStatementsAreReportedWithoutValues asks for statements through gorm and in
// batches that began long enough ago, and for one that did not.
func TestSlowStatementsAreReportedWithoutValues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reported []string
		slow := func(statements string, took time.Duration) {
			require.Equal(t, time.Minute, took)
			reported = append(reported, statements)
		}
		gorm := slowStatements{logger.Discard, slow}
		for _, ago := range []time.Duration{0, time.Minute} {
			gorm.Trace(t.Context(), time.Now().Add(-ago), func() (string, int64) {
				sql, values := gorm.ParamsFilter(t.Context(), "SELECT * FROM sales WHERE customer_no = ?", 1001)
				require.Empty(t, values)
				return sql, 1
			}, nil)
			_, end := tracing{slow: slow}.around(t.Context(), "commit", []batch.Request{{Name: "sales"}, {Name: "postings"}})
			time.Sleep(ago)
			end(nil)
		}
		require.Equal(t, []string{"SELECT * FROM sales WHERE customer_no = ?", "sales, postings"}, reported)
	})
}
