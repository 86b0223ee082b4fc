package e2e_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
	"bankingapi/domain/audit"
	"bankingapi/test/kit/testdb"
)

// A customer asks what became of an order that was refused.
func TestARefusedSaleIsFoundByCustomer(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		b.Load(t, "prices", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom", "1,AFA,Demo Portfoy,1.25,TRY,2024-01-01")
		b.Load(t, "holdings", "CustomerNo,IMKBCode,HolderCorporationName,Units", "1001,AFA,Demo Portfoy,10")
		b.Load(t, "accounts", "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance", "1,1001,1,TRY,0")
		key := b.Subscribe(t, "shop")
		s := b.serve(t)
		day := clock.Now().AddDate(0, 0, 2).Format(time.DateOnly) // later than today in every time zone
		id := func(customer int, units, day, state string) string {
			answer := s.post(t, buyFund, key, sale("", customer, units, day))
			require.Contains(t, answer.body, `"State":`+state)
			return answer.header.Get("Operation-Id")
		}
		sold := id(1001, "1", "", "2")
		refused := id(1001, "99999", "", "8")
		unknown := id(7007, "2.5", day, "8")

		show := func(args ...string) (found map[string][]map[string]any) {
			var document map[string]any
			require.NoError(t, json.Unmarshal([]byte(b.Must(t, append(args, "--format", "json")...)), &document))
			found = make(map[string][]map[string]any)
			for name, rows := range document {
				all, _ := rows.([]any)
				for _, row := range all {
					if row, ok := row.(map[string]any); ok {
						found[name] = append(found[name], row)
					}
				}
			}
			return found
		}
		asked := func(rows []map[string]any) (texts []string) {
			for _, row := range rows {
				texts = append(texts, fmt.Sprint(row["OperationId"], " ", row["CustomerNo"], " ", row["FundAmount"], " ", row["IMKBCode"], " ", row["AccountCustomerNo"],
					" ", row["CurrencyCode"], " ", row["SelectedTransactionDate"], " ", row["State"], " ", row["Refusal"]))
			}
			return texts
		}
		ofUnknown := []string{unknown + " 7007 2.5 AFA 7007 TRY " + day + " 8 account-not-found"}
		require.Equal(t, ofUnknown, asked(show("show", "operation", unknown)["Sales"]))
		require.Equal(t, ofUnknown, asked(show("show", "customer", "7007")["Refused"]), "a customer of whom nothing else is kept")
		require.Equal(t, []string{refused + " 1001 99999 AFA 1001 TRY  8 holding-insufficient"}, asked(show("show", "customer", "1001", "--limit", "1")["Refused"]))
		require.Empty(t, show("show", "customer", "1001", "--since", "2199-01-01")["Refused"])

		waits := id(1001, "1.5", day, "1")
		exported := func() (rows []map[string]any) {
			for line := range strings.Lines(b.Must(t, "export", "sales", "--customer", "1001", "--format", "json")) {
				var row map[string]any
				require.NoError(t, json.Unmarshal([]byte(line), &row))
				rows = append(rows, row)
			}
			return rows
		}
		sales := show("show", "customer", "1001")["Sales"]
		require.Len(t, sales, 2)
		require.Equal(t, exported(), sales, "the rows of the export, oldest first")
		require.Equal(t, sales[:1], show("show", "operation", sold)["Sales"])
		require.Regexp(t, `RECEIVED .* STATE +PRICE +PROCEEDS +REFUSAL +ENDED +REVERSED\n.* completed .*\n.* recorded +- +- +- +- +-\n`, b.Must(t, "show", "customer", "1001"))
		b.Must(t, "sales", "reverse", sold, "--reason", "sold by mistake")
		b.Must(t, "sales", "cancel", waits, "--reason", "the customer called")
		sales = show("show", "customer", "1001")["Sales"]
		require.Equal(t, exported(), sales)
		require.NotNil(t, sales[0]["ReversedAt"])
		require.Equal(t, "8 cancelled", fmt.Sprint(sales[1]["State"], " ", sales[1]["Refusal"]))
		require.Len(t, show("show", "customer", "1001", "--limit", "1")["Sales"], 1)
		require.Equal(t, []map[string]any{{"code": "holding-insufficient", "pointer": "/Parameters/0/FundAmount"}}, show("show", "operation", refused)["Errors"])
		require.Equal(t, 1, b.Run(t, "show", "customer", "8").Status)

		acts := func() (details []string) {
			for _, act := range b.Export(t, "audit") {
				if strings.HasPrefix(act["Action"], "command.export") {
					details = append(details, act["Action"]+" "+act["Object"]+": "+act["Details"])
				}
			}
			return details
		}
		before := len(acts())
		require.ElementsMatch(t, []string{sold, refused, waits}, column(b.Export(t, "operations", "--customer", "1001"), "OperationId"))
		require.Equal(t, []string{unknown}, column(b.Export(t, "operations", "--customer", "7007", "--state", "failed"), "OperationId"))
		require.Equal(t, []string{
			"command.export operations: csv, in full, customer", "command.exported operations: 3 rows, csv, in full, customer",
			"command.export operations: csv, in full, customer state=failed", "command.exported operations: 1 row, csv, in full, customer state=failed",
		}, acts()[before:], "what was taken, how, and how many rows. Nobody is named")
		require.Empty(t, b.Export(t, "operations", "--customer", "8"))
		require.Equal(t, 2, b.Run(t, "export", "operations", "--customer", "0").Status)
		b.Verify(t)
	})
}

// The complaints of a day, by the command line alone: a sale that was refused,
// one that must not take place, one that was a mistake, and who did what.
func TestTheOperatorsDay(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		b.Load(t, "prices", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom", "1,AFA,Demo Portfoy,1.25,TRY,2024-01-01")
		b.Load(t, "holdings", "CustomerNo,IMKBCode,HolderCorporationName,Units", "1001,AFA,Demo Portfoy,1000")
		b.Load(t, "accounts", "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance", "1,1001,1,TRY,0")
		key := b.Subscribe(t, "shop")
		s := b.serve(t)
		body := func(callerID, units, day string) string { return sale(callerID, 1001, units, day) }
		const path = "/BankingApiV01/BuyFundFromCustomer"
		refused := s.post(t, path, key, body("", "99999", ""))
		require.Contains(t, refused.body, "holding-insufficient")
		id := refused.header.Get("Operation-Id")
		require.Equal(t, id, refused.header.Get("X-Request-Id"), "the ID that partners quote leads somewhere")
		found := b.Must(t, "show", "operation", "--request-id", id)
		require.Contains(t, found, "holding-insufficient at /Parameters/0/FundAmount")
		require.Regexp(t, `(?m)^RequestId +`+id+`$`, found)
		require.Equal(t, []string{"8"}, column(b.Export(t, "operations", "--state", "failed"), "State"))

		sold := s.post(t, path, key, body("sold", "10", "")).header.Get("Operation-Id")
		reused := s.post(t, path, key, body("sold", "11", ""))
		require.Equal(t, 422, reused.status)
		eventually(t, patience, "the log of requests has what no operation has", func() bool {
			shown := b.Run(t, "show", "operation", "--request-id", reused.header.Get("X-Request-Id"))
			require.Equal(t, 1, shown.Status)
			return strings.Contains(shown.Err, "It was answered 422 caller-id-reused at ") && strings.Contains(shown.Err, ", and nothing was stored")
		})
		answered := b.Run(t, "show", "operation", "--request-id", reused.header.Get("X-Request-Id"), "--format", "json")
		require.Equal(t, 1, answered.Status)
		for _, member := range []string{`"CallerId":"sold"`, `"Codes":"caller-id-reused"`, `"Operation":"BuyFundFromCustomer"`, `"OperationId":"` + sold} {
			require.Contains(t, answered.Out, member)
		}
		past := b.Run(t, "show", "customer", "1001", "--at", "2020-01-01")
		require.Equal(t, 1, past.Status)
		require.Contains(t, past.Err, "not found: customer 1001 had no holding, no account, no posting and no sale up to 2020-01-01\n")
		day := clock.Now().AddDate(0, 0, 30).Format(time.DateOnly)
		waits := s.post(t, path, key, body("waits", "10", day)).header.Get("Operation-Id")
		b.Must(t, "sales", "cancel", waits, "--reason", "the customer called", "--as", "ayse")
		require.Contains(t, s.post(t, path, key, body("waits", "10", day)).body, `"code":"cancelled"`)
		shown := b.Must(t, "show", "operation", strings.ReplaceAll(waits, "-", ""))
		require.Contains(t, shown, " by ayse: the customer called")
		require.NotContains(t, shown, "Settled")
		b.Must(t, "sales", "reverse", sold, "--reason", "sold by mistake")
		again := b.Run(t, "sales", "reverse", sold, "--reason", "sold by mistake")
		require.Equal(t, 1, again.Status)
		require.Contains(t, again.Err, "reversed already")
		require.Equal(t, "1000", b.holding(t, 1001))
		b.Must(t, "adjust", "holding", "--customer", "1001", "--fund", "AFA", "--holder", "Demo Portfoy", "--by", "-0.5", "--reason", "counted twice")
		require.Equal(t, "999.5", b.holding(t, 1001))
		require.Regexp(t, `(?m) adjustment +AFA "Demo Portfoy" +-0\.5 +999\.5$`, b.Must(t, "show", "customer", "1001"))
		shown = b.Must(t, "show", "operation", "--caller-id", "sold", "--subscription", "shop")
		require.Contains(t, shown, "reversal")
		require.Contains(t, shown, ": sold by mistake (")

		b.Must(t, "subscriptions", "change", "shop", "--require-caller-id", "--rate", "50", "--expires", "2199-01-01")
		require.Contains(t, b.Must(t, "subscriptions", "list"), "2199-01-02T00:00+03:00")
		b.execute(t, "UPDATE subscriptions SET primary_expires_at = '2020-01-01T21:00:00.000000Z'")
		eventually(t, patience, "an expired key is answered as invalid", func() bool {
			return s.post(t, path, key, body("late", "1", "")).status == 401
		})
		expired := b.Run(t, "subscriptions", "regenerate", "shop", "primary")
		require.Equal(t, 2, expired.Status)
		require.Empty(t, expired.Out)
		require.Contains(t, expired.Err, "subscriptions change shop --expires DAY")
		b.Must(t, "subscriptions", "change", "shop", "--expires", "never")
		eventually(t, patience, "a CallerId is required", func() bool {
			return strings.Contains(s.post(t, path, key, body("", "1", "")).body, "/Header/CallerId")
		})

		actions := strings.Join(column(b.Export(t, "audit"), "Action"), " ")
		require.Equal(t, "rules.begin import.prices import.holdings import.accounts subscriptions.create command.show command.show sales.cancel command.show sales.reverse command.show command.export command.exported "+
			"adjust.holding command.show command.export command.exported command.show command.show subscriptions.change subscriptions.change", strings.TrimPrefix(actions, audit.MigrateUp+" "))
		require.Contains(t, column(b.Export(t, "audit"), "Actor"), "ayse")
		for _, r := range b.Export(t, "postings", "--customer", "1001") {
			if r["Kind"] == "adjustment" {
				require.Contains(t, b.Must(t, "show", "operation", r["OperationId"]), ": counted twice")
			}
		}
		b.Verify(t)

		b.Must(t, "subscriptions", "create", "partner", "--operation", "BuyFundFromCustomer", "--host-operation", "RecordConsent")
		require.Contains(t, b.Must(t, "subscriptions", "list"), "BuyFundFromCustomer,RecordConsent")
		b.Must(t, "subscriptions", "change", "partner", "--rate", "7")
		require.Regexp(t, `BuyFundFromCustomer,RecordConsent +7/s`, b.Must(t, "subscriptions", "list"))
		require.Contains(t, b.Run(t, "subscriptions", "create", "other", "--host-operation", "Record Consent").Err, "HostOperations")

		copied := filepath.Join(b.Folder, "copy.db")
		got := b.Run(t, "backup", copied)
		if b.Engine == testdb.EnginePostgres {
			require.Contains(t, got.Err, "pg_dump")
			return
		}
		require.Contains(t, got.Err, "The copy is correct.")
		require.Equal(t, b.Must(t, "export", "holdings"), b.Must(t, "export", "holdings", "--storage.dsn", copied))
		require.Equal(t, 1, b.Run(t, "backup", copied).Status, "it overwrites nothing")
	})
}
