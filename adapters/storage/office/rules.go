package office

import (
	"bytes"
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// rules implements backoffice.RuleBook.
type rules struct {
	db      *tables.Database
	journal journal.Journal
}

func (r rules) Rules(ctx context.Context) (fund.Rules, error) {
	text, err := r.db.PropertyIn(r.db.Query(ctx), tables.RulesProperty)
	if err != nil {
		return fund.Rules{}, r.db.Translate(err)
	}
	return tables.ParseRules(text)
}

// ChangeRules locks the row of the rules, or adds it. So changes wait for each other.
func (r rules) ChangeRules(ctx context.Context, change func(*fund.Rules, bool) (fund.Rules, error)) error {
	err := r.db.Ready(ctx)
	if err != nil {
		return err
	}
	return r.db.Change(ctx, func(tx *gorm.DB) error {
		var current *fund.Rules
		row := tables.RulesKey()
		err := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row).Error
		if err != nil {
			return err
		}
		err = tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Take(&row).Error
		if err != nil {
			return err
		}
		if row.Value != "" {
			parsed, err := fund.ParseRules(row.Value)
			if err != nil {
				return err
			}
			current = &parsed
		}
		var stored []int64
		err = tx.Model(&tables.OperationRow{}).Limit(1).Pluck("state", &stored).Error
		if err != nil {
			return err
		}
		changed, err := change(current, len(stored) > 0)
		if err != nil {
			return batch.FailureError{Failure: batch.Refused, Cause: err}
		}
		if changed.String() == row.Value {
			return nil
		}
		err = r.isNewest(ctx, tx)
		if err != nil {
			return err
		}
		err = tx.Model(&row).Update("value", changed.String()).Error
		if err != nil {
			return err
		}
		return r.db.Send(ctx, tx, r.journal.ActWrites(actOf(ctx, changed), journal.Changes{})...)
	})
}

// isNewest returns an error if the act of ctx would not be the newest act of the rules.
func (r rules) isNewest(ctx context.Context, tx *gorm.DB) error {
	newest, err := r.db.RulesActIn(tx)
	if err != nil || newest == nil {
		return err
	}
	act, ok := audit.From(ctx)
	if ok && bytes.Compare(newest.AuditID[:], act.ID[:]) >= 0 {
		return batch.FailureError{Failure: batch.Refused, Cause: fault.New(fault.Unavailable,
			"The rules were changed at this moment, or by a machine whose clock is ahead. Look at the rules, and try again.")}
	}
	return nil
}

// actOf gives the act of ctx the rules as its object.
func actOf(ctx context.Context, changed fund.Rules) context.Context {
	act, ok := audit.From(ctx)
	if !ok {
		return ctx
	}
	act.Object = changed.String()
	return audit.With(ctx, act)
}
