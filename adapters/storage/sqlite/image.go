package sqlite

import (
	"encoding/binary"
	"time"
)

// moved says how much of the write-ahead log is in the database file. Only a checkpoint, also one
// of another process, changes it. It is in the index of the log (sqlite.org/walformat.html).
type moved struct {
	salt       [8]byte // of the log; it changes when the log starts again from the beginning
	begun, end uint32  // the frames that a checkpoint has begun to move, and those that are moved
}

// isRunning reports whether a checkpoint is running, or was interrupted.
func (m moved) isRunning() bool { return m.begun != m.end }

// image is what can be seen quickly of the database file. Only a checkpoint writes this file. So
// between two checkpoints nothing of its image changes, unless somebody copies another file over
// it. A copy may have the same size and the same first page, but it has another time.
type image struct {
	moved    moved
	size     int64
	modified time.Time
	header   [100]byte
}

// changeCounter is part of the header. It grows whenever a transaction has changed the first
// page.
func (i *image) changeCounter() uint32 { return binary.BigEndian.Uint32(i.header[24:]) }

// isUntouched returns an error if somebody has written the database file since the last
// checkpoint. The error stays until the file is opened again.
func (f *file) isUntouched() error {
	if f.overwritten != nil {
		return f.overwritten
	}
	now, isStable, err := f.look()
	if err != nil {
		return err
	}
	if !isStable { // a checkpoint is writing
		return nil
	}
	previous := f.last
	f.last = now
	if previous == nil {
		return nil
	}
	isSame := previous.size == now.size && previous.modified.Equal(now.modified) && previous.header == now.header
	hasCheckpoint := previous.moved != now.moved
	isOlder := now.changeCounter() < previous.changeCounter()
	if !hasCheckpoint && !isSame || isOlder {
		f.overwritten = fileError(nil, "%s was overwritten while the service used it", f.path)
	}
	return f.overwritten
}

// look returns the current image of the file. isStable is false if a checkpoint may be running.
func (f *file) look() (now *image, isStable bool, err error) {
	before, err := f.readMoved()
	if err != nil {
		return nil, false, err
	}
	info, err := f.held.file.Stat()
	if err != nil {
		return nil, false, err
	}
	now = &image{moved: before, size: info.Size(), modified: info.ModTime()}
	if _, err := f.held.file.ReadAt(now.header[:], 0); err != nil {
		return nil, false, fileError(err, "%s cannot be read", f.path)
	}
	after, err := f.readMoved()
	if err != nil {
		return nil, false, err
	}
	return now, before == after && !before.isRunning(), nil
}

// readMoved reads the index of the log. begun is the last value that a checkpoint writes before
// it writes the database file, and end the first one after it.
func (f *file) readMoved() (m moved, err error) {
	const salt, end, begun = 32, 96, 128
	var index [begun + 4]byte
	if _, err := f.beside[1].file.ReadAt(index[:], 0); err != nil {
		return m, fileError(err, "%s cannot be read", f.real+suffixes[1])
	}
	copy(m.salt[:], index[salt:])
	m.end, m.begun = binary.NativeEndian.Uint32(index[end:]), binary.NativeEndian.Uint32(index[begun:])
	return m, nil
}
