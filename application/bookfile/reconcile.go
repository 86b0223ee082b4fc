package bookfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"bankingapi/application/backoffice"
)

// Comparison counts the positions of a file and of the book.
type Comparison struct {
	Equal, Different, MissingHere, MissingThere int64
}

// IsEqual reports whether the file and the book have the same positions.
func (c Comparison) IsEqual() bool { return c.Different+c.MissingHere+c.MissingThere == 0 }

// String returns the numbers with words.
func (c Comparison) String() string {
	return fmt.Sprintf("%d equal, %d different, %d missing here, %d missing there", c.Equal, c.Different, c.MissingHere, c.MissingThere)
}

// Reconcile compares a file of holdings or accounts, with the columns and formats of Import, with a
// snapshot of the book. It writes each position that is different, missing here (in the book)
// or missing there (in the file). A holding of 0 units is equal to a missing one: many core banks
// leave out a holding after all of it was sold. The format is csv or ndjson. It changes nothing.
// The error is *backoffice.Faults if lines break rules.
func Reconcile(ctx context.Context, office *backoffice.Office, kind string, format Format, r io.Reader, w io.Writer) (c Comparison, err error) {
	if format != CSV && format != NDJSON {
		return c, fmt.Errorf("there is no format %q: it is csv or ndjson", format)
	}
	switch kind {
	case "holdings":
		err = reconcile(ctx, r, &holdings, office.Reader.Holdings(ctx, backoffice.Query{}), w, format, Holdings, &c)
	case "accounts":
		err = reconcile(ctx, r, &accounts, office.Reader.Accounts(ctx, backoffice.Query{}), w, format, Accounts, &c)
	default:
		return c, unknownKind(kind, "holdings", "accounts")
	}
	return c, err
}

// reconcile expects the quantity in the last column. In a pair, a is the book and b the file.
func reconcile[T comparable](ctx context.Context, r io.Reader, k *kind[T], rows iter.Seq2[T, error], w io.Writer, f Format, columns []Column[T], c *Comparison) (err error) {
	file, err := read(ctx, r, k, "", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.close()) }()
	last := len(columns) - 1
	resultColumns := ColumnsOf(columns[:last], func(d *pair[T]) *T {
		if d.hasA {
			return &d.a
		}
		return &d.b
	})
	quantity := func(exists bool, row *T) Value {
		if !exists {
			return number("")
		}
		return columns[last].Value(row)
	}
	resultColumns = append(resultColumns,
		Column[pair[T]]{"Result", func(d *pair[T]) Value {
			switch {
			case !d.hasA:
				return Text("missing here")
			case !d.hasB:
				return Text("missing there")
			}
			return Text("different")
		}},
		Column[pair[T]]{"There", func(d *pair[T]) Value { return quantity(d.hasB, &d.b) }},
		Column[pair[T]]{"Here", func(d *pair[T]) Value { return quantity(d.hasA, &d.a) }},
	)
	lines := func(yield func(T, error) bool) {
		for e, err := range file.values(nil) {
			if err != nil {
				e = new(entry[T])
			}
			if !yield(e.value, err) {
				return
			}
		}
	}
	return Write(w, Style{Format: f}, resultColumns, differences(walk(rows, lines, k.compare), k, c))
}

// differences counts all pairs, and yields the pairs that are not equal.
func differences[T comparable](pairs iter.Seq2[pair[T], error], k *kind[T], c *Comparison) iter.Seq2[pair[T], error] {
	return func(yield func(pair[T], error) bool) {
		for p, err := range pairs {
			switch {
			case err != nil:
			case isEqual(k, &p):
				c.Equal++
				continue
			case !p.hasA:
				c.MissingHere++
			case !p.hasB:
				c.MissingThere++
			default:
				c.Different++
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

// isEqual reports whether the book and the file say the same.
func isEqual[T comparable](k *kind[T], p *pair[T]) bool {
	switch {
	case p.hasA && p.hasB:
		return p.a == p.b
	case k.isNothing == nil:
		return false
	case p.hasA:
		return k.isNothing(&p.a)
	default:
		return k.isNothing(&p.b)
	}
}
