package office

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/domain/decimal"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// scope is a part of a query, for gorm's Scopes.
type scope = func(*gorm.DB) *gorm.DB

// ifSet adds a condition on a field of the Query, unless it is zero, which means that it is not
// set.
func ifSet[V comparable](condition string, value V) scope {
	return func(tx *gorm.DB) *gorm.DB {
		var unset V
		if value == unset {
			return tx
		}
		return tx.Where(condition, value)
	}
}

// ofAmount selects sales t of that amount of their currency. The tables have minor units.
func ofAmount(amount decimal.Decimal) scope {
	return func(tx *gorm.DB) *gorm.DB {
		if amount.IsAbsent() {
			return tx
		}
		var conditions []string
		var values []any
		codes := money.CodesByDecimals()
		for _, decimals := range slices.Sorted(maps.Keys(codes)) { // always the same statement
			minor, err := amount.Integer(decimals)
			if err != nil { // no sale in these currencies has this amount
				continue
			}
			conditions = append(conditions, "(? IN (t.proceeds, t.control_total) AND t.currency_code IN ?)")
			values = append(values, minor, codes[decimals])
		}
		if len(conditions) == 0 {
			return tx.Where("1 = 0")
		}
		return tx.Where("("+strings.Join(conditions, " OR ")+")", values...)
	}
}

// between selects the rows from since on and before until. A zero time is no bound.
func between(column string, since, until time.Time) scope {
	return func(tx *gorm.DB) *gorm.DB {
		if !since.IsZero() {
			tx = tx.Where(column+" >= ?", tables.Microsecond(since))
		}
		if !until.IsZero() {
			tx = tx.Where(column+" < ?", tables.Microsecond(until))
		}
		return tx
	}
}

// found selects the rows of a table with this value, unless it is zero. The engine can find them
// in a large table. alias and table are as in Find.
func found[V comparable](r reader, alias, table, column string, value V) scope {
	return func(tx *gorm.DB) *gorm.DB {
		var unset V
		if value == unset {
			return tx
		}
		condition, arguments := r.db.Engine.Find(r.db.Prefix, alias, table, column, value)
		return tx.Where(alias+column+" = ?", value).Where(condition, arguments...)
	}
}

// ofOperation selects the rows of the operations o that match the query. id is the column with
// the IDs of the operations.
func (r reader) ofOperation(q backoffice.Query, id string) scope {
	return func(tx *gorm.DB) *gorm.DB {
		if q.RequestID != "" {
			operations := r.db.Reads.Model(&tables.OperationRow{}).Select("operation_id").Where("request_id <> ''").
				Scopes(found(r, "", "operations", "request_id", q.RequestID))
			tx = tx.Where(id+" IN (?)", operations)
		}
		return tx.Scopes(
			between("o.received_at", q.Since, q.Until),
			ifSet("o.subscription = ?", q.Subscription),
			ifSet("o.caller_id = ?", q.CallerID),
			ifSet(id+" = ?", batch.UUID(q.OperationID)),
			ifSet(id+" >= ?", batch.UUID(q.From)),
		)
	}
}

// newest selects the rows after After in the order Newest, from the ID since on. A zero ID is no
// bound. If one ID may have several rows, index is the column that orders them.
func newest(q backoffice.Query, id, index string, since operation.ID) scope {
	return func(tx *gorm.DB) *gorm.DB {
		if q.Order != backoffice.Newest {
			return tx
		}
		after := batch.UUID(q.After.OperationID)
		if index == "" {
			tx = tx.Scopes(ifSet(id+" < ?", after))
		} else if after != (batch.UUID{}) {
			tx = tx.Where(id+" <= ?", after).Where(id+" < ? OR "+index+" < ?", after, q.After.Index)
		}
		return tx.Scopes(ifSet(id+" >= ?", batch.UUID(since)), withinIDs(q, id))
	}
}

// withinIDs bounds the ID by time, so that the database can use the key. The conditions on the
// times of receipt and of settling are exact. A sale is received before it is settled.
func withinIDs(q backoffice.Query, id string) scope {
	return func(tx *gorm.DB) *gorm.DB {
		if !q.Since.IsZero() {
			tx = tx.Where(id+" >= ?", batch.UUID(backoffice.FirstID(q.Since.Add(-tables.IDSlack))))
		}
		for _, until := range []time.Time{q.Until, q.SettledUntil} {
			if !until.IsZero() {
				tx = tx.Where(id+" < ?", batch.UUID(backoffice.FirstID(until.Add(tables.IDSlack))))
			}
		}
		return tx
	}
}

// byID returns the columns of ORDER BY for a list that is sorted by ID in every order.
func byID(q backoffice.Query, id string) string {
	return orders{backoffice.ByKey: id, backoffice.Newest: id + " DESC"}.of(q)
}

// orders are the columns of ORDER BY in the orders that a list has.
type orders map[backoffice.Order]string

// of returns the columns for the query. ByKey replaces an order that the list does not have.
func (o orders) of(q backoffice.Query) string {
	return cmp.Or(o[q.Order], o[backoffice.ByKey])
}
