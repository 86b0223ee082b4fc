package commit

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A batch may end at the moment at which its caller stops waiting. Then the
// outcome is known, and the caller gets it.
func TestAnOutcomeThatIsKnownIsTaken(t *testing.T) {
	t.Parallel()
	q := New(Limits{}.OrDefault(), nil, func(context.Context, []int) error { return nil }, Observer{})
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	w := &waiter[int]{done: make(chan struct{}, 1)}
	for range 100 { // both are ready, and select takes either
		w.answer(nil)
		isOver, err := q.wait(late, w, 0, true)
		require.NoError(t, err)
		require.True(t, isOver)
	}
	isOver, err := q.wait(late, w, 0, true)
	require.Equal(t, errTooLate, err)
	require.False(t, isOver)
}
