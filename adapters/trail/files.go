package trail

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	application "bankingapi/application/trail"
)

// LoadNotary reads the signing key from a file. If create is true and there is
// no file, it makes a key and the file, which only its owner may read.
func LoadNotary(file string, create bool) (*Notary, error) {
	key, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && create {
		return createKey(file)
	}
	if err != nil {
		return nil, fmt.Errorf("trail.key_file: %w", err)
	}
	n, err := NewNotary(string(key))
	if err != nil {
		return nil, fmt.Errorf("trail.key_file: %w", err)
	}
	return n, nil
}

// createKey makes the file complete or not at all: a replica that starts at the
// same moment reads the same key.
func createKey(file string) (*Notary, error) {
	signing, _, err := GenerateKeys("bankingapi-" + strings.ToLower(rand.Text()[:8]))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	temporary := file + "." + rand.Text()
	if err := os.WriteFile(temporary, []byte(signing+"\n"), 0o600); err != nil {
		return nil, err
	}
	err = os.Link(temporary, file) // fails if another replica was faster
	if removed := os.Remove(temporary); err == nil || errors.Is(err, fs.ErrExist) {
		err = removed
	}
	if err != nil {
		return nil, err
	}
	return LoadNotary(file, false)
}

// Checkpoints is a file of checkpoints, to which lines are only added. Logs with
// different keys may share a file.
type Checkpoints struct {
	path      string
	verifying string
}

var _ application.File = (*Checkpoints)(nil)

// NewCheckpoints returns the file of a log whose checkpoints this key verifies.
func NewCheckpoints(path, verifyingKey string) *Checkpoints { return &Checkpoints{path, verifyingKey} }

// Append is application.File. The checkpoint is on disk when it returns.
func (c *Checkpoints) Append(checkpoint string) error {
	f, err := os.OpenFile(c.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // checkpoints are public
	if err != nil {
		return err
	}
	_, err = f.WriteString(checkpoint + "\n") // an empty line ends it
	return errors.Join(err, f.Sync(), f.Close())
}

// The file is read from its end in blocks. Consecutive blocks overlap by more
// than a checkpoint has.
const blockSize, overlap = 64 << 10, 4 << 10

// Newest is the last checkpoint of this log in the file. It is empty if there is
// none. It skips what the key does not verify: other logs may share the file, also
// the log that this book had with another key, and a crash may cut a line.
func (c *Checkpoints) Newest() (string, error) {
	f, err := os.Open(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	for end := info.Size(); ; end -= blockSize - overlap {
		start := max(0, end-blockSize)
		block := make([]byte, end-start)
		if _, err := f.ReadAt(block, start); err != nil {
			return "", err
		}
		if newest := c.last(string(block)); newest != "" || start == 0 {
			return newest, nil
		}
	}
}

// last is the last checkpoint of this log. In the file it is a text, an empty
// line, a signature and another empty line.
func (c *Checkpoints) last(content string) string {
	parts := strings.SplitAfter(content, "\n\n")
	for i := len(parts) - 2; i > 0; i-- {
		checkpoint := parts[i-1] + strings.TrimSuffix(parts[i], "\n")
		if _, err := OpenCheckpoint(checkpoint, c.verifying); err == nil {
			return checkpoint
		}
	}
	return ""
}

// Extends is application.File.
func (c *Checkpoints) Extends(state application.State, hashes application.Hashes) error {
	newest, err := c.Newest()
	if err != nil || newest == "" {
		return err
	}
	older, err := OpenCheckpoint(newest, c.verifying)
	if err != nil {
		return err
	}
	newer := Checkpoint{Origin: older.Origin}
	if state.Checkpoint != "" {
		if newer, err = OpenCheckpoint(state.Checkpoint, c.verifying); err != nil {
			return err
		}
	}
	if err := CheckExtends(older, newer, reader(hashes)); err != nil {
		return fmt.Errorf("%s: %w. After a restore read how to go on in the page of the trail", c.path, err)
	}
	return nil
}
