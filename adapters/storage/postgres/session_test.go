package postgres_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage/postgres"
)

// What a server says has the same meaning in every language it says it in.
func TestWhatIsLeftOfAFailedCommit(t *testing.T) {
	t.Parallel()
	for _, severity := range []string{"ERROR", "FEHLER", "HATA"} {
		refused := &pgconn.PgError{Severity: severity, SeverityUnlocalized: "ERROR", Code: "22012"}
		require.True(t, postgres.IsUndone(fmt.Errorf("batch: %w", refused)), severity)
	}
	for _, severity := range []string{"FATAL", "SCHWERWIEGEND", "ÖLÜMCÜL"} {
		ended := &pgconn.PgError{Severity: severity, SeverityUnlocalized: "FATAL", Code: "57P01"}
		require.False(t, postgres.IsUndone(ended), severity)
	}
	require.False(t, postgres.IsUndone(io.ErrUnexpectedEOF))
	require.False(t, postgres.IsUndone(context.DeadlineExceeded))
}
