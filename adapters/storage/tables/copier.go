package tables

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
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

func (c copier[R]) Copy(ctx context.Context, target *Database, source *gorm.DB, isFull bool, done func(int64)) error {
	keys, others := c.columns()
	key := "t." + strings.Join(keys, ", t.")
	newest, err := RowsOf(target.Reads.WithContext(ctx).Order(strings.ReplaceAll(key, ",", " DESC,")+" DESC").Limit(1), c.Table)
	if err != nil {
		return target.DB.Translate(err)
	}
	source = source.Order(key)
	if !isFull && len(newest) > 0 {
		var values []any
		for _, field := range batch.Targets(&newest[0], c.Select(keys...)) {
			values = append(values, reflect.ValueOf(field).Elem().Interface())
		}
		source = source.Where("("+key+") > ?", values)
	}
	part := copiedPart[R]{copier: c, target: target, upsert: c.Upsert(others...), done: done}
	err = Each(source, c.Table, func(row *R) error { return part.add(ctx, row) })
	if err != nil {
		return err
	}
	return part.write(ctx)
}

// copiedPart has the rows of the next transaction of a copy.
type copiedPart[R any] struct {
	copier copier[R]
	target *Database
	upsert *batch.Statement[R]
	done   func(int64)
	rows   []R
	size   int     // of the rows, in bytes
	text   rowText // of the last row; its memory is reused
}

// add adds a row. It writes the part if it is large.
func (p *copiedPart[R]) add(ctx context.Context, row *R) error {
	fillBytes(row)
	p.rows = append(p.rows, *row)
	p.text = p.copier.encode(p.text, row)
	p.size += len(p.text)
	if len(p.rows) < copiedRows && p.size < copiedBytes {
		return nil
	}
	return p.write(ctx)
}

// write writes the rows in one transaction.
func (p *copiedPart[R]) write(ctx context.Context) error {
	if len(p.rows) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	err := p.target.DB.Transact(ctx, func(s batch.Session) error { return s.Commit(ctx, p.upsert.Request(p.rows)) })
	p.done(int64(len(p.rows)))
	p.rows = p.rows[:0]
	p.size = 0
	return err
}

// fillBytes makes empty bytes of those that are nil: a driver may read an empty value as nil,
// which would be written as NULL. No column with bytes may be NULL.
func fillBytes(row any) {
	value := reflect.ValueOf(row).Elem()
	for i := range value.NumField() {
		if field, ok := value.Field(i).Addr().Interface().(*[]byte); ok && *field == nil {
			*field = []byte{}
		}
	}
}

// encode encodes all columns of a row. It reuses the memory of the previous row.
func (c copier[R]) encode(previous rowText, row *R) rowText {
	text := previous[:0]
	batch.Encode(c.Table, row, &text)
	return text
}

func (c copier[R]) Sum(tx *gorm.DB, done func(int64)) (sum tableSum, err error) {
	var text rowText
	err = Each(tx, c.Table, func(row *R) error {
		text = c.encode(text, row)
		hash := sha256.Sum256(text)
		for i := range sum.hashes {
			sum.hashes[i] += binary.BigEndian.Uint64(hash[8*i:])
		}
		sum.Rows++
		done(1)
		return nil
	})
	return sum, err
}

// rowText encodes a row to compare it with its copy: the name and the value of each column,
// each after its length.
type rowText []byte

// Text implements batch.Encoder.
func (t *rowText) Text(column, value string) {
	for _, part := range [...]string{column, value} {
		*t = binary.AppendUvarint(*t, uint64(len(part)))
		*t = append(*t, part...)
	}
}

// Int implements batch.Encoder.
func (t *rowText) Int(column string, value int64) { t.Text(column, strconv.FormatInt(value, 10)) }

// Bytes implements batch.Encoder.
func (t *rowText) Bytes(column string, value []byte) { t.Text(column, string(value)) }

// Time implements batch.Encoder.
func (t *rowText) Time(column string, value time.Time) {
	t.Text(column, value.UTC().Format(time.RFC3339Nano))
}
