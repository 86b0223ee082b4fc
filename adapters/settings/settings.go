// Package settings has everything that an operator can set, and reads it from a
// YAML file, the environment and flags. It names every problem at once, with
// its place.
package settings

import (
	"net/netip"
	"path/filepath"
	"time"

	"bankingapi/domain/day"
)

// Settings is everything an operator can set. Start from Default: the
// zero value does not validate. Load fills it from a file, the environment and
// flags; a host fills it in code.
type Settings struct {
	HTTP       HTTP
	TLS        TLS
	Storage    Storage
	Commit     Commit
	Bank       Bank
	Settlement Settlement
	Trail      Trail
	Ops        Ops
	Console    Console
	Log        Log
	Telemetry  Telemetry
	Shutdown   Shutdown
}

// HTTP is the listener of the API and the limits of a request.
type HTTP struct {
	// Address is host:port. Use port 0 to pick a free port.
	Address string
	// BodyLimit is the largest request body; a larger one is answered 413.
	BodyLimit Size
	// ParametersLimit is the most records in one request's Parameters.
	ParametersLimit int
	// ReadTimeout bounds reading one request, HeaderTimeout its header alone,
	// WriteTimeout handling it and writing the answer, IdleTimeout the wait
	// for the next request on a connection.
	ReadTimeout, WriteTimeout, IdleTimeout, HeaderTimeout time.Duration
	// Docs serves the documentation pages and the OpenAPI documents.
	Docs bool
	// TrustedProxies are the addresses or networks (10.0.0.0/8) of proxies whose
	// X-Forwarded-For is believed. If there are any, the log line of a request has
	// the caller's address.
	TrustedProxies List
	// PublicURL is the address under which callers reach the service. Links in
	// errors begin with it. If it is empty, they are relative.
	PublicURL string
	// ContactName, ContactEmail and ContactURL say in the OpenAPI documents who
	// answers questions. TermsURL is the page with the terms of service. All may
	// be empty.
	ContactName, ContactEmail, ContactURL, TermsURL string
}

// The values of TLS.Mode (the contract, section 8).
const (
	// TLSFiles serves a certificate and key from files, read again when they
	// change.
	TLSFiles = "files"
	// TLSSelfSigned makes a certificate at the first start, for development.
	TLSSelfSigned = "self-signed"
	// TLSOff speaks plain HTTP, on a loopback address only.
	TLSOff = "off"
	// TLSProxy speaks plain HTTP on any address, because a proxy in front
	// ends TLS.
	TLSProxy = "proxy"
)

// TLS says how requests are kept private.
type TLS struct {
	Mode string
	// CertFile and KeyFile are PEM files, for TLSFiles and for no other mode.
	CertFile, KeyFile string
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
	Driver string
	// DSN is the file for SQLite, and the URL (or the key=value form) for
	// Postgres.
	DSN Secret
	// Migrate brings a Postgres schema up to date before serving. A SQLite
	// file is always brought up to date.
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

// Commit is the group commit: requests that arrive while a commit is
// on its way share the next one.
type Commit struct {
	// BatchLimit is the most records in one commit; a request is never split,
	// so a larger one is a commit of its own. 1 gives each request its own.
	// Batches grow only as the service falls behind: under overload, when a
	// commit waits long for its turn at the processor, large ones are what
	// keeps the rate.
	BatchLimit int
	// QueueLimit is the most requests that wait for their commit; one more is
	// answered 503 at once.
	QueueLimit int
}

// Bank has the settings that are specific to the bank.
type Bank struct {
	// TimeZone is the IANA name of the zone in which the bank's calendar day
	// begins and ends.
	TimeZone string
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

// Settlement is the settling of forward-dated sales on their day.
type Settlement struct {
	// Enabled false leaves the work to other replicas, or to the settle
	// command.
	Enabled bool
	// Interval is the pause between two looks for sales that are due.
	Interval time.Duration
}

// Trail is the log that proves what happened.
type Trail struct {
	// Enabled false writes no leaves. What is written then looks added later.
	Enabled bool
	// KeyFile has the signing key. If it is empty, a database in a file has its
	// key beside it, made at the first start; other databases keep no trail.
	KeyFile string
	// Interval is the pause between two signed checkpoints. 0 leaves them to other
	// replicas.
	Interval time.Duration
}

// Ops is the listener for operators: health, metrics, profiles. It
// speaks plain HTTP and asks for no key, so it belongs on a private address.
type Ops struct {
	// Address is host:port. Use port 0 to pick a free port. Empty disables it.
	Address string
	// Hosts are the host names that a request may be for, beside IP addresses,
	// localhost and the name in Address. Requests for other names are answered
	// 421, so that no web page can reach the listener through a name of its own.
	Hosts List
}

// Console is the operator's console, at /console/ of the ops listener.
type Console struct {
	// Enabled serves the console.
	Enabled bool
	// UserHeader is the header in which an identity proxy names the user. Empty
	// means that a one-time link signs in, which needs a loopback Ops.Address.
	UserHeader string
	// TrustedProxies are the addresses or networks (10.0.0.0/8) whose UserHeader
	// is believed.
	TrustedProxies List
	// Operators are the users of UserHeader who may show numbers and texts in full
	// and change things. Other users are viewers.
	Operators List
	// DSN is a database to read from, such as a standby, in the form of
	// Storage.DSN. Empty means the database of the service.
	DSN Secret
}

// Proxies returns TrustedProxies as networks. Settings that validate have no
// others.
func (c Console) Proxies() ([]netip.Prefix, error) { return networks(c.TrustedProxies) }

// Proxies returns TrustedProxies as networks. Settings that validate have no
// others.
func (h HTTP) Proxies() ([]netip.Prefix, error) { return networks(h.TrustedProxies) }

func networks(of List) (networks []netip.Prefix, err error) {
	for _, text := range of.Items() {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			address, err := netip.ParseAddr(text)
			if err != nil {
				return nil, err
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// The values of Log.Format.
const (
	LogAuto    = "auto" // console on a terminal, else JSON
	LogConsole = "console"
	LogJSON    = "json"
)

// Log is the log, which goes to standard error.
type Log struct {
	// Level is debug, info, warn or error. It can be changed while running.
	Level string
	// Format is LogAuto, LogConsole or LogJSON.
	Format string
}

// Telemetry is where traces go.
type Telemetry struct {
	// OTLPEndpoint is the URL of an OpenTelemetry collector (OTLP over HTTP);
	// empty makes no traces.
	OTLPEndpoint string
}

// Shutdown is the way out: not ready, Delay, take no more, finish all
// that was taken, close.
type Shutdown struct {
	// Delay is the time from "not ready" to the closing of the listener, for
	// balancers to notice.
	Delay time.Duration
	// Timeout bounds the finishing of what was taken.
	Timeout time.Duration
}

// Default returns the default settings: SQLite in the folder data, a
// self-signed certificate, loopback addresses.
func Default() Settings {
	return Settings{
		HTTP: HTTP{
			Address:         "127.0.0.1:8443",
			BodyLimit:       1 << 20,
			ParametersLimit: 1000,
			ReadTimeout:     10 * time.Second,
			WriteTimeout:    10 * time.Second,
			IdleTimeout:     60 * time.Second,
			HeaderTimeout:   5 * time.Second,
			Docs:            true,
		},
		TLS: TLS{Mode: TLSSelfSigned},
		Storage: Storage{
			Driver:           SQLite,
			DSN:              "data/bankingapi.db",
			MaxConnections:   16,
			StatementTimeout: 4 * time.Second,
		},
		Commit:     Commit{BatchLimit: 2048, QueueLimit: 4096},
		Bank:       Bank{TimeZone: "Europe/Istanbul"},
		Settlement: Settlement{Enabled: true, Interval: 15 * time.Second},
		Trail:      Trail{Enabled: true, Interval: time.Second},
		Ops:        Ops{Address: "127.0.0.1:9090"},
		Log:        Log{Level: "info", Format: LogAuto},
		Shutdown:   Shutdown{Timeout: 20 * time.Second},
	}
}
