package bookfile

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
)

const (
	// runLength is how many lines are sorted in memory; a longer file is
	// merged from runs of that length.
	runLength = 1 << 14
	// mergeMemory is shared by the buffers of all runs of a merge.
	mergeMemory = 4 << 20
)

// Sorted is the content of a checked file, in the order of its keys. What does
// not fit in memory is in a temporary file that only this process can reach.
//
// The sorting is done here and not by a table of the database: while a file is
// read from a slow pipe no transaction is open, so that sales go on, and an
// import that is killed leaves no rows behind.
type Sorted[T any] struct {
	kind  *kind[T]
	run   []entry[T] // the run that is being filled; the only one if file is nil
	file  *os.File
	runs  []int64 // where each run begins in file, and where the last one ends
	count int64
	// last is the value of the last line. unordered says that the key of a line was
	// not greater than that of the line before.
	last      T
	unordered bool
}

// entry is one line. A run in the file is CSV: the number of the line, then its
// fields, which make the value again.
type entry[T any] struct {
	line   int64
	fields []string
	value  T
}

// Len is how many lines there are, those that say the same counted each.
func (s *Sorted[T]) Len() int64 { return s.count }

// Close removes the temporary file.
func (s *Sorted[T]) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if removed := os.Remove(s.file.Name()); removed != nil && !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	s.file = nil
	return err
}

// Each calls yield for each value, with the line it is on, in the order of the
// keys, each key once. It returns yield's first error, or its own if the
// temporary file cannot be read. It may be called again.
func (s *Sorted[T]) Each(yield func(line int64, value T) error) error {
	var last *entry[T]
	return s.merge(func(e *entry[T]) error {
		again := last != nil && s.kind.compare(last.value, e.value) == 0
		last = e
		if again {
			return nil // finish has seen that it says the same
		}
		return yield(e.line, e.value)
	})
}

// all is Each as a stream.
func (s *Sorted[T]) all() iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		enough := errors.New("the reader has enough")
		err := s.Each(func(_ int64, value T) error {
			if !yield(value, nil) {
				return enough
			}
			return nil
		})
		if err != nil && !errors.Is(err, enough) {
			var none T
			yield(none, err)
		}
	}
}

func (s *Sorted[T]) add(line int64, fields []string, value T) error {
	s.run = append(s.run, entry[T]{line, fields, value})
	s.unordered = s.unordered || s.count > 0 && s.kind.compare(s.last, value) >= 0
	s.last = value
	s.count++
	if len(s.run) < runLength {
		return nil
	}
	return s.spill()
}

// finish looks for keys that occur twice: the later line is at fault. A file in the
// order of its keys has none, and the search takes as long as reading the file.
func (s *Sorted[T]) finish(ctx context.Context, faults *Faults) error {
	if s.file == nil {
		s.sortRun()
	} else if err := s.spill(); err != nil {
		return err
	}
	if !s.unordered {
		return ctx.Err()
	}
	var last *entry[T]
	return s.merge(func(e *entry[T]) error {
		if last != nil && s.kind.compare(last.value, e.value) == 0 &&
			(s.kind.same == nil || !s.kind.same(last.value, e.value)) {
			faults.add(e.line, "", fmt.Sprintf(s.kind.again, last.line))
		} else {
			last = e
		}
		return ctx.Err()
	})
}

func (s *Sorted[T]) compare(a, b *entry[T]) int {
	return cmp.Or(s.kind.compare(a.value, b.value), cmp.Compare(a.line, b.line))
}

func (s *Sorted[T]) sortRun() {
	slices.SortFunc(s.run, func(a, b entry[T]) int { return s.compare(&a, &b) })
}

// spill appends the run to the temporary file.
func (s *Sorted[T]) spill() error {
	if len(s.run) == 0 {
		return nil
	}
	if s.file == nil {
		file, err := os.CreateTemp("", "bankingapi-import-*") // only its owner can read it
		if err != nil {
			return err
		}
		s.file, s.runs = file, []int64{0}
		_ = os.Remove(file.Name()) // if the system allows it, a crash leaves nothing behind
	}
	s.sortRun()
	end := s.runs[len(s.runs)-1]
	w := bufio.NewWriterSize(s.file, 1<<16)
	var b []byte
	for i := range s.run {
		b = strconv.AppendInt(b[:0], s.run[i].line, 10)
		for _, field := range s.run[i].fields {
			b = appendField(append(b, ','), field)
		}
		b = append(b, '\n')
		if _, err := w.Write(b); err != nil {
			return err
		}
		end += int64(len(b))
	}
	s.runs = append(s.runs, end)
	clear(s.run)
	s.run = s.run[:0]
	return w.Flush()
}

// source is a run that is being merged, at its next entry.
type source[T any] struct {
	next *entry[T]
	from *records
}

// advance reads the next entry; the error is io.EOF after the last one.
func (r *source[T]) advance(k *kind[T]) error {
	found, err := r.from.next()
	if err != nil {
		return err
	}
	if len(found.fields) != 1+len(k.columns) {
		return errDamaged
	}
	number, err := strconv.ParseInt(found.fields[0], 10, 64)
	l := line{columns: k.columns, fields: found.fields[1:]}
	value, faults := k.parse(&l)
	if err != nil || len(faults)+len(l.faults) > 0 {
		return errDamaged
	}
	r.next = &entry[T]{line: number, value: value}
	return nil
}

var errDamaged = errors.New("the temporary file of the import is damaged")

// merge calls yield for every entry in order.
func (s *Sorted[T]) merge(yield func(*entry[T]) error) error {
	if s.file == nil {
		for i := range s.run {
			if err := yield(&s.run[i]); err != nil {
				return err
			}
		}
		return nil
	}
	compare := func(a, b *source[T]) int { return s.compare(a.next, b.next) }
	buffer := max(mergeMemory/len(s.runs), 1<<12)
	var open []*source[T] // in the order of their next entries
	for i, end := range s.runs[1:] {
		r := &source[T]{from: newRecords(io.NewSectionReader(s.file, s.runs[i], end-s.runs[i]), buffer)}
		if err := r.advance(s.kind); err != nil {
			return noEOF(err)
		}
		open = append(open, r)
	}
	slices.SortFunc(open, compare)
	for len(open) > 0 {
		first := open[0]
		if err := yield(first.next); err != nil {
			return err
		}
		switch err := first.advance(s.kind); {
		case errors.Is(err, io.EOF):
			open = open[1:]
		case err != nil:
			return err
		default:
			place, _ := slices.BinarySearchFunc(open[1:], first, compare)
			copy(open, open[1:place+1])
			open[place] = first
		}
	}
	return nil
}

// noEOF is the error of a file that ends too early.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
