package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"bankingapi/domain/fault"
)

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
