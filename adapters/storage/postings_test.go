package storage_test

import (
	"database/sql"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/proof"
)

// The view postings of the database, for people, has the rows of `export postings`: those of
// imports, corrections, sales and reversals, one for one.
func TestTheViewOfPostingsIsTheirExport(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		var tree proof.Tree
		aDayInTheTrail(t, s, &tree)
		require.NoError(t, importAccounts(t.Context(), s, nextID(), lines(fund.Account{Key: accountOf(1), Balance: money.New(100, lira)}), quiet))
		rows, err := db.QueryContext(t.Context(), `SELECT customer_no, operation_id, position, leg, kind, imkb_code, holder_corporation_name,
 branch_code, account_suffix, currency_code, quantity, posted_at FROM postings ORDER BY operation_id, position, leg`)
		require.NoError(t, err)
		defer rows.Close()
		var viewed []fund.PostingEntry
		kinds := make(map[fund.PostingKind]int)
		for rows.Next() {
			var r tables.PostingRow
			require.NoError(t, rows.Scan(&r.CustomerNo, &r.OperationID, &r.Position, &r.Leg, &r.Kind, &r.IMKBCode, &r.HolderCorporationName,
				&r.BranchCode, &r.AccountSuffix, &r.CurrencyCode, &r.Quantity, &r.PostedAt))
			entry, err := r.Entry()
			require.NoError(t, err)
			viewed = append(viewed, entry)
			kinds[entry.Kind]++
		}
		require.NoError(t, rows.Err())
		require.Equal(t, all(t, s.Backoffice.Reader.Postings(t.Context(), backoffice.Query{})), viewed)
		require.Len(t, kinds, 4, "the day has postings of each kind: %v", kinds)

		ofCustomers := make(map[int64][]fund.PostingEntry)
		for _, p := range viewed {
			ofCustomers[p.CustomerNo()] = append(ofCustomers[p.CustomerNo()], p)
		}
		require.Greater(t, len(ofCustomers), 1)
		for customer, want := range ofCustomers { // other conditions find them
			require.Equal(t, want, all(t, s.Backoffice.Reader.Postings(t.Context(), backoffice.Query{CustomerNo: customer})))
		}
	})
}

// No text of a personal column is left after an erasure. A new column is personal unless it is
// listed here.
func TestErasingEmptiesEveryPersonalColumn(t *testing.T) {
	t.Parallel()
	kept := map[string]bool{"ExternalApplicationCode": true, "ExternalTranCode": true, "PushID": true, "SendDate": true}
	var row tables.NotificationRow
	value := reflect.ValueOf(&row).Elem()
	for field, v := range value.Fields() {
		if v.Kind() == reflect.String {
			v.SetString("2026-11-20")
			if field.Name == "TranData" {
				v.SetString(`[{"Code":"a","Name":"b"}]`)
			}
		}
	}
	row.Erase()
	for field, v := range value.Fields() {
		if v.Kind() == reflect.String {
			require.Equal(t, kept[field.Name], v.String() != "", "%s: is it personal? Then its member in domain/push has the kind User or Message", field.Name)
		}
	}

	// All that stands beside a message stands in its operation. Only the session is personal there.
	var texts []string
	for field := range reflect.TypeFor[tables.OfOperation]().Fields() {
		texts = append(texts, field.Name)
	}
	require.Equal(t, "Subscription Header RequestID ReceivedAt", strings.Join(texts, " "), "is it personal? Then the erasing empties it: EraseSession")
}
