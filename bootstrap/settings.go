package bootstrap

import "bankingapi/adapters/settings"

// Settings is everything an operator can set. Start from DefaultSettings: the
// zero value does not validate. Load fills it from a file, the environment and
// flags; a host fills it in code.
type Settings = settings.Settings

type (
	// HTTPSettings is the listener of the API and the limits of a request.
	HTTPSettings = settings.HTTP
	// TLSSettings says how requests are kept private.
	TLSSettings = settings.TLS
	// StorageSettings is the database.
	StorageSettings = settings.Storage
	// CommitSettings are the limits of batches and queues.
	CommitSettings = settings.Commit
	// BankSettings is what is particular to the bank.
	BankSettings = settings.Bank
	// SettlementSettings is the settling of forward-dated sales on their day.
	SettlementSettings = settings.Settlement
	// TrailSettings is the log that proves what happened.
	TrailSettings = settings.Trail
	// OpsSettings is the listener for operators.
	OpsSettings = settings.Ops
	// ConsoleSettings is the operator's console.
	ConsoleSettings = settings.Console
	// LogSettings is the log.
	LogSettings = settings.Log
	// TelemetrySettings is where traces go.
	TelemetrySettings = settings.Telemetry
	// ShutdownSettings is how the service stops.
	ShutdownSettings = settings.Shutdown

	// Secret is a setting that is *** however it is printed, logged or encoded.
	Secret = settings.Secret
	// Size is a number of bytes, written as 1048576, 512KiB, 1MiB or 1GiB.
	Size = settings.Size
	// List is a list of words, written with commas between them.
	List = settings.List

	// Sources are where Load reads. Later ones take precedence.
	Sources = settings.Sources
	// Loaded is settings that validate, and where each came from.
	Loaded = settings.Loaded
	// Value is one setting as it is in effect.
	Value = settings.Value
	// Setting describes one setting, for flags, documents and messages.
	Setting = settings.Setting
	// Problem is a setting that cannot be used.
	Problem = settings.Problem
	// Problems is the error of settings: all that is wrong, never only the first.
	Problems = settings.Problems
)

// The values of TLSSettings.Mode, StorageSettings.Driver and LogSettings.Format.
const (
	TLSFiles      = settings.TLSFiles
	TLSSelfSigned = settings.TLSSelfSigned
	TLSOff        = settings.TLSOff
	TLSProxy      = settings.TLSProxy

	SQLite   = settings.SQLite
	Postgres = settings.Postgres

	LogAuto    = settings.LogAuto
	LogConsole = settings.LogConsole
	LogJSON    = settings.LogJSON
)

// DefaultSettings returns the settings that apply by default.
func DefaultSettings() Settings { return settings.Default() }

// AllSettings lists every setting, in the order of the Settings struct.
func AllSettings() []Setting { return settings.All() }

// Suggest is the setting a mistyped path most likely means. It reports false
// where none is near.
func Suggest(path string) (string, bool) { return settings.Suggest(path) }

// Load reads the settings. Flags take precedence over the environment, the file
// and the defaults, in this order. Unknown keys and variables are problems. The
// options are those of Open. storage.driver accepts their drivers, or sqlite and
// postgres if there are no options.
func Load(sources Sources, all ...Option) (Loaded, error) {
	if len(all) == 0 {
		return settings.Load(sources, settings.Drivers{SQLite, Postgres})
	}
	return settings.Load(sources, collect(all).allowed())
}
