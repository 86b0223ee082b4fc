package storage

import (
	"slices"
	"strings"

	"bankingapi/adapters/storage/batch"
)

// Relied is a table with what the program relies on. Without it an answer may be
// false although no statement fails: a repeat sells again without its key, a holding
// falls below zero without its condition.
type Relied struct {
	Table string
	// Columns are those that the program knows, and Keys those of the primary key,
	// sorted.
	Columns, Keys []string
	// Checks are conditions of a row, as the server writes them.
	Checks []string
	// Rights are those that a sale, a push and a refusal need.
	Rights []string
}

// relied has one entry for each table.
func (d *database) relied() []Relied {
	return []Relied{
		relied(d.subscriptions.Table, "SELECT"),
		relied(d.prices.Table, "SELECT", "price > 0"),
		relied(d.holdings.Table, "SELECT INSERT UPDATE", "units >= 0"),
		relied(d.accounts.Table, "SELECT INSERT UPDATE", "balance >= 0"),
		relied(d.operations.Table, "SELECT INSERT UPDATE"),
		relied(d.sales.Table, "SELECT INSERT UPDATE", "units > 0"),
		relied(d.postings.Table, "INSERT"),
		relied(d.transfers.Table, "INSERT"),
		relied(d.notifications.Table, "SELECT INSERT"),
		relied(d.refusals.Table, "INSERT"),
		relied(d.reversals.Table, "SELECT"),
		relied(d.audits.Table, ""),
		relied(d.marked, "SELECT"),
		relied(d.properties, "SELECT"),
		relied(d.calendars.Table, "SELECT", "calendar_id = 1"),
		relied(d.outcomes.Table, "INSERT"),
		relied(d.outcomes.counters, "SELECT UPDATE", "counter_id = 1"),
		relied(d.batches, ""),
		relied(d.trailHashes, ""),
		relied(d.trailLogs, "", "log_id = 1"),
	}
}

func relied[R any](t *batch.Table[R], rights string, checks ...string) Relied {
	r := Relied{Table: t.Name, Rights: strings.Fields(rights), Checks: checks}
	for _, c := range t.Columns {
		r.Columns = append(r.Columns, c.Name)
		if c.Key {
			r.Keys = append(r.Keys, c.Name)
		}
	}
	slices.Sort(r.Keys)
	return r
}
