package bookfile

import (
	"bufio"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
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
type Sorted[T any] struct {
	kind  *kind[T]
	run   []entry[T] // the run that is being filled; all there is when file is nil
	file  *os.File
	runs  []int64 // where each run begins in file
	end   int64   // of the last one
	count int64
}

// entry is one line. Runs on disk hold the fields, which make the value again.
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
// keys, each key once. It returns yield's first error, or its own when the
// temporary file cannot be read. It may be called again.
func (s *Sorted[T]) Each(yield func(line int64, value T) error) error {
	var last T
	first := true
	return s.merge(func(e entry[T]) error {
		again := !first && s.kind.compare(last, e.value) == 0
		last, first = e.value, false
		if again {
			return nil // finish has seen that it says the same
		}
		return yield(e.line, e.value)
	})
}

func (s *Sorted[T]) add(line int64, fields []string, value T) error {
	s.run = append(s.run, entry[T]{line, fields, value})
	s.count++
	if len(s.run) < runLength {
		return nil
	}
	return s.spill()
}

// finish looks for keys that are there twice.
func (s *Sorted[T]) finish(ctx context.Context, faults *Faults) error {
	if s.file == nil {
		s.sortRun()
	} else if err := s.spill(); err != nil {
		return err
	}
	var last entry[T]
	return s.merge(func(e entry[T]) error {
		if last.line > 0 && s.kind.compare(last.value, e.value) == 0 &&
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

// spill writes the run to the temporary file.
func (s *Sorted[T]) spill() error {
	if len(s.run) == 0 {
		return nil
	}
	if s.file == nil {
		file, err := os.CreateTemp("", "bankingapi-import-*") // only its owner can read it
		if err != nil {
			return err
		}
		s.file = file
		_ = os.Remove(file.Name()) // where the system allows it, a crash leaves nothing behind
	}
	s.sortRun()
	s.runs = append(s.runs, s.end)
	w := bufio.NewWriterSize(s.file, 1<<16)
	for i := range s.run {
		n, err := s.run[i].write(w)
		if err != nil {
			return err
		}
		s.end += int64(n)
	}
	clear(s.run)
	s.run = s.run[:0]
	return w.Flush()
}

// write writes the line's number and its fields, each with its length.
func (e *entry[T]) write(w io.Writer) (int, error) {
	b := binary.AppendVarint(nil, e.line)
	for _, f := range e.fields {
		b = binary.AppendUvarint(b, uint64(len(f)))
		b = append(b, f...)
	}
	return w.Write(b)
}

// source is a run that is being merged.
type source[T any] struct {
	entry[T]
	from *bufio.Reader
}

// next reads the next entry; the error is io.EOF after the last one.
func (r *source[T]) next(k *kind[T]) error {
	number, err := binary.ReadVarint(r.from)
	if err != nil {
		return err
	}
	l := line{columns: k.columns, fields: make([]string, len(k.columns))}
	for i := range l.fields {
		length, err := binary.ReadUvarint(r.from)
		if err != nil {
			return noEOF(err)
		}
		if length > recordLimit {
			return errors.New("the temporary file of the import is damaged")
		}
		field := make([]byte, length)
		if _, err := io.ReadFull(r.from, field); err != nil {
			return noEOF(err)
		}
		l.fields[i] = string(field)
	}
	value, faults := k.parse(&l)
	if len(faults) > 0 {
		return errors.New("the temporary file of the import is damaged")
	}
	r.entry = entry[T]{number, nil, value}
	return nil
}

// noEOF is the error of a file that ends too early.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// merge calls yield for every entry in order.
func (s *Sorted[T]) merge(yield func(entry[T]) error) error {
	if s.file == nil {
		for _, e := range s.run {
			if err := yield(e); err != nil {
				return err
			}
		}
		return nil
	}
	buffer := max(mergeMemory/len(s.runs), 1<<12)
	queue := sources[T]{of: s}
	for i, begin := range s.runs {
		end := s.end
		if i+1 < len(s.runs) {
			end = s.runs[i+1]
		}
		r := &source[T]{from: bufio.NewReaderSize(io.NewSectionReader(s.file, begin, end-begin), buffer)}
		if err := r.next(s.kind); err != nil {
			return noEOF(err)
		}
		queue.open = append(queue.open, r)
	}
	heap.Init(&queue)
	for len(queue.open) > 0 {
		first := queue.open[0]
		if err := yield(first.entry); err != nil {
			return err
		}
		switch err := first.next(s.kind); {
		case errors.Is(err, io.EOF):
			heap.Pop(&queue)
		case err != nil:
			return err
		default:
			heap.Fix(&queue, 0)
		}
	}
	return nil
}

// sources is a heap with the smallest entry at its top.
type sources[T any] struct {
	of   *Sorted[T]
	open []*source[T]
}

func (q *sources[T]) Len() int           { return len(q.open) }
func (q *sources[T]) Less(i, j int) bool { return q.of.compare(&q.open[i].entry, &q.open[j].entry) < 0 }
func (q *sources[T]) Swap(i, j int)      { q.open[i], q.open[j] = q.open[j], q.open[i] }
func (q *sources[T]) Push(any)           {} // runs are never added to a merge

func (q *sources[T]) Pop() any {
	last := len(q.open) - 1
	q.open = q.open[:last]
	return nil
}
