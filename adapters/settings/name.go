package settings

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Name names the book without secrets.
func (s Storage) Name() string {
	switch dsn := string(s.DSN); s.Driver {
	case SQLite:
		file := strings.TrimPrefix(dsn, "file:")
		if path, err := filepath.Abs(file); err == nil {
			file = path
		}
		return "SQLite file " + file
	case Postgres:
		if config, err := url.Parse(dsn); err == nil && config.Host != "" {
			return "Postgres database " + strings.TrimPrefix(config.Path, "/") + " at " + config.Host
		}
		var known []string
		for word := range strings.FieldsSeq(dsn) { // host=… dbname=…
			if name, _, _ := strings.Cut(word, "="); slices.Contains([]string{"host", "hostaddr", "port", "dbname"}, name) {
				known = append(known, word)
			}
		}
		return strings.Join(append([]string{"Postgres database"}, known...), " ")
	}
	return "storage " + s.Driver
}
