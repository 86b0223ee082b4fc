package settings

import (
	"slices"
	"strings"

	"bankingapi/domain/fault"
)

// Setting describes one setting, for flags, documents and messages.
type Setting struct {
	// Path is its name in the settings file and as a flag: http.address.
	Path string
	// Form shows what a value looks like: host:port, duration, true|false.
	Form string
	// Usage says in one line what it does.
	Usage string

	field func(*Settings) any
}

const envPrefix = "BANKINGAPI_"

// Variable returns its name in the environment: BANKINGAPI_HTTP__ADDRESS.
func (s Setting) Variable() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.Path, ".", "__"))
}

// Default returns the value that applies if nothing is set, as one would write it.
func (s Setting) Default() string {
	settings := Default()
	if secret, ok := s.field(&settings).(*Secret); ok {
		return string(*secret) // the default is public
	}
	return show(s.field(&settings))
}

// IsSecret reports whether its value is masked. A secret may also come from a
// file: the variable with the suffix _FILE names it.
func (s Setting) IsSecret() bool {
	_, ok := s.field(new(Settings)).(*Secret)
	return ok
}

// IsSwitch reports whether it is either true or false.
func (s Setting) IsSwitch() bool {
	_, ok := s.field(new(Settings)).(*bool)
	return ok
}

// All lists every setting, in the order of the Settings struct.
func All() []Setting {
	return []Setting{
		{"http.address", "host:port", "address of the API; use port 0 to pick a free port", func(s *Settings) any { return &s.HTTP.Address }},
		{"http.body_limit", "size", "maximum size of a request body; larger ones get 413", func(s *Settings) any { return &s.HTTP.BodyLimit }},
		{"http.parameters_limit", "count", "maximum number of records in one request", func(s *Settings) any { return &s.HTTP.ParametersLimit }},
		{"http.read_timeout", "duration", "maximum time to read a request", func(s *Settings) any { return &s.HTTP.ReadTimeout }},
		{"http.write_timeout", "duration", "maximum time to handle a request and write the response", func(s *Settings) any { return &s.HTTP.WriteTimeout }},
		{"http.idle_timeout", "duration", "how long an idle connection stays open", func(s *Settings) any { return &s.HTTP.IdleTimeout }},
		{"http.header_timeout", "duration", "maximum time to read the header of a request", func(s *Settings) any { return &s.HTTP.HeaderTimeout }},
		{"http.docs", "true|false", "serve /docs and the OpenAPI documents", func(s *Settings) any { return &s.HTTP.Docs }},
		{"http.trusted_proxies", "addresses", "addresses or networks of proxies whose X-Forwarded-For is believed, separated by commas. If set, the log has the address of each caller", func(s *Settings) any { return &s.HTTP.TrustedProxies }},
		{"http.public_url", "url", "address under which callers reach the service, for links in errors. Empty makes them relative", func(s *Settings) any { return &s.HTTP.PublicURL }},
		{"http.contact_name", "text", "name of the contact in the OpenAPI documents", func(s *Settings) any { return &s.HTTP.ContactName }},
		{"http.contact_email", "address", "email address of the contact in the OpenAPI documents", func(s *Settings) any { return &s.HTTP.ContactEmail }},
		{"http.contact_url", "url", "page of the contact in the OpenAPI documents", func(s *Settings) any { return &s.HTTP.ContactURL }},
		{"http.terms_url", "url", "page with the terms of service in the OpenAPI documents", func(s *Settings) any { return &s.HTTP.TermsURL }},

		{"tls.mode", "mode", "files (cert_file and key_file), self-signed (for development), off (plain HTTP on loopback only) or proxy (a proxy in front ends TLS)", func(s *Settings) any { return &s.TLS.Mode }},
		{"tls.cert_file", "file", "PEM file with the certificate chain, for tls.mode files; read again when it changes", func(s *Settings) any { return &s.TLS.CertFile }},
		{"tls.key_file", "file", "PEM file with the private key of tls.cert_file", func(s *Settings) any { return &s.TLS.KeyFile }},

		{"storage.driver", "engine", "sqlite or postgres", func(s *Settings) any { return &s.Storage.Driver }},
		{"storage.dsn", "file|url", "SQLite file or Postgres URL; contains a secret: prefer the environment variable or its _FILE form", func(s *Settings) any { return &s.Storage.DSN }},
		{"storage.migrate", "true|false", "let serve migrate a Postgres schema at startup (otherwise run migrate up; SQLite is always migrated)", func(s *Settings) any { return &s.Storage.Migrate }},
		{"storage.max_connections", "count", "maximum number of database connections of this process", func(s *Settings) any { return &s.Storage.MaxConnections }},
		{"storage.statement_timeout", "duration", "maximum time of one SQL statement of a request; less than half of http.write_timeout", func(s *Settings) any { return &s.Storage.StatementTimeout }},
		{"storage.allow_unsafe", "true|false", "be ready although the database server has fsync = off and may lose acknowledged operations", func(s *Settings) any { return &s.Storage.AllowUnsafe }},

		{"commit.batch_limit", "count", "maximum number of records in one shared commit; 1 gives each request its own commit", func(s *Settings) any { return &s.Commit.BatchLimit }},
		{"commit.queue_limit", "count", "maximum number of queued requests; further requests get 503", func(s *Settings) any { return &s.Commit.QueueLimit }},

		{"bank.time_zone", "zone", "IANA name of the bank's time zone, which decides its current day", func(s *Settings) any { return &s.Bank.TimeZone }},

		{"settlement.enabled", "true|false", "settle forward-dated sales on their day", func(s *Settings) any { return &s.Settlement.Enabled }},
		{"settlement.interval", "duration", "how often to check for due sales", func(s *Settings) any { return &s.Settlement.Interval }},

		{"trail.enabled", "true|false", "write the trail, which proves what happened", func(s *Settings) any { return &s.Trail.Enabled }},
		{"trail.key_file", "file", "file with the signing key of the trail (see trail keygen); empty makes one beside a SQLite file, and keeps no trail on Postgres", func(s *Settings) any { return &s.Trail.KeyFile }},
		{"trail.interval", "duration", "how often to sign a checkpoint of the trail; 0s leaves it to other replicas", func(s *Settings) any { return &s.Trail.Interval }},

		{"ops.address", "host:port", "address for health checks, metrics and profiles (plain HTTP, without a key: keep it private); empty disables it", func(s *Settings) any { return &s.Ops.Address }},
		{"ops.hosts", "names", "host names to accept in requests to ops.address, separated by commas; IP addresses and localhost are always accepted", func(s *Settings) any { return &s.Ops.Hosts }},

		{"console.enabled", "true|false", "serve the operator's console at /console/ of ops.address", func(s *Settings) any { return &s.Console.Enabled }},
		{"console.user_header", "header", "header in which an identity proxy names the user; empty means that a one-time link signs in, on a loopback ops.address", func(s *Settings) any { return &s.Console.UserHeader }},
		{"console.trusted_proxies", "addresses", "addresses or networks whose console.user_header is believed, separated by commas", func(s *Settings) any { return &s.Console.TrustedProxies }},
		{"console.operators", "names", "users of console.user_header who may show everything and change things, separated by commas; others are viewers", func(s *Settings) any { return &s.Console.Operators }},
		{"console.dsn", "file|url", "database that the console reads, such as a standby; empty means storage.dsn; contains a secret: prefer the environment variable or its _FILE form", func(s *Settings) any { return &s.Console.DSN }},

		{"log.level", "level", "debug, info, warn or error; can be changed at run time", func(s *Settings) any { return &s.Log.Level }},
		{"log.format", "format", "auto (console on a terminal, otherwise json), console or json", func(s *Settings) any { return &s.Log.Format }},

		{"telemetry.otlp_endpoint", "url", "URL of the OpenTelemetry collector for traces; empty disables them", func(s *Settings) any { return &s.Telemetry.OTLPEndpoint }},

		{"shutdown.delay", "duration", "how long to keep serving after reporting not ready, so that balancers notice", func(s *Settings) any { return &s.Shutdown.Delay }},
		{"shutdown.timeout", "duration", "how long to wait for running requests at shutdown", func(s *Settings) any { return &s.Shutdown.Timeout }},
	}
}

// Suggest returns the setting that a mistyped path most likely means. It
// reports false if no setting is similar.
func Suggest(path string) (string, bool) {
	var paths []string
	for _, s := range All() {
		paths = append(paths, s.Path)
	}
	return nearest(path, paths)
}

// nearest allows more edits than a JSON name does, because people shorten the
// names of settings: storage.max_conns.
func nearest(word string, known []string) (string, bool) {
	return fault.Closest(word, slices.Values(known), max(2, len(strings.TrimPrefix(word, envPrefix))/2))
}
