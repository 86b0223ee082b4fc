package command

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
		lines    int64 // of a second phase
		want     string
	}{
		{"plain", false, 0, 0, "importing prices, reading: 7 lines, total unknown\nx.csv:3: bad\n"},
		{"plain with a size", false, 40, 0, "importing prices, reading, 25 %\nx.csv:3: bad\n"},
		{"terminal", true, 0, 0, "importing prices, reading: 7 lines, total unknown" + wipe + "x.csv:3: bad\n"},
		{"terminal with a size", true, 40, 0, "[#######.......................] importing prices, reading, 25 %" + wipe + "x.csv:3: bad\n"},
		{"file that grows", true, 5, 0, "[##############################] importing prices, reading, 100 %" + wipe + "x.csv:3: bad\n"},
		{"another phase", false, 5, 14, "importing prices, writing: 7 of 14 lines, 50 %\nx.csv:3: bad\n"},
		{"another phase on a terminal", true, 5, 14, "[###############...............] importing prices, writing: 7 of 14 lines, 50 %" + wipe + "x.csv:3: bad\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			work := &progress{out: &out, phase: "importing prices, reading", size: test.total, terminal: test.terminal, end: make(chan struct{})}
			_, err := io.Copy(work, strings.NewReader("0123456789"))
			require.NoError(t, err)
			if test.lines > 0 {
				work.enter("importing prices, writing", test.lines)
			}
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
