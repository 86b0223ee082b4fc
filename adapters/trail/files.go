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
	"bankingapi/application/owner"
	application "bankingapi/application/trail"
	"bankingapi/domain/proof"
)

// RequireKeyFile returns an error if there is no such file. It is fs.ErrNotExist if nothing has
// this name. To read a pipe would wait for its writer.
func RequireKeyFile(file string) error {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("trail.key_file: %w; name the file with the key of the book, or make one for a new book with `bankingapi trail keygen`", err)
	}
	if err != nil {
		return fmt.Errorf("trail.key_file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("trail.key_file: %s is not a file", file)
	}
	return nil
}

// LoadNotary reads the signing key from a file. If the file does not exist and create is true,
// it makes a key and the file. Only the owner of the file may read it.
func LoadNotary(file string, create bool) (*Notary, error) {
	err := RequireKeyFile(file)
	if errors.Is(err, fs.ErrNotExist) && create {
		return createKey(file)
	}
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("trail.key_file: %w", err)
	}
	n, err := NewNotary(string(key))
	if err != nil {
		return nil, fmt.Errorf("trail.key_file: %w", err)
	}
	return n, nil
}

// createKey writes the whole file or none: a replica that starts now reads the same key.
func createKey(file string) (*Notary, error) {
	temporary, err := newKey(file, "")
	if err != nil {
		return nil, err
	}
	linked := os.Link(temporary, file)
	removed := os.Remove(temporary)
	if linked != nil && !errors.Is(linked, fs.ErrExist) { // it exists if another replica was faster
		return nil, linked
	}
	if removed != nil {
		return nil, removed
	}
	return LoadNotary(file, false)
}

// newKey makes a key in a file beside the given one. If name is empty, it makes up a name.
func newKey(file, name string) (temporary string, err error) {
	signing, _, err := GenerateKeys(cmp.Or(name, "bankingapi-"+strings.ToLower(rand.Text()[:8])))
	if err != nil {
		return "", err
	}
	if err := owner.MakeFolder(filepath.Dir(file)); err != nil {
		return "", err
	}
	temporary = file + "." + rand.Text()
	f, err := owner.Create(temporary, os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(signing + "\n")
	return temporary, errors.Join(err, f.Sync(), f.Close()) // without the key, the trail of the book is lost
}

// replaceKey makes a new key. It renames the old file, if any: its hash is added to the name. It
// never replaces a file with another key: a key that is lost cannot be made again.
func replaceKey(file, name string, old *Notary) (*Notary, error) {
	temporary, err := newKey(file, name)
	if err != nil {
		return nil, err
	}
	defer os.Remove(temporary) // it is a second name of the file, or no log has this key
	made, err := LoadNotary(temporary, false)
	if err != nil {
		return nil, err
	}
	if old != nil {
		err = setAside(file, old)
		if err != nil {
			return nil, err
		}
	}
	err = os.Link(temporary, file)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, errOtherRekey(file)
	case err != nil && old != nil:
		return nil, errors.Join(err, os.Rename(oldKeyFile(file, old), file))
	}
	return made, err
}

// setAside renames a file with the old key. Another rekey may have replaced this key meanwhile. So
// setAside takes the file under a name of its own first: only one of two gets it.
func setAside(file string, old *Notary) error {
	has := func(name string) bool {
		found, err := LoadNotary(name, false)
		return err == nil && found.VerifyingKey() == old.VerifyingKey()
	}
	if !has(file) {
		return errOtherRekey(file)
	}
	taken := fmt.Sprintf("%s.%s.%08x", file, rand.Text(), old.signer.KeyHash())
	err := os.Rename(file, taken)
	if errors.Is(err, fs.ErrNotExist) {
		return errOtherRekey(file)
	}
	if err != nil {
		return err
	}
	if !has(taken) {
		return errors.Join(errOtherRekey(file), os.Rename(taken, file))
	}
	return os.Rename(taken, oldKeyFile(file, old))
}

func errOtherRekey(file string) error {
	return fmt.Errorf("another process has replaced or removed the key in %s meanwhile. Nothing was changed now: see with 'bankingapi trail key' whether the log has begun anew", file)
}

// oldKeyFile returns the file with a key that replaceKey has replaced.
func oldKeyFile(file string, old *Notary) string {
	return fmt.Sprintf("%s.%08x", file, old.signer.KeyHash())
}

// Checkpoints is an append-only file of checkpoints. Logs with different keys may share a file.
type Checkpoints struct {
	path      string
	verifying string
}

// NewCheckpoints returns the file of a log. verifyingKey verifies the checkpoints of this log.
func NewCheckpoints(path, verifyingKey string) *Checkpoints { return &Checkpoints{path, verifyingKey} }

// Append adds a checkpoint. The checkpoint is on disk when Append returns.
func (c *Checkpoints) Append(checkpoint string) error {
	if err := owner.MakeFolder(filepath.Dir(c.path)); err != nil {
		return err
	}
	f, err := owner.Create(c.path, os.O_APPEND|os.O_WRONLY, 0o644) // checkpoints are public
	if err != nil {
		return err
	}
	_, err = f.WriteString(checkpoint + "\n") // an empty line ends a checkpoint
	return errors.Join(err, f.Sync(), f.Close())
}

// The file is read from its end in blocks. Two consecutive blocks overlap by more than the
// length of a checkpoint.
const blockSize, overlap = 64 << 10, 4 << 10

// Newest returns the last checkpoint of this log in the file, and its decoded content. It
// returns "" if there is no such checkpoint. It skips everything that the key does not verify:
// other logs may share the file, also an earlier log of this book with another key, and a crash
// may cut a line.
func (c *Checkpoints) Newest() (checkpoint string, content Checkpoint, err error) {
	f, err := os.Open(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", content, nil
	}
	if err != nil {
		return "", content, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", content, err
	}
	for end := info.Size(); ; end -= blockSize - overlap {
		start := max(0, end-blockSize)
		block := make([]byte, end-start)
		if _, err := f.ReadAt(block, start); err != nil {
			return "", content, err
		}
		for _, checkpoint := range slices.Backward(splitCheckpoints(string(block))) {
			if content, err := OpenCheckpoint(checkpoint, c.verifying); err == nil {
				return checkpoint, content, nil
			}
		}
		if start == 0 {
			return "", content, nil
		}
	}
}

// splitCheckpoints returns the checkpoints in the content of a file. It does not check their
// signatures. A checkpoint is a text, an empty line and a signature. It accepts more empty
// lines and other line ends, and skips everything that is not a checkpoint.
func splitCheckpoints(content string) (checkpoints []string) {
	var text []string
	ended := false
	for line := range strings.Lines(strings.TrimPrefix(content, "\ufeff")) {
		line = strings.TrimRight(line, " \t\r\n")
		switch {
		case strings.HasPrefix(line, "— "):
			signed := strings.Join(text, "\n") + "\n"
			if _, err := parseCheckpoint(signed); err == nil {
				checkpoints = append(checkpoints, signed+"\n"+line+"\n")
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
	return checkpoints
}

// CheckCheckpoints returns an error if the content of a file has no checkpoint of any log.
func CheckCheckpoints(content string) error {
	if len(splitCheckpoints(content)) == 0 {
		return errors.New("no checkpoint of a trail")
	}
	return nil
}

// compare adds the checkpoints in the content of a file to a check of the log.
func (n *Notary) compare(c *backoffice.TrailCheck, name, content string) {
	earlier := backoffice.Earlier{Name: name}
	checkpoints := splitCheckpoints(content)
	for _, checkpoint := range checkpoints {
		base, err := n.Open(checkpoint)
		if err != nil {
			earlier.Problem = err.Error()
			continue
		}
		earlier.Checkpoints = append(earlier.Checkpoints, base)
	}
	matching := len(earlier.Checkpoints)
	if matching > 0 && matching < len(checkpoints) {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s: %d of %d checkpoints are not of this log, and were skipped: %s", name, len(checkpoints)-matching, len(checkpoints), earlier.Problem))
		earlier.Problem = ""
	}
	c.Earlier = append(c.Earlier, earlier)
}

// Extends returns nil if the log in this state extends the newest checkpoint in the file.
func (c *Checkpoints) Extends(state application.State, hashes proof.Hashes) error {
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
		return fmt.Errorf("%s: %w. If this is not the book that you expect, check storage.dsn. If an older backup was restored, move this file elsewhere and keep it: then the log goes on", c.path, err)
	}
	return nil
}
