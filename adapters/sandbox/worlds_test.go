package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/operator"
	"bankingapi/domain/fault"
)

// building is where the worlds of a test are opened and closed.
type building struct {
	opened, closed, deleted atomic.Int64
	// doors holds back the opening of the worlds of these names.
	doors map[string]chan struct{}
	fail  error
}

type room struct{ *building }

func (r room) Handler() http.Handler       { return nil }
func (r room) Close(context.Context) error { r.closed.Add(1); return nil }

const maxWorlds = 12

func (b *building) worlds() *worlds {
	return &worlds{
		open: func(_ context.Context, name string) (operator.World, error) {
			if door := b.doors[name]; door != nil {
				<-door
			}
			if b.fail != nil {
				return nil, b.fail
			}
			b.opened.Add(1)
			return room{b}, nil
		},
		delete: func(context.Context, string) error { b.deleted.Add(1); return nil },
		inUse:  maxWorlds,
		byName: make(map[string]*world),
	}
}

// A world that opens slowly keeps nobody from another world, and opens once.
func TestAWorldThatOpensSlowlyHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := building{doors: map[string]chan struct{}{"slow": make(chan struct{})}}
		w := b.worlds()
		inside := make(chan *world, 2)
		for range 2 {
			go func() {
				entered, err := w.enter(t.Context(), "slow")
				require.NoError(t, err)
				inside <- entered
			}()
		}
		synctest.Wait()
		other, err := w.enter(t.Context(), "other")
		require.NoError(t, err)
		w.leave(other)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = w.enter(ctx, "slow")
		require.ErrorIs(t, err, context.Canceled, "a caller that has left waits no longer")

		close(b.doors["slow"])
		first, second := <-inside, <-inside
		require.Same(t, first, second)
		require.EqualValues(t, 2, b.opened.Load())
		w.leave(first)
		w.leave(second)
		require.NoError(t, w.Close(t.Context()))
		require.Equal(t, b.opened.Load(), b.closed.Load())
	})
}

// Worlds that nobody uses close: the one that was used longest ago if another one opens, and
// each after a while.
func TestUnusedWorldsClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b building
		w := b.worlds()
		for n := range 3 * keptWorlds {
			entered, err := w.enter(t.Context(), fmt.Sprint(n))
			require.NoError(t, err)
			w.leave(entered)
		}
		require.EqualValues(t, 3*keptWorlds, b.opened.Load())
		require.EqualValues(t, 2*keptWorlds, b.closed.Load())
		entered, err := w.enter(t.Context(), fmt.Sprint(3*keptWorlds-1))
		require.NoError(t, err)
		require.EqualValues(t, 3*keptWorlds, b.opened.Load(), "the newest is still open")
		<-time.After(2 * idleTime)
		synctest.Wait()
		require.EqualValues(t, 3*keptWorlds-1, b.closed.Load(), "all but the one in use")
		w.leave(entered)
		require.NoError(t, w.Close(t.Context()))
		require.Equal(t, b.opened.Load(), b.closed.Load())
		_, err = w.enter(t.Context(), "late")
		require.Error(t, err)
	})
}

// Requests may use many worlds at the same moment, but not any number of them.
func TestTheWorldsInUseAreBounded(t *testing.T) {
	t.Parallel()
	var b building
	w := b.worlds()
	var inside []*world
	for n := range maxWorlds {
		entered, err := w.enter(t.Context(), fmt.Sprint(n))
		require.NoError(t, err)
		inside = append(inside, entered)
	}
	_, err := w.enter(t.Context(), "more")
	require.Equal(t, fault.Busy, fault.KindOf(err))
	known, err := w.enter(t.Context(), "0")
	require.NoError(t, err, "a world that is open takes its requests")
	w.leave(known)
	w.leave(inside[3])
	_, err = w.enter(t.Context(), "more")
	require.NoError(t, err)
}

// A world that cannot be opened is tried again by the next request.
func TestAWorldThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	b := building{fail: errors.New("the disk is full")}
	w := b.worlds()
	_, err := w.enter(t.Context(), "a")
	require.ErrorIs(t, err, b.fail)
	b.fail = nil
	entered, err := w.enter(t.Context(), "a")
	require.NoError(t, err)
	w.leave(entered)
}

// A world is deleted when it is closed, and nobody opens it meanwhile.
func TestAWorldIsForgotten(t *testing.T) {
	t.Parallel()
	var b building
	w := b.worlds()
	entered, err := w.enter(t.Context(), "a")
	require.NoError(t, err)
	w.leave(entered)
	w.delete = func(context.Context, string) error {
		require.EqualValues(t, 1, b.closed.Load())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := w.enter(ctx, "a")
		require.ErrorIs(t, err, context.Canceled)
		b.deleted.Add(1)
		return nil
	}
	require.NoError(t, w.forget(t.Context(), "a"))
	require.NoError(t, w.forget(t.Context(), "a"), "a world that is not open is deleted too")
	require.EqualValues(t, 2, b.deleted.Load())
	entered, err = w.enter(t.Context(), "a")
	require.NoError(t, err)
	w.leave(entered)
	require.EqualValues(t, 2, b.opened.Load())
}
