package sqlite

import (
	"bytes"
	"cmp"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"bankingapi/domain/fault"
)

// file is the database file on disk. While the service has it open, someone may remove it,
// restore another one over it, or remove the files beside it. SQLite does not notice: it goes
// on writing into files that no longer have a name, and everything is lost when they are
// closed. So each commit asks whether the files are still those that were opened.
type file struct {
	path string
	// asItIs says that it may have no log.
	asItIs bool

	mu   sync.Mutex
	held *held // the database
	size int64 // of the database, the largest so far
	// released: a start that fails closes what it has opened, and Close comes after it.
	released sync.Once
	// of is the connection that wrote last, and beside are the files that it uses beside the
	// database: the write-ahead log and its index. A new connection may have new ones.
	of     driver.Conn
	beside [2]*held
}

// suffixes are the suffixes of the files next to the database.
var suffixes = [2]string{"-wal", "-shm"}

// open remembers the file as it is now. A nil *file is that of a database that a host has
// opened: nothing is checked, as before open.
func (f *file) open() error {
	h, err := hold(f.path)
	if err != nil {
		return err
	}
	info, err := same(f.path, h.info)
	if err == nil {
		err = checkLinks(f.path, info)
	}
	if err == nil {
		err = h.claim(f.path)
	}
	if err != nil {
		h.release()
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = h
	return nil
}

// close is called when no connection is left.
func (f *file) close() {
	f.forget()
	f.released.Do(f.held.release)
}

// remember is called when a connection has begun to write: the files beside the
// database exist then.
func (f *file) remember(conn driver.Conn) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == conn {
		return nil
	}
	for i, suffix := range suffixes {
		h, err := hold(f.path + suffix)
		if f.asItIs && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fileError(err, "%s is missing", f.path+suffix)
		}
		f.beside[i].release()
		f.beside[i] = h
	}
	f.of = conn
	return nil
}

// check returns nil if the files are still those that were opened. The error is
// fault.Unavailable: nothing more must be committed.
func (f *file) check() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		return nil
	}
	info, err := same(f.path, f.held.info)
	if err == nil {
		err = checkLinks(f.path, info)
	}
	if err != nil {
		return err
	}
	for i, suffix := range suffixes {
		if f.beside[i] == nil { // nothing has written yet
			if f.beside[i], err = hold(f.path + suffix); err != nil {
				return nil
			}
		}
		if _, err := same(f.path+suffix, f.beside[i].info); err != nil {
			return err
		}
	}
	return f.isWhole()
}

// explain returns the error of check instead of err, if there is one: SQLite knows only
// that it could not read.
func (f *file) explain(err error) error {
	if err == nil {
		return nil
	}
	return cmp.Or(f.check(), err)
}

// walIndex is the beginning of the index of the log (sqlite.org/walformat.html): twice
// the same header, so that one that is being written is noticed, and how many frames
// of the log are in the database.
type walIndex [100]byte

// sizes are what the index says: the size of a page, the frames in the log, the least
// size of the database, and the size that the log gives it.
func (x *walIndex) sizes() (page, frames, least, most int64) {
	number := func(at int) int64 { return int64(binary.NativeEndian.Uint32(x[at:])) }
	page = int64(binary.NativeEndian.Uint16(x[14:]))
	if page == 1 {
		page = 65536
	}
	frames, most = number(16), number(20)*page
	if number(96) == frames {
		least = most
	}
	return page, frames, least, most
}

// isWhole returns an error if the database or its log is smaller than the index of the
// log says, or if the log has another salt: then SQLite ignores all of it after a crash.
func (f *file) isWhole() error {
	const logHeader, frameHeader, salt, indexSalt = 32, 24, 16, 32
	for last := (walIndex{}); ; {
		var now walIndex
		if _, err := f.beside[1].ReadAt(now[:], 0); err != nil {
			return fileError(err, "%s cannot be read", f.path+suffixes[1])
		}
		if now[12] == 0 || !bytes.Equal(now[:48], now[48:96]) {
			return nil // it is being written
		}
		page, frames, least, most := now.sizes()
		var flaw error
		database, err := f.held.Stat()
		if err != nil {
			return err
		}
		if size := database.Size(); size >= max(least, min(f.size, most)) {
			f.size = size // VACUUM may have made it smaller
		} else {
			flaw = fileError(nil, "%s has become smaller", f.path)
		}
		header := make([]byte, logHeader)
		if frames > 0 && flaw == nil {
			log, err := f.beside[0].Stat()
			if err != nil {
				return err
			}
			if log.Size() < logHeader+frames*(page+frameHeader) {
				flaw = fileError(nil, "%s has become smaller", f.path+suffixes[0])
			} else if _, err := f.beside[0].ReadAt(header, 0); err != nil || !bytes.Equal(header[salt:salt+8], now[indexSalt:indexSalt+8]) {
				flaw = fileError(err, "%s was overwritten", f.path+suffixes[0])
			}
		}
		if flaw == nil || now == last {
			return flaw
		}
		last = now // another process may have changed both meanwhile
	}
}

func same(path string, opened os.FileInfo) (os.FileInfo, error) {
	now, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fileError(err, "%s is gone", path)
	case !os.SameFile(now, opened):
		return nil, fileError(nil, "%s is another file than the one that was opened", path)
	}
	return now, nil
}

func fileError(cause error, format string, path string) error {
	what := fmt.Errorf(format, path)
	if cause != nil {
		what = fmt.Errorf("%w: %w", what, cause)
	}
	return fault.Wrap(fault.Unavailable, what,
		"The database file was removed or replaced, or has lost data, while the service uses it. Put it back, or stop the service, restore, and start it.")
}

// canWrite returns nil if the process may write the file.
func (f *file) canWrite() error {
	if f == nil {
		return nil
	}
	if err := mayWrite(f.path); err != nil {
		return fault.Wrap(fault.Unavailable, err, "The database file cannot be written.")
	}
	if err := f.held.claim(f.path); err != nil {
		return err
	}
	return f.hasRoom()
}

// room is how much must fit beside the database, so that the next batch fits too.
const room = 1 << 20

// hasRoom writes as much as that to a new file and removes it, if no other service has.
func (f *file) hasRoom() error {
	name := f.path + "-space"
	probe, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = probe.Write(make([]byte, room))
		err = errors.Join(err, probe.Close())
		if removed := os.Remove(name); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(fault.Unavailable, err, "The disk of the database is full: less than 1 MiB is left.")
	case err != nil:
		return fault.Wrap(fault.Unavailable, err, "The folder of the database file cannot be written.")
	}
	return nil
}

// forget forgets the files beside the database: the next one that writes makes new ones.
func (f *file) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.beside[0].release()
	f.beside[1].release()
	f.of, f.beside = nil, [2]*held{}
}

// reason is storage.Engine's Explain.
func (f *file) reason(err error) string { return f.name(meanings[codeOf(err)].sentence) }

// name names the file in a sentence, without its folder.
func (f *file) name(sentence string) string {
	if f != nil {
		sentence = strings.Replace(sentence, "database file", "database file "+filepath.Base(f.path), 1)
	}
	return sentence
}
