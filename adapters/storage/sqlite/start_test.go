package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
)

// Two services of one process share the descriptor of a file. One whose start fails gives
// up its share once, also if it is closed then: to close the descriptor would drop the
// locks of the other one.
func TestAFailedStartKeepsTheFileOfOthers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "book.db")
	engine, err := NewEngine(storage.Options{DSN: path})
	require.NoError(t, err)
	require.NoError(t, engine.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	mine, err := hold(path)
	require.NoError(t, err)
	defer mine.release()

	other, err := NewEngine(storage.Options{DSN: path})
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, other.Start(ended))
	require.NoError(t, other.Close())
	require.Equal(t, 2, mine.users, "the engine that runs, and this test")
	require.NoError(t, engine.Check())
}

// Until something is written, the log is empty and may disappear again. A look at that moment
// does not miss it afterwards.
func TestAnEmptyLogThatDisappearsIsNotMissed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "book.db")
	log := path + "-wal"
	require.NoError(t, os.WriteFile(path, []byte("book"), 0o600))
	f := &file{path: path}
	require.NoError(t, f.open())
	t.Cleanup(f.close)
	require.NoError(t, os.WriteFile(log, nil, 0o600))
	require.NoError(t, f.check())
	require.NoError(t, os.Remove(log))
	require.NoError(t, f.check())
}

// Two services of one file ask at once whether the disk has room.
func TestServicesThatAskForRoomAtOnceAreAllReady(t *testing.T) {
	t.Parallel()
	shared := &file{real: filepath.Join(t.TempDir(), "book.db")}
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for range 200 {
				if !assert.NoError(t, shared.hasRoom()) {
					return
				}
			}
		})
	}
	asking.Wait()
	require.NoFileExists(t, shared.real+"-space", "nothing is left behind")
}

// A program that keeps reading one state of the book lets its log grow.
func TestALongLogIsARisk(t *testing.T) {
	t.Parallel()
	require.Empty(t, longLog(longestLog-1))
	risk := longLog(1200 << 20)
	require.Len(t, risk, 1)
	require.False(t, risk[0].Unsafe)
	require.False(t, risk[0].CanWait, "the log grows now")
	require.Contains(t, risk[0].Detail, "The write-ahead log of the book has 1200 MiB.")
}

// A checkpoint of the service itself is no other process, whenever it begins. One begins when the
// file is opened.
func TestACheckpointIsNoOtherProcess(t *testing.T) {
	t.Parallel()
	c := &connections{writes: new(batch.Pool), reads: new(batch.Pool), file: &file{path: filepath.Join(t.TempDir(), "book.db")}}
	require.NoError(t, c.start(t.Context(), storage.Options{}))
	t.Cleanup(func() { require.NoError(t, c.end()) })
	ended := make(chan struct{})
	var begun sync.WaitGroup
	begun.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				c.checkpoints.begin()
			}
		}
	})
	for range 300 {
		assert.NoError(t, c.alone(t.Context()))
	}
	close(ended)
	begun.Wait()
}

// The pool drops a connection whose statement was interrupted. Its prepared statements must not
// keep the file open: after the service has closed, the next one has the file alone.
func TestAnInterruptedConnectionLeavesTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "book.db")
	c := &connections{writes: new(batch.Pool), reads: new(batch.Pool), file: &file{path: path}}
	require.NoError(t, c.start(t.Context(), storage.Options{}))
	s, err := c.begin(t.Context())
	require.NoError(t, err)
	_, err = s.writer.prepare("SELECT * FROM sqlite_schema")
	require.NoError(t, err)
	s.Rollback()

	isDropped := false
	for wait := time.Microsecond; !isDropped; wait *= 2 { // until a statement is running when its caller leaves
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		_, err := c.writes.DB().ExecContext(ctx, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n")
		cancel()
		require.Error(t, err)
		next, err := c.begin(t.Context())
		require.NoError(t, err)
		isDropped = next.writer != s.writer
		next.Rollback()
	}
	require.NoError(t, c.end())

	other := &connections{writes: new(batch.Pool), reads: new(batch.Pool), file: &file{path: path}}
	require.NoError(t, other.start(t.Context(), storage.Options{}))
	t.Cleanup(func() { require.NoError(t, other.end()) })
	require.NoError(t, other.alone(t.Context()))
}
