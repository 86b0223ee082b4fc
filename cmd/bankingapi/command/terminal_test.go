package command

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A terminal does not obey what a caller of the API has written. Everything else
// gets the bytes.
func TestTerminalGetsNoControlCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain, Türkçe 😀\ta\n":        "plain, Türkçe 😀\ta\n",
		"\x1b]0;title\x07\x1b[2J":     `\x1b]0;title\x07\x1b[2J`,
		"12.50\r99.99":                `12.50\x0d99.99`,
		"\u009b31m red":               `\u009b31m red`,
		"\u202etxt.exe":               `\u202etxt.exe`,
		"a\u3164b\u115f\u034f\u2800c": `a\u3164b\u115f\u034f\u2800c`,
		"not UTF-8: \xff":             `not UTF-8: \xff`,
		"\x7f\x00":                    `\x7f\x00`,
		"nothing else is a\u00a0n":    "nothing else is a\u00a0n",
	} {
		var out bytes.Buffer
		n, err := io.WriteString(&escaping{w: &out}, text)
		require.NoError(t, err)
		require.Len(t, text, n)
		require.Equal(t, want, out.String())
	}
	var file bytes.Buffer
	require.Same(t, &file, forTerminal(&file))
}

// A buffer may end within a character.
func TestTerminalGetsWholeCharacters(t *testing.T) {
	t.Parallel()
	for size := 16; size < 20; size++ {
		var out bytes.Buffer
		buffered := bufio.NewWriterSize(&escaping{w: &out}, size)
		text := strings.Repeat("ğ😀", 50)
		_, err := buffered.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, buffered.Flush())
		require.Equal(t, text, out.String())
	}
}
