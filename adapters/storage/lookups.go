package storage

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// lookups is backoffice.Lookups.
type lookups struct{ *database }

// Operation is as backoffice.Lookups promises.
func (l lookups) Operation(ctx context.Context, id operation.ID) (found backoffice.Operation, err error) {
	notFound := false
	err = l.snapshot(ctx, func(tx *gorm.DB) error {
		if err := l.read(tx, id, &found); err != nil {
			return err
		}
		if notFound = len(found.Sales) == 0 && len(found.Postings) == 0; notFound || len(found.Sales) == 0 {
			return nil
		}
		first := &found.Sales[0]
		if first.Header.CallerID == "" {
			return nil
		}
		key := idempotency.Key{CallerID: first.Header.CallerID, Subscription: first.Subscription, Operation: operation.BuyFundFromCustomer}
		record, err := l.record(tx, key)
		found.Record = record
		return err
	})
	if err == nil && notFound {
		err = backoffice.ErrNotFound
	}
	return found, err
}

// OperationOf is as backoffice.Lookups promises.
func (l lookups) OperationOf(ctx context.Context, key idempotency.Key) (found backoffice.Operation, err error) {
	err = l.snapshot(ctx, func(tx *gorm.DB) error {
		record, err := l.record(tx, key)
		if err != nil || record == nil {
			return err
		}
		found.Record = record
		return l.read(tx, record.ID, &found)
	})
	if err == nil && found.Record == nil {
		err = backoffice.ErrNotFound
	}
	return found, err
}

// read reads the sales and postings of an operation.
func (l lookups) read(tx *gorm.DB, id operation.ID, into *backoffice.Operation) error {
	into.ID = id
	var sales []SaleRow
	var postings []PostingRow
	of := l.Dialect.Bind(batch.UUID(id))
	if err := tx.Table(l.sales.Name).Where("operation_id = ?", of).Order("position").Find(&sales).Error; err != nil {
		return err
	}
	if err := tx.Table(l.postings.all.Name+" AS t").Where("operation_id = ?", of).Order("position, leg").Find(&postings).Error; err != nil {
		return err
	}
	for i := range sales {
		entry, err := sales[i].entry()
		if err != nil {
			return err
		}
		into.Sales = append(into.Sales, entry)
	}
	for i := range postings {
		entry, err := postings[i].entry()
		if err != nil {
			return err
		}
		into.Postings = append(into.Postings, entry)
	}
	return nil
}

// record returns the record of a CallerId, or nil if nothing is stored.
func (l lookups) record(tx *gorm.DB, key idempotency.Key) (*idempotency.Record, error) {
	var rows []OperationRow
	err := tx.Table(l.operations.Name).Where("caller_id = ? AND subscription = ? AND operation = ?",
		key.CallerID, key.Subscription, int64(key.Operation)).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	record, err := rows[0].record(key)
	return &record, err
}

// Reversals is as backoffice.Lookups promises.
func (l lookups) Reversals(ctx context.Context, ids []operation.ID) (map[operation.ID]fund.Reversal, error) {
	all := make(map[operation.ID]fund.Reversal)
	if len(ids) == 0 {
		return all, nil
	}
	of := convert(ids, func(id operation.ID) any { return l.Dialect.Bind(batch.UUID(id)) })
	for reversal, err := range stream(ctx, l.database, l.reversals.Table, (*ReversalRow).reversal, func(tx *gorm.DB) *gorm.DB {
		return tx.Where("operation_id IN ?", of)
	}) {
		if err != nil {
			return nil, err
		}
		all[reversal.OperationID] = reversal
	}
	return all, nil
}

// DueDays is as backoffice.Lookups promises. The index of due sales has all that it
// reads.
func (l lookups) DueDays(ctx context.Context, until day.Day, limit int) (days []backoffice.DueDay, err error) {
	var rows []struct {
		SelectedDate      batch.Day
		Operations, Sales int64
	}
	due := l.reads.Table(l.sales.Name).Select("selected_date, operation_id").Where(recorded+" AND selected_date <= ?", until.String()).
		Order("selected_date, operation_id, position")
	err = l.snapshot(ctx, func(tx *gorm.DB) error {
		return tx.Table("(?) due", limited(due, backoffice.Query{Limit: limit})).
			Select("selected_date, COUNT(DISTINCT operation_id) AS operations, COUNT(*) AS sales").
			Group("selected_date").Order("selected_date").Find(&rows).Error
	})
	for _, row := range rows {
		of, err := day.Parse(string(row.SelectedDate))
		if err != nil {
			return nil, err
		}
		days = append(days, backoffice.DueDay{Day: of, Operations: row.Operations, Sales: row.Sales})
	}
	return days, err
}

// Received is as backoffice.Lookups promises. It reads ranges of primary keys.
func (l lookups) Received(ctx context.Context, since, until time.Time) (r backoffice.Received, err error) {
	bound := func(at time.Time) any { return l.Dialect.Bind(batch.UUID(backoffice.FirstID(at))) }
	within := func(tx *gorm.DB, table string) *gorm.DB {
		return tx.Table(table).Where("operation_id >= ? AND operation_id < ?", bound(since), bound(until))
	}
	var sold []struct {
		IMKBCode, CurrencyCode string
		State                  operation.State
		Sales, Proceeds        int64
	}
	var refused []struct {
		Subscription, Faults string
		Refused              int64
	}
	err = l.snapshot(ctx, func(tx *gorm.DB) error {
		return errors.Join(
			within(tx, l.sales.Name).Select("imkb_code, currency_code, state, COUNT(*) AS sales, CAST(COALESCE(SUM(proceeds), 0) AS BIGINT) AS proceeds").
				Group("imkb_code, currency_code, state").Find(&sold).Error,
			within(tx, l.refusals.Name).Select("subscription, faults, COUNT(*) AS refused").Group("subscription, faults").Find(&refused).Error,
			within(tx, l.notifications.Name).Count(&r.Messages).Error)
	})
	r.Add(backoffice.Received{}) // makes its maps
	for _, of := range sold {
		currency, _ := money.ParseCurrency(of.CurrencyCode) // it was checked when it was stored
		r.Sales[backoffice.SalesKey{IMKBCode: of.IMKBCode, Currency: currency, State: of.State}] = backoffice.SalesSum{Sales: of.Sales, Proceeds: of.Proceeds}
	}
	for _, of := range refused {
		code := ""
		if faults := parseFaults(of.Faults); len(faults) > 0 {
			code = faults[0].Code
		}
		r.Refused[backoffice.RefusedKey{Subscription: of.Subscription, Code: code}] += of.Refused
	}
	return r, err
}
