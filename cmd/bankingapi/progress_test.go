package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	const wipe = "\r\x1b[K"
	for _, test := range []struct {
		name     string
		terminal bool
		total    int64
		want     string
	}{
		{"plain", false, 0, "importing prices: 7 lines\nx.csv:3: bad\n"},
		{"plain with a size", false, 40, "importing prices: 7 lines, 25 %\nx.csv:3: bad\n"},
		{"terminal", true, 0, "importing prices: 7 lines" + wipe + "x.csv:3: bad\n"},
		{"terminal with a size", true, 40, "importing prices [#######.......................] 25 %, 7 lines" + wipe + "x.csv:3: bad\n"},
		{"file that grows", true, 5, "importing prices [##############################] 100 %, 7 lines" + wipe + "x.csv:3: bad\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			work := newProgress(&out, "importing prices", test.total, test.terminal)
			_, err := io.Copy(io.Discard, work.reading(strings.NewReader("0123456789")))
			require.NoError(t, err)
			work.rows.Store(7)
			work.tell()
			work.printf("%s:%d: %s\n", "x.csv", 3, "bad")
			work.stop()
			require.Equal(t, test.want, out.String())
		})
	}
}

func TestProgressOfShortWorkIsSilent(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	startProgress(&out, "importing prices", 0).stop()
	require.Empty(t, out.String())
}
