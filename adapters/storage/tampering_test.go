package storage_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
	"bankingapi/domain/proof"
)

// Whoever can write the database changes rows behind the service's back: one
// value, a whole row, two rows that exchange a value, or a sale with its operation
// and balances, so that the book adds up. verify names what was changed, and
// nothing else.
// PROVE_CHANGES is the number of changes on each engine (60).
func TestEveryChangeOfARowIsFound(t *testing.T) {
	t.Parallel()
	changes := 60
	if n, err := strconv.Atoi(os.Getenv("PROVE_CHANGES")); err == nil {
		changes = n
	}
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		var tree proof.Tree
		aDayInTheTrail(t, s, &tree)
		_, found := trailFindings(t, s)
		require.Empty(t, found)
		m := newTamperer(t, db)
		done := map[string]int{}
		for tried := 0; tried < changes; {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			m.begin(tx)
			kind := m.change()
			if m.ok {
				tried++
				done[kind]++
				inside, err := s.Within(tx)
				require.NoError(t, err)
				_, found := trailFindings(t, inside)
				m.requireNamed(found)
			}
			require.NoError(t, tx.Rollback())
		}
		t.Log(done)
	})
}

// tamperer changes rows.
type tamperer struct {
	t        *testing.T
	random   *rand.Rand
	isSQLite bool
	tables   map[string]*tampered
	tx       *sql.Tx
	ok       bool // false if the database refused the change
	// what was changed, in SQL
	statements []string
	// named are groups of names: the findings of the trail have one of each group.
	named [][]string
	// others are names that findings may have too.
	others []string
}

// tampered is a table with its rows.
type tampered struct {
	name    string
	keys    []string // its primary key
	columns []string // without those that change without an act
	rows    []map[string]any
}

// trailTables are the tables of the trail, each with its primary key.
var trailTables = []tampered{
	{name: "sales", keys: []string{"operation_id", "position"}},
	{name: "adjustments", keys: []string{"act_id", "line", "leg"}},
	{name: "operations", keys: []string{"operation_id"}},
	{name: "notifications", keys: []string{"identity"}},
	{name: "outcomes", keys: []string{"number"}},
	{name: "prices", keys: []string{"price_id"}},
	{name: "audits", keys: []string{"audit_id"}},
	{name: "subscriptions", keys: []string{"name"}},
	{name: "trail_batches", keys: []string{"batch_id"}},
	{name: "trail_hashes", keys: []string{"hash_index"}},
}

func newTamperer(t *testing.T, db *sql.DB) *tamperer {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	m := &tamperer{t: t, isSQLite: strings.Contains(fmt.Sprintf("%T", db.Driver()), "sqlite"), random: rand.New(rand.NewPCG(19, seed)), tables: map[string]*tampered{}}
	for _, table := range trailTables {
		table.columns, table.rows = rowsOf(t, db, table.name)
		require.NotEmpty(t, table.rows, table.name)
		table.columns = slices.DeleteFunc(table.columns, func(name string) bool {
			return name == "primary_used_at" || name == "secondary_used_at" || name == "without_caller_id_at"
		})
		m.tables[table.name] = &table
	}
	return m
}

func rowsOf(t *testing.T, db *sql.DB, table string) (columns []string, all []map[string]any) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+table)
	require.NoError(t, err)
	defer rows.Close()
	columns, err = rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(t, rows.Scan(into...))
		row := map[string]any{}
		for i, name := range columns {
			row[name] = values[i]
		}
		all = append(all, row)
	}
	require.NoError(t, rows.Err())
	return columns, all
}

func (m *tamperer) begin(tx *sql.Tx) {
	m.tx, m.ok, m.statements, m.named, m.others = tx, true, nil, nil, nil
}

// exec runs a statement with ? for each argument.
func (m *tamperer) exec(statement string, args ...any) {
	if !m.ok {
		return
	}
	m.statements = append(m.statements, fmt.Sprintf("%s %q", statement, args))
	if !m.isSQLite {
		for n := 1; strings.Contains(statement, "?"); n++ {
			statement = strings.Replace(statement, "?", "$"+strconv.Itoa(n), 1)
		}
	}
	result, err := m.tx.ExecContext(m.t.Context(), statement, args...)
	if err != nil {
		m.ok = false
		return
	}
	n, err := result.RowsAffected()
	require.NoError(m.t, err)
	require.Positive(m.t, n, m.statements)
}

func pick[T any](m *tamperer, all []T) T { return all[m.random.IntN(len(all))] }

// change makes one change and returns its kind.
func (m *tamperer) change() (kind string) {
	table := m.tables[pick(m, trailTables).name]
	row := pick(m, table.rows)
	switch m.random.IntN(9) {
	case 0, 1:
		column := pick(m, table.columns)
		changed := maps.Clone(row)
		changed[column] = m.other(column, row[column])
		m.expect(table, row, changed)
		m.set(table, row, column, changed[column])
		return "change of " + table.name
	case 2:
		m.expect(table, row, nil)
		where, args := m.where(table, row)
		m.exec("DELETE FROM "+table.name+where, args...)
		return "removal from " + table.name
	case 3:
		added := maps.Clone(row)
		for _, name := range []string{"operation_id", "act_id", "audit_id", "batch_id", "identity", "price_id", "name", "caller_id", "hash_index"} {
			if value, has := row[name]; has {
				added[name] = m.other(name, value)
			}
		}
		m.expect(table, nil, added)
		m.insert(table, added)
		return "addition to " + table.name
	case 4:
		column, second := pick(m, table.columns), pick(m, table.rows)
		if m.ok = !slices.Contains(table.keys, column) && !equalValues(row[column], second[column]); m.ok {
			with := func(row, from map[string]any) map[string]any {
				changed := maps.Clone(row)
				changed[column] = from[column]
				return changed
			}
			m.expect(table, row, with(row, second))
			m.expect(table, second, with(second, row))
			m.set(table, row, column, second[column])
			m.set(table, second, column, row[column])
		}
		return "swap in " + table.name
	case 5:
		m.removeSale()
		return "removal of a sale"
	case 6:
		m.addSale()
		return "addition of a sale"
	case 7:
		m.hideNotification()
		return "hiding of a notification"
	default:
		m.raiseProceeds()
		return "change of a sale"
	}
}

func equalValues(a, b any) bool {
	return fmt.Sprint(a) == fmt.Sprint(b)
}

// other is another value of the same type.
func (m *tamperer) other(column string, value any) any {
	if id, ok := value.(string); ok && !m.isSQLite && strings.HasSuffix(column, "_id") {
		if u, err := uuid.Parse(id); err == nil {
			return m.flip(u[:])
		}
	}
	switch value := value.(type) {
	case int64:
		return value + pick(m, []int64{-1, 1, 1 << 40})
	case []byte:
		return m.flip(value)
	case time.Time:
		return value.Add(pick(m, []time.Duration{24 * time.Hour, -48 * time.Hour}))
	case string:
		for _, layout := range []string{time.DateOnly, "2006-01-02T15:04:05.000000Z"} {
			if at, err := time.Parse(layout, value); err == nil {
				return at.AddDate(0, 0, pick(m, []int{-1, 1})).Format(layout)
			}
		}
		return value + "x"
	case nil:
		switch {
		case strings.HasSuffix(column, "_at"):
			return "2020-01-01T00:00:00.000000Z"
		case column == "reversal_id" || column == "erasure_id":
			return m.flip(make([]byte, 16))
		case strings.HasSuffix(column, "_date") || column == "due_on":
			return "2020-01-01"
		case strings.HasSuffix(column, "request_id"):
			return "x"
		}
		return int64(1)
	}
	m.t.Fatalf("column %s is a %T", column, value)
	return nil
}

// flip changes one bit.
func (m *tamperer) flip(value []byte) any {
	value = bytes.Clone(value)
	if len(value) == 0 {
		return []byte{1}
	}
	value[m.random.IntN(len(value))] ^= 1 << m.random.IntN(8)
	return value
}

func (m *tamperer) where(table *tampered, row map[string]any) (where string, args []any) {
	for i, key := range table.keys {
		where += map[bool]string{true: " WHERE ", false: " AND "}[i == 0] + key + " = ?"
		args = append(args, row[key])
	}
	return where, args
}

func (m *tamperer) set(table *tampered, row map[string]any, column string, value any) {
	where, args := m.where(table, row)
	m.exec("UPDATE "+table.name+" SET "+column+" = ?"+where, append([]any{value}, args...)...)
}

func (m *tamperer) insert(table *tampered, row map[string]any) {
	var args []any
	for _, column := range table.columns {
		args = append(args, row[column])
	}
	m.exec("INSERT INTO "+table.name+" ("+strings.Join(table.columns, ", ")+") VALUES (?"+strings.Repeat(", ?", len(args)-1)+")", args...)
}

func idOf(value any) string {
	switch value := value.(type) {
	case []byte:
		if id, err := uuid.FromBytes(value); err == nil {
			return id.String()
		}
	case string:
		return value
	}
	return ""
}

// expect says that findings name the row as it was, or as it is. before is nil if
// it was added, after if it was removed.
func (m *tamperer) expect(table *tampered, before, after map[string]any) {
	var names []string
	for _, row := range []map[string]any{before, after} {
		if row != nil {
			names = append(names, m.names(table, row)...)
		}
	}
	m.named = append(m.named, names)
	if table.name == "notifications" { // the same message may have come with several operations
		for _, row := range table.rows {
			m.others = append(m.others, "operation "+idOf(row["operation_id"]), "notification "+idOf(row["operation_id"])+"/")
		}
		for _, row := range m.tables["operations"].rows {
			m.others = append(m.others, "operation "+idOf(row["operation_id"]))
		}
	}
}

// names are the names of a row in findings.
func (m *tamperer) names(table *tampered, row map[string]any) []string {
	switch table.name {
	case "prices":
		return []string{fmt.Sprintf("price %d:", row["price_id"])}
	case "subscriptions":
		return []string{fmt.Sprintf("subscription %q:", row["name"])}
	case "audits":
		return []string{"act " + idOf(row["audit_id"]) + ":"}
	case "notifications":
		id := idOf(row["operation_id"])
		erasure := idOf(row["erasure_id"])
		return []string{fmt.Sprintf("notification %s/%d:", id, row["position"]), "operation " + id + ":", "act " + erasure + ":", "erasure " + erasure + ":"}
	case "outcomes":
		return []string{"operation " + idOf(row["operation_id"]) + ":", "outcomes 1 to "}
	case "trail_batches":
		return m.batchNames(row)
	case "trail_hashes":
		return []string{fmt.Sprintf("hash %d of the log:", row["hash_index"]), "the log has hashes that no batch has"}
	case "adjustments":
		id := idOf(row["act_id"])
		return []string{"postings of " + id + ":", "act " + id + ":", "posting " + id + "/"}
	default: // also the operation's CallerId
		id := idOf(row["operation_id"])
		return []string{"operation " + id + ":", "sale " + id + "/", "notification " + id + "/"}
	}
}

// batchNames are the names of a batch. Without it, the operations in it are not
// in the trail.
func (m *tamperer) batchNames(row map[string]any) []string {
	names := []string{"batch " + idOf(row["batch_id"])}
	if position, ok := row["position"].(int64); ok {
		names = append(names, fmt.Sprintf("batch %d of the log", position+1))
	}
	entries, ok := row["entries"].([]byte)
	require.True(m.t, ok)
	if parsed, err := proof.ParseEntries(entries); err == nil {
		for _, e := range parsed {
			m.others = append(m.others, e.ID.String(), "the calendar of closed days:", fmt.Sprintf("price %d:", proof.ParsePriceID(e.ID)))
		}
	}
	for _, all := range []string{"prices", "subscriptions"} { // these have no ID
		for _, other := range m.tables[all].rows {
			m.others = append(m.others, m.names(m.tables[all], other)...)
		}
	}
	for _, other := range m.tables["trail_batches"].rows { // two batches at one place: it is not known whose it is
		if other["position"] == row["position"] {
			m.others = append(m.others, "batch "+idOf(other["batch_id"]))
		}
	}
	return names
}

// requireNamed checks that the findings name what was changed, and nothing else.
func (m *tamperer) requireNamed(findings []string) {
	m.t.Helper()
	said := func(finding string, names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(finding, name) })
	}
	for _, names := range m.named {
		require.True(m.t, slices.ContainsFunc(findings, func(f string) bool { return said(f, names) }),
			"%q is not named\n%q\n%s", names, findings, strings.Join(m.statements, "\n"))
	}
	for _, finding := range findings {
		if !strings.HasPrefix(finding, "trail-") || strings.HasPrefix(finding, "trail-log ") {
			continue // the sums, and the log as a whole
		}
		require.True(m.t, said(finding, m.others) || slices.ContainsFunc(m.named, func(names []string) bool { return said(finding, names) }),
			"%q, and changed was %q\n%s", finding, m.named, strings.Join(m.statements, "\n"))
	}
}

// sale picks a completed operation with one sale that was not reversed.
func (m *tamperer) sale() map[string]any {
	for {
		sale := pick(m, m.tables["sales"].rows)
		ofOperation := func(table string) (rows []map[string]any) {
			for _, row := range m.tables[table].rows {
				if equalValues(row["operation_id"], sale["operation_id"]) {
					rows = append(rows, row)
				}
			}
			return rows
		}
		if sale["state"] == int64(2) && len(ofOperation("sales")) == 1 && ofOperation("operations")[0]["reversal_id"] == nil {
			return sale
		}
	}
}

// refusedSale is a sale of an operation that was refused at once.
func (m *tamperer) refusedSale() map[string]any {
	for _, of := range m.tables["operations"].rows {
		for _, row := range m.tables["sales"].rows {
			if of["due_on"] == nil && row["state"] == int64(8) && equalValues(row["operation_id"], of["operation_id"]) {
				return row
			}
		}
	}
	m.t.Fatal("no operation was refused")
	return nil
}

// post changes the balances by a number of times the postings of a sale.
func (m *tamperer) post(sale map[string]any, times int64) {
	units, _ := sale["units"].(int64)
	m.exec("UPDATE holdings SET units = units - ? WHERE customer_no = ? AND imkb_code = ? AND holder_corporation_name = ?",
		times*units, sale["customer_no"], sale["imkb_code"], sale["holder_corporation_name"])
	proceeds, _ := sale["proceeds"].(int64)
	m.exec("UPDATE accounts SET balance = balance + ? WHERE customer_no = ? AND branch_code = ? AND account_suffix = ? AND currency_code = ?",
		times*proceeds, sale["account_customer_no"], sale["branch_code"], sale["account_suffix"], sale["currency_code"])
}

// removeSale removes a sale with its operation, and sets the balances back.
func (m *tamperer) removeSale() (removed map[string]any) {
	sale := m.sale()
	m.expect(m.tables["sales"], sale, nil)
	m.post(sale, -1)
	m.exec("DELETE FROM sales WHERE operation_id = ?", sale["operation_id"])
	m.exec("DELETE FROM operations WHERE operation_id = ?", sale["operation_id"])
	return sale
}

// addSale adds a copy of a sale with its operation, and changes the balances.
func (m *tamperer) addSale() {
	sale := m.sale()
	id := m.other("operation_id", sale["operation_id"])
	added := maps.Clone(sale)
	added["operation_id"] = id
	m.expect(m.tables["sales"], nil, added)
	m.insert(m.tables["sales"], added)
	for _, row := range m.tables["operations"].rows {
		if idOf(row["operation_id"]) == idOf(sale["operation_id"]) {
			operation := maps.Clone(row)
			operation["operation_id"], operation["identity"], operation["caller_id"] = id, id, ""
			operation["fingerprint"], operation["session_hash"] = []byte{}, []byte{}
			m.insert(m.tables["operations"], operation)
		}
	}
	m.post(sale, 1)
}

// raiseProceeds pays twice for a sale, by twice the price.
func (m *tamperer) raiseProceeds() {
	sale := m.sale()
	m.expect(m.tables["sales"], sale, nil)
	m.exec("UPDATE sales SET proceeds = 2 * proceeds, settled_price = 2 * settled_price WHERE operation_id = ?", sale["operation_id"])
	m.exec("UPDATE accounts SET balance = balance + ? WHERE customer_no = ? AND branch_code = ? AND account_suffix = ? AND currency_code = ?",
		sale["proceeds"], sale["account_customer_no"], sale["branch_code"], sale["account_suffix"], sale["currency_code"])
}

// hideNotification removes a notification and lets its entry in the trail lead to
// another one, as if that one had come again.
func (m *tamperer) hideNotification() {
	rows := m.tables["notifications"].rows
	hidden, other := pick(m, rows), pick(m, rows)
	from, to := identityOf(hidden["identity"]), identityOf(other["identity"])
	if m.ok = !bytes.Equal(from, to); !m.ok {
		return
	}
	for _, row := range m.tables["trail_batches"].rows {
		if entries, _ := row["entries"].([]byte); bytes.Contains(entries, from) {
			m.expect(m.tables["trail_batches"], row, nil)
			m.set(m.tables["trail_batches"], row, "entries", bytes.ReplaceAll(entries, from, to))
		}
	}
	where, args := m.where(m.tables["notifications"], hidden)
	m.exec("DELETE FROM notifications"+where, args...)
}

func identityOf(value any) []byte {
	id := uuid.MustParse(idOf(value))
	return id[:]
}
