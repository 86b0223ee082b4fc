package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"

	"bankingapi/test/kit/testdb"
)

// defaultDSN returns the Postgres server of the tests, or otherwise the one on this machine.
func defaultDSN() string {
	dsn := os.Getenv("TEST_POSTGRES_DSN")
	if dsn != "" {
		return dsn
	}
	return "postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable"
}

// A cluster is the Postgres server on which temporary databases are created.
type cluster struct {
	dsn     string
	admin   *pgx.Conn
	created []string
}

// openPostgres connects to the server and prepares pgbench and the peer on it.
func (b *bank) openPostgres(ctx context.Context) (err error) {
	server := b.postgres
	if b.standby {
		if server, _, err = testdb.StartPair("fsync=on", "synchronous_commit=on", "full_page_writes=on"); err != nil {
			return err
		}
	}
	c, err := openCluster(ctx, server)
	if err != nil {
		return err
	}
	b.t.Cleanup(func() {
		if err := c.close(); err != nil {
			b.t.Errorf("%v", err)
		}
	})
	b.engine = c
	facts, err := c.describe(ctx)
	if err != nil {
		return err
	}
	b.report.machine = append(b.report.machine, facts...)
	if b.alone {
		return nil
	}
	dsn, err := c.create(ctx, "pgbench")
	if err != nil {
		return err
	}
	alone, err := openPgbench(ctx, b.dir, dsn)
	if err != nil {
		return err
	}
	if b.peer, err = startPeer(b.t, dsn, peerName); err != nil {
		return err
	}
	b.others = []side{alone, b.peer}
	return nil
}

func openCluster(ctx context.Context, dsn string) (*cluster, error) {
	admin, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	return &cluster{dsn: dsn, admin: admin}, nil
}

func (c *cluster) name() string { return "postgres" }

// create creates an empty database and returns its URL.
func (c *cluster) create(ctx context.Context, name string) (string, error) {
	name = fmt.Sprintf("bench_%s_%d", name, os.Getpid())
	if _, err := c.admin.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	c.created = append(c.created, name)
	return testdb.InDatabase(c.dsn, name), nil
}

// fill takes minutes for ten million rows.
func (c *cluster) fill(ctx context.Context, dsn, script, size string) error {
	return fillWith(ctx, "pgx", dsn, c.name(), script, size, "VACUUM ANALYZE")
}

// checkpoint gives every run the same start: no dirty pages, so the first
// change of each page logs the full page.
func (c *cluster) checkpoint(ctx context.Context) error {
	_, err := c.admin.Exec(ctx, "CHECKPOINT")
	return err
}

// used counts the log of the whole server, on which nobody else should work.
func (c *cluster) used(ctx context.Context, dsn string) (stored, logged int64, err error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return 0, 0, err
	}
	err = c.admin.QueryRow(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, pg_database_size($1)", config.Database).Scan(&logged, &stored)
	return stored, logged, err
}

// describe returns the settings that the figures depend on.
func (c *cluster) describe(ctx context.Context) ([]fact, error) {
	var facts []fact
	for _, setting := range []string{"server_version", "fsync", "synchronous_commit", "synchronous_standby_names", "wal_sync_method", "shared_buffers", "max_wal_size", "autovacuum"} {
		var value string
		if err := c.admin.QueryRow(ctx, "SELECT current_setting($1)", setting).Scan(&value); err != nil {
			return nil, err
		}
		facts = append(facts, fact{"Postgres " + setting, value})
	}
	return facts, nil
}

// close drops the created databases. It needs a new connection: an interrupt closes one that waits
// for an answer.
func (c *cluster) close() error {
	ctx := context.Background()
	_ = c.admin.Close(ctx)
	admin, err := pgx.Connect(ctx, c.dsn)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range c.created {
		_, err := admin.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
		errs = append(errs, err)
	}
	return errors.Join(append(errs, admin.Close(ctx))...)
}
