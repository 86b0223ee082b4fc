package postgres

import (
	"context"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/store"
)

// The server settings that may lose data, with their bad values. A server like Postgres without
// such a setting does not have the risk either.
var riskySettings = []struct {
	name, value string
	risk        store.Risk
}{
	{"fsync", "off", store.Risk{Unsafe: true, Detail: "The database server has fsync = off. If its machine crashes, acknowledged operations are lost and the database may be damaged. Set fsync = on."}},
	{"full_page_writes", "off", store.Risk{CanWait: true, Detail: "The database server has full_page_writes = off. If its machine crashes, pages may be half written and the database damaged. Set full_page_writes = on, unless the file system never tears a page."}},
	{"data_checksums", "off", store.Risk{CanWait: true, Detail: "The database has no data checksums. Damage on the disk stays unnoticed. Enable them with pg_checksums while the server is stopped."}},
}

// risks is Risks of storage.Engine. plain means that a connection to a remote host does
// not verify the server's certificate.
func risks(ctx context.Context, db *batch.Pool, plain bool) (list []store.Risk, err error) {
	if plain {
		list = append(list, store.Risk{CanWait: true, Detail: "The connection to the database does not verify the server. " +
			"Someone on the network can read and change everything. Use sslmode=verify-full with sslrootcert in storage.dsn."})
	}
	settings := map[string]string{}
	rows, err := db.QueryContext(ctx, "SELECT name, setting FROM pg_settings WHERE name IN"+ //nolint:rowserrcheck,sqlclosecheck // Each does it
		" ('fsync', 'full_page_writes', 'data_checksums', 'synchronous_standby_names', 'synchronous_commit')")
	if err != nil {
		return nil, err
	}
	err = batch.Each(rows, func() error {
		var name, value string
		err := rows.Scan(&name, &value)
		settings[name] = value
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, r := range riskySettings {
		if settings[r.name] == r.value {
			list = append(list, r.risk)
		}
	}
	if settings["synchronous_standby_names"] == "" {
		return list, nil
	}
	if settings["synchronous_commit"] == "local" {
		list = append(list, store.Risk{CanWait: true, Detail: "The database server has synchronous standbys, but synchronous_commit = local: commits do not wait for them. " +
			"After a failover, acknowledged operations may be lost. Set synchronous_commit = on."})
	}
	// Without the permission to see them, every standby has an unknown state.
	var connected, known, count int
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FILTER (WHERE sync_state IN ('sync', 'quorum')), COUNT(sync_state), COUNT(*)"+
		" FROM pg_stat_replication").Scan(&connected, &known, &count)
	if err != nil {
		return nil, err
	}
	if connected == 0 && known == count {
		list = append(list, store.Risk{Unsafe: settings["synchronous_commit"] != "local", Detail: "The database server waits for a synchronous standby, but none is connected. " +
			"Every commit waits until one is, and requests are answered 503. Look at the standby."})
	}
	return list, nil
}

// isPlain reports whether a connection to another machine may be made without verifying its
// certificate. libpq's sslmodes prefer and allow fall back to a connection without TLS, and
// require verifies nothing.
func isPlain(config *pgx.ConnConfig) bool {
	first := &pgconn.FallbackConfig{Host: config.Host, TLSConfig: config.TLSConfig}
	return slices.ContainsFunc(append([]*pgconn.FallbackConfig{first}, config.Fallbacks...), func(f *pgconn.FallbackConfig) bool {
		isVerified := f.TLSConfig != nil && (!f.TLSConfig.InsecureSkipVerify || f.TLSConfig.VerifyPeerCertificate != nil)
		if isVerified || f.Host == "localhost" || strings.HasPrefix(f.Host, "/") || strings.HasPrefix(f.Host, "@") {
			return false
		}
		ip := net.ParseIP(f.Host)
		return ip == nil || !ip.IsLoopback()
	})
}
