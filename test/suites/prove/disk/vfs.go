package disk

import (
	"fmt"
	"os"
	"path/filepath"
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
	*at[sqlite3.Tsqlite3_vfs](own) = *at[sqlite3.Tsqlite3_vfs](usual)
	v := at[sqlite3.Tsqlite3_vfs](own)
	v.FpNext, v.FzName = 0, name
	v.FszOsFile += int32(unsafe.Sizeof(file{}))
	v.FxOpen, v.FxDelete = pointer(open), pointer(remove)

	methods = allocate[sqlite3.Tsqlite3_io_methods](tls)
	*at[sqlite3.Tsqlite3_io_methods](methods) = sqlite3.Tsqlite3_io_methods{
		FiVersion: 2, // version 2 has no memory maps, which would bypass this VFS
		FxClose:   pointer(closeFile), FxRead: pointer(read), FxWrite: pointer(write),
		FxTruncate: pointer(truncate), FxSync: pointer(syncFile), FxFileSize: pointer(fileSize),
		FxLock: pointer(lock), FxUnlock: pointer(unlock), FxCheckReservedLock: pointer(checkReservedLock),
		FxFileControl: pointer(fileControl), FxSectorSize: pointer(sectorSize),
		FxDeviceCharacteristics: pointer(deviceCharacteristics),
		FxShmMap:                pointer(shmMap), FxShmLock: pointer(shmLock),
		FxShmBarrier: pointer(shmBarrier), FxShmUnmap: pointer(shmUnmap),
	}
	if rc := sqlite3.Xsqlite3_vfs_register(tls, own, 1); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("register a VFS: code %d", rc)
	}
	return nil
})

// usual is the VFS below. methods are ours for open files.
var usual, methods uintptr

// file is an open file. The file of the VFS below follows it in memory.
type file struct {
	methods uintptr
	number  uintptr // key in openFiles, or 0 if the file is on no disk
}

// openFiles are the open files that are on a disk, by their number.
var (
	openFiles  sync.Map
	fileNumber atomic.Uintptr
)

type openFile struct {
	*Disk
	path string
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

// beneath returns the file of the VFS below and its methods.
func beneath(p uintptr) (uintptr, *sqlite3.Tsqlite3_io_methods) {
	below := p + unsafe.Sizeof(file{})
	return below, at[sqlite3.Tsqlite3_io_methods](*at[uintptr](below))
}

// on returns the open file, or nil if it is on no disk.
func on(p uintptr) *openFile {
	f, _ := openFiles.Load(at[file](p).number)
	found, _ := f.(*openFile)
	return found
}

func open(tls *libc.TLS, _, name, p uintptr, flags int32, outFlags uintptr) int32 {
	*at[file](p) = file{}
	var d *Disk
	var path string
	if name != 0 {
		path = libc.GoString(name)
		d = diskOf(path)
	}
	if d != nil {
		if r := d.ask(Call{Open, filepath.Base(path), 0}); r.Code != 0 {
			return r.Code
		}
	}
	below := p + unsafe.Sizeof(file{})
	v := at[sqlite3.Tsqlite3_vfs](usual)
	rc := function[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](v.FxOpen)(tls, usual, name, below, flags, outFlags)
	if *at[uintptr](below) == 0 { // the file was not opened
		return rc
	}
	*at[file](p) = file{methods: methods}
	if rc != sqlite3.SQLITE_OK || d == nil {
		return rc
	}
	d.opened(path, func() []byte { return readAll(tls, below) })
	number := fileNumber.Add(1)
	openFiles.Store(number, &openFile{d, path})
	at[file](p).number = number
	return rc
}

// readAll reads a file through the VFS below. It cannot use package os, because
// closing the file would release the locks that the process holds on it.
func readAll(tls *libc.TLS, below uintptr) []byte {
	m := at[sqlite3.Tsqlite3_io_methods](*at[uintptr](below))
	out := allocate[int64](tls)
	defer libc.Xfree(tls, out)
	if function[func(*libc.TLS, uintptr, uintptr) int32](m.FxFileSize)(tls, below, out) != sqlite3.SQLITE_OK {
		return nil
	}
	size := *at[int64](out)
	if size == 0 {
		return nil
	}
	into := libc.Xmalloc(tls, libc.Tsize_t(size))
	defer libc.Xfree(tls, into)
	rc := function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](m.FxRead)(tls, below, into, int32(size), 0)
	if rc != sqlite3.SQLITE_OK {
		return nil
	}
	return append([]byte{}, memory(into, int32(size))...)
}

func remove(tls *libc.TLS, _, name uintptr, syncFolder int32) int32 {
	v := at[sqlite3.Tsqlite3_vfs](usual)
	rc := function[func(*libc.TLS, uintptr, uintptr, int32) int32](v.FxDelete)(tls, usual, name, syncFolder)
	path := libc.GoString(name)
	if d := diskOf(path); d != nil {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			d.deleted(path)
		}
	}
	return rc
}

func closeFile(tls *libc.TLS, p uintptr) int32 {
	below, m := beneath(p)
	rc := function[func(*libc.TLS, uintptr) int32](m.FxClose)(tls, below)
	openFiles.Delete(at[file](p).number)
	return rc
}

func read(tls *libc.TLS, p, into uintptr, size int32, offset int64) int32 {
	if f := on(p); f != nil {
		if r := f.call(Read, int(size)); r.Code != 0 {
			return r.Code
		}
	}
	below, m := beneath(p)
	return function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](m.FxRead)(tls, below, into, size, offset)
}

func write(tls *libc.TLS, p, from uintptr, size int32, offset int64) int32 {
	f, r := on(p), Result{}
	if f != nil {
		r = f.call(Write, int(size))
	}
	if r.Code != 0 {
		size = min(size, int32(r.Apply))
	}
	below, m := beneath(p)
	rc := int32(sqlite3.SQLITE_OK)
	if size > 0 {
		rc = function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](m.FxWrite)(tls, below, from, size, offset)
	}
	if f != nil && rc == sqlite3.SQLITE_OK && size > 0 {
		f.wrote(f.path, offset, memory(from, size))
	}
	if r.Code != 0 {
		return r.Code
	}
	return rc
}

func truncate(tls *libc.TLS, p uintptr, size int64) int32 {
	f := on(p)
	if f != nil {
		if r := f.call(Truncate, 0); r.Code != 0 {
			return r.Code
		}
	}
	below, m := beneath(p)
	rc := function[func(*libc.TLS, uintptr, int64) int32](m.FxTruncate)(tls, below, size)
	if f != nil && rc == sqlite3.SQLITE_OK {
		f.truncated(f.path, size)
	}
	return rc
}

func syncFile(tls *libc.TLS, p uintptr, flags int32) int32 {
	f, r, before := on(p), Result{}, 0
	if f != nil {
		before = f.pending(f.path)
		r = f.call(Sync, 0)
	}
	if r.Code != 0 && r.Apply == 0 {
		return r.Code
	}
	below, m := beneath(p)
	rc := function[func(*libc.TLS, uintptr, int32) int32](m.FxSync)(tls, below, flags)
	if f != nil && rc == sqlite3.SQLITE_OK {
		f.synced(f.path, before)
	}
	if r.Code != 0 {
		return r.Code
	}
	return rc
}

// The other methods only forward the call.

func fileSize(tls *libc.TLS, p, size uintptr) int32 {
	below, m := beneath(p)
	return function[func(*libc.TLS, uintptr, uintptr) int32](m.FxFileSize)(tls, below, size)
}

func lock(tls *libc.TLS, p uintptr, level int32) int32 {
	below, m := beneath(p)
	return function[func(*libc.TLS, uintptr, int32) int32](m.FxLock)(tls, below, level)
}

func unlock(tls *libc.TLS, p uintptr, level int32) int32 {
	below, m := beneath(p)
	return function[func(*libc.TLS, uintptr, int32) int32](m.FxUnlock)(tls, below, level)
}

func checkReservedLock(tls *libc.TLS, p, out uintptr) int32 {
	below, m := beneath(p)
	return function[func(*libc.TLS, uintptr, uintptr) int32](m.FxCheckReservedLock)(tls, below, out)
}

func fileControl(tls *libc.TLS, p uintptr, op int32, argument uintptr) int32 {
	below, m := beneath(p)
	return function[func(*libc.TLS, uintptr, int32, uintptr) int32](m.FxFileControl)(tls, below, op, argument)
}

func sectorSize(tls *libc.TLS, p uintptr) int32 {
	below, m := beneath(p)
	return function[func(*libc.TLS, uintptr) int32](m.FxSectorSize)(tls, below)
}

func deviceCharacteristics(tls *libc.TLS, p uintptr) int32 {
	below, m := beneath(p)
	return function[func(*libc.TLS, uintptr) int32](m.FxDeviceCharacteristics)(tls, below)
}

func shmMap(tls *libc.TLS, p uintptr, page, size, extend int32, out uintptr) int32 {
	below, m := beneath(p)
	return function[func(*libc.TLS, uintptr, int32, int32, int32, uintptr) int32](m.FxShmMap)(tls, below, page, size, extend, out)
}

func shmLock(tls *libc.TLS, p uintptr, offset, n, flags int32) int32 {
	below, m := beneath(p)
	return function[func(*libc.TLS, uintptr, int32, int32, int32) int32](m.FxShmLock)(tls, below, offset, n, flags)
}

func shmBarrier(tls *libc.TLS, p uintptr) {
	below, m := beneath(p)
	function[func(*libc.TLS, uintptr)](m.FxShmBarrier)(tls, below)
}

func shmUnmap(tls *libc.TLS, p uintptr, deleteToo int32) int32 {
	below, m := beneath(p)
	return function[func(*libc.TLS, uintptr, int32) int32](m.FxShmUnmap)(tls, below, deleteToo)
}
