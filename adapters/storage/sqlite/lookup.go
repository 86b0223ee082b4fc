package sqlite

import (
	"strings"

	"gorm.io/gorm"
)

// source is a column that lookups use although it has no index. Its number is stored.
type source struct {
	number        string
	table, column string
}

var sources = [...]source{
	{"1", "sales", "customer_no"},
	{"2", "operations", "request_id"},
	{"3", "notifications", "push_id"},
}

const (
	// runRows is how many rows one run indexes. A lookup searches every run, and reads at most
	// this many rows that have no run yet.
	runRows = 10000
	// stepRows is how many of these rows are indexed at once, while the writer waits.
	stepRows = 2500
	// quietRuns is how many runs one call adds if few rows came since the last call.
	quietRuns = 5
)

// Rows get their rowid in the order of their commits, because there is one writer. Rows are
// never removed one by one. So a run covers all rows up to its last one.
const (
	// foundRows is true for the rows with a value. The caller compares the value again, so a
	// wrong entry cannot return a wrong row.
	foundRows = `{{alias}}rowid IN (
SELECT t.rowid FROM {{prefix}}lookup_runs r
CROSS JOIN {{prefix}}lookup_entries e ON e.source = {{number}} AND e.last_row = r.last_row AND e.value = ?
CROSS JOIN {{prefix}}{{table}} t ON t.operation_id = e.operation_id
WHERE r.source = {{number}}
UNION ALL
SELECT rowid FROM {{prefix}}{{table}} WHERE rowid > ({{last}}) AND {{column}} = ?)`

	lastRow = `SELECT COALESCE(MAX(last_row), 0) FROM {{prefix}}lookup_runs WHERE source = {{number}}`

	progress = `SELECT ({{last}}), (SELECT COALESCE(MAX(rowid), 0) FROM {{prefix}}{{table}})`

	// addEntries writes the entries of the run ?1 in their order. No lookup uses them before
	// the run is added, so an interrupted attempt may have left some of them.
	addEntries = `INSERT OR IGNORE INTO {{prefix}}lookup_entries (source, last_row, value, operation_id)
SELECT {{number}}, ?1, {{column}}, operation_id FROM {{prefix}}{{table}}
WHERE rowid > ?2 AND rowid <= ?3 AND {{column}} <> '' ORDER BY {{column}}, operation_id`

	// unfoundRows counts the rows that have a run without their entry. A run that ends after the last
	// row hides the rows to come: it counts too. The plus takes the affinity of the column away, with which
	// SQLite would read all entries of the run for each row.
	unfoundRows = `SELECT (SELECT COUNT(*) FROM {{prefix}}{{table}} t WHERE t.rowid <= ({{last}}) AND t.{{column}} <> '' AND NOT EXISTS (
SELECT 1 FROM {{prefix}}lookup_entries e WHERE e.source = {{number}} AND e.value = +t.{{column}} AND e.operation_id = t.operation_id
AND e.last_row = (SELECT MIN(r.last_row) FROM {{prefix}}lookup_runs r WHERE r.source = {{number}} AND r.last_row >= t.rowid)))
+ (({{last}}) > (SELECT COALESCE(MAX(rowid), 0) FROM {{prefix}}{{table}}))`

	// addRun does nothing if another process has added the run.
	addRun = `INSERT INTO {{prefix}}lookup_runs (source, last_row) SELECT {{number}}, ?1 WHERE ({{last}}) = ?2`
)

func (s *source) statement(text, prefix string) string {
	text = strings.ReplaceAll(text, "{{last}}", lastRow)
	return strings.NewReplacer("{{prefix}}", prefix, "{{number}}", s.number, "{{table}}", s.table, "{{column}}", s.column).Replace(text)
}

// unfound is Unfound of storage.Engine.
func unfound(tx *gorm.DB, prefix string) (map[string]int64, error) {
	lost := make(map[string]int64)
	for i := range sources {
		s := &sources[i]
		var rows int64
		err := tx.Raw(s.statement(unfoundRows, prefix)).Scan(&rows).Error
		if err != nil {
			return nil, err
		}
		if rows > 0 {
			lost[s.table+" by "+s.column] = rows
		}
	}
	return lost, nil
}

// lookup is Find of storage.Engine.
func lookup(prefix, alias, table, column string, value any) (condition string, arguments []any) {
	for i := range sources {
		s := &sources[i]
		if s.table == table && s.column == column {
			return strings.ReplaceAll(s.statement(foundRows, prefix), "{{alias}}", alias), []any{value, value}
		}
	}
	return "TRUE", nil
}
