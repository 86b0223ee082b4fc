package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestIsPlain(t *testing.T) {
	for dsn, want := range map[string]bool{
		"postgres://u@127.0.0.1/b?sslmode=disable":             false,
		"postgres://u@localhost/b":                             false,
		"postgres://u@[::1]/b":                                 false,
		"postgres://u@/b?host=/run/postgresql":                 false,
		"postgres://u@db.bank.example/b?sslmode=disable":       true,
		"postgres://u@db.bank.example/b":                       true, // prefer
		"postgres://u@db.bank.example/b?sslmode=require":       true,
		"postgres://u@10.0.0.7/b?sslmode=allow":                true,
		"postgres://u@localhost,db.bank.example/b":             true,
		"postgres://u@db.bank.example/b?sslmode=verify-full":   false,
		"postgres://u@a.example,b.example/b?sslmode=verify-ca": false,
	} {
		config, err := pgx.ParseConfig(dsn)
		require.NoError(t, err, dsn)
		require.Equal(t, want, isPlain(config), dsn)
	}
}
