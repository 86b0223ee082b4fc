package bootstrap

import (
	"time"

	"bankingapi/domain/day"
)

// Settings is everything an operator can set. Start from DefaultSettings: the
// zero value does not validate. Load fills it from a file, the environment and
// flags; a host fills it in code.
type Settings struct {
	HTTP       HTTPSettings
	TLS        TLSSettings
	Storage    StorageSettings
	Commit     CommitSettings
	Bank       BankSettings
	Settlement SettlementSettings
	Ops        OpsSettings
	Log        LogSettings
	Telemetry  TelemetrySettings
	Shutdown   ShutdownSettings
}

// HTTPSettings is the listener of the API and the limits of a request.
type HTTPSettings struct {
	// Address is host:port. Port 0 takes a free one.
	Address string
	// BodyLimit is the largest request body; a larger one is answered 413.
	BodyLimit Size
	// ParametersLimit is the most records in one request's Parameters.
	ParametersLimit int
	// ReadTimeout bounds reading one request, HeaderTimeout its header alone,
	// WriteTimeout handling it and writing the answer, IdleTimeout the wait
	// for the next request on a connection.
	ReadTimeout, WriteTimeout, IdleTimeout, HeaderTimeout time.Duration
	// Docs serves the documentation page and the OpenAPI document.
	Docs bool
}

// The values of TLSSettings.Mode (the contract, section 8).
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

// TLSSettings says how requests are kept private.
type TLSSettings struct {
	Mode string
	// CertFile and KeyFile are PEM files, for TLSFiles and for no other mode.
	CertFile, KeyFile string
}

// The values of StorageSettings.Driver.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// StorageSettings is the database.
type StorageSettings struct {
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
	// StatementTimeout bounds every statement of a request.
	StatementTimeout time.Duration
}

// CommitSettings is the group commit: requests that arrive while a commit is
// on its way share the next one.
type CommitSettings struct {
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

// BankSettings is what is particular to the bank.
type BankSettings struct {
	// TimeZone is the IANA name of the zone in which the bank's calendar day
	// begins and ends.
	TimeZone string
}

// Location is the time zone. Settings that validate always have one.
func (b BankSettings) Location() (*time.Location, error) { return time.LoadLocation(b.TimeZone) }

// Day reads a calendar day of the bank, YYYY-MM-DD. It returns its first
// instant and that of the next day.
func (b BankSettings) Day(text string) (start, end time.Time, err error) {
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

// SettlementSettings is the settling of forward-dated sales on their day.
type SettlementSettings struct {
	// Enabled false leaves the work to other replicas, or to the settle
	// command.
	Enabled bool
	// Interval is the pause between two looks for sales that are due.
	Interval time.Duration
}

// OpsSettings is the listener for operators: health, metrics, profiles. It
// speaks plain HTTP and asks for no key, so it belongs on a private address.
type OpsSettings struct {
	// Address is host:port. Port 0 takes a free one; empty switches it off.
	Address string
}

// The values of LogSettings.Format.
const (
	LogAuto    = "auto" // console on a terminal, else JSON
	LogConsole = "console"
	LogJSON    = "json"
)

// LogSettings is the log, which goes to standard error.
type LogSettings struct {
	// Level is debug, info, warn or error. It can be changed while running.
	Level string
	// Format is LogAuto, LogConsole or LogJSON.
	Format string
}

// TelemetrySettings is where traces go.
type TelemetrySettings struct {
	// OTLPEndpoint is the URL of an OpenTelemetry collector (OTLP over HTTP);
	// empty makes no traces.
	OTLPEndpoint string
}

// ShutdownSettings is the way out: not ready, Delay, take no more, finish all
// that was taken, close.
type ShutdownSettings struct {
	// Delay is the time from "not ready" to the closing of the listener, for
	// balancers to notice.
	Delay time.Duration
	// Timeout bounds the finishing of what was taken.
	Timeout time.Duration
}

// DefaultSettings is what holds where nothing is set: SQLite in the folder
// data, a self-signed certificate, loopback addresses.
func DefaultSettings() Settings {
	return Settings{
		HTTP: HTTPSettings{
			Address:         "127.0.0.1:8443",
			BodyLimit:       1 << 20,
			ParametersLimit: 1000,
			ReadTimeout:     10 * time.Second,
			WriteTimeout:    10 * time.Second,
			IdleTimeout:     60 * time.Second,
			HeaderTimeout:   5 * time.Second,
			Docs:            true,
		},
		TLS: TLSSettings{Mode: TLSSelfSigned},
		Storage: StorageSettings{
			Driver:           SQLite,
			DSN:              "data/bankingapi.db",
			MaxConnections:   16,
			StatementTimeout: 5 * time.Second,
		},
		Commit:     CommitSettings{BatchLimit: 2048, QueueLimit: 4096},
		Bank:       BankSettings{TimeZone: "Europe/Istanbul"},
		Settlement: SettlementSettings{Enabled: true, Interval: 15 * time.Second},
		Ops:        OpsSettings{Address: "127.0.0.1:9090"},
		Log:        LogSettings{Level: "info", Format: LogAuto},
		Shutdown:   ShutdownSettings{Timeout: 20 * time.Second},
	}
}
