package bootstrap

import "bankingapi/adapters/settings"

// Settings is everything an operator can set. Start from DefaultSettings: the zero value does
// not validate. Load fills it from a file, the environment and flags; a host fills it in code.
type Settings = settings.Settings

type (
	// Secret is a setting that always appears as *** when it is printed, logged or encoded.
	Secret = settings.Secret

	// Sources are the places from which Load reads. Later sources take precedence.
	Sources = settings.Sources
	// Loaded has valid settings, and the source of each setting.
	Loaded = settings.Loaded
	// Problems is the error of invalid settings. It lists all problems, not only the first.
	Problems = settings.Problems
)

// The values of Settings.TLS.Mode and Settings.Storage.Driver.
const (
	TLSFiles      = settings.TLSFiles
	TLSSelfSigned = settings.TLSSelfSigned
	TLSOff        = settings.TLSOff
	TLSProxy      = settings.TLSProxy

	SQLite   = settings.SQLite
	Postgres = settings.Postgres
)

// DefaultSettings returns the settings that apply by default.
func DefaultSettings() Settings { return settings.Default() }

// Load reads the settings. Flags take precedence over the environment, the file and the
// defaults, in this order. Unknown keys and variables are problems. The options are those of
// Open. storage.driver accepts their drivers, or sqlite and postgres if there are no options.
func Load(sources Sources, all ...Option) (Loaded, error) {
	if len(all) == 0 {
		return settings.Load(sources, settings.Drivers{SQLite, Postgres})
	}
	return settings.Load(sources, collect(all).allowed())
}
