package settings

import (
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the bank's time zone must be known on machines that have no time zone data
)

// Problem is a setting that cannot be used.
type Problem struct {
	// Path is the setting, or an unknown key or variable as it was given.
	Path string
	// Rule says what is wrong and what is right. It never repeats the value.
	Rule string
	// Origin is where the value came from, as in Loaded; empty where the
	// settings were made in code.
	Origin string
}

// Error is one line: the path, the rule, and the origin if there is one.
func (p Problem) Error() string {
	if p.Origin == "" {
		return p.Path + ": " + p.Rule
	}
	return fmt.Sprintf("%s: %s (%s)", p.Path, p.Rule, p.Origin)
}

// Problems is the error of settings that cannot be used: all that is wrong
// with them, never only the first.
type Problems []Problem

// Error has one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

const (
	maxBodyLimit = 1 << 30

	addressRule  = "must be host:port, like 127.0.0.1:8443; use port 0 to pick a free port"
	positiveRule = "must be longer than 0s"
	countRule    = "must be 1 or more"
	networksRule = "must be IP addresses or networks separated by commas, like 10.0.0.7,10.1.0.0/16"
)

// Drivers are the names that storage.driver may have. nil stands for a storage
// that was handed in: then storage.driver and storage.dsn do not apply.
type Drivers []string

// known are the drivers of this module.
var known = Drivers{SQLite, Postgres}

// Validate returns all problems of the settings as Problems, or nil. It checks
// the settings alone: whether a file can be read or a database reached shows
// when it is opened. storage.driver may be sqlite or postgres.
func (s Settings) Validate() error { return s.ValidateFor(known) }

// ValidateFor is Validate for a program with these drivers.
func (s Settings) ValidateFor(drivers Drivers) error {
	var problems Problems
	must := func(holds bool, path, rule string) {
		if !holds {
			problems = append(problems, Problem{Path: path, Rule: rule})
		}
	}
	oneOf := func(value, path string, known ...string) bool {
		holds := slices.Contains(known, value)
		must(holds, path, "must be "+choice(known))
		return holds
	}

	must(isAddress(s.HTTP.Address), "http.address", addressRule)
	must(s.HTTP.BodyLimit >= 1 && s.HTTP.BodyLimit <= maxBodyLimit, "http.body_limit", "must be at least 1 byte and at most 1GiB")
	must(s.HTTP.ParametersLimit >= 1, "http.parameters_limit", countRule)
	must(s.HTTP.ReadTimeout > 0, "http.read_timeout", positiveRule)
	must(s.HTTP.WriteTimeout > 0, "http.write_timeout", positiveRule)
	must(s.HTTP.IdleTimeout > 0, "http.idle_timeout", positiveRule)
	must(s.HTTP.HeaderTimeout > 0, "http.header_timeout", positiveRule)
	must(s.HTTP.PublicURL == "" || IsHTTPURL(s.HTTP.PublicURL) && !strings.ContainsAny(s.HTTP.PublicURL, "?#"), "http.public_url",
		"must be an http or https URL without a query, like https://bank.example, or empty")
	_, err := s.HTTP.Proxies()
	must(err == nil, "http.trusted_proxies", networksRule)
	const pageRule = "must be an http or https URL, like https://bank.example/help, or empty"
	must(s.HTTP.ContactURL == "" || IsHTTPURL(s.HTTP.ContactURL), "http.contact_url", pageRule)
	must(s.HTTP.TermsURL == "" || IsHTTPURL(s.HTTP.TermsURL), "http.terms_url", pageRule)
	must(s.HTTP.ContactEmail == "" || isEmail(s.HTTP.ContactEmail), "http.contact_email", "must be an email address, like api@bank.example, or empty")

	if oneOf(s.TLS.Mode, "tls.mode", TLSFiles, TLSSelfSigned, TLSOff, TLSProxy) {
		if s.TLS.Mode == TLSOff && isAddress(s.HTTP.Address) {
			must(isLoopback(s.HTTP.Address), "tls.mode",
				"off is for a loopback http.address only, because keys would travel in clear; behind a proxy that ends TLS set proxy")
		}
		const needed, unused = "must name a file, because tls.mode is files", "is for tls.mode files only"
		if s.TLS.Mode == TLSFiles {
			must(s.TLS.CertFile != "", "tls.cert_file", needed)
			must(s.TLS.KeyFile != "", "tls.key_file", needed)
		} else {
			must(s.TLS.CertFile == "", "tls.cert_file", unused)
			must(s.TLS.KeyFile == "", "tls.key_file", unused)
		}
	}

	if drivers != nil {
		rule := drivers.rule(s.Storage.Driver)
		must(rule == "", "storage.driver", rule)
		if rule == "" {
			rule = dsnRule(s.Storage.Driver, string(s.Storage.DSN))
			must(rule == "", "storage.dsn", rule)
		}
	}
	must(s.Storage.MaxConnections >= 1, "storage.max_connections", countRule)
	must(s.Storage.StatementTimeout > 0, "storage.statement_timeout", positiveRule)
	must(s.HTTP.WriteTimeout <= 0 || 2*s.Storage.StatementTimeout < s.HTTP.WriteTimeout, "storage.statement_timeout",
		"must be less than half of http.write_timeout, because a commit may take twice this time and must end before its requests are answered")

	must(s.Commit.BatchLimit >= 1, "commit.batch_limit", countRule)
	must(s.Commit.QueueLimit >= 1, "commit.queue_limit", countRule)

	must(isZone(s.Bank.TimeZone), "bank.time_zone", "must be a name of the IANA time zone database, like Europe/Istanbul")

	must(s.Settlement.Interval > 0, "settlement.interval", positiveRule)

	must(s.Trail.Interval >= 0, "trail.interval", "must be 0s or longer")

	if s.Ops.Address != "" {
		must(isAddress(s.Ops.Address), "ops.address", "must be host:port, like 127.0.0.1:9090, or empty to switch it off")
		must(s.Ops.Address != s.HTTP.Address || strings.HasSuffix(s.Ops.Address, ":0"), "ops.address", "must not be http.address: operators get a listener of their own")
	}

	for _, host := range s.Ops.Hosts.Items() {
		must(isHostname(host), "ops.hosts", "must be host names separated by commas, without scheme and port, like ops.bank.example,metrics")
	}

	s.Console.validate(must, s.Ops.Address)

	oneOf(s.Log.Level, "log.level", "debug", "info", "warn", "error")
	oneOf(s.Log.Format, "log.format", LogAuto, LogConsole, LogJSON)

	must(s.Telemetry.OTLPEndpoint == "" || IsHTTPURL(s.Telemetry.OTLPEndpoint), "telemetry.otlp_endpoint", "must be an http or https URL, like http://127.0.0.1:4318, or empty for no traces")

	must(s.Shutdown.Delay >= 0, "shutdown.delay", "must be 0s or longer")
	must(s.Shutdown.Timeout > 0, "shutdown.timeout", positiveRule)

	if len(problems) == 0 {
		return nil
	}
	return problems
}

// validate checks that only people who are known can reach the console.
func (c Console) validate(must func(bool, string, string), opsAddress string) {
	_, err := c.Proxies()
	must(err == nil, "console.trusted_proxies", networksRule)
	must(c.UserHeader == "" || isToken(c.UserHeader), "console.user_header", "must be the name of a header, like X-Forwarded-User")
	must((c.UserHeader == "") == (len(c.TrustedProxies.Items()) == 0), "console.user_header",
		"must be set together with console.trusted_proxies: otherwise anyone could send the header")
	must(len(c.Operators.Items()) == 0 || c.UserHeader != "", "console.operators", "are users of console.user_header, which is not set")
	if c.Enabled {
		must(opsAddress != "", "console.enabled", "needs ops.address, where the console is served")
		must(opsAddress == "" || c.UserHeader != "" || isLoopback(opsAddress), "console.enabled",
			"needs a loopback ops.address, or console.user_header with console.trusted_proxies: otherwise anyone could sign in")
	}
}

// isToken reports whether the text can be the name of a header.
func isToken(text string) bool {
	return text != "" && strings.Trim(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// choice is "a", "a or b", "a, b or c".
func choice(of []string) string {
	last := len(of) - 1
	if last == 0 {
		return of[0]
	}
	return strings.Join(of[:last], ", ") + " or " + of[last]
}

// rule returns the rule that a storage.driver breaks, or "" if the name is
// registered.
func (d Drivers) rule(name string) string {
	switch {
	case len(d) == 0:
		return "no storage driver is linked: pass bootstrap.WithDriver or engines.All()"
	case slices.Contains(d, name):
		return ""
	case slices.Contains(known, name):
		return "must be " + choice(d) + ": this program has no other driver"
	}
	return "must be " + choice(d)
}

// dsnRule returns the rule that a storage.dsn breaks. Only the drivers of this
// module have rules. The driver of a host checks its DSN when it opens.
func dsnRule(driver, dsn string) string {
	isPostgres := looksLikePostgres(dsn)
	switch {
	case driver == Postgres && !isPostgres:
		return "must be a Postgres URL, like postgres://user:password@host:5432/database, because storage.driver is postgres"
	case driver == SQLite && dsn == "":
		return "must name the SQLite file"
	case driver == SQLite && isPostgres:
		return "is a Postgres URL, but storage.driver is sqlite: set storage.driver to postgres"
	}
	return ""
}

func isAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// isHostname reports whether the text can be the name of a host: labels of
// letters, digits, hyphens and underscores, joined by dots.
func isHostname(text string) bool {
	for label := range strings.SplitSeq(strings.TrimSuffix(text, "."), ".") {
		if label == "" || len(label) > 63 || strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// isLoopback asks no resolver: of names, only localhost counts.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// isZone refuses the empty name and Local, which mean another zone on every
// machine.
func isZone(name string) bool {
	if name == "" || name == "Local" {
		return false
	}
	_, err := time.LoadLocation(name)
	return err == nil
}

// isEmail takes an address alone, without a name before it.
func isEmail(text string) bool {
	address, err := mail.ParseAddress(text)
	return err == nil && address.Address == text
}

// IsHTTPURL reports whether the text is an absolute http or https URL.
func IsHTTPURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// looksLikePostgres knows the two forms that Postgres takes: a URL, and
// key=value words such as "host=/run/postgresql dbname=bank".
func looksLikePostgres(dsn string) bool {
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		return true
	}
	key, _, found := strings.Cut(strings.TrimSpace(dsn), "=")
	return found && slices.Contains([]string{"host", "hostaddr", "port", "dbname", "user", "password", "service", "sslmode", "target_session_attrs"}, strings.TrimSpace(key))
}
