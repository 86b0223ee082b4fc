package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/operation"
)

// The receipt of a repeat costs the storage and the signer nothing.
func TestAReceiptIsKeptForAWhile(t *testing.T) {
	t.Parallel()
	now, made, content := today, 0, ""
	s := newService(func(s *service) {
		s.outcome.ID = operation.ID{1}
		s.options.Now = func() time.Time { return now }
		s.options.Receipt = func(context.Context, operation.ID) string {
			made++
			return content
		}
	})
	receipt := func(id byte) string {
		s.outcome.ID = operation.ID{id}
		w := s.do(post(pushPath, pushBody, func(r *http.Request) { r.Header.Set("Want-Receipt", "1") }))
		require.Equal(t, http.StatusOK, w.Code)
		return w.Header().Get("Receipt")
	}
	require.Empty(t, receipt(1))
	content = "first"
	require.Equal(t, "first", receipt(1), "what could not be made is tried again")
	content = "second"
	require.Equal(t, "first", receipt(1))
	require.Equal(t, "second", receipt(2), "each operation has its own")
	s.outcome.State = operation.Recorded
	content = "third"
	require.Equal(t, "third", receipt(2), "and each answer to it")
	s.outcome.State = operation.Completed
	require.Equal(t, "second", receipt(2))
	require.Equal(t, 4, made)

	now = now.Add(10 * time.Minute)
	require.Equal(t, "third", receipt(1), "a kept receipt has an end")
	require.Equal(t, 5, made)

	content = strings.Repeat("x", 1<<20)
	for id := range byte(9) {
		require.Equal(t, content, receipt(10+id))
	}
	made = 0
	receipt(18)
	require.Zero(t, made)
	receipt(10)
	require.Equal(t, 1, made, "the oldest of many is forgotten")
}
