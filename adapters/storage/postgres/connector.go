package postgres

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// connector opens connections with a marker until it detects a pooler.
type connector struct {
	config   *pgx.ConnConfig
	settings *settings
}

func (connector) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	if c.settings.pooled.Load() {
		return c.connect(ctx, false)
	}
	conn, err := c.connect(ctx, true)
	// Errors of access, a missing database, resources or shutdown have other causes than a
	// marker.
	native, refused := errors.AsType[*pgconn.PgError](err)
	if !refused || slices.Contains([]string{"28", "3D", "53", "57"}, native.Code[:2]) {
		return conn, err
	}
	conn, err = c.connect(ctx, false)
	if err != nil {
		return conn, err
	}
	c.settings.pooled.Store(true) // the marker caused the error
	return conn, nil
}

func (c connector) connect(ctx context.Context, marked bool) (driver.Conn, error) {
	config, committing := c.config.Copy(), new(atomic.Bool)
	guard(config, committing)
	config.Tracer = commitTracer{}
	if marked {
		config.RuntimeParams = maps.Clone(startup)
		maps.Copy(config.RuntimeParams, c.config.RuntimeParams)
		config.RuntimeParams[marker] = rand.Text()
	}
	ping := stdlib.OptionShouldPing(func(_ context.Context, p stdlib.ShouldPingParams) bool {
		return p.IdleDuration > time.Second || hasNews(p.Conn.PgConn().Conn())
	})
	connected := stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		conn.PgConn().CustomData()[committingKey] = committing
		useArrayCodec(conn.TypeMap())
		if marked {
			return c.settings.configure(ctx, conn)
		}
		return nil
	})
	return stdlib.GetConnector(*config, ping, connected).Connect(ctx)
}
