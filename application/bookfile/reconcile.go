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

// IsEqual reports whether the file and the book say the same.
func (c Comparison) IsEqual() bool { return c.Different+c.MissingHere+c.MissingThere == 0 }

// String counts in words.
func (c Comparison) String() string {
	return fmt.Sprintf("%d equal, %d different, %d missing here, %d missing there", c.Equal, c.Different, c.MissingHere, c.MissingThere)
}

// difference is a position that the file and the book do not have alike.
type difference[T any] struct{ file, book *T }

func (d *difference[T]) key() *T {
	if d.file != nil {
		return d.file
	}
	return d.book
}

// Reconcile compares a file of holdings or accounts, with the columns of Import, with
// the book as it is at one moment. It writes each position that differs, is
// missing here (in the book) or is missing there (in the file), in the format csv or
// ndjson. It changes nothing. The error wraps *Faults if lines break rules, which
// fault was told; it may be nil.
func Reconcile(ctx context.Context, with *backoffice.Office, kind, format string, r io.Reader, w io.Writer, fault func(Fault)) (c Comparison, err error) {
	f := Format(format)
	if f != CSV && f != NDJSON {
		return c, fmt.Errorf("there is no format %q: it is csv or ndjson", format)
	}
	switch kind {
	case "holdings":
		err = reconcile(ctx, r, &holdings, with.Reader.Holdings(ctx, backoffice.Query{}), w, f, holdingColumns, &c)
	case "accounts":
		err = reconcile(ctx, r, &accounts, with.Reader.Accounts(ctx, backoffice.Query{}), w, f, accountColumns, &c)
	default:
		return c, unknownKind(kind, "holdings", "accounts")
	}
	if bad, ok := errors.AsType[*Faults](err); ok && fault != nil {
		for _, each := range bad.List {
			fault(each)
		}
	}
	return c, err
}

// reconcile takes columns whose last one is the quantity.
func reconcile[T comparable](ctx context.Context, r io.Reader, k *kind[T], rows iter.Seq2[T, error], w io.Writer, f Format, columns []Column[T], c *Comparison) (err error) {
	file, err := read(ctx, r, k, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var found []Column[difference[T]]
	quantity := columns[len(columns)-1]
	for _, each := range columns[:len(columns)-1] {
		found = append(found, Column[difference[T]]{each.Name, func(d *difference[T]) Value { return each.Value(d.key()) }})
	}
	either := func(v *T) Value {
		if v == nil {
			return number("")
		}
		return quantity.Value(v)
	}
	found = append(found,
		Column[difference[T]]{"Result", func(d *difference[T]) Value {
			switch {
			case d.book == nil:
				return Text("missing here")
			case d.file == nil:
				return Text("missing there")
			}
			return Text("different")
		}},
		Column[difference[T]]{"There", func(d *difference[T]) Value { return either(d.file) }},
		Column[difference[T]]{"Here", func(d *difference[T]) Value { return either(d.book) }},
	)
	return write(w, f, found, differences(k, file.all(), rows, c))
}

// differences walks the file and the book, which have the same order, side by side.
func differences[T comparable](k *kind[T], file, book iter.Seq2[T, error], c *Comparison) iter.Seq2[difference[T], error] {
	return func(yield func(difference[T], error) bool) {
		nextThere, stop := iter.Pull2(file)
		defer stop()
		nextHere, stop := iter.Pull2(book)
		defer stop()
		there, thereErr, isThere := nextThere()
		here, hereErr, isHere := nextHere()
		for isThere || isHere {
			if err := errors.Join(thereErr, hereErr); err != nil {
				yield(difference[T]{}, err)
				return
			}
			var d difference[T]
			var order int
			switch {
			case !isHere:
				order = -1
			case !isThere:
				order = 1
			default:
				order = k.compare(there, here)
			}
			if order <= 0 {
				d.file = new(there)
				there, thereErr, isThere = nextThere()
			}
			if order >= 0 {
				d.book = new(here)
				here, hereErr, isHere = nextHere()
			}
			switch {
			case d.book == nil:
				c.MissingHere++
			case d.file == nil:
				c.MissingThere++
			case *d.file == *d.book:
				c.Equal++
				continue
			default:
				c.Different++
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}
