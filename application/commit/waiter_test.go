package commit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A batch may end at the moment at which its caller stops waiting. Then the
// outcome is known, and the caller gets it.
func TestAnOutcomeThatIsKnownIsTaken(t *testing.T) {
	t.Parallel()
	w := &waiter[int]{done: make(chan struct{}, 1)}
	require.False(t, w.isAnswered())
	w.answer(nil)
	require.True(t, w.isAnswered())
	require.False(t, w.isAnswered(), "the signal is taken once")
}
