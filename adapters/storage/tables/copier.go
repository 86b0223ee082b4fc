package tables

import (
	"context"
	"encoding/binary"
	"reflect"
	"strings"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

type copier[R any] struct{ *batch.Table[R] }

// A transaction of a copy ends after this number of rows or bytes.
const (
	copiedRows  = 2000
	copiedBytes = 8 << 20
)

// columns returns the names of the key columns, with an ID first as in the indexes, and the
// names of the other columns.
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

func (c copier[R]) Copy(ctx context.Context, sourceBook, target *Database, source *gorm.DB, isFull bool, done func(int64)) error {
	keys, others := c.columns()
	key := "t." + strings.Join(keys, ", t.")
	newest, err := RowsOf(target.Reads.WithContext(ctx).Order(strings.ReplaceAll(key, ",", " DESC,")+" DESC").Limit(1), c.Table)
	if err != nil {
		return target.Translate(err)
	}
	source = source.Order(key)
	if !isFull && len(newest) > 0 {
		var values []any
		for _, field := range batch.Targets(&newest[0], c.Select(keys...)) {
			values = append(values, sourceBook.Dialect.Bind(reflect.ValueOf(field).Elem().Interface()))
		}
		source = source.Where("("+key+") > ?", values)
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
		err := target.Transact(ctx, func(s batch.Session) error { return s.Commit(ctx, upsert.Request(rows)) })
		done(int64(len(rows)))
		rows, size = rows[:0], 0
		return err
	}
	err = Each(source, c.Table, func(row *R) error {
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

// leaf encodes all columns of a row. It reuses the memory of the previous leaf.
func (c copier[R]) leaf(previous trail.Leaf, row *R) trail.Leaf {
	l := trail.NewLeaf(previous.Memory(), 0, operation.ID{})
	Encode(&l, c.Name, c.Table, row)
	return l
}

func (c copier[R]) Sum(tx *gorm.DB, done func(int64)) (sum tableSum, err error) {
	var leaf trail.Leaf
	err = Each(tx, c.Table, func(row *R) error {
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
