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
	"slices"
	"strings"
	"sync"
	"syscall"

	sqlite3 "modernc.org/sqlite/lib"

	"bankingapi/domain/fault"
)

// file is the database file on disk. While the service uses it, a person may remove it, restore
// another file over it, or remove the files beside it. SQLite does not notice this: it
// continues to write into files that no longer have a name, and everything is lost when they
// are closed. So each commit checks that the files are still the files that were opened.
type file struct {
	path string
	// real is path without symbolic links. SQLite names the files beside the database by it.
	real string
	// asItIs: the file may have no log.
	asItIs bool

	mu   sync.Mutex
	held *held // descriptor of the database
	size int64 // largest size of the database so far
	// released prevents a second release: if the start fails, it closes the file, and Close
	// comes after it.
	released sync.Once
	// lastConn is the connection that wrote last. beside has the files that it uses beside the
	// database: the write-ahead log and its index. A new connection may use new files.
	lastConn driver.Conn
	beside   [2]*held
	// last is the database file after the last checkpoint, and overwritten is the error of a
	// file that somebody has written since. It stays: SQLite would mix both files.
	last        *image
	overwritten error
}

// suffixes are the suffixes of the files beside the database.
var suffixes = [2]string{"-wal", "-shm"}

// open stores the identity of the file. A nil *file is used for a database that a host has
// opened. Then, and before open, nothing is checked.
func (f *file) open() error {
	onDisk, err := filepath.EvalSymlinks(f.path)
	if err != nil {
		return err
	}
	f.real = onDisk
	h, err := hold(f.real)
	if err != nil {
		return err
	}
	err = f.take(h)
	if err != nil {
		h.release()
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = h
	return nil
}

// take makes a file that was opened the one of this book, unless another file has its name.
func (f *file) take(h *held) error {
	err := f.hasName(h)
	if err != nil {
		return err
	}
	return h.claim(f.real)
}

// hasName returns an error if another file has the name of the database now, or if the file has a
// second name.
func (f *file) hasName(h *held) error {
	info, err := same(f.real, h.info)
	if err != nil {
		return err
	}
	if f.path != f.real {
		linked, err := os.Stat(f.path)
		if err != nil || !os.SameFile(linked, info) {
			return fileError(err, "%s leads to another file than the one that was opened", f.path)
		}
	}
	return checkLinks(f.path, info)
}

// close must be called when no connection is left.
func (f *file) close() {
	f.forget()
	f.released.Do(f.held.release)
}

// remember stores the files beside the database. It must be called when a connection has begun
// to write, because these files exist then.
func (f *file) remember(conn driver.Conn) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lastConn == conn {
		return nil
	}
	for i, suffix := range suffixes {
		h, err := hold(f.real + suffix)
		if f.asItIs && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fileError(err, "%s is missing", f.real+suffix)
		}
		f.beside[i].release()
		f.beside[i] = h
	}
	f.lastConn = conn
	return nil
}

// check returns nil if the files are still the files that were opened. The error is
// fault.Unavailable: nothing more may be committed.
func (f *file) check() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		return nil
	}
	err := f.hasName(f.held)
	if err != nil {
		return err
	}
	if f.beside[0] == nil && isEmpty(f.real+suffixes[0]) {
		return nil // until something is written, SQLite makes a log and removes it again
	}
	for i, suffix := range suffixes {
		if f.beside[i] == nil { // nothing was written yet
			if f.beside[i], err = hold(f.real + suffix); err != nil {
				return nil
			}
		}
		if _, err := same(f.real+suffix, f.beside[i].info); err != nil {
			return err
		}
	}
	// A file that was overwritten with a smaller one is both. A checkpoint may make it as large as
	// before, so isUntouched must have seen it: only this error stays.
	flaw := f.isWhole()
	return cmp.Or(f.isUntouched(), flaw)
}

// isEmpty reports whether a file has no content, or does not exist.
func isEmpty(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return info.Size() == 0
}

// explain returns the error of check, if any: SQLite only knows that it could not read.
func (f *file) explain(err error) error {
	if err == nil {
		return nil
	}
	return cmp.Or(f.check(), err)
}

// walIndex is the beginning of the index of the log (sqlite.org/walformat.html). It has the
// same header twice, so that a reader notices an incomplete write. It also says how many frames
// of the log are in the database.
type walIndex [100]byte

// sizes returns the values of the index: the size of a page, the number of frames in the log,
// the minimum size of the database, and its size after the log is moved.
func (x *walIndex) sizes() (page, frames, least, most int64) {
	number := func(offset int) int64 { return int64(binary.NativeEndian.Uint32(x[offset:])) }
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

// isWhole returns an error if the database or its log is smaller than the index of the log
// says. It also returns an error if the log has another salt: then SQLite would ignore the
// whole log after a crash.
func (f *file) isWhole() error {
	const logHeader, frameHeader, salt, indexSalt = 32, 24, 16, 32
	for previous := (walIndex{}); ; {
		var index walIndex
		if _, err := f.beside[1].file.ReadAt(index[:], 0); err != nil {
			return fileError(err, "%s cannot be read", f.real+suffixes[1])
		}
		if index[12] == 0 || !bytes.Equal(index[:48], index[48:96]) {
			return nil // the index is being written
		}
		page, frames, least, most := index.sizes()
		var flaw error
		database, err := f.held.file.Stat()
		if err != nil {
			return err
		}
		size := database.Size()
		if size >= max(least, min(f.size, most)) {
			f.size = size // VACUUM may have shrunk it
		} else {
			flaw = fileError(nil, "%s has become smaller", f.path)
		}
		header := make([]byte, logHeader)
		if frames > 0 && flaw == nil {
			log, err := f.beside[0].file.Stat()
			if err != nil {
				return err
			}
			if log.Size() < logHeader+frames*(page+frameHeader) {
				flaw = fileError(nil, "%s has become smaller", f.real+suffixes[0])
			} else if _, err := f.beside[0].file.ReadAt(header, 0); err != nil || !bytes.Equal(header[salt:salt+8], index[indexSalt:indexSalt+8]) {
				flaw = fileError(err, "%s was overwritten", f.real+suffixes[0])
			}
		}
		if flaw == nil || index == previous {
			return flaw
		}
		previous = index // another process may have changed both files in between
	}
}

func same(path string, opened os.FileInfo) (os.FileInfo, error) {
	info, err := os.Lstat(path) // a link is another file: SQLite would use other files beside the database
	switch {
	case err != nil:
		return nil, fileError(err, "%s is gone", path)
	case !os.SameFile(info, opened):
		return nil, fileError(nil, "%s is another file than the one that was opened", path)
	}
	return info, nil
}

func fileError(cause error, format string, path string) error {
	err := fmt.Errorf(format, path)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return fault.Wrap(fault.Unavailable, err,
		"The database file was removed or replaced, or has lost data, while the service uses it. Put it back, or stop the service, restore, and start it.")
}

// canWrite returns nil if the process may write the file, and if a commit would be accepted.
func (f *file) canWrite() error {
	if f == nil {
		return nil
	}
	err := f.check()
	if err != nil {
		return err
	}
	err = mayWrite(f.real)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "The database file cannot be written.")
	}
	err = f.held.claim(f.real)
	if err != nil {
		return err
	}
	return f.hasRoom()
}

// why returns a clearer error than SQLite's if the file could not be opened because the disk is
// full: SQLite calls it an I/O error, or a file that it cannot open.
func (f *file) why(err error) error {
	switch codeOf(err) {
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL:
		return cmp.Or(f.hasRoom(), err)
	}
	return err
}

// room is how much free disk space is needed, so that the next batch fits too.
const room = 1 << 20

// hasRoom writes this much to a new file and removes the file, unless another service has
// already removed it.
func (f *file) hasRoom() error {
	err := takeRoom(f.real + "-space")
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(fault.Unavailable, err, "The disk of the database is full: less than 1 MiB is left.")
	case err != nil:
		return fault.Wrap(fault.Unavailable, err, "The folder of the database file cannot be written.")
	}
	return nil
}

func takeRoom(name string) error {
	probe, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = probe.Write(make([]byte, room))
	err = errors.Join(err, probe.Close())
	removed := os.Remove(name)
	if errors.Is(removed, fs.ErrNotExist) {
		return err
	}
	return errors.Join(err, removed)
}

// forget drops the files beside the database. The next connection that writes makes new ones.
func (f *file) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.beside[0].release()
	f.beside[1].release()
	f.lastConn = nil
	f.beside = [2]*held{}
	f.last = nil
}

// reason is Explain of storage.Engine.
func (f *file) reason(err error) string { return f.name(meanings[codeOf(err)].sentence) }

// name adds the name of the file, without its folder, to a sentence.
func (f *file) name(sentence string) string {
	if f != nil {
		sentence = strings.Replace(sentence, "database file", "database file "+filepath.Base(f.path), 1)
	}
	return sentence
}

// held is a descriptor of a file. This process may open the same file more than once. Closing
// any descriptor drops all locks that the process has on the file, including the locks of
// SQLite. So all users share one descriptor, and the last one closes it.
type held struct {
	file  *os.File
	info  os.FileInfo
	name  string // name under which the database was opened
	users int
}

var descriptors struct {
	sync.Mutex
	open []*held
}

// hold opens a file, or shares its descriptor if it is already open.
func hold(path string) (*held, error) {
	descriptors.Lock()
	defer descriptors.Unlock()
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	for _, h := range descriptors.open {
		if os.SameFile(h.info, info) {
			h.users++
			return h, nil
		}
	}
	opened, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err = opened.Stat(); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	h := &held{file: opened, info: info, users: 1}
	descriptors.open = append(descriptors.open, h)
	return h, nil
}

// release must be called when SQLite has closed the file. The descriptor may be nil.
func (h *held) release() {
	descriptors.Lock()
	defer descriptors.Unlock()
	if h == nil {
		return
	}
	if h.users--; h.users == 0 {
		descriptors.open = slices.DeleteFunc(descriptors.open, func(other *held) bool { return other == h })
		_ = h.file.Close()
	}
}

// A database must have only one name. SQLite finds the log by the name, so two processes that
// use two names write two logs into one file. The number of names shows a hard link. A lock
// shows a file that is mounted in two places: each process locks a byte that depends on the
// name (claim).

func checkLinks(path string, info os.FileInfo) error {
	if links(info) > 1 {
		return fault.New(fault.Unavailable, "The database file "+path+" has a second name (a hard link). A service that opens it by that name "+
			"destroys the book. Remove the other name.")
	}
	return nil
}

// claim returns an error if another process has opened the database by another name.
func (h *held) claim(path string) error {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	resolved, err = filepath.Abs(resolved)
	if err != nil {
		return err
	}
	descriptors.Lock()
	defer descriptors.Unlock()
	if h.name == "" {
		h.name = resolved
	}
	if h.name != resolved || !claim(h.file, resolved) {
		return fault.New(fault.Unavailable, "Another service uses the database file "+path+" by another name, such as a mount of the file alone. "+
			"Both destroy the book. Stop one of them, and mount the folder instead of the file.")
	}
	return nil
}
