package storage

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// copies moves the rows of a table. It is made for the table of the target.
type copies interface {
	// copy writes the rows of the source that come after the newest of the target, or
	// all of them.
	copy(ctx context.Context, from, to *database, source *gorm.DB, all bool, done func(int64)) error
	sum(tx *gorm.DB, done func(int64)) (tableSum, error)
}

type copier[R any] struct{ *batch.Table[R] }

// A transaction of a copy ends after so many rows, or bytes.
const (
	copiedRows  = 2000
	copiedBytes = 8 << 20
)

// copyTo is store.Store.Copy.
func (d service) copyTo(ctx context.Context, other *store.Store, w store.CopyWatch) (rows int64, err error) {
	target, ok := other.Marker.(marks)
	if !ok || target.mark != store.CopyMark || target.prefix != d.prefix {
		return 0, errors.New("a book can only be copied to a relational database, with the same prefix of its tables")
	}
	to := target.database
	with := func(step func(context.Context) error) func() error { return func() error { return step(ctx) } }
	unused := func() error { return inTurn(with(d.engine.Alone), with(target.engine.Alone)) }
	if err := inTurn(with(d.Ready), with(to.Ready), unused, func() error { return target.claimCopy(ctx, d.database) }); err != nil {
		return 0, err
	}
	tables := slices.DeleteFunc(slices.Clone(to.relied), func(r Relied) bool { return r.Table == to.marked.Name })
	phase := func(work string, tx *gorm.DB, table string) error {
		var count int64
		err := tx.Table(table).Count(&count).Error
		w.Phase(work+" "+strings.TrimPrefix(table, d.prefix), count)
		return err
	}
	err = d.snapshot(ctx, func(source *gorm.DB) error {
		for _, t := range tables {
			if err := phase("copying", source, t.Table); err != nil {
				return err
			}
			// Migrations make rows in these.
			all := slices.Contains([]string{to.properties.Name, to.outcomes.counters.Name, to.trailLogs.Name}, t.Table)
			if err := t.copies.copy(ctx, d.database, to, source, all, w.Row); err != nil {
				return fmt.Errorf("copy the table %s: %w", t.Table, err)
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	// This snapshot of the source also has what was changed meanwhile.
	err = d.snapshot(ctx, func(source *gorm.DB) error {
		return to.snapshot(ctx, func(copied *gorm.DB) error {
			for _, t := range tables {
				if err := phase("comparing", source, t.Table); err != nil {
					return err
				}
				from, err := t.copies.sum(source, w.Row)
				if err != nil {
					return err
				}
				found, err := t.copies.sum(copied, func(int64) {})
				if err != nil {
					return err
				}
				if found != from {
					return fault.New(fault.Conflict, fmt.Sprintf("The table %s is not the same in the copy: %d rows here, %d there, or other values."+
						" The book was changed meanwhile, or the target had other rows. Begin again with an empty database.", t.Table, from.rows, found.rows))
				}
				rows += from.rows
			}
			return nil
		})
	})
	if err == nil {
		err = inTurn(unused, with(target.finishCopy))
	}
	return rows, err
}

// claimCopy keeps in the mark of which book it is the copy.
func (m marks) claimCopy(ctx context.Context, of *database) error {
	digest := sha256.Sum256(append([]byte("copy of "), of.messagesKey()...))
	book := hex.EncodeToString(digest[:])
	note, err := m.Note(ctx)
	switch {
	case err != nil || note == book:
		return err
	case note != "":
		return fault.Wrap(fault.Conflict, store.MarkError(store.CopyMark), "The target has an interrupted copy of another book:")
	}
	return m.SetNote(ctx, book)
}

// finishCopy takes the mark away: then the copy is a book.
func (m marks) finishCopy(ctx context.Context) error {
	return m.change(ctx, func(tx *gorm.DB) error {
		return tx.Exec("DELETE FROM "+m.marked.Name+" WHERE mark = ?", m.mark).Error
	})
}

// columns are the names of the key, with an ID first, as the indexes have it, and of the
// other columns.
func (c copier[R]) columns() (keys, others []string) {
	for _, column := range c.Columns {
		switch {
		case !column.Key:
			others = append(others, column.Name)
		case column.Kind == batch.Identifier:
			keys = append([]string{column.Name}, keys...)
		default:
			keys = append(keys, column.Name)
		}
	}
	return keys, others
}

func (c copier[R]) copy(ctx context.Context, from, to *database, source *gorm.DB, all bool, done func(int64)) error {
	keys, others := c.columns()
	order := func(tx *gorm.DB, direction string) *gorm.DB {
		for _, key := range keys {
			tx = tx.Order("t." + key + direction)
		}
		return tx
	}
	var newest []R
	if !all {
		err := rowsOf(&newest, to.reads.WithContext(ctx), c.Table, func(tx *gorm.DB) *gorm.DB { return order(tx, " DESC").Limit(1) })()
		if err != nil {
			return to.Translate(err)
		}
	}
	upsert := c.Upsert(others...)
	var (
		rows []R
		size int
		leaf trail.Leaf
	)
	write := func() error {
		if len(rows) == 0 || ctx.Err() != nil {
			return ctx.Err()
		}
		err := to.Transact(ctx, func(s batch.Session) error { return s.Commit(ctx, upsert.Request(rows)) })
		done(int64(len(rows)))
		rows, size = rows[:0], 0
		return err
	}
	err := each(source, c.Table, func(tx *gorm.DB) *gorm.DB {
		if len(newest) > 0 {
			request := c.Statement("", c.Select(keys...), "").Request(newest)
			values := request.Rows.Append(nil, 0)
			for i, value := range values {
				if id, ok := value.([16]byte); ok {
					value = batch.UUID(id)
				}
				values[i] = from.Dialect.Bind(value)
			}
			places := strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ")
			// gorm takes bytes after a parenthesis for a list.
			tx = tx.Where("(t."+strings.Join(keys, ", t.")+") > ( "+places+")", values...)
		}
		return order(tx, "")
	}, func(row *R) error {
		rows = append(rows, *row)
		leaf = c.leaf(leaf, row)
		if size += len(leaf.Memory()); len(rows) < copiedRows && size < copiedBytes {
			return nil
		}
		return write()
	})
	if err != nil {
		return err
	}
	return write()
}

// leaf has all columns of a row, in the memory of the leaf before.
func (c copier[R]) leaf(before trail.Leaf, row *R) trail.Leaf {
	l := trail.NewLeaf(before.Memory(), 0, operation.ID{})
	encode(&l, c.Name, c.Table, row)
	return l
}

// tableSum is equal for tables with the same rows, in whatever order.
type tableSum struct {
	rows   int64
	hashes [4]uint64
}

func (c copier[R]) sum(tx *gorm.DB, done func(int64)) (sum tableSum, err error) {
	var leaf trail.Leaf
	err = each(tx, c.Table, nil, func(row *R) error {
		leaf = c.leaf(leaf, row)
		hash := leaf.Hash()
		for i := range sum.hashes {
			sum.hashes[i] += binary.BigEndian.Uint64(hash[8*i:])
		}
		sum.rows++
		done(1)
		return nil
	})
	return sum, err
}
