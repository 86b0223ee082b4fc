package storage_test

import (
	"bytes"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage/tables"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/storekit"
)

// attack is a change of history by somebody with all rights on the database and
// our source, who tries to leave everything consistent.
type attack struct {
	name string
	do   func(t *testing.T, m *tamperer)
	want string // a finding contains it
}

const (
	bothEngines = iota
	onlyPostgres
)

// rebuilt makes the log anew from the batches in the order of their positions,
// with all stored hashes. The signature is missing.
func rebuilt(t *testing.T, m *tamperer) {
	t.Helper()
	if m.exec("DELETE FROM trail_hashes"); !m.ok {
		return
	}
	rows, err := m.tx.QueryContext(t.Context(), "SELECT batch_id, entries FROM trail_batches WHERE position IS NOT NULL ORDER BY position")
	require.NoError(t, err)
	var tree proof.Tree
	var hashes []proof.Hash
	for rows.Next() {
		var id any
		var encoded []byte
		require.NoError(t, rows.Scan(&id, &encoded))
		entries, err := proof.ParseEntries(encoded)
		require.NoError(t, err)
		b := proof.Batch{ID: operation.ID(uuid.MustParse(idOf(id))), Entries: entries}
		hashes = append(hashes, tree.Append(b.Record())...)
	}
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
	for i, hash := range hashes {
		m.exec("INSERT INTO trail_hashes (hash_index, hash) VALUES (?, ?)", i, hash[:])
	}
}

// define runs a statement that changes a table itself.
func (m *tamperer) define(statement string) {
	_, err := m.tx.ExecContext(m.t.Context(), statement)
	require.NoError(m.t, err)
}

func attacks() map[int][]attack {
	first := func(m *tamperer, table, column string, is func(any) bool) map[string]any {
		for _, row := range m.tables[table].rows {
			if is(row[column]) {
				return row
			}
		}
		m.t.Fatalf("%s has no such row", table)
		return nil
	}
	equal := func(want any) func(any) bool { return func(v any) bool { return equalValues(v, want) } }
	return map[int][]attack{
		bothEngines: {
			{"a sale never was", func(_ *testing.T, m *tamperer) { m.removeSale() }, "trail-not-removed operation"},
			{"a sale that never was", func(_ *testing.T, m *tamperer) { m.addSale() }, "trail-not-added operation"},
			{"another price, and the money for it", func(_ *testing.T, m *tamperer) { m.raiseProceeds() }, "trail-unchanged operation"},
			{"a sale for another customer, with holdings and accounts", func(_ *testing.T, m *tamperer) {
				sale := maps.Clone(m.sale())
				m.post(sale, -1)
				sale["customer_no"], sale["account_customer_no"] = 3, 3
				m.exec("UPDATE sales SET customer_no = 3, account_customer_no = 3 WHERE operation_id = ?", sale["operation_id"])
				m.post(sale, 1)
			}, "trail-unchanged operation"},
			{"a withdrawn price counts again", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE prices SET valid_from = ? WHERE price_id = 202", today.Plus(20).String())
			}, "trail-unchanged price 202"},
			{"a settled sale waits again", func(_ *testing.T, m *tamperer) {
				later := m.tables["sales"].rows
				for _, row := range later {
					if row["selected_date"] != nil && equalValues(row["state"], 2) {
						m.exec("UPDATE sales SET state = 1, settled_price_id = NULL, settled_price = NULL, proceeds = NULL WHERE operation_id = ?", row["operation_id"])
						m.exec("UPDATE operations SET state = 1, ended_at = NULL WHERE operation_id = ?", row["operation_id"])
						m.post(row, -1)
						return
					}
				}
				m.t.Fatal("no sale was settled on its day")
			}, "trail-"},
			{"the caller asked for another day", func(_ *testing.T, m *tamperer) {
				row := first(m, "sales", "state", equal(1))
				m.exec("UPDATE sales SET selected_date = ? WHERE operation_id = ?", m.other("selected_date", row["selected_date"]), row["operation_id"])
			}, "trail-unchanged operation"},
			{"a refusal never was", func(_ *testing.T, m *tamperer) {
				row := m.refusedSale()
				m.exec("DELETE FROM operations WHERE operation_id = ?", row["operation_id"])
				m.exec("DELETE FROM sales WHERE operation_id = ?", row["operation_id"])
			}, "trail-"},
			{"somebody else administered", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE audits SET actor = 'mallory' WHERE audit_id = ?", m.tables["audits"].rows[0]["audit_id"])
			}, "trail-unchanged act"},
			{"a subscription gets an earlier state back", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE subscriptions SET requests_per_second = requests_per_second - 1 WHERE name = 'after'")
			}, `trail-unchanged subscription "after"`},
			{"a subscription that nobody created", func(_ *testing.T, m *tamperer) {
				row := maps.Clone(m.tables["subscriptions"].rows[0])
				row["name"] = "mallory"
				for column, value := range row {
					if b, ok := value.([]byte); ok {
						row[column] = m.flip(b)
					}
				}
				m.insert(m.tables["subscriptions"], row)
			}, `trail-not-added subscription "mallory"`},
			{"a reversal never was", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE operations SET reversal_id = NULL, reversed_at = NULL WHERE reversal_id IS NOT NULL")
			}, "trail-not-removed end or reversal of operation"},
			{"a message never was", func(_ *testing.T, m *tamperer) {
				row := m.tables["notifications"].rows[0]
				m.exec("DELETE FROM notifications WHERE identity = ?", row["identity"])
			}, "trail-not-removed notification"},
			{"the outcome of a sale was taken away", func(_ *testing.T, m *tamperer) {
				row := first(m, "outcomes", "reversed", equal(0))
				m.exec("DELETE FROM outcomes WHERE number = ?", row["number"])
			}, "outcome-of-end operation"},
			{"the reason of an end was emptied", func(_ *testing.T, m *tamperer) {
				for _, row := range m.tables["operations"].rows {
					if row["due_on"] != nil && row["faults"] != "" {
						m.exec("UPDATE operations SET faults = '' WHERE operation_id = ?", row["operation_id"])
						return
					}
				}
				m.t.Fatal("no sale failed on its day")
			}, "trail-unchanged operation"},
			{"an outcome comes twice", func(_ *testing.T, m *tamperer) {
				row := maps.Clone(first(m, "outcomes", "reversed", equal(0)))
				row["number"] = int64(len(m.tables["outcomes"].rows) + 1)
				m.insert(m.tables["outcomes"], row)
				m.exec("UPDATE properties SET value = CAST(CAST(value AS bigint) + 1 AS text) WHERE name = 'outcomes'")
			}, "outcome-of-end outcome"},
			{"another import wrote a price", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE prices SET act_id = ? WHERE price_id = 102", m.tables["prices"].rows[0]["act_id"])
				m.ok = m.ok && !equalValues(m.tables["prices"].rows[0]["act_id"], first(m, "prices", "price_id", equal(102))["act_id"])
			}, "trail-unchanged price 102"},
			{"no import wrote a price", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE prices SET act_id = NULL WHERE price_id = 102")
			}, "trail-unchanged price 102"},
			{"a price was taken away", func(_ *testing.T, m *tamperer) {
				m.exec("DELETE FROM prices WHERE price_id = 202")
			}, "trail-not-removed price 202"},
			{"a day is open again", func(_ *testing.T, m *tamperer) {
				m.calendar(func(text string) string { return text[strings.Index(text, "\n")+1:] })
			}, "trail-unchanged the calendar of closed days"},
			{"another day is closed", func(_ *testing.T, m *tamperer) {
				m.calendar(func(text string) string { return text + "2027-01-02 \n" })
			}, "trail-unchanged the calendar of closed days"},
			{"a day is closed for another reason", func(_ *testing.T, m *tamperer) {
				m.calendar(func(text string) string { return strings.Replace(text, "Feast", "Strike", 1) })
			}, "trail-unchanged the calendar of closed days"},
			{"the calendar is empty", func(_ *testing.T, m *tamperer) {
				m.calendar(func(string) string { return "" })
			}, "trail-not-removed the calendar of closed days"},
			{"the calendar is gone", func(_ *testing.T, m *tamperer) {
				m.exec("DELETE FROM properties WHERE name = 'calendar'")
			}, "trail-not-removed the calendar of closed days"},
			{"the calendar is no calendar", func(_ *testing.T, m *tamperer) {
				m.calendar(func(string) string { return "never\n" })
			}, "trail-unchanged the calendar of closed days"},
			{"an account that nobody imported", func(_ *testing.T, m *tamperer) {
				m.exec("INSERT INTO accounts (customer_no, branch_code, account_suffix, currency_code, balance) VALUES (70, 1, 1, 'TRY', 0)")
			}, "account-was-imported account 1-70-1 TRY"},
			{"a holding that nobody imported", func(_ *testing.T, m *tamperer) {
				m.exec("INSERT INTO holdings (customer_no, imkb_code, holder_corporation_name, units) VALUES (70, 'AFA', 'H', 0)")
			}, `holding-was-imported holding 70 AFA "H"`},
			{"an empty account was taken away", func(_ *testing.T, m *tamperer) {
				m.exec("DELETE FROM accounts WHERE customer_no = 62 AND balance = 0")
			}, "account-exists account"},
			{"an empty holding was taken away", func(_ *testing.T, m *tamperer) {
				m.exec("DELETE FROM holdings WHERE customer_no = 62 AND units = 0")
			}, "holding-exists holding 62"},
			{"an empty account was taken away, and its posting", func(_ *testing.T, m *tamperer) {
				m.exec("DELETE FROM accounts WHERE customer_no = 62 AND balance = 0")
				m.exec("DELETE FROM adjustments WHERE customer_no = 62 AND leg = 2")
			}, "trail-not-removed act"},
			{"two sales ended in the other order", func(_ *testing.T, m *tamperer) {
				m.exchangeOutcomes(1, 2)
			}, "trail-unchanged operation"},
			{"a reversal came before the end of another sale", func(_ *testing.T, m *tamperer) {
				reversal := first(m, "outcomes", "reversed", equal(1))["number"].(int64)
				other := first(m, "outcomes", "reversed", equal(0))["number"].(int64)
				m.exchangeOutcomes(other, reversal)
			}, "trail-unchanged operation"},
			{"all outcomes moved by one place", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE outcomes SET number = -number")
				m.exec("UPDATE outcomes SET number = 1 - number")
			}, "trail-unchanged operation"},
			{"the outcome of a reversal was taken away", func(_ *testing.T, m *tamperer) {
				row := first(m, "outcomes", "reversed", equal(1))
				m.exec("DELETE FROM outcomes WHERE number = ?", row["number"])
				m.exec("UPDATE outcomes SET number = number - 1 WHERE number > ?", row["number"])
				m.decrement(tables.OutcomesProperty)
			}, "outcome-of-end operation"},
			{"the bank closes at another hour", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE properties SET value = 'time-zone=Europe/Istanbul closed-weekdays=none cut-off=12:00 settle-from=00:00' WHERE name = 'rules'")
			}, "rules-are-of-act the rules of the bank: they are time-zone=Europe/Istanbul closed-weekdays=none cut-off=12:00"},
			{"the bank is in another time zone, as its act says", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE properties SET value = REPLACE(value, 'Europe/Istanbul', 'Asia/Tokyo') WHERE name = 'rules'")
				m.exec("UPDATE audits SET object = REPLACE(object, 'Europe/Istanbul', 'Asia/Tokyo') WHERE action LIKE 'rules.%'")
			}, "trail-unchanged act"},
			{"the bank has the rules of before, and the change never was", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE properties SET value = (SELECT object FROM audits WHERE action = 'rules.begin') WHERE name = 'rules'")
				m.exec("DELETE FROM audits WHERE action = 'rules.change'")
			}, "trail-not-removed act"},
			{"the bank has no rules", func(_ *testing.T, m *tamperer) {
				m.exec("DELETE FROM properties WHERE name = 'rules'")
			}, "rules-are-of-act the rules of the bank: they are not there"},
			{"a refused sale that nobody asked for", func(_ *testing.T, m *tamperer) {
				row := maps.Clone(m.refusedSale())
				row["position"], row["customer_no"] = int64(7), int64(3)
				m.insert(m.tables["sales"], row)
			}, "trail-unchanged operation"},
			{"refused sales without a refusal", func(_ *testing.T, m *tamperer) {
				row := maps.Clone(m.refusedSale())
				row["operation_id"] = m.other("operation_id", row["operation_id"])
				m.insert(m.tables["sales"], row)
			}, "trail-"},
			{"the entries go with the rows", func(_ *testing.T, m *tamperer) {
				sale := m.removeSale()
				if !m.ok {
					return
				}
				cut := func(all []byte) []byte {
					entries, err := proof.ParseEntries(all)
					require.NoError(m.t, err)
					var kept []proof.Entry
					for _, e := range entries {
						if e.ID.String() != idOf(sale["operation_id"]) {
							kept = append(kept, e)
						}
					}
					return proof.AppendEntries([]byte{}, kept)
				}
				for _, row := range m.tables["trail_batches"].rows {
					if all, _ := row["entries"].([]byte); !bytes.Equal(cut(all), all) {
						m.set(m.tables["trail_batches"], row, "entries", cut(all))
					}
				}
				rebuilt(m.t, m)
			}, "it was not made by this service"},
			{"a batch is replayed", func(_ *testing.T, m *tamperer) {
				row := maps.Clone(m.tables["trail_batches"].rows[0])
				row["batch_id"], row["position"] = m.other("batch_id", row["batch_id"]), nil
				m.insert(m.tables["trail_batches"], row)
			}, "trail-unchanged batch"},
			{"a batch is there twice", func(_ *testing.T, m *tamperer) {
				row := maps.Clone(first(m, "trail_batches", "position", equal(1)))
				row["batch_id"], row["position"] = m.other("batch_id", row["batch_id"]), nil
				m.insert(m.tables["trail_batches"], row)
			}, ": is in the trail, but not in the rows, or not as often"},
			{"two batches exchange what they say", func(_ *testing.T, m *tamperer) {
				table := m.tables["trail_batches"]
				a, b := table.rows[0], table.rows[1]
				for _, column := range []string{"entries", "mac"} {
					m.set(table, a, column, b[column])
					m.set(table, b, column, a[column])
				}
			}, "it was not made by this service"},
			{"two batches change places", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE trail_batches SET position = 1 - position WHERE position IN (0, 1)")
			}, "trail-place batch"},
			{"two batches change places, with all hashes", func(t *testing.T, m *tamperer) {
				m.exec("UPDATE trail_batches SET position = 1 - position WHERE position IN (0, 1)")
				rebuilt(t, m)
			}, "the batches of the log are not those of its checkpoint"},
			{"one stored hash is another", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE trail_hashes SET hash = ? WHERE hash_index = 2", make([]byte, 32))
			}, "trail-hashes hash 2 of the log"},
			{"a stored hash is gone", func(_ *testing.T, m *tamperer) {
				m.exec("DELETE FROM trail_hashes WHERE hash_index = 1")
			}, "trail-hashes hash 1 of the log"},
			{"the log ends earlier", func(t *testing.T, m *tamperer) {
				m.exec("DELETE FROM trail_batches WHERE position = (SELECT MAX(position) FROM trail_batches)")
				m.decrement(tables.LogSizeProperty)
				rebuilt(t, m)
			}, "trail-log"},
			{"only the size of the log is another", func(_ *testing.T, m *tamperer) {
				m.decrement(tables.LogSizeProperty)
			}, "trail-log the stored size of the log (log_size) is "},
			{"the size of the log counts another batch", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE properties SET value = CAST(CAST(value AS bigint) + 1 AS text) WHERE name = ?", tables.LogSizeProperty)
			}, " of the log: the size of the log counts it, but its row is not there"},
			{"the log has not begun", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE properties SET value = '0' WHERE name IN ('log_size', 'log_begun')")
				m.exec("UPDATE properties SET value = '' WHERE name = 'log_checkpoint'")
			}, "trail-log"},
			{"only log_begun is reset", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE properties SET value = '0' WHERE name = 'log_begun'")
			}, "trail-log the property log_begun says that the log has not begun, or is not a count: set log_begun to 1"},
			{"log_begun is no count", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE properties SET value = '1x' WHERE name = 'log_begun'")
			}, "trail-log the property log_begun says that the log has not begun, or is not a count: set log_begun to 1"},
			{"a checkpoint with another signature", func(_ *testing.T, m *tamperer) {
				m.exec("UPDATE properties SET value = 'forged' WHERE name = 'log_checkpoint'")
			}, "trail-log the newest checkpoint cannot be used"},
		},
		onlyPostgres: {
			{"a second price, which is found first", func(_ *testing.T, m *tamperer) {
				m.define("ALTER TABLE prices DROP CONSTRAINT prices_pkey CASCADE")
				m.define("CREATE TABLE kept AS TABLE prices")
				m.exec("DELETE FROM prices")
				m.exec("INSERT INTO prices SELECT price_id, imkb_code, holder_corporation_name, price * 2, currency_code, valid_from, act_id FROM kept LIMIT 1")
				m.exec("INSERT INTO prices SELECT * FROM kept")
			}, "trail-not-added price"},
			{"a second CallerId record, which is found first", func(_ *testing.T, m *tamperer) {
				m.define("ALTER TABLE operations DROP CONSTRAINT operations_pkey CASCADE")
				m.define("DROP INDEX operations_identity")
				row := maps.Clone(m.tables["operations"].rows[0])
				for _, of := range m.tables["operations"].rows {
					if strings.Contains(fmt.Sprint(of["caller_id"]), "after-0") {
						row = maps.Clone(of)
					}
				}
				fingerprint, _ := row["fingerprint"].([]byte)
				row["fingerprint"] = m.flip(fingerprint)
				m.insert(m.tables["operations"], row)
			}, "trail-not-added second record of CallerId"},
		},
	}
}

// Each attack leaves a finding.
func TestAttacksOnHistory(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		var tree proof.Tree
		aDayInTheTrail(t, s, &tree)
		m := newTamperer(t, db)
		var own []attack
		if !m.isSQLite { // SQLite does not drop a primary key
			own = attacks()[onlyPostgres]
		}
		for _, a := range append(attacks()[bothEngines], own...) {
			m.ok = false
			for tries := 0; tries < 20 && !m.ok; tries++ { // a table may refuse it, and have another sale
				tx, err := db.BeginTx(t.Context(), nil)
				require.NoError(t, err)
				m.begin(tx)
				a.do(t, m)
				if m.ok {
					inside, err := s.Within(tx)
					require.NoError(t, err)
					require.Contains(t, strings.Join(m.evidence(inside), "\n"), a.want, a.name)
				}
				require.NoError(t, tx.Rollback())
			}
			require.True(t, m.ok, "%s: %q", a.name, m.statements)
		}
	})
}

// calendar changes the closed days.
func (m *tamperer) calendar(change func(string) string) {
	var text string
	require.NoError(m.t, m.tx.QueryRowContext(m.t.Context(), "SELECT value FROM properties WHERE name = 'calendar'").Scan(&text))
	require.NotEqual(m.t, text, change(text))
	m.exec("UPDATE properties SET value = ? WHERE name = 'calendar'", change(text))
}

// exchangeOutcomes gives two outcomes each other's number.
func (m *tamperer) exchangeOutcomes(one, two int64) {
	m.exec("UPDATE outcomes SET number = -1 WHERE number = ?", one)
	m.exec("UPDATE outcomes SET number = ? WHERE number = ?", one, two)
	m.exec("UPDATE outcomes SET number = ? WHERE number = -1", two)
}

// decrement takes one from a property that is a number.
func (m *tamperer) decrement(property string) {
	m.exec("UPDATE properties SET value = CAST(CAST(value AS bigint) - 1 AS text) WHERE name = ?", property)
}

// evidence is what verify finds, or the error with which it ends.
func (m *tamperer) evidence(s *store.Store) (found []string) {
	_, found, err := verified(m.t, s)
	if err != nil {
		found = append(found, err.Error())
	}
	return found
}

// Somebody adds a sale, and sets the log back, so that the service takes the sale
// over when it starts.
func TestRowsAreNotMadeGenuine(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		var tree proof.Tree
		aDayInTheTrail(t, s, &tree)
		_, err := db.ExecContext(t.Context(), "UPDATE properties SET value = '0' WHERE name = 'log_begun'")
		require.NoError(t, err)
		_, err = s.Trail.Origin.Adopt(t.Context())
		require.ErrorContains(t, err, "somebody has changed the property log_begun. Set log_begun to 1")

		m := newTamperer(t, db)
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		m.begin(tx)
		made := v7()
		var id any = made[:]
		if !m.isSQLite {
			id = made.String()
		}
		added := maps.Clone(m.sale())
		added["operation_id"] = id
		m.insert(m.tables["sales"], added)
		m.exec("DELETE FROM trail_hashes")
		m.exec("UPDATE trail_batches SET position = NULL")
		m.exec("UPDATE properties SET value = '0' WHERE name = 'log_size'")
		m.exec("UPDATE properties SET value = '' WHERE name = 'log_checkpoint'")
		require.True(t, m.ok, m.statements)
		require.NoError(t, tx.Commit())

		s.Trail.Writer.Use(trailKeys, idsIn(72*time.Hour))
		adopted, err := s.Trail.Origin.Adopt(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, adopted, "the sale, and the calendar as always")
		var again proof.Tree
		sealAll(t, s, &again)
		_, found := trailFindings(t, s)
		require.Contains(t, strings.Join(found, "\n"), "came into the trail long after its time")
	})
}

// A message that came again has a leaf of its own. Its row does not replace the
// first one.
func TestARepeatDoesNotReplaceANotification(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, db *sql.DB) {
		s.Trail.Writer.Use(trailKeys, v7)
		_, err := s.Trail.Origin.Adopt(t.Context())
		require.NoError(t, err)
		notify(t, s, "", "the message")
		later := idsIn(72 * time.Hour)
		s.Trail.Writer.Use(trailKeys, later)
		notifyAs(t, s, later(), "", "the message")
		_, found := trailFindings(t, s)
		require.Empty(t, found)

		var encoded []byte
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT entries FROM trail_batches ORDER BY batch_id DESC LIMIT 1").Scan(&encoded))
		entries, err := proof.ParseEntries(encoded)
		require.NoError(t, err)
		repeat := fmt.Sprintf("'%s'", entries[0].ID)
		if strings.Contains(fmt.Sprintf("%T", db.Driver()), "sqlite") {
			repeat = fmt.Sprintf("x'%x'", entries[0].ID[:])
		}
		execute(t, db, "UPDATE notifications SET operation_id = "+repeat)
		_, found = trailFindings(t, s)
		require.Len(t, found, 1, found)
		require.Contains(t, found[0], "trail-not-added notification")
	})
}

// A message that was sent while a clock was ahead comes again when the clock is right.
func TestARepeatAfterAClockWasAheadIsNoFinding(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		ahead := idsIn(72 * time.Hour)
		s.Trail.Writer.Use(trailKeys, ahead)
		_, err := s.Trail.Origin.Adopt(t.Context())
		require.NoError(t, err)
		notifyAs(t, s, ahead(), "", "the message")
		var tree proof.Tree
		sealAll(t, s, &tree)
		s.Trail.Writer.Use(trailKeys, v7)
		notify(t, s, "", "the message")
		for range 2 {
			_, found := trailFindings(t, s)
			require.Empty(t, found)
			sealAll(t, s, &tree)
		}
	})
}

// A subscription that was changed while a clock was ahead is changed again when it is right.
func TestAChangeAfterAClockWasAheadIsNoFinding(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		s.Trail.Writer.Use(trailKeys, idsIn(72*time.Hour))
		_, err := s.Trail.Origin.Adopt(t.Context())
		require.NoError(t, err)
		m := subscriptions.NewManager(s.Subscriptions, rand.Reader)
		_, _, err = m.Create(t.Context(), subscription.Subscription{Name: "partner"})
		require.NoError(t, err)
		var tree proof.Tree
		sealAll(t, s, &tree)
		s.Trail.Writer.Use(trailKeys, v7)
		for _, state := range []subscription.State{subscription.Suspended, subscription.Active} {
			require.NoError(t, m.SetState(t.Context(), "partner", state))
			for range 2 {
				_, found := trailFindings(t, s)
				require.Empty(t, found)
				sealAll(t, s, &tree)
			}
		}
	})
}

// A machine sleeps while a request is between its ID and its commit.
func TestARequestThatSleptIsNoFinding(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		b := newBank(t, s, 2)
		s.Trail.Writer.Use(trailKeys, v7)
		_, err := s.Trail.Origin.Adopt(t.Context())
		require.NoError(t, err)
		b.sell(operation.Completed, order(v7(), "a", sale(1, 1, 2)))
		s.Trail.Writer.Use(trailKeys, idsIn(25*time.Hour))
		b.sell(operation.Completed, order(v7(), "b", sale(1, 1, 2)))
		notify(t, s, "c", "the message")
		_, found := trailFindings(t, s)
		require.Empty(t, found)
	})
}

// idsIn makes IDs of a clock that is ahead.
func idsIn(ahead time.Duration) func() operation.ID {
	return func() operation.ID {
		id := v7()
		var time8 [8]byte
		binary.BigEndian.PutUint64(time8[:], uint64(id.Time().Add(ahead).UnixMilli())) // its own millisecond: IDs grow
		copy(id[:6], time8[2:])
		return id
	}
}
