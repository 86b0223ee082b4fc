package sandbox

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The log of requests is bounded in memory, in its file and in an answer, whatever callers send.
func TestTheLogOfRequestsIsBounded(t *testing.T) {
	t.Parallel()
	q := requests{name: filepath.Join(t.TempDir(), "requests.ndjson")}
	body := strings.Repeat("x", maxBody)
	const many = 2 * (maxFile / maxBody)
	for range many {
		q.add(&request{Body: body})
	}
	file, err := os.Stat(q.name)
	require.NoError(t, err)
	require.LessOrEqual(t, file.Size(), int64(maxFile))
	require.LessOrEqual(t, q.bytes, maxKept)

	again := requests{name: q.name}
	again.restore()
	require.Equal(t, len(q.last), len(again.last))
	require.Equal(t, q.bytes, again.bytes)

	newest := again.page(newestRequests)
	require.Len(t, newest, maxPage/newest[0].sizeOf())
	require.EqualValues(t, many, newest[0].Number)

	// A caller that begins with 0 and asks after the newest number that it knows gets every request once.
	oldest := again.last[len(again.last)-1].Number
	first := again.page(0)
	require.Equal(t, oldest, first[len(first)-1].Number)
	next := oldest
	for {
		page := again.page(next)
		if len(page) == 0 {
			break
		}
		require.Equal(t, next+1, page[len(page)-1].Number)
		next = page[0].Number
	}
	require.EqualValues(t, many, next)
}

func (r *request) sizeOf() int { return len(lineOf(r)) }

func TestKeptHeadersAreBounded(t *testing.T) {
	t.Parallel()
	kept := maskHeader(http.Header{"A": {"small"}, "B": {strings.Repeat("x", maxHeader)}, keyHeader: {"secret"}}, nil)
	require.Equal(t, map[string][]string{"A": {"small"}}, kept)
}
