package bookfile

import (
	"bufio"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"bankingapi/application/backoffice"
)

const (
	// runLength is how many lines are sorted in memory. A longer file is merged from sorted
	// runs of this length.
	runLength = 1 << 14
	// mergeMemory is shared by the buffers of all runs of a merge.
	mergeMemory = 4 << 20
)

// sorted is the content of a checked file, in the order of its keys. Lines that do not fit in
// memory are in a temporary file that only its owner can read.
//
// The sorting is not done in a table of the database. So no transaction is open while a file is
// read from a slow pipe, and sales continue. An import that is killed leaves no rows behind.
type sorted[T any] struct {
	kind   *kind[T]
	layout layout
	run    []*entry[T] // lines that are not in the temporary file
	file   *os.File
	runs   []int64 // offset of each run in file, and the end of the last one
	count  int64   // number of all lines, including repeated equal lines
	// last is the value of the last line. unordered: the key of some line was not greater than
	// the key of the line before.
	last      T
	unordered bool
}

// entry is one record. The temporary file has only Line and Fields. The value is parsed again.
type entry[T any] struct {
	Line   int64
	Fields []string
	value  T
}

// close removes the temporary file.
func (s *sorted[T]) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	removed := os.Remove(s.file.Name())
	if removed != nil && !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	s.file = nil
	return err
}

func (s *sorted[T]) add(r *record, value T) error {
	s.run = append(s.run, &entry[T]{r.line, r.fields, value})
	s.unordered = s.unordered || s.count > 0 && s.kind.compare(s.last, value) >= 0
	s.last = value
	s.count++
	if len(s.run) < runLength {
		return nil
	}
	return s.spill()
}

// finish reports keys that occur twice, at the later line. If the lines came in the order of
// their keys, no key occurs twice. Then it skips the search, which takes as long as reading the
// file.
func (s *sorted[T]) finish(ctx context.Context, faults *backoffice.Faults) error {
	slices.SortFunc(s.run, s.compare)
	if !s.unordered {
		return nil
	}
	for _, err := range s.values(faults) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

func (s *sorted[T]) compare(a, b *entry[T]) int {
	return cmp.Or(s.kind.compare(a.value, b.value), cmp.Compare(a.Line, b.Line))
}

func (s *sorted[T]) spill() error {
	if s.file == nil {
		file, err := os.CreateTemp("", "bankingapi-import-*") // only its owner can read it
		if err != nil {
			return err
		}
		s.file = file
		s.runs = []int64{0}
		_ = os.Remove(file.Name()) // if the system allows this, a crash leaves no file behind
	}
	slices.SortFunc(s.run, s.compare)
	w := bufio.NewWriterSize(s.file, 1<<16)
	run := gob.NewEncoder(w)
	for _, e := range s.run {
		if err := run.Encode(e); err != nil {
			return err
		}
	}
	clear(s.run)
	s.run = s.run[:0]
	if err := w.Flush(); err != nil {
		return err
	}
	end, err := s.file.Seek(0, io.SeekCurrent)
	s.runs = append(s.runs, end)
	return err
}

// values yields each value with its line, in the order of the keys, each key once. It may be
// called more than once. Other lines with the same key are added to faults, unless they have
// the same values. faults may be nil.
func (s *sorted[T]) values(faults *backoffice.Faults) iter.Seq2[*entry[T], error] {
	return func(yield func(*entry[T], error) bool) {
		var last *entry[T]
		for e, err := range s.entries() {
			switch {
			case err != nil || last == nil || s.kind.compare(last.value, e.value) != 0:
				last = e
				if !yield(e, err) {
					return
				}
			case s.kind.same != nil && s.kind.same(last.value, e.value):
				last = e
			case faults != nil:
				faults.Add(e.Line, "", fmt.Sprintf(s.kind.duplicate, last.Line))
			}
		}
	}
}

// entries yields all lines, in the order of the keys.
func (s *sorted[T]) entries() iter.Seq2[*entry[T], error] {
	runs := []iter.Seq2[*entry[T], error]{func(yield func(*entry[T], error) bool) {
		for _, e := range s.run {
			if !yield(e, nil) {
				return
			}
		}
	}}
	for i := 1; i < len(s.runs); i++ {
		runs = append(runs, s.read(s.runs[i-1], s.runs[i]))
	}
	return merge(runs, s.compare)
}

var errDamaged = errors.New("the temporary file of the import is damaged")

func (s *sorted[T]) read(start, end int64) iter.Seq2[*entry[T], error] {
	return func(yield func(*entry[T], error) bool) {
		buffer := max(mergeMemory/len(s.runs), 1<<12)
		run := gob.NewDecoder(bufio.NewReaderSize(io.NewSectionReader(s.file, start, end-start), buffer))
		for {
			e, err := s.decode(run)
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// decode reads the next entry of a run, and parses its value again.
func (s *sorted[T]) decode(run *gob.Decoder) (*entry[T], error) {
	e := new(entry[T])
	if err := run.Decode(e); err != nil {
		return e, err
	}
	var faults backoffice.Faults
	e.value, _ = s.kind.parse(&record{line: e.Line, fields: e.Fields}, s.layout, &faults)
	if faults.Lines > 0 {
		return e, errDamaged
	}
	return e, nil
}

// merge yields the values of all sequences, in their order.
func merge[T any](sequences []iter.Seq2[T, error], compare func(a, b T) int) iter.Seq2[T, error] {
	if len(sequences) == 1 {
		return sequences[0]
	}
	half := len(sequences) / 2
	pairs := walk(merge(sequences[:half], compare), merge(sequences[half:], compare), compare)
	return func(yield func(T, error) bool) {
		for p, err := range pairs {
			if (p.hasA || err != nil) && !yield(p.a, err) || p.hasB && !yield(p.b, nil) {
				return
			}
		}
	}
}

// pair has the values of two sequences for one key.
type pair[T any] struct {
	a, b       T
	hasA, hasB bool
}

// walk iterates over two sequences in parallel. Both must be sorted by compare.
func walk[T any](a, b iter.Seq2[T, error], compare func(a, b T) int) iter.Seq2[pair[T], error] {
	return func(yield func(pair[T], error) bool) {
		next, stop := iter.Pull2(b)
		defer stop()
		y, errB, ok := next()
		for x, err := range a {
			for ok && cmp.Or(err, errB) == nil && compare(y, x) < 0 {
				if !yield(pair[T]{b: y, hasB: true}, nil) {
					return
				}
				y, errB, ok = next()
			}
			if err = cmp.Or(err, errB); err != nil {
				yield(pair[T]{}, err)
				return
			}
			p := pair[T]{a: x, hasA: true}
			p.hasB = ok && compare(y, x) == 0
			if p.hasB {
				p.b = y
				y, errB, ok = next()
			}
			if !yield(p, nil) {
				return
			}
		}
		for ; ok; y, errB, ok = next() {
			if !yield(pair[T]{b: y, hasB: errB == nil}, errB) || errB != nil {
				return
			}
		}
	}
}
