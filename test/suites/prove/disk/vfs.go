package disk

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// The driver is SQLite's C code translated to Go: pointers are uintptr to
// memory that Go does not manage, and functions are pointers to them.

// register makes this VFS the default of SQLite. It runs once.
var register = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	usual = sqlite3.Xsqlite3_vfs_find(tls, 0)
	if usual == 0 {
		return fmt.Errorf("SQLite has no VFS")
	}
	name, err := libc.CString("prove")
	if err != nil {
		return err
	}
	own := allocate[sqlite3.Tsqlite3_vfs](tls)
	v := at[sqlite3.Tsqlite3_vfs](own)
	*v = *at[sqlite3.Tsqlite3_vfs](usual)
	v.FpNext = 0
	v.FzName = name
	v.FszOsFile += int32(unsafe.Sizeof(uintptr(0))) // the number of the file follows the usual one in memory
	v.FxOpen = pointer(open)
	v.FxDelete = pointer(remove)
	rc := sqlite3.Xsqlite3_vfs_register(tls, own, 1)
	if rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("register a VFS: code %d", rc)
	}
	return nil
})

// usual is the VFS below.
var usual uintptr

// methods are those of files on a disk, by the usual ones. SQLite has some for files
// with locks and some for files without.
var methods sync.Map

// ours returns the methods of a disk: five of the usual ones are replaced.
func ours(tls *libc.TLS, theirs uintptr) uintptr {
	if made, ok := methods.Load(theirs); ok {
		return made.(uintptr) //nolint:forcetypeassert // nothing else is stored
	}
	made := allocate[sqlite3.Tsqlite3_io_methods](tls)
	m := at[sqlite3.Tsqlite3_io_methods](made)
	*m = *at[sqlite3.Tsqlite3_io_methods](theirs)
	m.FiVersion = 2 // version 2 has no memory maps, which would bypass this VFS
	m.FxClose = pointer(closeFile)
	m.FxRead = pointer(read)
	m.FxWrite = pointer(write)
	m.FxTruncate = pointer(truncate)
	m.FxSync = pointer(syncFile)
	methods.Store(theirs, made)
	return made
}

// openFiles are the open files that are on a disk, by their number.
var (
	openFiles  sync.Map
	fileNumber atomic.Uintptr
)

type openFile struct {
	*Disk
	path  string
	below *sqlite3.Tsqlite3_io_methods // the usual methods
}

func (f *openFile) call(op Op, size int) Result {
	return f.ask(Call{op, filepath.Base(f.path), size})
}

// at returns the value at an address.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// pointer returns the address of a function. It does not work for closures.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// function returns the function at an address.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

func allocate[T any](tls *libc.TLS) uintptr {
	var of T
	return libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(of)))
}

func memory(p uintptr, size int32) []byte { return unsafe.Slice(at[byte](p), int(size)) }

// number is the key of an open file in openFiles.
func number(p uintptr) *uintptr {
	return at[uintptr](p + uintptr(at[sqlite3.Tsqlite3_vfs](usual).FszOsFile))
}

// on returns an open file that is on a disk.
func on(p uintptr) *openFile {
	f, _ := openFiles.Load(*number(p))
	return f.(*openFile) //nolint:forcetypeassert // nothing else is stored
}

func open(tls *libc.TLS, _, name, p uintptr, flags int32, outFlags uintptr) int32 {
	var d *Disk
	var path string
	if name != 0 {
		path = libc.GoString(name)
		d = diskOf(path)
	}
	*at[uintptr](p) = 0 // no methods: the file is not open
	if d != nil {
		r := d.ask(Call{Open, filepath.Base(path), 0})
		if r.Code != 0 {
			return r.Code
		}
	}
	v := at[sqlite3.Tsqlite3_vfs](usual)
	rc := function[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](v.FxOpen)(tls, usual, name, p, flags, outFlags)
	if rc != sqlite3.SQLITE_OK || d == nil {
		return rc
	}
	theirs := *at[uintptr](p)
	f := &openFile{d, path, at[sqlite3.Tsqlite3_io_methods](theirs)}
	d.opened(path, func() []byte { return readAll(tls, f.below, p) })
	*number(p) = fileNumber.Add(1)
	openFiles.Store(*number(p), f)
	*at[uintptr](p) = ours(tls, theirs)
	return rc
}

// readAll reads a file through the VFS below. It cannot use package os, because
// closing the file would release the locks that the process holds on it.
func readAll(tls *libc.TLS, below *sqlite3.Tsqlite3_io_methods, p uintptr) []byte {
	out := allocate[int64](tls)
	defer libc.Xfree(tls, out)
	if function[func(*libc.TLS, uintptr, uintptr) int32](below.FxFileSize)(tls, p, out) != sqlite3.SQLITE_OK {
		return nil
	}
	size := *at[int64](out)
	if size == 0 {
		return nil
	}
	into := libc.Xmalloc(tls, libc.Tsize_t(size))
	defer libc.Xfree(tls, into)
	rc := function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](below.FxRead)(tls, p, into, int32(size), 0)
	if rc != sqlite3.SQLITE_OK {
		return nil
	}
	return append([]byte{}, memory(into, int32(size))...)
}

func remove(tls *libc.TLS, _, name uintptr, syncFolder int32) int32 {
	v := at[sqlite3.Tsqlite3_vfs](usual)
	rc := function[func(*libc.TLS, uintptr, uintptr, int32) int32](v.FxDelete)(tls, usual, name, syncFolder)
	path := libc.GoString(name)
	d := diskOf(path)
	if d != nil {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			d.deleted(path)
		}
	}
	return rc
}

func closeFile(tls *libc.TLS, p uintptr) int32 {
	defer openFiles.Delete(*number(p))
	return function[func(*libc.TLS, uintptr) int32](on(p).below.FxClose)(tls, p)
}

func read(tls *libc.TLS, p, into uintptr, size int32, offset int64) int32 {
	f := on(p)
	r := f.call(Read, int(size))
	if r.Code != 0 {
		return r.Code
	}
	return function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](f.below.FxRead)(tls, p, into, size, offset)
}

func write(tls *libc.TLS, p, from uintptr, size int32, offset int64) int32 {
	f := on(p)
	r := f.call(Write, int(size))
	if r.Code != 0 {
		size = min(size, int32(r.Apply))
	}
	rc := int32(sqlite3.SQLITE_OK)
	if size > 0 {
		rc = function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](f.below.FxWrite)(tls, p, from, size, offset)
	}
	if rc == sqlite3.SQLITE_OK && size > 0 {
		f.of(f.path, func(c *content) { c.pending = append(c.pending, change{offset, slices.Clone(memory(from, size))}) })
	}
	return cmp.Or(r.Code, rc)
}

func truncate(tls *libc.TLS, p uintptr, size int64) int32 {
	f := on(p)
	r := f.call(Truncate, 0)
	if r.Code != 0 {
		return r.Code
	}
	rc := function[func(*libc.TLS, uintptr, int64) int32](f.below.FxTruncate)(tls, p, size)
	if rc == sqlite3.SQLITE_OK {
		f.of(f.path, func(c *content) { c.pending = append(c.pending, change{at: size}) })
	}
	return rc
}

func syncFile(tls *libc.TLS, p uintptr, flags int32) int32 {
	f := on(p)
	before := f.pending(f.path)
	r := f.call(Sync, 0)
	if r.Code != 0 && r.Apply == 0 {
		return r.Code
	}
	rc := function[func(*libc.TLS, uintptr, int32) int32](f.below.FxSync)(tls, p, flags)
	if rc == sqlite3.SQLITE_OK {
		f.synced(f.path, before)
	}
	return cmp.Or(r.Code, rc)
}
