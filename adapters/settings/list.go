package settings

import (
	"fmt"
	"slices"
	"strings"

	"bankingapi/domain/fault"
)

// Setting describes one setting, for flags, documents and messages.
type Setting struct {
	Path    string // its name in the settings file and as a flag: http.address
	field   any    // points into the Settings that it was listed for
	Default string // the default value, as a person would write it
	Form    string // what a value looks like: host:port, duration, true|false
	Usage   string // what it does, in one line
	check   check
}

const (
	envPrefix    = "BANKINGAPI_"
	fileVariable = envPrefix + "CONFIG"
)

// Variable returns its name in the environment: BANKINGAPI_HTTP__ADDRESS.
func (s Setting) Variable() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.Path, ".", "__"))
}

// Choices returns the allowed values, or nil if they cannot be listed.
func (s Setting) Choices() []string { return s.check.choices }

// IsSwitch reports whether it is either true or false.
func (s Setting) IsSwitch() bool { return isA[bool](s) }

func isA[T any](s Setting) bool {
	_, ok := s.field.(*T)
	return ok
}

// All lists every setting, in the order of the Settings struct.
func All() []Setting { return new(Settings).All() }

// Default returns the default settings: SQLite in the folder data, a
// self-signed certificate, loopback addresses.
func Default() Settings {
	var settings Settings
	for _, s := range settings.All() {
		if err := assign(s.field, s.Default); err != nil {
			panic(fmt.Sprintf("settings: the default of %s %v", s.Path, err))
		}
	}
	return settings
}

// All lists every setting with its value in s. It has one row for each field: path, field,
// default, form, usage, check. A new setting is a field and its row. Rules for several settings
// are in ValidateFor. The tests of cmd/bankingapi/command write the documents: make generate.
func (s *Settings) All() []Setting {
	return []Setting{
		{"http.address", &s.HTTP.Address, "127.0.0.1:8443", "host:port", "address of the API; use port 0 to pick a free port", must("be host:port, like 127.0.0.1:8443; use port 0 to pick a free port", isAddress)},
		{"http.body_limit", &s.HTTP.BodyLimit, "4MiB", "size", "maximum size of a request body; larger ones get 413", must("be at least 1 byte and at most 1GiB", func(s Size) bool { return s >= 1 && s <= 1<<30 })},
		{"http.bodies_limit", &s.HTTP.BodiesLimit, "256MiB", "size", "maximum size of all request bodies in progress together, and of one subscription a quarter of it; further requests get 503", must("be at least 1 byte and at most 64GiB", func(s Size) bool { return s >= 1 && s <= 64<<30 })},
		{"http.parameters_limit", &s.HTTP.ParametersLimit, "1000", "count", "maximum number of records in one request", atLeastOne},
		{"http.read_timeout", &s.HTTP.ReadTimeout, "10s", "duration", "maximum time to read a request", millisecondOrMore},
		{"http.write_timeout", &s.HTTP.WriteTimeout, "10s", "duration", "maximum time to handle a request and write the response", millisecondOrMore},
		{"http.docs", &s.HTTP.Docs, "true", "true|false", "serve /docs and the OpenAPI documents", free},
		{"http.trusted_proxies", &s.HTTP.TrustedProxies, "", "addresses", "addresses or networks of proxies whose X-Forwarded-For is believed, separated by commas. If set, the log has the address of each caller", addresses},
		{"http.public_url", &s.HTTP.PublicURL, "", "url", "address under which callers reach the service, for links in errors and OpenAPI documents. Empty makes them relative", must("be an http or https URL without a user, blanks and a query, like https://bank.example, or empty", orEmpty(IsPublicURL))},
		{"http.document_info", &s.HTTP.DocumentInfo, "", "file", "YAML file with the contact and the termsOfService of the OpenAPI documents; empty names none", free},
		{"tls.mode", &s.TLS.Mode, "self-signed", "mode", "files (cert_file and key_file), self-signed (for development), off (plain HTTP on loopback only) or proxy (a proxy in front ends TLS)", oneOf(TLSFiles, TLSSelfSigned, TLSOff, TLSProxy)},
		{"tls.cert_file", &s.TLS.CertFile, "", "file", "PEM file with the certificate chain, for tls.mode files; read again when it changes", free},
		{"tls.key_file", &s.TLS.KeyFile, "", "file", "PEM file with the private key of tls.cert_file", free},
		{"tls.client_ca", &s.TLS.ClientCA, "", "file", "PEM file with the authorities whose client certificates callers must present; read again when it changes. Empty asks for none", free},
		{"storage.driver", &s.Storage.Driver, "sqlite", "engine", "sqlite or postgres", check{choices: known}},
		{"storage.dsn", &s.Storage.DSN, "data/bankingapi.db", "file|url", "SQLite file or Postgres URL; contains a secret: prefer storage.dsn_file in the settings file, or the variable with _FILE, which name a file that has it", free},
		{"storage.migrate", &s.Storage.Migrate, "false", "true|false", "let serve migrate a Postgres schema at startup (otherwise run migrate up; SQLite is always migrated)", free},
		{"storage.max_connections", &s.Storage.MaxConnections, "16", "count", "maximum number of database connections of this process, of which it needs 2; the console has two more", atLeastOne},
		{"storage.statement_timeout", &s.Storage.StatementTimeout, "4s", "duration", "maximum time of one SQL statement of a request; less than half of http.write_timeout", millisecondOrMore},
		{"storage.allow_unsafe", &s.Storage.AllowUnsafe, "false", "true|false", "be ready although the database may lose acknowledged operations, as with fsync = off, the clock is wrong, or trail.enabled is false and the book has a trail", free},
		{"settlement.enabled", &s.Settlement.Enabled, "true", "true|false", "settle forward-dated sales on their day", free},
		{"retention.notifications", &s.Retention.Notifications, "0", "days", "how many days to keep the personal data of messages; the running service erases older ones every day. 0 keeps them permanently", zeroOrMore},
		{"import.price_change_limit", &s.Import.PriceChangeLimit, "20", "percent", "by how many percent an imported price may differ from the fund's price of an earlier day; more needs import --force. 0 is no limit", zeroOrMore},
		{"trail.enabled", &s.Trail.Enabled, "true", "true|false", "write the trail, which proves what happened", free},
		{"trail.key_file", &s.Trail.KeyFile, "", "file", "file with the signing key of the trail (see trail keygen); empty makes one beside a SQLite file, and keeps no trail on Postgres", free},
		{"ops.address", &s.Ops.Address, "127.0.0.1:9464", "host:port", "address for health checks, metrics and profiles (plain HTTP, without a key: keep it private); empty disables it", must("be host:port, like 127.0.0.1:9464, or empty to switch it off", orEmpty(isAddress))},
		{"ops.hosts", &s.Ops.Hosts, "", "names", "host names to accept in requests to ops.address, separated by commas; IP addresses and localhost are always accepted", must("be host names separated by commas, without scheme and port, like ops.bank.example,metrics", every(hostname.MatchString))},
		{"console.enabled", &s.Console.Enabled, "false", "true|false", "serve the operator's console at /console/ of ops.address", free},
		{"console.user_header", &s.Console.UserHeader, "", "header", "header in which an identity proxy names the user; empty means that a one-time link signs in, on a loopback ops.address", must("be the name of a header, like X-Forwarded-User", orEmpty(headerName.MatchString))},
		{"console.trusted_proxies", &s.Console.TrustedProxies, "", "addresses", "addresses or networks whose console.user_header is believed, separated by commas", addresses},
		{"console.operators", &s.Console.Operators, "", "names", "users of console.user_header who may show everything and change things, separated by commas; others are viewers", free},
		{"log.level", &s.Log.Level, "info", "level", "debug, info, warn or error; can be changed at run time", oneOf("debug", "info", "warn", "error")},
		{"log.format", &s.Log.Format, "auto", "format", "auto (console on a terminal, otherwise json), console or json", oneOf("auto", "console", "json")},
		{"telemetry.otlp_endpoint", &s.Telemetry.OTLPEndpoint, "", "url", "URL of the OpenTelemetry collector for traces; empty disables them", must("be an http or https URL, like http://127.0.0.1:4318, or empty for no traces", orEmpty(IsHTTPURL))},
		{"shutdown.delay", &s.Shutdown.Delay, "0s", "duration", "how long to keep serving after reporting not ready, so that balancers notice; on Postgres 5s by default", notNegative},
		{"shutdown.timeout", &s.Shutdown.Timeout, "20s", "duration", "how long to wait for running requests at shutdown", millisecondOrMore},
	}
}

// Suggest returns the setting that a mistyped path most likely means. It returns false if no
// setting is similar.
func Suggest(path string) (string, bool) {
	var paths []string
	for _, s := range All() {
		paths = append(paths, s.Path)
	}
	return nearest(path, paths)
}

// nearest allows more edits than for a JSON name, because people shorten the names of settings,
// as in storage.max_conns.
func nearest(word string, known []string) (string, bool) {
	return fault.Closest(word, slices.Values(known), max(2, len(strings.TrimPrefix(word, envPrefix))/2))
}
