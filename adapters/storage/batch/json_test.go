package batch_test

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bankingapi/adapters/storage/batch"
)

// jsonDialect is a third dialect: SQLite through database/sql, where a statement
// is one command for all rows, which travel as one JSON array. It has nothing in
// common with the two engines, and shows what a further one must bring.
type jsonDialect struct{ db *sql.DB }

// member is the value of column i in row k.
func member(c batch.Column, i int) string {
	value := fmt.Sprintf("json_extract(k.value, '$[%d]')", i)
	if c.Kind == batch.Bytes || c.Kind == batch.Identifier {
		return "unhex(" + value + ")"
	}
	return value
}

func (jsonDialect) Insert(table string, columns []batch.Column, conflict batch.Conflict) string {
	values := make([]string, len(columns))
	for i, c := range columns {
		values[i] = member(c, i)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM json_each(?) k WHERE true%s",
		table, strings.Join(batch.Names(columns), ", "), strings.Join(values, ", "), conflict.SQL())
}

func (jsonDialect) Update(table string, columns []batch.Column) string {
	var set, where []string
	for i, c := range columns {
		if c.Key {
			where = append(where, fmt.Sprintf("%s.%s = %s", table, c.Name, member(c, i)))
		} else {
			set = append(set, c.Name+" = "+member(c, i))
		}
	}
	return fmt.Sprintf("UPDATE %s SET %s FROM json_each(?) k WHERE %s", table, strings.Join(set, ", "), strings.Join(where, " AND "))
}

func (jsonDialect) Delete(table string, columns []batch.Column, condition string) string {
	where := []string{cmp.Or(condition, "true")}
	for i, c := range columns {
		if c.Key {
			where = append(where, fmt.Sprintf("t.%s = %s", c.Name, member(c, i)))
		}
		where[0] = strings.ReplaceAll(where[0], "{"+c.Name+"}", member(c, i))
	}
	return fmt.Sprintf("DELETE FROM %[1]s WHERE rowid IN (SELECT t.rowid FROM %[1]s t, json_each(?) k WHERE %[2]s)", table, strings.Join(where, " AND "))
}

func (jsonDialect) Find(l *batch.Lookup) string {
	var where []string
	for i, w := range l.Where {
		where = append(where, fmt.Sprintf("t.%s %s %s", w.Name, w.Operator, member(w.Column, i)))
	}
	best := fmt.Sprintf("SELECT t.rowid FROM %s t WHERE %s%s LIMIT 1", l.Table, strings.Join(where, " AND "), l.Rest())
	return fmt.Sprintf("SELECT k.key, r.%s FROM json_each(?) k JOIN %s r ON r.rowid = (%s) ORDER BY k.key",
		strings.Join(batch.Names(l.Select), ", r."), l.Table, best)
}

func (jsonDialect) Classify(err error) batch.Failure {
	if native, ok := errors.AsType[*sqlitedriver.Error](err); ok && native.Code()&0xff == sqlite3.SQLITE_BUSY {
		return batch.LostRace
	}
	return batch.Unknown
}

func (d jsonDialect) Begin(ctx context.Context) (batch.Session, error) {
	tx, err := d.db.BeginTx(ctx, nil)
	return jsonSession{tx, tx}, err
}

func (jsonDialect) Within(tx batch.Tx) batch.Session { return jsonSession{tx, nil} }

func (jsonDialect) Prepare(batch.Purpose) []string { return nil }

type jsonSession struct {
	batch.Tx
	own *sql.Tx // nil for that of a host
}

func (s jsonSession) Exchange(ctx context.Context, requests ...batch.Request) error {
	for i := range requests {
		if err := s.run(ctx, &requests[i]); err != nil {
			return requests[i].Named(err)
		}
	}
	return nil
}

func (s jsonSession) run(ctx context.Context, r *batch.Request) error {
	all := make([][]any, r.Rows.Len())
	for i := range all {
		all[i] = r.Rows.Append(nil, i)
		for k, value := range all[i] {
			switch v := value.(type) {
			case []byte:
				all[i][k] = hex.EncodeToString(v)
			case [16]byte:
				all[i][k] = hex.EncodeToString(v[:])
			case time.Time:
				all[i][k] = v.Format(batch.TextLayout)
			}
		}
	}
	argument, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if r.Found == nil {
		_, err = s.ExecContext(ctx, r.SQL, string(argument))
		return err
	}
	rows, err := s.QueryContext(ctx, r.SQL, string(argument)) //nolint:rowserrcheck // Each does it
	if err != nil {
		return err
	}
	var key int
	return batch.Each(rows, func() error {
		return r.Found(func(into ...any) (int, error) { return key, rows.Scan(append([]any{&key}, into...)...) })
	})
}

func (s jsonSession) Commit(ctx context.Context, requests ...batch.Request) error {
	if err := s.Exchange(ctx, requests...); err != nil || s.own == nil {
		return err
	}
	return s.own.Commit()
}

func (s jsonSession) Rollback() {
	if s.own != nil {
		_ = s.own.Rollback()
	}
}
