package command

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/bootstrap"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// With --format json a program reads what people read. Its names and values are those of the API and of
// exports: no value has to be taken apart.
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
	require.Equal(t, 20.0, caller["RequestsPerSecond"])
	require.Equal(t, []any{"AddPushNotificationResponse", "BuyFundFromCustomer"}, caller["Operations"])
	require.Equal(t, "2999-12-31T21:00:00.000000Z", caller["PrimaryKey"].(object)["Expires"])
	require.Equal(t, false, caller["RequireCallerId"])
	require.Nil(t, caller["WithoutCallerId"])

	customer := one("show", "customer", "1001")
	require.Equal(t, 1001.0, customer["CustomerNo"])
	require.Equal(t, []any{object{"CustomerNo": 1001.0, "IMKBCode": "AFA", "HolderCorporationName": "Demo Portfoy", "Units": 12.5}}, customer["Holdings"])
	require.Equal(t, []any{}, customer["Accounts"])
	statement := customer["Statement"].([]any)[0].(object)
	require.Equal(t, 12.5, statement["After"])
	require.Equal(t, "opening", statement["Kind"])
	require.Empty(t, one("show", "customer", "1001", "--since", "2999-12-31")["Statement"])
	require.Len(t, one("show", "customer", "1001", "--limit", "1")["Statement"], 1)
	operation := one("show", "operation", statement["OperationId"].(string))
	require.Nil(t, operation["Operation"])
	posting := operation["Postings"].([]any)[0].(object)
	delete(statement, "After")
	require.Equal(t, statement, posting, "the row of the statement, without what the customer has after it")
	require.Empty(t, operation["Sales"])
	require.Equal(t, false, operation["Refused"])
	require.Contains(t, do("export", "audit", "--format", "ndjson"), `{"Id":"`+statement["OperationId"].(string)+`"`, "the act of the import")
	for _, list := range []string{"Errors", "Erased", "WaitsFor"} {
		require.Equal(t, []any{}, operation[list], list)
	}

	require.Equal(t, object{"Completed": 0.0, "Failed": 0.0, "Waiting": []any{}}, one("settle"))
	require.Equal(t, object{"Completed": 0.0, "Failed": 0.0, "CompletedSales": 0.0, "FailedSales": 0.0, "Waiting": []any{}}, one("settle", "--dry-run"))
	proof := one("verify")
	require.Equal(t, true, proof["Correct"])
	require.Equal(t, []any{}, proof["Findings"])
	require.Equal(t, 1.0, proof["Holdings"])

	for _, kind := range []string{"holdings", "audit", "operations"} {
		require.Equal(t, do("export", kind, "--format", "ndjson"), do("export", kind, "--format", "json"), "a line for each row")
	}
	require.Contains(t, do("export", "holdings", "--format", "json"), `"CustomerNo":1001`)

	wrong := bankingapi(t, environment, "verify", "--format", "xml")
	require.Equal(t, outcome{2, "", "bankingapi: --format must be text or json; see 'bankingapi verify --help'\n"}, wrong)
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
		`"Compared":{"Messages":0,"Refusals":0,"Prices":0,"Subscriptions":1,"Acts":2}`)
}

// The flag --as says who verified.
func TestVerifyNamesItsActor(t *testing.T) {
	t.Parallel()
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + filepath.Join(t.TempDir(), "bank.db")}
	require.Zero(t, bankingapi(t, environment, "migrate", "up").status)
	require.Zero(t, bankingapi(t, environment, "verify", "--as", "ayse").status)
	require.Contains(t, bankingapi(t, environment, "export", "audit").out, ",ayse,")
}

// A due sale whose fund has its price waits for the price of another sale. It counts among those that
// wait, and not among the sales of a fund.
func TestADueSaleWaitsForThePriceOfAnother(t *testing.T) {
	t.Parallel()
	of := awaited{"AFA", "H", "2026-12-04"}
	require.Equal(t, "id 1 2026-12-04 waits for the price of another sale of the operation\n",
		screen("due sale", dueSale{awaited: of, OperationID: "id", Position: 1, State: operation.Recorded, IsPriced: true}))
	require.Equal(t, "id 1 2026-12-04 waits for a price of AFA (H)\n",
		screen("due sale", dueSale{awaited: of, OperationID: "id", Position: 1, State: operation.Recorded}))
	require.Equal(t, "0 would complete, 0 would fail, 3 wait for a price\n",
		screen("due sales", wouldSettle{settled: settled{Waiting: []waiting{{of, 1}}}, others: 2}))
}

// screened has a value of each screen.
var screened = map[string]any{
	"help": new(cobra.Command), "version": build{}, "listening": listening{}, "config": []setting{}, "migrate status": []migration{},
	"subscriptions": []listed{}, "subscription": shownSubscription{}, "waiting sales": waitingSales{}, "prices": []listedPrice{}, "status": serviceStatus{}, "reversed": reversed{}, "one reversed": reversed{}, "operation": shownOperation{}, "customer": shownCustomer{}, "settled": settled{}, "due sale": dueSale{},
	"due sales": wouldSettle{}, "verified": backoffice.Proof{}, "copied": copied{}, "rules": fund.RulesFields{},
	// parts of others
	"minute": (*moment)(nil), "micros": (*moment)(nil), "key": keyLife{}, "fund": awaited{}, "need": false, "terms": sale{}, "sale": sale{},
}

// A screen names only fields that its value has: it is run with all of them set, and with none.
func TestScreensNameFieldsOfTheirValue(t *testing.T) {
	t.Parallel()
	c := &call{cmd: new(cobra.Command), settings: bootstrap.DefaultSettings()}
	c.cmd.SetOut(io.Discard)
	for _, screen := range screens.Templates() {
		if screen.Name() == "" || screen.Name() == "help" { // help is run for each command
			continue
		}
		value, isKnown := screened[screen.Name()]
		require.True(t, isKnown, "a value of the screen %s", screen.Name())
		empty := reflect.New(reflect.TypeOf(value)).Elem()
		require.NoError(t, c.write(screen.Name(), empty.Interface()))
		for _, text := range []string{"x", "completed", "failed"} {
			full := reflect.New(reflect.TypeOf(value)).Elem()
			fill(full, text)
			require.NoError(t, c.write(screen.Name(), full.Interface()))
		}
	}
}

// Programs read ids under one name in every command, as in exports and in the API.
func TestNamesOfIDsInJSON(t *testing.T) {
	t.Parallel()
	for name, value := range screened {
		if name == "help" {
			continue
		}
		full := reflect.New(reflect.TypeOf(value)).Elem()
		fill(full, "x")
		text, err := json.Marshal(full.Interface())
		require.NoError(t, err, name)
		for _, member := range regexp.MustCompile(`"(\w*ID)":`).FindAllStringSubmatch(string(text), -1) {
			require.Contains(t, []string{"PriceID", "SettledPriceID"}, member[1], name)
		}
	}
}

// fill sets each field of a value, and gives each list an element.
func fill(v reflect.Value, text string) {
	if !v.CanSet() && v.Kind() != reflect.Struct {
		return
	}
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[json.Number]() {
			text = "2"
		}
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(2)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	default: // no field of an output has another kind
	}
}

// UnmarshalText reads what the program prints.
func (m *moment) UnmarshalText(text []byte) (err error) {
	m.at, err = time.Parse(time.RFC3339Nano, string(text))
	return err
}
