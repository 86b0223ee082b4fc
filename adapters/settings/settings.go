// Package settings has everything that an operator can set, and reads it from a YAML file, the
// environment and flags. It reports all problems at once, with their places.
package settings

import (
	"path/filepath"
	"time"

	"bankingapi/domain/fund"
)

// Settings is everything an operator can set. Start from Default: the zero value is invalid.
// Load fills it from a file, the environment and flags; a host fills it in code. The row of
// each field (All) describes it. A comment here adds what a host must know.
type Settings struct {
	HTTP struct {
		Address                string // host:port
		BodyLimit, BodiesLimit Size
		ParametersLimit        int
		ReadTimeout            time.Duration // includes the time for the header
		WriteTimeout           time.Duration // more than twice Storage.StatementTimeout
		Docs                   bool
		TrustedProxies         List
		PublicURL              string // may be empty
		DocumentInfo           string // the file that ReadDocumentInfo reads, or empty
	}
	TLS     TLS
	Storage Storage
	// Rules are the rules of the bank in a new book: a book that has rules keeps them. They come
	// from flags of their own or from a host, and from no file or variable. Empty fields are the
	// defaults.
	Rules      fund.RulesFields
	Settlement Settlement
	Retention  struct{ Notifications int }
	Import     struct{ PriceChangeLimit int }
	Trail      struct {
		Enabled bool // false writes no leaves. Rows written without leaves look as if they were added later
		KeyFile string
	}
	// Ops is the listener for operators. It uses plain HTTP and requires no key, so it belongs
	// on a private address.
	Ops struct {
		Address string // host:port, or empty
		// Hosts are accepted in addition to IP addresses, localhost and the name in Address.
		// Requests for other names get 421, so that no web page can reach the listener through
		// its own name.
		Hosts List
	}
	Console struct {
		Enabled                   bool
		UserHeader                string // empty needs a loopback Ops.Address
		TrustedProxies, Operators List
	}
	// Log is the log, which goes to standard error.
	Log       struct{ Level, Format string }
	Telemetry struct{ OTLPEndpoint string }
	// Shutdown reports not ready, waits for Delay, stops accepting requests, finishes the
	// running requests within Timeout, and closes.
	Shutdown struct{ Delay, Timeout time.Duration }
}

// The values of TLS.Mode (the contract, section 8).
const (
	TLSFiles      = "files"       // a certificate and key from files, read again when they change
	TLSSelfSigned = "self-signed" // a certificate made at the first start, for development
	TLSOff        = "off"         // plain HTTP, on a loopback address only
	TLSProxy      = "proxy"       // plain HTTP on any address, because a proxy in front terminates TLS
)

// TLS configures how connections are encrypted.
type TLS struct {
	Mode              string
	CertFile, KeyFile string // PEM, only for TLSFiles
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
	Driver           string
	DSN              Secret // the file for SQLite, the URL or the key=value form for Postgres
	Migrate          bool
	MaxConnections   int           // on SQLite with the writer, but never fewer than four readers
	StatementTimeout time.Duration // a commit has twice this time
	AllowUnsafe      bool          // for tests
}

// Settlement is the settling of forward-dated sales on their day.
type Settlement struct {
	Enabled bool // false leaves it to other replicas, or to the settle command
}
