package command

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pager that does not read on: the export ends, and the pager gets everything later.
func TestAnExportDoesNotWaitForItsReader(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	reader, writer := io.Pipe()
	s := newSpool(writer)
	s.patience = 0
	want := new(bytes.Buffer)
	for range 1000 {
		n, err := io.MultiWriter(s, want).Write([]byte("1001;YAS;12.5\n"))
		require.NoError(t, err)
		require.Equal(t, 14, n)
	}
	closed := make(chan error, 1)
	go func() {
		closed <- s.Close(t.Context())
		writer.Close()
	}()
	got, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.NoError(t, <-closed)
	require.Equal(t, want.String(), string(got))
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	require.NoError(t, err)
	require.Empty(t, left, "the temporary file is removed")
}

func TestAnExportWithoutAPauseUsesNoFile(t *testing.T) {
	t.Parallel()
	out := new(bytes.Buffer)
	s := newSpool(out)
	_, err := s.Write([]byte("a"))
	require.NoError(t, err)
	_, err = s.Write([]byte("b"))
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, "ab", out.String())
	require.Nil(t, s.file)
}

func TestAnExportWhoseReaderEndsFails(t *testing.T) {
	t.Parallel()
	reader, writer := io.Pipe()
	require.NoError(t, reader.Close())
	_, err := newSpool(writer).Write([]byte("a"))
	require.ErrorIs(t, err, io.ErrClosedPipe)

	reader, writer = io.Pipe()
	s := newSpool(writer)
	s.patience = 0
	_, err = s.Write([]byte("a"))
	require.NoError(t, err)
	gone := errors.New("the pager has ended")
	require.NoError(t, reader.CloseWithError(gone))
	require.ErrorIs(t, s.Close(t.Context()), gone)
}
