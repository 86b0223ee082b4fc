package tables

import (
	"context"
	"encoding/binary"
	"strings"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// copies moves the rows of a table. It is made for the table of the target.
type copies interface {
	// copy writes the rows of the source that come after the newest of the target, or
	// all of them.
	Copy(ctx context.Context, from, to *Database, source *gorm.DB, all bool, done func(int64)) error
	Sum(tx *gorm.DB, done func(int64)) (tableSum, error)
}

type copier[R any] struct{ *batch.Table[R] }

// A transaction of a copy ends after so many rows, or bytes.
const (
	copiedRows  = 2000
	copiedBytes = 8 << 20
)

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

func (c copier[R]) Copy(ctx context.Context, from, to *Database, source *gorm.DB, all bool, done func(int64)) error {
	keys, others := c.columns()
	order := func(tx *gorm.DB, direction string) *gorm.DB {
		for _, key := range keys {
			tx = tx.Order("t." + key + direction)
		}
		return tx
	}
	var newest []R
	if !all {
		err := RowsOf(&newest, to.Reads.WithContext(ctx), c.Table, func(tx *gorm.DB) *gorm.DB { return order(tx, " DESC").Limit(1) })()
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
	err := Each(source, c.Table, func(tx *gorm.DB) *gorm.DB {
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
	Encode(&l, c.Name, c.Table, row)
	return l
}

// tableSum is equal for tables with the same rows, in whatever order.
type tableSum struct {
	Rows   int64
	hashes [4]uint64
}

func (c copier[R]) Sum(tx *gorm.DB, done func(int64)) (sum tableSum, err error) {
	var leaf trail.Leaf
	err = Each(tx, c.Table, nil, func(row *R) error {
		leaf = c.leaf(leaf, row)
		hash := leaf.Hash()
		for i := range sum.hashes {
			sum.hashes[i] += binary.BigEndian.Uint64(hash[8*i:])
		}
		sum.Rows++
		done(1)
		return nil
	})
	return sum, err
}
