// Package engines has all database engines. A host that wants only one engine passes it to
// bootstrap itself, and links no other engine.
package engines

import (
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/bootstrap"
)

// All lets storage.driver choose among all engines.
func All() bootstrap.Option {
	return bootstrap.Options(
		bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open),
		bootstrap.WithDriver(bootstrap.Postgres, postgres.Open),
	)
}
