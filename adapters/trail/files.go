package trail

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bankingapi/application/backoffice"
	application "bankingapi/application/trail"
	"bankingapi/domain/trail"
)

// LoadNotary reads the signing key from a file. If create is true and there is
// no file, it makes a key and the file, which only its owner may read.
func LoadNotary(file string, create bool) (*Notary, error) {
	key, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && create {
		return createKey(file)
	}
	var n *Notary
	if err == nil {
		n, err = NewNotary(string(key))
	}
	if err != nil {
		return nil, fmt.Errorf("trail.key_file: %w", err)
	}
	return n, nil
}

// createKey makes the file complete or not at all: a replica that starts at the
// same moment reads the same key.
func createKey(file string) (*Notary, error) {
	temporary, err := newKey(file, "")
	if err != nil {
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

// newKey makes a key with that name, or a name of its own, in a file beside the given one.
func newKey(file, name string) (temporary string, err error) {
	signing, _, err := GenerateKeys(cmp.Or(name, "bankingapi-"+strings.ToLower(rand.Text()[:8])))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", err
	}
	temporary = file + "." + rand.Text()
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(signing + "\n")
	return temporary, errors.Join(err, f.Sync(), f.Close()) // without the key, the book's trail is lost
}

// replaceKey makes a new key. The old one, if there is one, gets its hash as the end of its name.
func replaceKey(file, name string, old *Notary) error {
	temporary, err := newKey(file, name)
	if err == nil && old != nil {
		err = os.Rename(file, fmt.Sprintf("%s.%08x", file, old.signer.KeyHash()))
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary, file)
}

// Checkpoints is a file of checkpoints, to which lines are only added. Logs with
// different keys may share a file.
type Checkpoints struct {
	path      string
	verifying string
}

// NewCheckpoints returns the file of a log whose checkpoints this key verifies.
func NewCheckpoints(path, verifyingKey string) *Checkpoints { return &Checkpoints{path, verifyingKey} }

// Append adds a checkpoint. It is on disk when Append returns.
func (c *Checkpoints) Append(checkpoint string) error {
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
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

// Newest is the last checkpoint of this log in the file, and what it says. It is empty if
// there is none. It skips what the key does not verify: other logs may share the file, also
// the log that this book had with another key, and a crash may cut a line.
func (c *Checkpoints) Newest() (checkpoint string, says Checkpoint, err error) {
	f, err := os.Open(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", says, nil
	}
	if err != nil {
		return "", says, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", says, err
	}
	for end := info.Size(); ; end -= blockSize - overlap {
		start := max(0, end-blockSize)
		block := make([]byte, end-start)
		if _, err := f.ReadAt(block, start); err != nil {
			return "", says, err
		}
		for _, checkpoint := range slices.Backward(splitCheckpoints(string(block))) {
			if says, err := OpenCheckpoint(checkpoint, c.verifying); err == nil {
				return checkpoint, says, nil
			}
		}
		if start == 0 {
			return "", says, nil
		}
	}
}

// splitCheckpoints returns the checkpoints in the content of a file, signed or not by the right
// key: a text, an empty line and a signature each. It accepts more empty lines and other ends of
// lines, and skips what is no checkpoint.
func splitCheckpoints(content string) (all []string) {
	var text []string
	ended := false
	for line := range strings.Lines(strings.TrimPrefix(content, "\ufeff")) {
		line = strings.TrimRight(line, " \t\r\n")
		switch {
		case strings.HasPrefix(line, "— "):
			signed := strings.Join(text, "\n") + "\n"
			if _, err := parseCheckpoint(signed); err == nil {
				all = append(all, signed+"\n"+line+"\n")
			}
			text = nil
		case line == "":
			ended = true
			continue
		case ended:
			text = []string{line}
		default:
			text = append(text, line)
		}
		ended = false
	}
	return all
}

// CheckCheckpoints returns an error if the content of a file has no checkpoint of any log.
func CheckCheckpoints(content string) error {
	if len(splitCheckpoints(content)) == 0 {
		return errors.New("no checkpoint of a trail")
	}
	return nil
}

// compare lets a check compare the log with the checkpoints in the content of a file.
func (n *Notary) compare(c *backoffice.TrailCheck, name, content string) {
	of, all := backoffice.Earlier{Name: name}, splitCheckpoints(content)
	for _, checkpoint := range all {
		if base, err := n.Open(checkpoint); err == nil {
			of.Checkpoints = append(of.Checkpoints, base)
		} else {
			of.Problem = err.Error()
		}
	}
	if own := len(of.Checkpoints); own > 0 && own < len(all) {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s: %d of %d checkpoints are not of this log, and were skipped: %s", name, len(all)-own, len(all), of.Problem))
		of.Problem = ""
	}
	c.Earlier = append(c.Earlier, of)
}

// Extends returns nil if the state has everything of the newest checkpoint in the file.
func (c *Checkpoints) Extends(state application.State, hashes trail.Hashes) error {
	newest, older, err := c.Newest()
	if err != nil || newest == "" {
		return err
	}
	newer := Checkpoint{Origin: older.Origin}
	if state.Checkpoint != "" {
		if newer, err = OpenCheckpoint(state.Checkpoint, c.verifying); err != nil {
			return err
		}
	}
	if err := CheckExtends(older, newer, hashes); err != nil {
		return fmt.Errorf("%s: %w. If an older backup was restored, move this file elsewhere and keep it: then the log goes on", c.path, err)
	}
	return nil
}
