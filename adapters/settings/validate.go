package settings

import (
	"net"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the bank's time zone must be known on machines that have no time zone data
	"unicode"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// Problem is an invalid setting.
type Problem struct {
	Path   string // the setting, or an unknown key or variable as it was given
	Rule   string // what is wrong and what is valid; never repeats the value
	Origin string // as Loaded.Origin; empty if the settings were made in code
}

// Error returns one line: the path, the rule, and the origin if it is known.
func (p Problem) Error() string {
	text := p.Path + ": " + p.Rule
	if p.Origin != "" {
		text += " (" + p.Origin + ")"
	}
	return text
}

// Problems is the error of invalid settings. It lists all problems, not only the first.
type Problems []Problem

// Error returns one line for each problem.
func (p Problems) Error() string {
	var lines []string
	for _, problem := range p {
		lines = append(lines, problem.Error())
	}
	return strings.Join(lines, "\n")
}

// A check is a rule that the value of one setting must keep.
type check struct {
	rule    string               // what it must be; never repeats the value
	holds   func(field any) bool // nil allows every value
	choices []string             // if no other value is allowed
}

// must makes a check of a rule for values of type T.
func must[T any](rule string, holds func(T) bool) check {
	return check{rule: "must " + rule, holds: func(field any) bool { return holds(*field.(*T)) }}
}

func oneOf(choices ...string) check {
	c := must("be "+Choice(choices), func(value string) bool { return slices.Contains(choices, value) })
	c.choices = choices
	return c
}

func orEmpty(is func(string) bool) func(string) bool {
	return func(text string) bool { return text == "" || is(text) }
}

func every(is func(string) bool) func(List) bool {
	return func(l List) bool { return !slices.ContainsFunc(l.Items(), func(item string) bool { return !is(item) }) }
}

// Checks of several settings.
var (
	free              = check{}
	millisecondOrMore = must("be 1ms or longer", func(d time.Duration) bool { return d >= time.Millisecond })
	notNegative       = must("be 0s or longer", func(d time.Duration) bool { return d >= 0 })
	atLeastOne        = must("be 1 or more", func(n int) bool { return n >= 1 })
	zeroOrMore        = must("be 0 or more", func(n int) bool { return n >= 0 })
	addresses         = must("be IP addresses or networks separated by commas, like 10.0.0.7,10.1.0.0/16", func(l List) bool { _, err := l.Networks(); return err == nil })
)

// ruleFlags are the flags of the rules of the bank, by the pointers of fund.NewRules.
var ruleFlags = map[string]string{"/TimeZone": "time-zone", "/ClosedWeekdays": "closed-weekdays", "/CutOff": "cut-off", "/SettleFrom": "settle-from"}

// RuleProblem returns the problem of a rule of the bank, whose path is its flag.
func RuleProblem(f fault.Fault) Problem {
	rule := strings.TrimSuffix(f.Detail, ".")
	return Problem{Path: ruleFlags[f.Pointer], Rule: strings.ToLower(rule[:1]) + rule[1:]}
}

// Drivers are the names that storage.driver may have. nil means that the host passed a storage:
// then storage.driver and storage.dsn do not apply.
type Drivers []string

// known are the drivers of this module.
var known = Drivers{SQLite, Postgres}

// Validate calls ValidateFor with the drivers sqlite and postgres.
func (s Settings) Validate() error { return s.ValidateFor(known) }

// ValidateFor returns all problems of the settings as Problems, or nil. It checks only the
// settings, not whether files can be read or a database can be reached.
func (s Settings) ValidateFor(drivers Drivers) error {
	var problems Problems
	must := func(holds bool, path, rule string) {
		if !holds {
			problems = append(problems, Problem{Path: path, Rule: rule})
		}
	}
	order := map[string]int{} // of the rows
	for i, row := range s.All() {
		order[row.Path] = i
		must(row.check.holds == nil || row.check.holds(row.field), row.Path, row.check.rule)
	}
	_, faults := fund.NewRules(fund.DefaultRules(), s.Rules)
	for _, f := range faults {
		problems = append(problems, RuleProblem(f))
	}
	must(s.HTTP.BodiesLimit < 1 || s.HTTP.BodyLimit <= s.HTTP.BodiesLimit/4, "http.bodies_limit",
		"must be at least four times http.body_limit, because one subscription may use a quarter of it")
	hasFiles := s.TLS.Mode == TLSFiles
	rule := "is for tls.mode files only"
	if hasFiles {
		rule = "must name a file, because tls.mode is files"
	}
	must((s.TLS.CertFile != "") == hasFiles, "tls.cert_file", rule)
	must((s.TLS.KeyFile != "") == hasFiles, "tls.key_file", rule)
	must(s.TLS.ClientCA == "" || hasFiles || s.TLS.Mode == TLSSelfSigned, "tls.client_ca", "is for tls.mode files or self-signed: the proxy that ends TLS checks the certificates of its clients")
	must(s.TLS.Mode != TLSOff || !isAddress(s.HTTP.Address) || isLoopback(s.HTTP.Address), "tls.mode",
		"off is for a loopback http.address only, because keys would travel in clear; behind a proxy that ends TLS set proxy")
	if path, rule := drivers.broken(s.Storage); drivers != nil {
		must(rule == "", path, rule)
	}
	must(s.HTTP.WriteTimeout <= 0 || s.Storage.StatementTimeout <= (s.HTTP.WriteTimeout-1)/2, "storage.statement_timeout",
		"must be less than half of http.write_timeout, because a commit may take twice this time and must end before its requests are answered")

	must(s.Ops.Address == "" || s.Ops.Address != s.HTTP.Address || strings.HasSuffix(s.Ops.Address, ":0"), "ops.address",
		"must not be http.address: operators get a listener of their own")

	// Only known people can reach the console.
	must((s.Console.UserHeader == "") == (len(s.Console.TrustedProxies.Items()) == 0), "console.user_header",
		"must be set together with console.trusted_proxies: otherwise anyone could send the header")
	must(len(s.Console.Operators.Items()) == 0 || s.Console.UserHeader != "", "console.operators", "are users of console.user_header, which is not set")
	if s.Console.Enabled {
		must(s.Ops.Address != "", "console.enabled", "needs ops.address, where the console is served")
		must(s.Ops.Address == "" || s.Console.UserHeader != "" || isLoopback(s.Ops.Address), "console.enabled",
			"needs a loopback ops.address, or console.user_header with console.trusted_proxies: otherwise anyone could sign in")
	}
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return order[a.Path] - order[b.Path] })
	return problems
}

// Choice is "a", "a or b", "a, b or c".
func Choice(of []string) string {
	last := len(of) - 1
	if last == 0 {
		return of[0]
	}
	return strings.Join(of[:last], ", ") + " or " + of[last]
}

// broken returns an invalid setting of the storage, and the rule that it breaks. Only the
// drivers of this module have rules for storage.dsn. The driver of a host checks its DSN when
// it opens.
func (d Drivers) broken(s Storage) (path, rule string) {
	isLinked := slices.Contains(d, s.Driver)
	isPostgres := postgresDSN.MatchString(string(s.DSN))
	switch {
	case len(d) == 0:
		return "storage.driver", "no storage driver is linked: pass bootstrap.WithDriver or engines.All()"
	case !isLinked && slices.Contains(known, s.Driver):
		return "storage.driver", "must be " + Choice(d) + ": this program has no other driver"
	case !isLinked:
		return "storage.driver", "must be " + Choice(d)
	case s.Driver == Postgres && !isPostgres:
		return "storage.dsn", "must be a Postgres URL, like postgres://user:password@host:5432/database, because storage.driver is postgres"
	case s.Driver == SQLite && isPostgres:
		return "storage.dsn", "is a Postgres URL, but storage.driver is sqlite: set storage.driver to postgres"
	case s.Driver == SQLite && s.brokenFile() != "":
		return "storage.dsn", s.brokenFile()
	case s.Driver == Postgres && hasStray(string(s.DSN)):
		return "storage.dsn", "must have no blanks at its ends, and no line breaks: a file that storage.dsn_file or the variable with _FILE names may end with one"
	case s.Driver == Postgres && isAmbiguous(string(s.DSN)):
		return "storage.dsn", "must have one @ only: write each @ of the password as %40, : as %3A and / as %2F"
	}
	return "", ""
}

// hasStray reports whether a URL has blanks at its ends or control characters. A secret of Kubernetes
// often ends with a line break, which would belong to the name of the database.
func hasStray(url string) bool {
	return strings.Contains(url, "://") && (strings.TrimSpace(url) != url || strings.ContainsFunc(url, unicode.IsControl))
}

// isAmbiguous reports whether the user, password and hosts of a URL cannot be told apart. Then a
// part of the password would be taken for a host, and appear in messages.
func isAmbiguous(url string) bool {
	_, rest, isURL := strings.Cut(url, "://")
	if !isURL {
		return false
	}
	authority := rest
	parameters := ""
	end := strings.IndexAny(rest, "/?#")
	if end >= 0 {
		authority = rest[:end]
		parameters = rest[end:]
	}
	path, _, _ := strings.Cut(parameters, "?")
	if strings.Count(authority, "@") > 1 || strings.Contains(path, "@") {
		return true
	}
	_, hosts, hasUser := strings.Cut(authority, "@")
	if !hasUser {
		hosts = authority
	}
	for host := range strings.SplitSeq(hosts, ",") {
		_, port, hasPort := strings.Cut(host[strings.LastIndex(host, "]")+1:], ":")
		if hasPort && strings.Trim(port, "0123456789") != "" {
			return true
		}
	}
	return false
}

func isAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	_, wrong := strconv.ParseUint(port, 10, 16)
	return err == nil && wrong == nil
}

var (
	// hostname is labels joined by dots. Names of containers have underscores.
	hostname   = regexp.MustCompile(`(?i)^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?$`)
	headerName = regexp.MustCompile(`(?i)^[a-z0-9_-]+$`)
	// postgresDSN is a URL, or key=value words such as "host=/run/postgresql dbname=bank".
	postgresDSN = regexp.MustCompile(`^(postgres(ql)?://|\s*(host|hostaddr|port|dbname|user|password|service|sslmode|target_session_attrs)\s*=)`)
)

// isLoopback does not resolve names: localhost is the only name that it accepts.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// isEmail accepts an address without a name before it.
func isEmail(text string) bool {
	address, err := mail.ParseAddress(text)
	return err == nil && address.Address == text
}

// IsHTTPURL reports whether the text is an absolute http or https URL.
func IsHTTPURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return false
	}
	if u.Port() == "" {
		return true
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0
}

// IsPublicURL reports whether the text is an HTTP URL that can stand before a path. Callers read it
// in errors and in documents, so it has no password.
func IsPublicURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && IsHTTPURL(text) && u.User == nil && !strings.ContainsAny(text, "?#\" ") && !strings.HasSuffix(text, "//")
}
