package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// With --format json a program reads what people read: the same names and values.
func TestFormatJSON(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + filepath.Join(folder, "bank.db")}
	holdings := filepath.Join(folder, "holdings.csv")
	require.NoError(t, os.WriteFile(holdings, []byte("CustomerNo,IMKBCode,HolderCorporationName,Units\n1001,AFA,Demo Portfoy,12.5\n"), 0o600))
	do := func(args ...string) string {
		t.Helper()
		got := bankingapi(t, environment, args...)
		require.Zero(t, got.status, got.err)
		return got.out
	}
	do("migrate", "up")
	do("import", "holdings", holdings, "--as", "ayse")
	do("subscriptions", "create", "mobile-app", "--rate", "20", "--expires", "2999-12-31")

	type object = map[string]any
	list := func(args ...string) (rows []object) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(do(append(args, "--format", "json")...)), &rows))
		return rows
	}
	one := func(args ...string) (fields object) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(do(append(args, "--format", "json")...)), &fields))
		return fields
	}

	require.Contains(t, list("config"), object{"Setting": "log.level", "Value": "info", "Origin": "default"})
	require.Contains(t, list("config"), object{"Setting": "ops.hosts", "Value": "", "Origin": "default"})
	require.Equal(t, "go", one("version")["Go"].(string)[:2])
	require.Equal(t, 1.0, list("migrate", "status")[0]["Version"])

	caller := list("subscriptions", "list")[0]
	require.Equal(t, "mobile-app", caller["Name"])
	require.Equal(t, 20.0, caller["Rate"])
	require.Equal(t, []any{"AddPushNotificationResponse", "BuyFundFromCustomer"}, caller["Operations"])
	require.Equal(t, "2999-12-31T21:00:00Z", caller["Primary"].(object)["Expires"])
	require.Nil(t, caller["WithoutCallerId"])

	customer := one("show", "customer", "1001")
	require.Equal(t, []any{object{"Position": `AFA "Demo Portfoy"`, "Has": "12.5"}}, customer["Positions"])
	statement := customer["Statement"].([]any)[0].(object)
	require.Equal(t, "12.5", statement["After"])
	require.Equal(t, "opening", statement["Kind"])
	require.Empty(t, one("show", "customer", "1001", "--since", "2999-12-31")["Statement"])
	require.Len(t, one("show", "customer", "1001", "--limit", "1")["Statement"], 1)
	operation := one("show", "operation", statement["Operation"].(string))
	require.Equal(t, "import or correction", operation["Name"])
	require.Len(t, operation["Postings"], 1)
	require.Empty(t, operation["Sales"])
	require.Equal(t, false, operation["Refused"])
	for _, list := range []string{"Reason", "Erased", "WaitsFor"} {
		require.Equal(t, []any{}, operation[list], list)
	}

	require.Equal(t, object{"Completed": 0.0, "Failed": 0.0, "Waiting": []any{}}, one("settle"))
	require.Equal(t, object{"Completed": 0.0, "Failed": 0.0, "Waiting": []any{}}, one("settle", "--dry-run"))
	proof := one("verify")
	require.Equal(t, true, proof["Correct"])
	require.Equal(t, []any{}, proof["Findings"])
	require.Equal(t, 1.0, proof["Holdings"])

	wrong := bankingapi(t, environment, "verify", "--format", "xml")
	require.Equal(t, outcome{2, "", "bankingapi: --format: the value must be of type text|json; see 'bankingapi verify --help'\n"}, wrong)
}

// A program gets the same counts as the report of an auditor.
func TestVerifyTellsWhatItCompared(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	key := filepath.Join(folder, "trail.key")
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + filepath.Join(folder, "bank.db"), "BANKINGAPI_TRAIL__KEY_FILE=" + key}
	for _, args := range [][]string{
		{"trail", "keygen", "bank.example/log", "--file", key}, {"migrate", "up"}, {"subscriptions", "create", "mobile-app"}, {"trail", "checkpoint"},
	} {
		require.Zero(t, bankingapi(t, environment, args...).status)
	}
	require.Contains(t, bankingapi(t, environment, "verify", "--format", "json").out,
		`"Compared":{"Messages":0,"Refusals":0,"Prices":0,"Subscriptions":1,"Acts":1}`)
}

// The flag --as says who verified.
func TestVerifyNamesItsActor(t *testing.T) {
	t.Parallel()
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + filepath.Join(t.TempDir(), "bank.db")}
	require.Zero(t, bankingapi(t, environment, "migrate", "up").status)
	require.Zero(t, bankingapi(t, environment, "verify", "--as", "ayse").status)
	require.Contains(t, bankingapi(t, environment, "export", "audit").out, ",ayse,")
}
