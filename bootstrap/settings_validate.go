package bootstrap

import (
	"fmt"
	"net"
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

	addressRule  = "must be host:port, like 127.0.0.1:8443; port 0 takes a free one"
	positiveRule = "must be longer than 0s"
	countRule    = "must be 1 or more"
)

// Validate returns every problem of the settings as Problems, or nil. It looks
// at the settings alone: whether a file can be read or a database reached,
// only opening it can tell.
func (s Settings) Validate() error {
	var problems Problems
	must := func(holds bool, path, rule string) {
		if !holds {
			problems = append(problems, Problem{Path: path, Rule: rule})
		}
	}
	oneOf := func(value, path string, known ...string) bool {
		holds := slices.Contains(known, value)
		last := len(known) - 1
		must(holds, path, "must be "+strings.Join(known[:last], ", ")+" or "+known[last])
		return holds
	}

	must(isAddress(s.HTTP.Address), "http.address", addressRule)
	must(s.HTTP.BodyLimit >= 1 && s.HTTP.BodyLimit <= maxBodyLimit, "http.body_limit", "must be at least 1 byte and at most 1GiB")
	must(s.HTTP.ParametersLimit >= 1, "http.parameters_limit", countRule)
	must(s.HTTP.ReadTimeout > 0, "http.read_timeout", positiveRule)
	must(s.HTTP.WriteTimeout > 0, "http.write_timeout", positiveRule)
	must(s.HTTP.IdleTimeout > 0, "http.idle_timeout", positiveRule)
	must(s.HTTP.HeaderTimeout > 0, "http.header_timeout", positiveRule)

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

	if oneOf(s.Storage.Driver, "storage.driver", SQLite, Postgres) {
		isPostgres := looksLikePostgres(string(s.Storage.DSN))
		switch {
		case s.Storage.Driver == Postgres:
			must(isPostgres, "storage.dsn", "must be a Postgres URL, like postgres://user:password@host:5432/database, because storage.driver is postgres")
		case s.Storage.DSN == "":
			must(false, "storage.dsn", "must name the SQLite file")
		default:
			must(!isPostgres, "storage.dsn", "is a Postgres URL, but storage.driver is sqlite: set storage.driver to postgres")
		}
	}
	must(s.Storage.MaxConnections >= 1, "storage.max_connections", countRule)
	must(s.Storage.StatementTimeout > 0, "storage.statement_timeout", positiveRule)

	must(s.Commit.BatchLimit >= 1, "commit.batch_limit", countRule)
	must(s.Commit.QueueLimit >= 1, "commit.queue_limit", countRule)

	must(isZone(s.Bank.TimeZone), "bank.time_zone", "must be a name of the IANA time zone database, like Europe/Istanbul")

	must(s.Settlement.Interval > 0, "settlement.interval", positiveRule)

	if s.Ops.Address != "" {
		must(isAddress(s.Ops.Address), "ops.address", "must be host:port, like 127.0.0.1:9090, or empty to switch it off")
		must(s.Ops.Address != s.HTTP.Address || strings.HasSuffix(s.Ops.Address, ":0"), "ops.address", "must not be http.address: operators get a listener of their own")
	}

	oneOf(s.Log.Level, "log.level", "debug", "info", "warn", "error")
	oneOf(s.Log.Format, "log.format", LogAuto, LogConsole, LogJSON)

	must(s.Telemetry.OTLPEndpoint == "" || isHTTPURL(s.Telemetry.OTLPEndpoint), "telemetry.otlp_endpoint", "must be an http or https URL, like http://127.0.0.1:4318, or empty for no traces")

	must(s.Shutdown.Delay >= 0, "shutdown.delay", "must be 0s or longer")
	must(s.Shutdown.Timeout > 0, "shutdown.timeout", positiveRule)

	if len(problems) == 0 {
		return nil
	}
	return problems
}

func isAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
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

func isHTTPURL(text string) bool {
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
