// Package settings has everything that an operator can set, and reads it from a
// YAML file, the environment and flags. It names every problem at once, with
// its place.
package settings

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
)

// Settings is everything an operator can set. Start from Default: the
// zero value does not validate. Load fills it from a file, the environment and
// flags; a host fills it in code. The setting of each field (All) says what it
// does; a comment here says what a host must know besides.
type Settings struct {
	HTTP       HTTP
	TLS        TLS
	Storage    Storage
	Commit     Commit
	Bank       Bank
	Settlement Settlement
	Retention  Retention
	Trail      Trail
	Ops        Ops
	Console    Console
	Log        Log
	Telemetry  Telemetry
	Shutdown   Shutdown
}

// HTTP is the listener of the API and the limits of a request.
type HTTP struct {
	Address         string // host:port
	BodyLimit       Size
	ParametersLimit int
	ReadTimeout     time.Duration // with the header
	WriteTimeout    time.Duration // more than twice Storage.StatementTimeout
	IdleTimeout     time.Duration
	HeaderTimeout   time.Duration
	Docs            bool
	Outcomes        bool // serves /outcomes
	TrustedProxies  List
	PublicURL       string // may be empty, as the next four
	ContactName     string
	ContactEmail    string
	ContactURL      string
	TermsURL        string
}

// The values of TLS.Mode (the contract, section 8).
const (
	TLSFiles      = "files"       // a certificate and key from files, read again when they change
	TLSSelfSigned = "self-signed" // a certificate made at the first start, for development
	TLSOff        = "off"         // plain HTTP, on a loopback address only
	TLSProxy      = "proxy"       // plain HTTP on any address, because a proxy in front ends TLS
)

// TLS says how requests are kept private.
type TLS struct {
	Mode              string
	CertFile, KeyFile string // PEM, for TLSFiles and for no other mode
	ClientCA          string // PEM, or empty
}

// Files returns the files of the certificate. With TLSSelfSigned they are in folder.
func (t TLS) Files(folder string) (certFile, keyFile string) {
	if t.Mode == TLSSelfSigned {
		return filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	}
	return t.CertFile, t.KeyFile
}

// The values of Storage.Driver.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Storage is the database.
type Storage struct {
	Driver  string
	DSN     Secret // the file for SQLite, the URL or the key=value form for Postgres
	Migrate bool
	// MaxConnections bounds the pool of one process. On SQLite it bounds the
	// readers; the writer is always one.
	MaxConnections int
	// StatementTimeout bounds every statement of a request. A commit has twice
	// this time, which must be less than HTTP.WriteTimeout: otherwise a
	// request had to be answered before its commit ends.
	StatementTimeout time.Duration
	// AllowUnsafe lets the service be ready although the database may lose
	// acknowledged operations in a crash (fsync = off). It is for tests.
	AllowUnsafe bool
}

// Name names the book without secrets.
func (s Storage) Name() string {
	dsn := string(s.DSN)
	switch s.Driver {
	case SQLite:
		file, _ := filepath.Abs(strings.TrimPrefix(dsn, "file:"))
		return "SQLite file " + file
	case Postgres:
		if config, err := url.Parse(dsn); err == nil && config.Host != "" {
			return "Postgres database " + strings.TrimPrefix(config.Path, "/") + " at " + config.Host
		}
		return "Postgres database " + strings.TrimSpace(strings.Join(harmless.FindAllString(dsn, -1), ""))
	}
	return "storage " + s.Driver
}

// harmless are the words of a DSN that are no secrets.
var harmless = regexp.MustCompile(`(^|\s)(host|hostaddr|port|dbname)=\S+`)

// Commit is the group commit: requests that arrive while a commit is
// on its way share the next one.
type Commit struct {
	// BatchLimit is the most records in one commit; a request is never split,
	// so a larger one is a commit of its own. Batches grow only as the service
	// falls behind: under overload, when a commit waits long for its turn at the
	// processor, large ones are what keeps the rate.
	BatchLimit int
	QueueLimit int
}

// Bank has the settings that are specific to the bank.
type Bank struct {
	// TimeZone is the IANA name of the zone in which the bank's calendar day
	// begins and ends.
	TimeZone string
	// ClosedWeekdays are the English names of the days of the week on which the bank
	// is closed. Other closed days are in the book.
	ClosedWeekdays List
	// CutOff is the bank's local time, HH:MM, from which on sales for today are
	// refused. Empty means never.
	CutOff string
}

// Calendar is what the settings say of the days for which the bank takes sales.
func (b Bank) Calendar() (c fund.Calendar) {
	c.CutOff, _ = day.ParseClock(b.CutOff) // none if it is empty
	for _, name := range b.ClosedWeekdays.Items() {
		if of, ok := fund.ParseWeekday(name); ok {
			c.Weekdays[of] = true
		}
	}
	return c
}

// Location is the time zone. Settings that validate always have one.
func (b Bank) Location() (*time.Location, error) { return time.LoadLocation(b.TimeZone) }

// Day reads a calendar day of the bank, YYYY-MM-DD. It returns its first
// instant and that of the next day.
func (b Bank) Day(text string) (start, end time.Time, err error) {
	zone, err := b.Location()
	if err != nil {
		return start, end, err
	}
	d, err := day.Parse(text)
	if err != nil {
		return start, end, err
	}
	return d.Start(zone), d.Plus(1).Start(zone), nil
}

// Retention says how long personal data are kept, in days. 0 is for ever.
type Retention struct{ Notifications int }

// Settlement is the settling of forward-dated sales on their day.
type Settlement struct {
	Enabled  bool // false leaves it to other replicas, or to the settle command
	Interval time.Duration
	// Price is PriceNewest or PriceOfTheDay.
	Price string
	// NotBefore is the bank's local time, HH:MM, before which the sales of a day are
	// not settled.
	NotBefore string
}

// The values of Settlement.Price (the contract, section 5.5).
const (
	PriceNewest   = "newest"
	PriceOfTheDay = "of-the-day"
)

// Begins is NotBefore. Settings that validate always have it.
func (s Settlement) Begins() day.Clock {
	c, _ := day.ParseClock(s.NotBefore)
	return c
}

// Trail is the log that proves what happened.
type Trail struct {
	Enabled  bool // false writes no leaves. What is written then looks added later
	KeyFile  string
	Interval time.Duration
}

// Ops is the listener for operators: health, metrics, profiles. It
// speaks plain HTTP and asks for no key, so it belongs on a private address.
type Ops struct {
	Address string // host:port, or empty
	// Hosts are the host names that a request may be for, beside IP addresses,
	// localhost and the name in Address. Requests for other names are answered
	// 421, so that no web page can reach the listener through a name of its own.
	Hosts List
}

// Console is the operator's console, at /console/ of the ops listener.
type Console struct {
	Enabled        bool
	UserHeader     string // empty needs a loopback Ops.Address
	TrustedProxies List
	Operators      List
	DSN            Secret // in the form of Storage.DSN, or empty
}

// The values of Log.Format.
const (
	LogAuto    = "auto" // console on a terminal, else JSON
	LogConsole = "console"
	LogJSON    = "json"
)

// Log is the log, which goes to standard error.
type Log struct {
	Level  string
	Format string
}

// Telemetry is where traces go.
type Telemetry struct {
	OTLPEndpoint string // OTLP over HTTP; empty makes no traces
}

// Shutdown is the way out: not ready, Delay, take no more, finish all
// that was taken within Timeout, close.
type Shutdown struct {
	Delay   time.Duration
	Timeout time.Duration
}
