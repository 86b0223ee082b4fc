package storage_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/buyfund"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/pgproxy"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// If the connection breaks after COMMIT was sent, the outcome is unknown in every mode of pgx that
// we accept. The sale is never tried again: without a CallerId it would sell twice.
func TestACommitWhoseAnswerIsLostIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "cache_statement", "cache_describe", "describe_exec"} {
		t.Run("mode "+mode, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Postgres(t)
			direct, p := storekit.OpenPostgres(t, dsn), pgproxy.New(t, dsn)
			b := newBank(t, direct, 5)
			through, err := url.Parse(p.DSN)
			require.NoError(t, err)
			if mode != "" {
				query := through.Query()
				query.Set("default_query_exec_mode", mode)
				through.RawQuery = query.Encode()
			}
			s := openAgain(t, through.String())
			sell := func() error { return settle(t.Context(), s, today, order(v7(), "", sale(1, 1, 1))) }
			for cuts := range int32(3) { // the first one is settled the normal way, the others optimistically
				p.AfterCommit.Store(1)
				err := sell()
				require.Equal(t, fault.Indeterminate, fault.KindOf(err), "%v", err)
				require.Equal(t, cuts+1, p.Cuts.Load())
				require.EqualValues(t, 2*cuts+1, b.holds().Sales, "once")
				require.NoError(t, sell())
			}
			p.BeforeCommit.Store(1)
			require.Equal(t, fault.Indeterminate, fault.KindOf(sell()))
			require.EqualValues(t, 6, b.holds().Sales)
		})
	}
}

// A read of outcomes commits on Postgres, because the last outcome may still wait for a standby. If
// that commit is not confirmed, nothing is unknown: the reader asks again.
func TestAReadOfOutcomesIsNeverUnknown(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	direct, p := storekit.OpenPostgres(t, dsn), pgproxy.New(t, dsn)
	b := newBank(t, direct, 1)
	id, tomorrow := nextID(), today.Plus(1)
	b.sell(operation.Recorded, order(id, "", on(tomorrow, sale(1, 1, 1))))
	due, err := b.Books.Due(t.Context(), buyfund.Due{Until: tomorrow}, nil, 1)
	require.NoError(t, err)
	require.NoError(t, settle(t.Context(), direct, tomorrow, due...))
	s := openAgain(t, p.DSN)

	p.BeforeCommit.Store(1)
	ended, err := s.Backoffice.Outcomes.Outcomes(t.Context(), "", 0, 10)
	require.Equal(t, fault.Unavailable, fault.KindOf(err), "%v", err)
	require.Empty(t, ended)
	require.EqualValues(t, 1, p.Cuts.Load())
	ended, err = s.Backoffice.Outcomes.Outcomes(t.Context(), "", 0, 10)
	require.NoError(t, err)
	require.Equal(t, id, ended[0].OperationID)
}
