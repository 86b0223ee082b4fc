package settings

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.yaml.in/yaml/v3"
)

func TestDefaultSettingsAreThoseOfTheDocuments(t *testing.T) {
	t.Parallel()
	require.NoError(t, Default().Validate())

	got := map[string]string{}
	for _, s := range All() {
		got[s.Path] = s.Default
	}
	want := map[string]string{
		"http.address":              "127.0.0.1:8443",
		"http.body_limit":           "4MiB",
		"http.bodies_limit":         "256MiB",
		"http.parameters_limit":     "1000",
		"http.read_timeout":         "10s",
		"http.write_timeout":        "10s",
		"http.docs":                 "true",
		"http.public_url":           "",
		"http.document_info":        "",
		"http.trusted_proxies":      "",
		"tls.mode":                  "self-signed",
		"tls.cert_file":             "",
		"tls.key_file":              "",
		"tls.client_ca":             "",
		"storage.driver":            "sqlite",
		"storage.dsn":               "data/bankingapi.db",
		"storage.migrate":           "false",
		"storage.max_connections":   "16",
		"storage.statement_timeout": "4s",
		"storage.allow_unsafe":      "false",
		"import.price_change_limit": "20",
		"retention.notifications":   "0",
		"settlement.enabled":        "true",
		"trail.enabled":             "true",
		"trail.key_file":            "",
		"ops.address":               "127.0.0.1:9464",
		"ops.hosts":                 "",
		"console.enabled":           "false",
		"console.user_header":       "",
		"console.trusted_proxies":   "",
		"console.operators":         "",
		"log.level":                 "info",
		"log.format":                "auto",
		"telemetry.otlp_endpoint":   "",
		"shutdown.delay":            "0s",
		"shutdown.timeout":          "20s",
	}
	require.Empty(t, cmp.Diff(want, got))
}

// TestEveryFieldIsASetting keeps the list from forgetting a field, or from
// naming one twice.
func TestEveryFieldIsASetting(t *testing.T) {
	t.Parallel()
	var settings Settings
	listed := map[any]string{}
	for _, s := range settings.All() {
		field := s.field
		require.Empty(t, listed[field], "named twice, also by %s", s.Path)
		listed[field] = s.Path
		require.NotEmpty(t, s.Usage, s.Path)
		require.NotEmpty(t, s.Form, s.Path)
	}

	sections := reflect.ValueOf(&settings).Elem()
	fields := 0
	for i := range sections.NumField() {
		section := strings.ToLower(sections.Type().Field(i).Name)
		if section == "rules" { // of a new book: flags of their own, and no settings
			continue
		}
		for j := range sections.Field(i).NumField() {
			fields++
			path, ok := listed[sections.Field(i).Field(j).Addr().Interface()]
			name := sections.Type().Field(i).Name + "." + sections.Field(i).Type().Field(j).Name
			require.True(t, ok, "%s is no setting", name)
			require.True(t, strings.HasPrefix(path, section+"."), "%s is set by %s", name, path)
			require.Equal(t, strings.ToLower(strings.ReplaceAll(name, "_", "")), strings.ReplaceAll(path, "_", ""))
		}
	}
	require.Len(t, listed, fields)
}

func TestValidateNamesEveryProblem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*Settings)
		want   []string // paths
	}{
		{"defaults", func(*Settings) {}, nil},
		{"zero value", func(s *Settings) { *s = Settings{} }, []string{
			"http.address", "http.body_limit", "http.bodies_limit", "http.parameters_limit", "http.read_timeout", "http.write_timeout",
			"tls.mode", "storage.driver", "storage.max_connections",
			"storage.statement_timeout",
			"log.level", "log.format", "shutdown.timeout",
		}},
		{"port 0", func(s *Settings) { s.HTTP.Address, s.Ops.Address = "127.0.0.1:0", "127.0.0.1:0" }, nil},
		{"all interfaces", func(s *Settings) { s.HTTP.Address = ":8443" }, nil},
		{"IPv6", func(s *Settings) { s.HTTP.Address = "[::1]:8443" }, nil},
		{"no port", func(s *Settings) { s.HTTP.Address = "127.0.0.1" }, []string{"http.address"}},
		{"port too high", func(s *Settings) { s.HTTP.Address = "127.0.0.1:65536" }, []string{"http.address"}},
		{"port by name", func(s *Settings) { s.HTTP.Address = "127.0.0.1:https" }, []string{"http.address"}},
		{"body limit too large", func(s *Settings) { s.HTTP.BodyLimit, s.HTTP.BodiesLimit = 1<<30+1, 64<<30 }, []string{"http.body_limit"}},
		{"a quarter takes one body", func(s *Settings) { s.HTTP.BodyLimit = s.HTTP.BodiesLimit / 4 }, nil},
		{"a quarter takes no body", func(s *Settings) { s.HTTP.BodyLimit = s.HTTP.BodiesLimit/4 + 1 }, []string{"http.bodies_limit"}},

		{"tls mode unknown", func(s *Settings) { s.TLS.Mode = "on" }, []string{"tls.mode"}},
		{"tls off on loopback", func(s *Settings) { s.TLS.Mode = TLSOff }, nil},
		{"tls off on localhost", func(s *Settings) { s.TLS.Mode, s.HTTP.Address = TLSOff, "localhost:8080" }, nil},
		{"tls off on IPv6 loopback", func(s *Settings) { s.TLS.Mode, s.HTTP.Address = TLSOff, "[::1]:8080" }, nil},
		{"tls off on a private address", func(s *Settings) { s.TLS.Mode, s.HTTP.Address = TLSOff, "10.0.0.1:80" }, []string{"tls.mode"}},
		{"tls off on all interfaces", func(s *Settings) { s.TLS.Mode, s.HTTP.Address = TLSOff, ":80" }, []string{"tls.mode"}},
		{"tls off on a name", func(s *Settings) { s.TLS.Mode, s.HTTP.Address = TLSOff, "localhost.example.com:80" }, []string{"tls.mode"}},
		{"tls by a proxy", func(s *Settings) { s.TLS.Mode, s.HTTP.Address = TLSProxy, "0.0.0.0:80" }, nil},
		{"tls files", func(s *Settings) { s.TLS = TLS{TLSFiles, "cert.pem", "key.pem", ""} }, nil},
		{"tls files missing", func(s *Settings) { s.TLS.Mode = TLSFiles }, []string{"tls.cert_file", "tls.key_file"}},
		{"tls key missing", func(s *Settings) { s.TLS = TLS{TLSFiles, "cert.pem", "", ""} }, []string{"tls.key_file"}},
		{"tls files without the mode", func(s *Settings) { s.TLS.CertFile = "cert.pem" }, []string{"tls.cert_file"}},

		{"driver unknown", func(s *Settings) { s.Storage.Driver = "mysql" }, []string{"storage.driver"}},
		{"postgres without a URL", func(s *Settings) { s.Storage.Driver = Postgres }, []string{"storage.dsn"}},
		{"postgres by URL", func(s *Settings) { s.Storage.Driver, s.Storage.DSN = Postgres, "postgres://u:p@db/bank" }, nil},
		{"postgres by words", func(s *Settings) { s.Storage.Driver, s.Storage.DSN = Postgres, "host=/run/postgresql dbname=bank" }, nil},
		{"postgres by words in lines", func(s *Settings) { s.Storage.Driver, s.Storage.DSN = Postgres, "host=/run/postgresql\ndbname=bank\n" }, nil},
		{"postgres by URL with a line break", func(s *Settings) { s.Storage.Driver, s.Storage.DSN = Postgres, "postgres://u:p@db/bank\n" }, []string{"storage.dsn"}},
		{"postgres by URL with a blank", func(s *Settings) { s.Storage.Driver, s.Storage.DSN = Postgres, "postgres://u:p@db/bank " }, []string{"storage.dsn"}},
		{"sqlite with a Postgres URL", func(s *Settings) { s.Storage.DSN = "postgresql://db/bank" }, []string{"storage.dsn"}},
		{"sqlite URI", func(s *Settings) { s.Storage.DSN = "file:bank.db" }, nil},
		{"sqlite without a file", func(s *Settings) { s.Storage.DSN = "" }, []string{"storage.dsn"}},

		{"no request has so little time", func(s *Settings) { s.HTTP.ReadTimeout, s.Storage.StatementTimeout = 10, time.Microsecond }, []string{"http.read_timeout", "storage.statement_timeout"}},
		{"a commit outlasts the answer", func(s *Settings) { s.Storage.StatementTimeout = s.HTTP.WriteTimeout / 2 }, []string{"storage.statement_timeout"}},
		{"a commit outlasts every answer", func(s *Settings) { s.Storage.StatementTimeout = math.MaxInt64/2 + 2 }, []string{"storage.statement_timeout"}},
		{"a commit ends before the answer", func(s *Settings) { s.Storage.StatementTimeout = s.HTTP.WriteTimeout/2 - 1 }, nil},
		{"a public URL", func(s *Settings) { s.HTTP.PublicURL = "https://bank.example/api" }, nil},
		{"a public URL without a scheme", func(s *Settings) { s.HTTP.PublicURL = "bank.example" }, []string{"http.public_url"}},
		{"a public URL with a query", func(s *Settings) { s.HTTP.PublicURL = "https://bank.example?x" }, []string{"http.public_url"}},
		{"a public URL with a password", func(s *Settings) { s.HTTP.PublicURL = "https://user:secret@bank.example" }, []string{"http.public_url"}},
		{"a public URL with a port that does not exist", func(s *Settings) { s.HTTP.PublicURL = "https://bank.example:99999" }, []string{"http.public_url"}},
		{"a public URL with a port and no host", func(s *Settings) { s.HTTP.PublicURL = "https://:8443" }, []string{"http.public_url"}},
		{"a public URL with a blank", func(s *Settings) { s.HTTP.PublicURL = "https://bank.example/an api" }, []string{"http.public_url"}},
		{"a public URL with two slashes at its end", func(s *Settings) { s.HTTP.PublicURL = "https://bank.example/api//" }, []string{"http.public_url"}},

		{"zone unknown", func(s *Settings) { s.Rules.TimeZone = "Europe/Atlantis" }, []string{"time-zone"}},
		{"weekdays in any letter case", func(s *Settings) { s.Rules.ClosedWeekdays = "saturday,SUNDAY" }, nil},
		{"weekday unknown", func(s *Settings) { s.Rules.ClosedWeekdays = "Saturday,Pazar" }, []string{"closed-weekdays"}},
		{"hour without minutes", func(s *Settings) { s.Rules.CutOff = "17" }, []string{"cut-off"}},
		{"hour that does not exist", func(s *Settings) { s.Rules.SettleFrom = "24:00" }, []string{"settle-from"}},
		{"zone of the machine", func(s *Settings) { s.Rules.TimeZone = "Local" }, []string{"time-zone"}},
		{"zone outside the database", func(s *Settings) { s.Rules.TimeZone = "../../etc/passwd" }, []string{"time-zone"}},
		{"ops off", func(s *Settings) { s.Ops.Address = "" }, nil},
		{"ops without a port", func(s *Settings) { s.Ops.Address = "localhost" }, []string{"ops.address"}},
		{"ops on the API's address", func(s *Settings) { s.Ops.Address = s.HTTP.Address }, []string{"ops.address"}},
		{"console on loopback", func(s *Settings) { s.Console.Enabled = true }, nil},
		{"console open to anyone", func(s *Settings) { s.Console.Enabled, s.Ops.Address = true, "0.0.0.0:9090" }, []string{"console.enabled"}},
		{"console without a listener", func(s *Settings) { s.Console.Enabled, s.Ops.Address = true, "" }, []string{"console.enabled"}},
		{"console behind a proxy", func(s *Settings) {
			s.Console.Enabled, s.Ops.Address, s.Console.UserHeader, s.Console.TrustedProxies, s.Console.Operators = true, "0.0.0.0:9090", "X-Forwarded-User", "10.0.0.7, 10.1.0.0/16,::1", "ayse"
		}, nil},
		{"console header from anywhere", func(s *Settings) { s.Console.UserHeader = "X-Forwarded-User" }, []string{"console.user_header"}},
		{"console header is a sentence", func(s *Settings) {
			s.Console.UserHeader, s.Console.TrustedProxies = "the user", "10.0.0.7"
		}, []string{"console.user_header"}},
		{"console proxy is a name", func(s *Settings) {
			s.Console.UserHeader, s.Console.TrustedProxies = "X-User", "proxy"
		}, []string{"console.trusted_proxies"}},
		{"console operators without a proxy", func(s *Settings) { s.Console.Operators = "ayse" }, []string{"console.operators"}},
		{"ops hosts", func(s *Settings) { s.Ops.Hosts = "ops.bank.example., metrics,api_1" }, nil},
		{"ops host with a port", func(s *Settings) { s.Ops.Hosts = "ops.bank.example:9090" }, []string{"ops.hosts"}},
		{"ops host with a scheme", func(s *Settings) { s.Ops.Hosts = "http://ops.bank.example" }, []string{"ops.hosts"}},
		{"ops host is a pattern", func(s *Settings) { s.Ops.Hosts = "*.bank.example" }, []string{"ops.hosts"}},
		{"log level unknown", func(s *Settings) { s.Log.Level = "INFO" }, []string{"log.level"}},
		{"collector", func(s *Settings) { s.Telemetry.OTLPEndpoint = "http://collector:4318" }, nil},
		{"collector without a scheme", func(s *Settings) { s.Telemetry.OTLPEndpoint = "collector:4318" }, []string{"telemetry.otlp_endpoint"}},
		{"negative delay", func(s *Settings) { s.Shutdown.Delay = -time.Second }, []string{"shutdown.delay"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			settings := Default()
			test.change(&settings)
			err := settings.Validate()
			if test.want == nil {
				require.NoError(t, err)
				return
			}
			var problems Problems
			require.ErrorAs(t, err, &problems)
			var paths []string
			for _, p := range problems {
				paths = append(paths, p.Path)
				require.NotEmpty(t, p.Rule)
				require.Contains(t, err.Error(), p.Path+": "+p.Rule)
			}
			require.Equal(t, test.want, paths)
		})
	}
}

func TestSecretHidesItself(t *testing.T) {
	t.Parallel()
	const password = "open-sesame"
	settings := Default()
	settings.Storage.DSN = "postgres://bank:" + password + "@db/bank"

	var log strings.Builder
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&log), zap.DebugLevel)
	zap.New(core).Info("settings", zap.Any("all", settings), zap.Any("dsn", settings.Storage.DSN),
		zap.Reflect("reflected", settings.Storage), zap.Any("list", []Secret{settings.Storage.DSN}))

	asJSON, err := json.Marshal(settings)
	require.NoError(t, err)
	asYAML, err := yaml.Marshal(settings)
	require.NoError(t, err)
	shown := map[string]string{"zap": log.String(), "json": string(asJSON), "yaml": string(asYAML)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		shown[verb] = fmt.Sprintf(verb+verb+verb, settings, settings.Storage.DSN, &settings.Storage.DSN)
	}
	for how, text := range shown {
		require.NotContains(t, text, password, how)
		require.NotContains(t, strings.ToLower(text), fmt.Sprintf("%x", password), how)
		require.Contains(t, text, "***", how)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Size{
		"0": 0, "1": 1, "1000": 1000, "1KiB": 1 << 10, "512KiB": 512 << 10, "1MiB": 1 << 20, "3GiB": 3 << 30,
	} {
		got, err := parseSize(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for _, text := range []string{"", "MiB", "1 MiB", "1MB", "1.5MiB", "1mib", "9223372036854775807KiB", "1e6", "0x10"} {
		_, err := parseSize(text)
		require.Error(t, err, text)
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"http.adress":       "http.address",
		"HTTP.ADDRESS":      "http.address",
		"storage.max_conns": "storage.max_connections",
		"log-level":         "log.level",
		"port":              "",
		"":                  "",
	} {
		got, ok := Suggest(typed)
		require.Equal(t, want, got, typed)
		require.Equal(t, want != "", ok, typed)
	}
}

// The address of a connection is compared as IPv4, so that a proxy may be written either way.
func TestAnIPv4AddressMayBeWrittenAsIPv6(t *testing.T) {
	t.Parallel()
	networks, err := List("::ffff:10.0.0.7, ::ffff:10.1.0.9/112, 10.2.0.7, ::1, fe80::1%eth0, ::/0").Networks()
	require.NoError(t, err)
	require.Equal(t, "[10.0.0.7/32 10.1.0.0/16 10.2.0.7/32 ::1/128 fe80::1/128 ::/0]", fmt.Sprint(networks))
}

// SQLite and other programs take these for more than the name of a file.
func TestOddNamesOfTheSQLiteFileAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", "file:", "file:data/bank.db?mode=rwc", "data/bank.db?mode=rwc", "bank.db?", ":memory:", "file::memory:", "file:/data/bank%20one.db", "bank.db#1",
		"sqlite:data/bank.db", "sqlite3:bank.db", "sqlite://data/bank.db", "file:///data/bank.db", "FILE:bank.db", "file:file:bank.db", "~/bank.db",
		" bank.db", "bank.db ", "bank.db\n", "bank\u00a0.db", "bank\u202e.db", "data/", "file:data/", ".", "..", "bank.db-wal", "bank.db-shm", "$HOME/bank.db", `"bank.db"`, "'bank.db'",
	} {
		s := Default()
		s.Storage.DSN = Secret(name)
		require.ErrorContains(t, s.Validate(), "storage.dsn: must ", "%q", name)
	}
	for name, file := range map[string]string{"bank.db": "bank.db", "file:bank.db": "bank.db", "file:/data/bank.db": "/data/bank.db", "/data/my bank.db": "/data/my bank.db", "C:\\bank.db": "C:\\bank.db", "bank%20.db": "bank%20.db"} {
		s := Default()
		s.Storage.DSN = Secret(name)
		require.NoError(t, s.Validate(), name)
		require.Equal(t, file, s.Storage.File())
	}
}

// A part of such a password would be taken for a host, and be named in messages.
func TestPasswordsWithUnescapedSignsAreRefused(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://bank:open@sesame@db/bank", "postgres://bank:open/sesame@db/bank", "postgres://bank:open?sesame@db/bank", "postgres://bank:open#sesame@db/bank",
		"postgresql://bank:a@b@c@db:5432/bank?sslmode=disable", "postgres://bank:open@sesame:word@db/bank",
	} {
		s := Default()
		s.Storage.Driver, s.Storage.DSN = Postgres, Secret(url)
		err := s.Validate()
		require.ErrorContains(t, err, "storage.dsn: must have one @ only", url)
		require.NotContains(t, err.Error(), "sesame")
	}
	for _, url := range []string{
		"postgres://bank:open%40sesame@db/bank", "postgres://db/bank?user=a@b", "postgres://bank@[fd00::1]:5432/bank", "postgres://bank:x@db1:5432,db2:5433/bank?target_session_attrs=primary",
		"host=db user=bank password=open@sesame dbname=bank", "postgres:///bank?host=/run/postgresql",
	} {
		s := Default()
		s.Storage.Driver, s.Storage.DSN = Postgres, Secret(url)
		require.NoError(t, s.Validate(), url)
	}
}
