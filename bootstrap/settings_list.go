package bootstrap

import "strings"

// Setting describes one setting, for flags, documents and messages.
type Setting struct {
	// Path is its name in the file and as a flag: http.address.
	Path string
	// Form is what its value looks like: host:port, duration, true|false.
	Form string
	// Usage says in one line what it does.
	Usage string

	field func(*Settings) any
}

const envPrefix = "BANKINGAPI_"

// Variable is its name in the environment: BANKINGAPI_HTTP__ADDRESS.
func (s Setting) Variable() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.Path, ".", "__"))
}

// Default is its value where nothing is set, as it would be written.
func (s Setting) Default() string {
	settings := DefaultSettings()
	if secret, ok := s.field(&settings).(*Secret); ok {
		return string(*secret) // what everybody may read here is no secret
	}
	return show(s.field(&settings))
}

// IsSecret reports whether its value is masked, and may come from a file whose
// name is in the variable with _FILE at its end.
func (s Setting) IsSecret() bool {
	_, ok := s.field(new(Settings)).(*Secret)
	return ok
}

// IsSwitch reports whether it is either true or false.
func (s Setting) IsSwitch() bool {
	_, ok := s.field(new(Settings)).(*bool)
	return ok
}

// AllSettings lists every setting, in the order of the Settings struct.
func AllSettings() []Setting {
	return []Setting{
		{"http.address", "host:port", "where the API listens; port 0 takes a free one", func(s *Settings) any { return &s.HTTP.Address }},
		{"http.body_limit", "size", "largest request body", func(s *Settings) any { return &s.HTTP.BodyLimit }},
		{"http.parameters_limit", "count", "most records in one request", func(s *Settings) any { return &s.HTTP.ParametersLimit }},
		{"http.read_timeout", "duration", "longest reading of a request", func(s *Settings) any { return &s.HTTP.ReadTimeout }},
		{"http.write_timeout", "duration", "longest handling and answering of a request", func(s *Settings) any { return &s.HTTP.WriteTimeout }},
		{"http.idle_timeout", "duration", "longest pause between two requests of a connection", func(s *Settings) any { return &s.HTTP.IdleTimeout }},
		{"http.header_timeout", "duration", "longest reading of a request's header", func(s *Settings) any { return &s.HTTP.HeaderTimeout }},
		{"http.docs", "true|false", "serve /docs and /BankingApiV01/openapi.json", func(s *Settings) any { return &s.HTTP.Docs }},

		{"tls.mode", "mode", "files, self-signed, off (loopback only) or proxy (a proxy in front ends TLS)", func(s *Settings) any { return &s.TLS.Mode }},
		{"tls.cert_file", "file", "PEM certificate chain, with tls.mode files; read again when it changes", func(s *Settings) any { return &s.TLS.CertFile }},
		{"tls.key_file", "file", "PEM private key of tls.cert_file", func(s *Settings) any { return &s.TLS.KeyFile }},

		{"storage.driver", "engine", "sqlite or postgres", func(s *Settings) any { return &s.Storage.Driver }},
		{"storage.dsn", "file|url", "SQLite file or Postgres URL; a secret, so rather a variable or its _FILE than a flag", func(s *Settings) any { return &s.Storage.DSN }},
		{"storage.migrate", "true|false", "let serve bring a Postgres schema up to date (SQLite: always)", func(s *Settings) any { return &s.Storage.Migrate }},
		{"storage.max_connections", "count", "most database connections of this process", func(s *Settings) any { return &s.Storage.MaxConnections }},
		{"storage.statement_timeout", "duration", "longest statement of a request", func(s *Settings) any { return &s.Storage.StatementTimeout }},

		{"commit.batch_limit", "count", "most records in one shared commit; 1 gives each request its own", func(s *Settings) any { return &s.Commit.BatchLimit }},
		{"commit.queue_limit", "count", "most requests waiting for a commit; one more is answered 503", func(s *Settings) any { return &s.Commit.QueueLimit }},

		{"bank.time_zone", "zone", "IANA time zone of the bank's calendar day", func(s *Settings) any { return &s.Bank.TimeZone }},

		{"settlement.enabled", "true|false", "settle forward-dated sales on their day", func(s *Settings) any { return &s.Settlement.Enabled }},
		{"settlement.interval", "duration", "pause between two looks for due sales", func(s *Settings) any { return &s.Settlement.Interval }},

		{"ops.address", "host:port", "where health, metrics and profiles are served, in plain HTTP; empty: nowhere", func(s *Settings) any { return &s.Ops.Address }},

		{"log.level", "level", "debug, info, warn or error; can be changed while running", func(s *Settings) any { return &s.Log.Level }},
		{"log.format", "format", "auto (console on a terminal, else json), console or json", func(s *Settings) any { return &s.Log.Format }},

		{"telemetry.otlp_endpoint", "url", "OpenTelemetry collector for traces; empty: no traces", func(s *Settings) any { return &s.Telemetry.OTLPEndpoint }},

		{"shutdown.delay", "duration", "wait between not ready and closing the listener, for balancers", func(s *Settings) any { return &s.Shutdown.Delay }},
		{"shutdown.timeout", "duration", "longest finishing of what was taken", func(s *Settings) any { return &s.Shutdown.Timeout }},
	}
}

// Suggest is the setting a mistyped path most likely means. It reports false
// where none is near.
func Suggest(path string) (string, bool) {
	var paths []string
	for _, s := range AllSettings() {
		paths = append(paths, s.Path)
	}
	return nearest(path, paths)
}

// nearest is the known word with the fewest edits to word, if these are few
// enough to be a slip and not another word.
func nearest(word string, known []string) (string, bool) {
	best, fewest := "", 1+max(2, len(word)/2)
	for _, candidate := range known {
		if n := edits(word, candidate); n < fewest {
			best, fewest = candidate, n
		}
	}
	return best, best != ""
}

// edits is the Levenshtein distance, blind to letter case.
func edits(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
