// Package disk is a disk that fails when it is told to, for SQLite inside the
// test's process. It is a VFS of SQLite (sqlite.org/vfs.html) on top of the
// usual one: the files are real, and so is the code that reads and writes
// them. It also knows what was synced, and so can tell what a power cut would
// leave.
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

// Call is what SQLite asks of a file.
type Call struct {
	Op   Op
	File string // its name, without the folder
	Size int    // of what is read or written
}

// Result is what becomes of a call. The zero Result lets it happen.
type Result struct {
	// Code is the result code of SQLite (sqlite.org/rescode.html) that the call
	// returns; 0 returns what really happens.
	Code int32
	// Apply is how many bytes of a write are written although Code says that
	// it failed; of a sync, any number but 0 makes it happen.
	Apply int
	// Delay is how long the call takes besides.
	Delay time.Duration
}

// Disk is the disk under a folder.
type Disk struct {
	folder string

	mu     sync.Mutex
	decide func(Call) Result // nil lets everything happen
	files  map[string]*content
}

// content is a file: what was synced, and what was written since.
type content struct {
	synced  []byte
	pending []change
}

// change is a write, or a truncation where data is nil.
type change struct {
	at   int64
	data []byte
}

// New returns the disk under a folder until the end of the test. Files that
// were opened before are not on it.
func New(t testing.TB, folder string) *Disk {
	t.Helper()
	folder, err := filepath.EvalSymlinks(folder)
	require.NoError(t, err)
	require.NoError(t, register())
	d := &Disk{folder: folder + string(filepath.Separator), files: map[string]*content{}}
	disks.add(d)
	t.Cleanup(func() { disks.remove(d) })
	return d
}

// Decide sets what becomes of each call from now on; nil mends the disk. It is
// called by one goroutine at a time.
func (d *Disk) Decide(decide func(Call) Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decide = decide
}

// disks are all that there are.
var disks registry

type registry struct {
	mu  sync.RWMutex
	all []*Disk
}

func (r *registry) add(d *Disk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, d)
}

func (r *registry) remove(d *Disk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.all {
		if r.all[i] == d {
			r.all = append(r.all[:i:i], r.all[i+1:]...)
			return
		}
	}
}

// of is the disk of a file; nil for one that is on none.
func (r *registry) of(path string) *Disk {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, d := range r.all {
		if strings.HasPrefix(path, d.folder) {
			return d
		}
	}
	return nil
}

// ask is what becomes of a call.
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

// opened begins to follow a file, which read reads.
func (d *Disk) opened(path string, read func() []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[path] == nil {
		d.files[path] = &content{synced: read()}
	}
}

func (d *Disk) wrote(path string, at int64, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[path]
	f.pending = append(f.pending, change{at, append([]byte{}, data...)})
}

func (d *Disk) truncated(path string, size int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[path]
	f.pending = append(f.pending, change{at: size})
}

// synced is told after the sync: what was written before it is on the disk.
// How much that is was noted when the sync began.
func (d *Disk) synced(path string, before int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[path]
	before = min(before, len(f.pending))
	for _, c := range f.pending[:before] {
		f.synced = c.apply(f.synced)
	}
	f.pending = append([]change{}, f.pending[before:]...)
}

func (d *Disk) pending(path string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.files[path].pending)
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
	if end := int(c.at) + len(c.data); end > len(to) {
		to = append(to, make([]byte, end-len(to))...)
	}
	copy(to[c.at:], c.data)
	return to
}

// sector is what a disk writes whole or not at all.
const sector = 512

// Cut writes into another folder what the files would be if the power went
// away now: all that was synced, and of what was written since, any sectors.
func (d *Disk) Cut(r *rand.Rand, into string) error {
	return d.copy(into, func() func() bool {
		keep := r.IntN(3) // nothing, some, all of it
		return func() bool { return keep == 2 || keep == 1 && r.IntN(2) == 0 }
	})
}

// Crash writes into another folder what the files would be if only the process
// ended now: everything that was written.
func (d *Disk) Crash(into string) error {
	return d.copy(into, func() func() bool { return func() bool { return true } })
}

// copy asks for each file whether each unsynced sector is on the disk.
func (d *Disk) copy(into string, ofFile func() func() bool) error {
	d.mu.Lock()
	after := map[string][]byte{}
	for path, f := range d.files {
		image, kept := append([]byte{}, f.synced...), ofFile()
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

// sectors is the change in parts that happen whole or not at all.
func (c change) sectors() []change {
	if c.data == nil {
		return []change{c}
	}
	var parts []change
	for at, data := c.at, c.data; len(data) > 0; {
		n := min(len(data), int(sector-at%sector))
		parts = append(parts, change{at, data[:n]})
		at, data = at+int64(n), data[n:]
	}
	return parts
}
