package sqlite

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/store"
)

// endsAt is a context that ends when somebody looks at it for the n-th time.
type endsAt struct {
	context.Context
	looks atomic.Int32
	ended chan struct{}
}

func (c *endsAt) Done() <-chan struct{} {
	if c.looks.Add(-1) == 0 {
		close(c.ended)
		for range 1000 { // whoever waits for the end learns it now
			runtime.Gosched()
		}
	}
	return c.ended
}

func (c *endsAt) Err() error {
	select {
	case <-c.ended:
		return context.Canceled
	default:
		return nil
	}
}

// The driver returns the end of the context although BEGIN has taken effect, and package sql then
// closes the connection. The prepared statements would keep it and its transaction, so that nothing
// could be stored until the program ends.
func TestAContextThatEndsInTheBeginLeavesNoTransaction(t *testing.T) {
	t.Parallel()
	engine, err := NewEngine(store.Options{DSN: t.TempDir() + "/book.db"})
	require.NoError(t, err)
	require.NoError(t, engine.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	write := func(ctx context.Context) error {
		s, err := engine.Dialect().Begin(ctx)
		if err != nil {
			return err
		}
		defer s.Rollback()
		return s.Exchange(ctx, batch.Request{SQL: "SELECT 1"}) // prepares it
	}
	require.NoError(t, write(t.Context()))
	for look := range int32(20) {
		ctx := &endsAt{Context: t.Context(), ended: make(chan struct{})}
		ctx.looks.Store(look + 1)
		_ = write(ctx)
		require.NoError(t, write(t.Context()), "after a context that ended at look %d", look+1)
	}
}
