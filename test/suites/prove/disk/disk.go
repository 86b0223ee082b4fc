// Package disk is a disk for SQLite that fails on demand, in the process of a
// test. It is a VFS of SQLite (sqlite.org/vfs.html) on top of the default one,
// so the files are real, and so is the code that reads and writes them. It
// records what was synced, so it can also show what a power cut would leave.
package disk

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Op is a call that SQLite makes.
type Op uint8

// The calls that can fail.
const (
	Read Op = iota
	Write
	Truncate
	Sync
	Open
)

// Call is a call of SQLite on a file.
type Call struct {
	Op   Op
	File string // its name, without the folder
	Size int    // number of bytes to read or write
}

// Result decides how a call ends. The zero Result runs it normally.
type Result struct {
	// Code is the result code of SQLite (sqlite.org/rescode.html) that the call
	// returns. If it is 0, the call returns its real result.
	Code int32
	// Apply is how many bytes of a write are written although Code reports an
	// error. For a sync, any number but 0 runs it.
	Apply int
	// Delay is added to the duration of the call.
	Delay time.Duration
}

// Disk is the disk of a folder.
type Disk struct {
	folder string

	mu     sync.Mutex
	decide func(Call) Result // nil runs every call normally
	files  map[string]*content
}

// content is the synced state of a file and the later writes.
type content struct {
	synced  []byte
	pending []change
}

// change is a write, or a truncation if data is nil.
type change struct {
	at   int64
	data []byte
}

// New returns the disk of a folder. It is removed at the end of the test. Files
// that were opened before are not on it.
func New(t testing.TB, folder string) *Disk {
	t.Helper()
	folder, err := filepath.EvalSymlinks(folder)
	require.NoError(t, err)
	require.NoError(t, register())
	d := &Disk{folder: folder + string(filepath.Separator), files: map[string]*content{}}
	disks.Store(d, true)
	t.Cleanup(func() { disks.Delete(d) })
	return d
}

// Decide sets the function that decides about each later call. nil ends all
// faults. One goroutine at a time calls it.
func (d *Disk) Decide(decide func(Call) Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decide = decide
}

// disks are all disks in use.
var disks sync.Map

// diskOf returns the disk of a file, or nil if the file is on none.
func diskOf(path string) (found *Disk) {
	disks.Range(func(d, _ any) bool {
		if strings.HasPrefix(path, d.(*Disk).folder) {
			found = d.(*Disk)
		}
		return found == nil
	})
	return found
}

// ask returns the Result for a call.
func (d *Disk) ask(c Call) Result {
	d.mu.Lock()
	var r Result
	if d.decide != nil {
		r = d.decide(c)
	}
	d.mu.Unlock()
	if r.Delay > 0 {
		time.Sleep(r.Delay)
	}
	return r
}

// opened starts recording the writes to a file. read returns its content.
func (d *Disk) opened(path string, read func() []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[path] == nil {
		d.files[path] = &content{synced: read()}
	}
}

// of calls do with what is known of a file.
func (d *Disk) of(path string, do func(f *content)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do(d.files[path])
}

// synced records that the writes before a sync are on the disk. The number of
// these writes was recorded when the sync began.
func (d *Disk) synced(path string, before int) {
	d.of(path, func(f *content) {
		before = min(before, len(f.pending))
		for _, c := range f.pending[:before] {
			f.synced = c.apply(f.synced)
		}
		f.pending = append([]change{}, f.pending[before:]...)
	})
}

func (d *Disk) pending(path string) (count int) {
	d.of(path, func(f *content) { count = len(f.pending) })
	return count
}

func (d *Disk) deleted(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.files, path)
}

func (c change) apply(to []byte) []byte {
	if c.data == nil {
		return append([]byte{}, to[:min(int64(len(to)), c.at)]...)
	}
	end := int(c.at) + len(c.data)
	if end > len(to) {
		to = append(to, make([]byte, end-len(to))...)
	}
	copy(to[c.at:], c.data)
	return to
}

// sector is the unit that a disk writes completely or not at all.
const sector = 512

// Cut writes to another folder what a power cut would leave now: everything
// that was synced, and any sectors of the later writes.
func (d *Disk) Cut(r *rand.Rand, into string) error {
	return d.copy(into, func() func() bool {
		keep := r.IntN(3) // nothing, some, all of it
		return func() bool { return keep == 2 || keep == 1 && r.IntN(2) == 0 }
	})
}

// Crash writes to another folder what a crash of the process alone would leave
// now: everything that was written.
func (d *Disk) Crash(into string) error {
	return d.copy(into, func() func() bool { return func() bool { return true } })
}

// copy writes each file. It asks keep for each sector that was not synced.
func (d *Disk) copy(into string, ofFile func() func() bool) error {
	d.mu.Lock()
	after := map[string][]byte{}
	for path, f := range d.files {
		image := append([]byte{}, f.synced...)
		kept := ofFile()
		for _, c := range f.pending {
			for _, part := range c.sectors() {
				if kept() {
					image = part.apply(image)
				}
			}
		}
		after[path] = image
	}
	d.mu.Unlock()
	var err error
	for path, image := range after {
		if strings.HasSuffix(path, "-shm") { // shared memory, not a file
			continue
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(into, filepath.Base(path)), image, 0o600))
	}
	return err
}

// sectors splits a change into parts that are written completely or not at all.
func (c change) sectors() []change {
	if c.data == nil {
		return []change{c}
	}
	var parts []change
	for at, data := c.at, c.data; len(data) > 0; {
		n := min(len(data), int(sector-at%sector))
		parts = append(parts, change{at, data[:n]})
		at = at + int64(n)
		data = data[n:]
	}
	return parts
}
