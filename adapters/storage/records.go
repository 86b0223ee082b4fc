package storage

import (
	"context"
	"iter"
	"strings"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// records is backoffice.Records and backoffice.Reversals.
type records struct{ *database }

// Refusal is as backoffice.Records promises.
func (r records) Refusal(ctx context.Context, id operation.ID) (operation.Refusal, error) {
	return one(ctx, r.database, r.refusals.Table, id, (*RefusalRow).refusal)
}

// Reversal is as backoffice.Records promises.
func (r records) Reversal(ctx context.Context, id operation.ID) (fund.Reversal, error) {
	return one(ctx, r.database, r.reversals.Table, id, (*ReversalRow).reversal)
}

// Reversals is as backoffice.Reversals promises.
func (r records) Reversals(ctx context.Context, ids []operation.ID) (map[operation.ID]fund.Reversal, error) {
	all := make(map[operation.ID]fund.Reversal)
	if len(ids) == 0 {
		return all, nil
	}
	of := convert(ids, func(id operation.ID) any { return r.Dialect.Bind(batch.UUID(id)) })
	for reversal, err := range stream(ctx, r.database, r.reversals.Table, (*ReversalRow).reversal, func(tx *gorm.DB) *gorm.DB {
		return tx.Where("operation_id IN ?", of)
	}) {
		if err != nil {
			return nil, err
		}
		all[reversal.OperationID] = reversal
	}
	return all, nil
}

// one finds the row of an operation.
func one[R, T any](ctx context.Context, d *database, t *batch.Table[R], id operation.ID, entry func(*R) (T, error)) (found T, err error) {
	for value, err := range stream(ctx, d, t, entry, func(tx *gorm.DB) *gorm.DB {
		return tx.Where("operation_id = ?", d.Dialect.Bind(batch.UUID(id)))
	}) {
		return value, err
	}
	return found, backoffice.ErrNotFound
}

// decisions is a query of all decided operations. Every operation with sales has
// a sale at position 0. A notification that was stored before is not stored
// again, so that an operation of notifications may begin at a later position. The
// conditions stand inside, where each table has its indexes.
const decisions = `(
SELECT operation_id, 2 AS operation, subscription, app_key, channel, teller_name, caller_id, channel_session_id, channel_request_id,
 request_id, received_at, state,
 CASE WHEN state = 8 THEN (SELECT MAX(r.refusal) FROM {{prefix}}sales r WHERE r.operation_id = s.operation_id) ELSE '' END AS faults
FROM {{prefix}}sales s WHERE position = 0{{and}}
UNION ALL
SELECT operation_id, 1, MIN(subscription), MIN(app_key), MIN(channel), MIN(teller_name), MIN(caller_id), MIN(channel_session_id), MIN(channel_request_id),
 MIN(request_id), MIN(received_at), 2, ''
FROM {{prefix}}notifications WHERE TRUE{{and}} GROUP BY operation_id
UNION ALL
SELECT operation_id, operation, subscription, app_key, channel, teller_name, caller_id, channel_session_id, channel_request_id,
 request_id, received_at, state, faults
FROM {{prefix}}refusals WHERE TRUE{{and}}
) d`

// Decisions is as backoffice.Records promises.
func (r records) Decisions(ctx context.Context, f backoffice.Filter) iter.Seq2[backoffice.Decision, error] {
	return stream(ctx, r.database, r.refusals.Table, (*RefusalRow).decision, func(tx *gorm.DB) *gorm.DB {
		query, arguments := strings.ReplaceAll(decisions, "{{prefix}}", r.prefix), []any(nil)
		for _, table := range []string{r.sales.Name, r.notifications.Name, r.refusals.Name} {
			and, more := r.conditions(table, f)
			query, arguments = strings.Replace(query, "{{and}}", and, 1), append(arguments, more...)
		}
		tx = tx.Table(query, arguments...)
		if f.State != 0 {
			tx = tx.Where("state = ?", int64(f.State))
		}
		return tx.Order("operation_id")
	})
}

// Acts is as backoffice.Records promises.
func (r records) Acts(ctx context.Context, f backoffice.Filter) iter.Seq2[audit.Act, error] {
	return stream(ctx, r.database, r.audits.Table, (*AuditRow).act, func(tx *gorm.DB) *gorm.DB {
		tx = tx.Select(columnsOf(r.audits.Name, r.audits.Table))
		return r.between(tx, "at", f).Order("audit_id")
	})
}

// conditions returns the conditions of the filter on the operations of a table,
// each after AND.
func (d *database) conditions(table string, f backoffice.Filter) (and string, arguments []any) {
	add := func(condition string, set bool, argument any) {
		if set {
			and += " AND " + condition
			arguments = append(arguments, d.Dialect.Bind(argument))
		}
	}
	add("received_at >= ?", !f.Since.IsZero(), microsecond(f.Since))
	add("received_at < ?", !f.Until.IsZero(), microsecond(f.Until))
	add("subscription = ?", f.Subscription != "", f.Subscription)
	add("caller_id = ?", f.CallerID != "", f.CallerID)
	if f.RequestID != "" {
		condition, more := d.found(table, "request_id", f.RequestID)
		and += " AND request_id <> '' AND " + condition // as in the index of refusals
		arguments = append(arguments, more...)
	}
	add("operation_id = ?", f.OperationID != (operation.ID{}), batch.UUID(f.OperationID))
	add("operation_id >= ?", f.From != (operation.ID{}), batch.UUID(f.From))
	return and, arguments
}

// ofOperation narrows to the operations that fit the filter.
func (d *database) ofOperation(tx *gorm.DB, table string, f backoffice.Filter) *gorm.DB {
	if and, arguments := d.conditions(table, f); and != "" {
		tx = tx.Where(strings.TrimPrefix(and, " AND "), arguments...)
	}
	return tx
}

func (r *RefusalRow) refusal() (operation.Refusal, error) {
	return operation.Refusal{
		ID: operation.ID(r.OperationID), Operation: operation.Name(r.Operation), Subscription: r.Subscription, //nolint:gosec // written by us
		Header: r.Header.header(r.RequestID), ReceivedAt: r.ReceivedAt.Time, Faults: parseFaults(r.Faults),
	}, nil
}

func (r *RefusalRow) decision() (backoffice.Decision, error) {
	d := backoffice.Decision{
		ID: operation.ID(r.OperationID), Operation: operation.Name(r.Operation), Subscription: r.Subscription, //nolint:gosec // written by us
		Header: r.Header.header(r.RequestID), ReceivedAt: r.ReceivedAt.Time, State: operation.State(r.State), //nolint:gosec // written by us
	}
	for _, f := range parseFaults(r.Faults) {
		d.Codes = append(d.Codes, f.Code)
	}
	return d, nil
}
