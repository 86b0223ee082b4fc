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
	// runLength is how many lines are sorted in memory; a longer file is
	// merged from runs of that length.
	runLength = 1 << 14
	// mergeMemory is shared by the buffers of all runs of a merge.
	mergeMemory = 4 << 20
)

// sorted is the content of a checked file, in the order of its keys. What does
// not fit in memory is in a temporary file that only this process can reach.
//
// The sorting is done here and not by a table of the database: while a file is
// read from a slow pipe no transaction is open, so that sales go on, and an
// import that is killed leaves no rows behind.
type sorted[T any] struct {
	kind  *kind[T]
	order []int       // where each column is in the file
	run   []*entry[T] // the lines that are not in file
	file  *os.File
	runs  []int64 // where each run begins in file, and where the last one ends
	count int64   // of all lines, those that say the same counted each
	// last is the value of the last line. unordered says that the key of a line was
	// not greater than that of the line before.
	last      T
	unordered bool
}

// entry is one record. A run in the file has Line and Fields, which make the value again.
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
	if removed := os.Remove(s.file.Name()); removed != nil && !errors.Is(removed, os.ErrNotExist) {
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

// finish looks for keys that occur twice: the later line is at fault. A file in the
// order of its keys has none, and the search takes as long as reading the file.
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
		s.file, s.runs = file, []int64{0}
		_ = os.Remove(file.Name()) // if the system allows it, a crash leaves nothing behind
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

// values yields each value with the line it is on, in the order of the keys, each key
// once. It may be called again. faults gets the other lines of a key, unless they say
// the same; it may be nil.
func (s *sorted[T]) values(faults *backoffice.Faults) iter.Seq2[*entry[T], error] {
	return func(yield func(*entry[T], error) bool) {
		var last *entry[T]
		for e, err := range s.entries() {
			switch {
			case err != nil || last == nil || s.kind.compare(last.value, e.value) != 0:
				if last = e; !yield(e, err) {
					return
				}
			case s.kind.same != nil && s.kind.same(last.value, e.value):
				last = e
			case faults != nil:
				faults.Add(e.Line, "", fmt.Sprintf(s.kind.again, last.Line))
			}
		}
	}
}

// entries yields every line, in the order of the keys.
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

func (s *sorted[T]) read(from, to int64) iter.Seq2[*entry[T], error] {
	return func(yield func(*entry[T], error) bool) {
		buffer := max(mergeMemory/len(s.runs), 1<<12)
		run := gob.NewDecoder(bufio.NewReaderSize(io.NewSectionReader(s.file, from, to-from), buffer))
		for {
			e := new(entry[T])
			err := run.Decode(e)
			if errors.Is(err, io.EOF) {
				return
			}
			var faults backoffice.Faults
			if err == nil {
				e.value, _ = s.kind.parse(&record{line: e.Line, fields: e.Fields}, s.order, &faults)
			}
			if faults.Lines > 0 {
				err = errDamaged
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// merge yields what all sequences yield, in their order.
func merge[T any](all []iter.Seq2[T, error], compare func(a, b T) int) iter.Seq2[T, error] {
	if len(all) == 1 {
		return all[0]
	}
	half := len(all) / 2
	pairs := walk(merge(all[:half], compare), merge(all[half:], compare), compare)
	return func(yield func(T, error) bool) {
		for p, err := range pairs {
			if (p.hasA || err != nil) && !yield(p.a, err) || p.hasB && !yield(p.b, nil) {
				return
			}
		}
	}
}

// pair is what two sequences have of one key.
type pair[T any] struct {
	a, b       T
	hasA, hasB bool
}

// walk goes through two sequences side by side. Both have the order of compare.
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
			if p.hasB = ok && compare(y, x) == 0; p.hasB {
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
