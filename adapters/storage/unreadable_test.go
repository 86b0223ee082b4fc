package storage_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
	"bankingapi/domain/proof"
)

// A value that is no time or no ID must not hide what else was changed: verify names its row, and
// goes on.
func TestAnUnreadableRowHidesNoOther(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		var tree proof.Tree
		aDayInTheTrail(t, s, &tree)
		isSQLite := newTamperer(t, db).isSQLite
		changes := map[string]string{ // by the row that is named
			"row of operations with operation_id ": "UPDATE operations SET received_at = 'infinity' WHERE operation_id = (SELECT operation_id FROM sales WHERE state = 2 LIMIT 1)",
			"row of audits with audit_id ":         "UPDATE audits SET at = 'infinity' WHERE audit_id = (SELECT audit_id FROM audits ORDER BY audit_id LIMIT 1)",
		}
		if isSQLite {
			changes["row of notifications with identity 123456"] = "UPDATE notifications SET identity = x'123456' WHERE identity = (SELECT MAX(identity) FROM notifications)"
			changes["row of sales with position 0, operation_id 123456"] = "UPDATE sales SET operation_id = x'123456' WHERE operation_id = (SELECT MAX(operation_id) FROM sales) AND position = 0"
			changes["row of outcomes with number 1"] = "UPDATE outcomes SET operation_id = x'1234' WHERE number = 1"
			changes["row of trail_batches with batch_id 123456"] = "UPDATE trail_batches SET batch_id = x'123456' WHERE batch_id = (SELECT MIN(batch_id) FROM trail_batches)"
		}
		for want, change := range changes {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			result, err := tx.ExecContext(t.Context(), change)
			require.NoError(t, err, change)
			changed, err := result.RowsAffected()
			require.NoError(t, err)
			require.EqualValues(t, 1, changed, change)
			_, err = tx.ExecContext(t.Context(), "UPDATE accounts SET balance = balance + 1 WHERE customer_no = (SELECT MIN(customer_no) FROM accounts)")
			require.NoError(t, err)
			inside, err := s.Within(tx)
			require.NoError(t, err)
			_, found := trailFindings(t, inside)
			all := strings.Join(found, "\n")
			require.Contains(t, all, "row-readable "+want)
			require.Contains(t, all, "account-is-its-postings ")
			require.NoError(t, tx.Rollback())
		}
	})
}
