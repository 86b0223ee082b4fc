package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap"
	"bankingapi/test/testdb"
)

// TestExitStatus checks the exit status: 0 for success, 1 for failure, 2 for
// wrong usage. Data goes to standard output and everything else to standard
// error.
func TestExitStatus(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	b.Subscribe(t, "known")
	for _, test := range []struct {
		args   string
		status int
		out    string // prefix of standard output; empty if there must be no output
		err    string // part of standard error; empty if there must be no output
	}{
		{"", 0, "bankingapi is the banking API", ""},
		{"--help", 0, "bankingapi is the banking API", ""},
		{"serve --help", 0, "Runs the API", ""},
		{"--version", 0, "bankingapi ", ""},
		{"version", 0, "bankingapi ", ""},
		{"openapi", 0, "{\n  \"openapi\": \"3.1.0\"", ""},
		{"completion bash", 0, "# bash completion", ""},
		{"config", 0, "SETTING", ""},
		{"config --check", 0, "", "The settings are valid."},
		{"subscriptions list", 0, "NAME", ""},
		{"subscriptions suspend known", 0, "", "known is suspended."},
		{"export holdings", 0, "CustomerNo,IMKBCode,HolderCorporationName,Units\n", ""},
		{"export sales --format ndjson", 0, "", ""},
		{"settle", 0, "0 completed, 0 failed\n", ""},
		{"verify", 0, "", "The book is empty: there was nothing to check."},
		{"migrate status", 0, "VERSION", ""},
		{"migrate up", 0, "", "The schema is up to date."},

		{"subscriptions create known", 1, "", "a subscription with this name exists"},
		{"subscriptions suspend unknown", 1, "", "there is no subscription with this name"},
		{"import holdings nowhere.csv", 1, "", "nowhere.csv: no such file"},
		{"healthcheck --url http://127.0.0.1:1/readyz", 1, "", "is the service running"},
		{"export sales --storage.dsn /proc/nowhere/bank.db", 1, "", "no book at /proc/nowhere/bank.db"},
		{"migrate up --storage.dsn /proc/nowhere/bank.db", 1, "", "make the data folder"},
		{"export sales --storage.driver postgres --storage.dsn postgres://bank:open-sesame@127.0.0.1:1/bank", 1, "", "connection refused"},
		{"migrate up --storage.driver postgres --storage.dsn postgres://bank:open-sesame@127.0.0.1:1/bank", 1, "", "connection refused"},
		{"serve --tls.mode files --tls.cert_file a.crt --tls.key_file a.key", 1, "", "a.crt"},

		{"sevre", 2, "", `unknown command "sevre" (did you mean serve?)`},
		{"serve now", 2, "", `unexpected argument "now"`},
		{"serve --http.adress x", 2, "", "did you mean --http.address?"},
		{"serve --http.address x", 2, "", "http.address: must be host:port"},
		{"serve --storage.driver oracle", 2, "", "storage.driver: must be sqlite or postgres"},
		{"serve --storage.driver postgres", 2, "", "storage.dsn: must be a Postgres URL"},
		{"serve --tls.mode off --http.address 0.0.0.0:0", 2, "", "tls.mode: off is for a loopback http.address only"},
		{"config --config nowhere.yaml", 2, "", "nowhere.yaml: cannot be read"},
		{"subscriptions", 2, "", "a command is missing"},
		{"subscriptions create", 2, "", "NAME is missing"},
		{"subscriptions create x --operation SellFund", 2, "", "--operation must be"},
		{"subscriptions create x --rate fast", 2, "", "--rate"},
		{"subscriptions create late --expires 2020-01-01", 2, "", "--expires must not be in the past"},
		{"subscriptions change known --expires 2020-01-01", 2, "", "--expires must not be in the past"},
		{"subscriptions regenerate known third", 2, "", "primary or secondary"},
		{"import dogs dogs.csv", 2, "", `cannot import "dogs"`},
		{"export dogs", 2, "", `cannot export "dogs"`},
		{"export sales --state done", 2, "", "--state must be"},
		{"export sales --since yesterday", 2, "", "--since must be a day"},
		{"export prices --customer 1001", 2, "", "--customer does not filter prices"},
		{"migrate sideways", 2, "", `unknown command "sideways"`},
	} {
		got := b.Run(t, strings.Fields(test.args)...)
		require.Equal(t, test.status, got.Status, "bankingapi %s\n%s", test.args, got.Err)
		require.True(t, strings.HasPrefix(got.Out, test.out), "bankingapi %s\n%s", test.args, got.Out)
		require.Equal(t, test.out == "", got.Out == "", "bankingapi %s\n%s", test.args, got.Out)
		require.Contains(t, got.Err, test.err, "bankingapi %s", test.args)
		require.Equal(t, test.err == "", got.Err == "", "bankingapi %s\n%s", test.args, got.Err)
		require.NotContains(t, got.Out+got.Err, "open-sesame", test.args)
		require.NotContains(t, got.Err, "goroutine", test.args)
	}
}

// Only serve and migrate up create a book. Without a book the other commands
// fail and create nothing.
func TestNoBook(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	missing := filepath.Join(b.Folder, "elsewhere", "bank.db")
	for _, args := range []string{
		"verify", "settle", "subscriptions list", "subscriptions create x", "subscriptions suspend x",
		"export prices", "export sales", "migrate status", "migrate down", "import prices -",
	} {
		got := b.Run(t, append(strings.Fields(args), "--storage.dsn", missing)...)
		require.Equal(t, 1, got.Status, args)
		require.Contains(t, got.Err, "no book at "+missing, args)
		require.Empty(t, got.Out, args)
		require.NoFileExists(t, missing, args)
		require.NoDirExists(t, filepath.Dir(missing), args)
	}
	b.Must(t, "migrate", "up", "--storage.dsn", missing)
	require.Contains(t, b.Run(t, "verify", "--storage.dsn", missing).Err, "The book is empty")
}

// TestSettings checks that flags take precedence over the environment, the file
// and the defaults, that all problems are reported at once, and that secrets
// are not printed.
func TestSettings(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	file := filepath.Join(b.Folder, "bank.yaml")
	require.NoError(t, os.WriteFile(file, []byte("http:\n  body_limit: 1KiB\nlog:\n  level: warn\ncommit:\n  queue_limit: 7\n"), 0o600))
	b.Set("log.level", "error").Set("http.body_limit", "2KiB")
	shown := b.Must(t, "config", "--config", file, "--http.body_limit", "3KiB")
	for setting, wanted := range map[string]string{
		"http.body_limit":     `3KiB +flag --http\.body_limit`,
		"log.level":           `error +environment BANKINGAPI_LOG__LEVEL`,
		"commit.queue_limit":  `7 +file \S+bank\.yaml:6`,
		"settlement.interval": `15s +default`,
		"storage.dsn":         `\*\*\* +default`,
	} {
		require.Regexp(t, `(?m)^`+strings.ReplaceAll(setting, ".", `\.`)+` +`+wanted, shown)
	}

	secret := filepath.Join(b.Folder, "dsn")
	require.NoError(t, os.WriteFile(secret, []byte("postgres://bank:open-sesame@127.0.0.1:1/bank\n"), 0o600))
	b.Set("storage.driver", "postgres").Set("storage.dsn_file", secret)
	require.Regexp(t, `(?m)^storage\.dsn +\*\*\* +environment BANKINGAPI_STORAGE__DSN_FILE`, b.Must(t, "config"))
	got := b.Run(t, "export", "prices")
	require.Equal(t, 1, got.Status)
	require.NotContains(t, got.Err, "open-sesame")
	require.Contains(t, got.Err, "127.0.0.1:1", "the DSN of the file is used")

	require.NoError(t, os.WriteFile(file, []byte("http:\n  adress: x\nstorage:\n  max_connections: many\n"), 0o600))
	b.Set("http.port", "8443").Set("log.level", "loud")
	got = b.Run(t, "config", "--check", "--config", file, "--settlement.interval", "15", "--http.read_timeout=-1s")
	require.Equal(t, 2, got.Status)
	for _, problem := range []string{"http.adress", "storage.max_connections", "BANKINGAPI_HTTP__PORT", "log.level", "settlement.interval", "http.read_timeout"} {
		require.Contains(t, got.Err, problem)
	}
	require.Empty(t, got.Out)
	require.NotContains(t, got.Err, "loud", "a misplaced value may be a secret")
}

// TestSubscriptions checks that a running service applies changes of the
// commands. How soon is tested where time stands still (the directory of package
// subscriptions).
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s := b.serve(t)
		body := `{"Header":{},"Parameters":[` + validPush + `]}`
		status := func(key string) int { return s.post(t, addPush, key, body).status }
		require.Equal(t, http.StatusUnauthorized, status(strings.Repeat("0", 32)), "the service knows that there is no subscription")

		keys := strings.Fields(b.Must(t, "subscriptions", "create", "İş Bankası \"1\"", "--operation", "AddPushNotificationResponse",
			"--rate", "1000", "--app-key", "app", "--channel", "WEB", "--teller-name", "T"))
		require.Len(t, keys, 2)
		require.Regexp(t, `^[0-9a-f]{32}$`, keys[0])
		require.Regexp(t, `^[0-9a-f]{32}$`, keys[1])
		require.NotEqual(t, keys[0], keys[1])
		eventually(t, patience, "a new key works", func() bool { return status(keys[0]) == http.StatusOK })
		require.Equal(t, http.StatusOK, status(keys[1]))
		require.Equal(t, http.StatusForbidden, s.post(t, buyFund, keys[0], `{"Header":{},"Parameters":[`+validSale+`]}`).status)
		list := b.Must(t, "subscriptions", "list")
		require.Regexp(t, `"İş Bankası \\"1\\"" +active +AddPushNotificationResponse +1000/s +app +WEB +T`, list)
		require.NotContains(t, list, keys[0])

		name := "İş Bankası \"1\""
		renewed := strings.TrimSpace(b.Must(t, "subscriptions", "regenerate", name, "primary"))
		eventually(t, patience, "a renewed key works", func() bool { return status(renewed) == http.StatusOK })
		eventually(t, patience, "the old key is refused", func() bool { return status(keys[0]) == http.StatusUnauthorized })
		require.Equal(t, http.StatusOK, status(keys[1]), "the secondary key has not changed")

		b.Must(t, "subscriptions", "suspend", name)
		eventually(t, patience, "both keys are refused", func() bool {
			return status(renewed) == http.StatusUnauthorized && status(keys[1]) == http.StatusUnauthorized
		})
		b.Must(t, "subscriptions", "activate", name)
		eventually(t, patience, "both keys work again", func() bool { return status(renewed) == http.StatusOK && status(keys[1]) == http.StatusOK })
		b.Must(t, "subscriptions", "cancel", name)
		eventually(t, patience, "both keys are refused for good", func() bool {
			return status(renewed) == http.StatusUnauthorized && status(keys[1]) == http.StatusUnauthorized
		})
		require.Equal(t, 1, b.Run(t, "subscriptions", "activate", name).Status)
	})
}

// TestImport checks that a file is imported completely or not at all, and that
// every bad line is named.
func TestImport(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		const prices = "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom"
		const holdings = "CustomerNo,IMKBCode,HolderCorporationName,Units"
		const accounts = "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance"

		file := filepath.Join(b.Folder, "holdings.csv")
		require.NoError(t, os.WriteFile(file, []byte(holdings+"\n1001,AFA,Bank,1\n0,AFA,Bank,2\n1002,afa,Bank,-1\n1003,AFA\n1001,AFA,Bank,4\n"), 0o600))
		got := b.Run(t, "import", "holdings", file)
		require.Equal(t, 1, got.Status)
		require.Empty(t, got.Out)
		for _, line := range []string{":3: CustomerNo: ", ":4: IMKBCode: ", ":4: Units: ", ":5: ", ":6: "} {
			require.Contains(t, got.Err, file+line)
		}
		require.Contains(t, got.Err, "nothing was imported: 4 bad lines")
		require.Empty(t, b.Export(t, "holdings"))

		b.Load(t, "prices", prices, `7,AFA,"Bank, ""A""",1.25,TRY,2026-01-01`)
		b.Load(t, "prices", prices, `7,AFA,"Bank, ""A""",1.250,TRY,2026-01-01`, "8,AFA,Bank,2,TRY,2026-01-01")
		got = b.RunWith(t, prices+"\n8,AFA,Bank,2,TRY,2026-01-01\n", "import", "prices", "-")
		require.Contains(t, got.Err, "Imported 1 price: 0 new, 0 changed, 1 unchanged.\n")
		got = b.RunWith(t, prices+"\n9,AFA,Bank,3,TRY,2026-01-01\n8,AFA,Bank,2.01,TRY,2026-01-01\n", "import", "prices", "-")
		require.Equal(t, 1, got.Status)
		require.Contains(t, got.Err, "standard input:3: Price: ", "a price never changes")
		require.Equal(t, []string{"7", "8"}, column(b.Export(t, "prices"), "PriceID"))
		require.Equal(t, prices+"\n7,AFA,\"Bank, \"\"A\"\"\",1.25,TRY,2026-01-01\n8,AFA,Bank,2,TRY,2026-01-01\n", b.Must(t, "export", "prices"))

		b.Load(t, "holdings", "\uFEFFUnits,CustomerNo,HolderCorporationName,IMKBCode\r", "10.5,1001,Bank,AFA\r")
		b.Load(t, "accounts", accounts, "1,1001,1,TRY,5", "1,1001,1,USD,0.10")
		b.Load(t, "holdings", holdings, "1001,AFA,Bank,7")
		b.Load(t, "accounts", accounts, "1,1001,1,TRY,8.25")
		require.Equal(t, holdings+"\n1001,AFA,Bank,7\n", b.Must(t, "export", "holdings"))
		require.Equal(t, accounts+"\n1,1001,1,TRY,8.25\n1,1001,1,USD,0.10\n", b.Must(t, "export", "accounts"))
		var moved []string
		for _, p := range b.Export(t, "postings") {
			moved = append(moved, p["Kind"]+" "+p["Side"]+" "+p["Units"]+p["Amount"]+p["CurrencyCode"])
		}
		require.ElementsMatch(t, []string{
			"opening customer 10.5", "opening bank -10.5", "adjustment customer -3.5", "adjustment bank 3.5",
			"opening customer 5.00TRY", "opening bank -5.00TRY", "adjustment customer 3.25TRY", "adjustment bank -3.25TRY",
			"opening customer 0.10USD", "opening bank -0.10USD",
		}, moved)
		b.Verify(t)
	})
}

// TestVerifyFindsTampering checks that verify finds changes that were made
// directly in the database.
func TestVerifyFindsTampering(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s := b.serve(t, "--demo")
		require.Equal(t, completed, s.post(t, buyFund, s.key, sale("tampered", 1001, "2", "")).body)
		b.Verify(t)
		for _, tampering := range []struct{ do, undo, found string }{
			{"UPDATE accounts SET balance = balance + 1 WHERE customer_no = 1001 AND currency_code = 'TRY'",
				"UPDATE accounts SET balance = balance - 1 WHERE customer_no = 1001 AND currency_code = 'TRY'",
				"account 1-1001-1 TRY: is 2.51, but its postings sum to 2.50"},
			{"UPDATE holdings SET units = units - 1 WHERE customer_no = 1002",
				"UPDATE holdings SET units = units + 1 WHERE customer_no = 1002",
				`holding 1002 AFA "Demo Portfoy": is 499.999999, but its postings sum to 500.000000`},
			{"UPDATE sales SET proceeds = proceeds + 1", "UPDATE sales SET proceeds = proceeds - 1", "its proceeds are not units times price"},
			{"UPDATE sales SET state = 8", "UPDATE sales SET state = 2", "is not completed, but has a posting"},
			{"UPDATE operations SET state = 1 WHERE operation = 2", "UPDATE operations SET state = 2 WHERE operation = 2", "is in another state than its CallerId answers"},
			{"UPDATE transfers SET money_quantity = money_quantity + 1", "UPDATE transfers SET money_quantity = money_quantity - 1", "has no posting of its proceeds"},
			{"DELETE FROM transfers", "", "has no posting of its proceeds"},
		} {
			b.execute(t, tampering.do)
			got := b.Run(t, "verify")
			require.Equal(t, 1, got.Status, tampering.do)
			require.Contains(t, got.Out, tampering.found, tampering.do)
			require.Contains(t, got.Err, "the book has ", tampering.do)
			if tampering.undo != "" {
				b.execute(t, tampering.undo)
				b.Verify(t)
			}
		}
	})
}

// TestMigrate checks up, status and down, and what serve answers with another
// version of the schema.
func TestMigrate(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		require.Regexp(t, `(?m)^1 +00001_book.sql +20\d\d-\d\d-\d\dT`, b.Must(t, "migrate", "status"))
		require.Contains(t, b.Run(t, "migrate", "up").Err, "The schema is up to date.")
		b.Subscribe(t, "gone")
		kept := b.Run(t, "migrate", "down")
		require.Equal(t, 1, kept.Status)
		require.Contains(t, kept.Err, "the book has data (subscriptions, audits)")
		require.Contains(t, kept.Err, "--drop-data")
		require.Contains(t, b.Must(t, "subscriptions", "list"), "gone")
		for version := bootstrap.SchemaVersion(); version > 0; version-- {
			require.Contains(t, b.Run(t, "migrate", "down", "--drop-data").Err, fmt.Sprintf("undone %d ", version))
		}
		require.Regexp(t, `(?m)^1 +00001_book.sql +pending$`, b.Must(t, "migrate", "status"))
		require.Equal(t, 1, b.Run(t, "migrate", "down").Status, "no migration is left to undo")
		require.Contains(t, b.Run(t, "migrate", "up").Err, "applied 1 ")
		require.NotContains(t, b.Must(t, "subscriptions", "list"), "gone")
		key := b.Subscribe(t, "here")

		b.execute(t, "INSERT INTO schema_version (version_id, is_applied) VALUES (99, "+map[string]string{"sqlite": "1", "postgres": "true"}[b.Engine]+")")
		require.Contains(t, b.Run(t, "migrate", "status").Err, "use a newer program")
		for _, args := range []string{"export sales", "subscriptions list", "verify", "settle"} {
			got := b.Run(t, strings.Fields(args)...)
			require.Equal(t, 1, got.Status, args)
			require.Contains(t, got.Err, "The schema is too new", args)
		}
		tooNew := fmt.Sprintf("The schema is too new: version 99, this program knows %d. Run a newer bankingapi.", bootstrap.SchemaVersion())
		if b.Engine == testdb.EngineSQLite {
			got := b.Run(t, "serve")
			require.Equal(t, 1, got.Status)
			require.Contains(t, got.Err, tooNew)
			return
		}
		s := b.serve(t)
		_, ready := s.Get(t, "/readyz")
		require.Contains(t, ready, "[-]schema failed: "+tooNew)
		got := s.post(t, addPush, key, push("too-new"))
		require.Equal(t, http.StatusServiceUnavailable, got.status, "requests are answered 503")
		require.NotContains(t, got.body, "Data")
		b.execute(t, "DELETE FROM schema_version WHERE version_id = 99")
		eventually(t, patience, "the service becomes ready without a restart", s.IsReady)
		require.Equal(t, http.StatusOK, s.post(t, addPush, key, push("too-new")).status)
	})
}

// TestMigrateDownWhileItServes checks that migrate down is refused while a service
// uses the schema.
func TestMigrateDownWhileItServes(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		key := b.Subscribe(t, "partner")
		s := b.serve(t)
		for n := range 2 {
			eventually(t, patience, "it is ready", s.IsReady)
			got := b.Run(t, "migrate", "down", "--drop-data")
			require.Equal(t, 1, got.Status)
			require.Contains(t, got.Err, "another process uses")
			require.Equal(t, http.StatusOK, s.post(t, addPush, key, push(fmt.Sprint("kept-", n))).status)
		}
		s.Stop(t)
		require.Contains(t, b.Run(t, "migrate", "down", "--drop-data").Err, fmt.Sprintf("undone %d ", bootstrap.SchemaVersion()))
	})
}

// TestSchemaOnPostgres checks that serve does not migrate unless a setting says
// so, and is not ready before the schema fits.
func TestSchemaOnPostgres(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EnginePostgres)
	s := b.serve(t)
	_, ready := s.Get(t, "/readyz?verbose")
	require.Contains(t, ready, fmt.Sprintf("[-]schema failed: The schema is too old: version 0, this program needs %d. Run `bankingapi migrate up`, or set storage.migrate.", bootstrap.SchemaVersion()))
	got := s.post(t, addPush, "any", "{}")
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.Contains(t, got.body, `"code":"storage-unavailable"`)
	require.NotContains(t, got.body, "Data")
	require.Equal(t, []string{"1"}, got.header.Values("Retry-After"))
	require.Equal(t, 1, b.Run(t, "export", "sales").Status)

	b.Must(t, "migrate", "up")
	eventually(t, patience, "the service becomes ready without a restart", s.IsReady)
	require.Equal(t, http.StatusUnauthorized, s.post(t, addPush, "any", "{}").status)

	migrating := newBank(t, testdb.EnginePostgres).with("storage.migrate", "true")
	require.True(t, migrating.serve(t).IsReady())
}

// TestUsedPort checks that the error for a port in use says what to do.
func TestUsedPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for _, setting := range []string{"http.address", "ops.address"} {
		got := newBank(t, testdb.EngineSQLite).Run(t, "serve", "--"+setting, taken.Addr().String())
		require.Equal(t, 1, got.Status)
		require.Contains(t, got.Err, setting)
		require.Contains(t, got.Err, taken.Addr().String())
		require.Contains(t, got.Err, "address already in use")
		require.NotContains(t, got.Out, "Listening")
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	got := newBank(t, testdb.EngineSQLite).Run(t, "serve", "--http.address", taken.Addr().String(), "--ops.address", other.Addr().String())
	require.Contains(t, got.Err, "http.address (BANKINGAPI_HTTP__ADDRESS): listen on "+taken.Addr().String())
	require.Contains(t, got.Err, "ops.address (BANKINGAPI_OPS__ADDRESS): listen on "+other.Addr().String(), "both are told of at once")
}

// TestImportWhileServing checks that commands of another process and requests
// do not block each other, on SQLite too.
func TestImportWhileServing(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s := b.serve(t, "--demo")
		l := work(t, s, 4, 0)
		var lines strings.Builder
		for customer := range 3000 {
			lines.WriteString(number(100_000+customer) + ",AFA,Demo Portfoy,1\n")
		}
		for range 3 {
			b.Load(t, "holdings", "CustomerNo,IMKBCode,HolderCorporationName,Units", strings.TrimSuffix(lines.String(), "\n"))
			b.Verify(t)
		}
		acknowledged := l.stop()
		require.NotEmpty(t, acknowledged)
		require.Subset(t, b.stored(t), acknowledged)
		require.Len(t, b.Export(t, "holdings"), 3003)
		b.Verify(t)
	})
}
