package tables

import (
	"gorm.io/gorm"

	"bankingapi/application/backoffice"
	"bankingapi/domain/fund"
)

// RulesKey returns the row of the rules without its value.
func RulesKey() PropertyRow { return PropertyRow{Name: RulesProperty} }

// RulesActIn reads the newest act that wrote rules. It is nil if there is none.
func (d *Database) RulesActIn(tx *gorm.DB) (*AuditRow, error) {
	rows, err := RowsOf(tx.Where("t.action IN ?", backoffice.RulesActs).Order("t.audit_id DESC").Limit(1), d.Audits.Table)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// ParseRules reads the value of the property.
func ParseRules(text string) (fund.Rules, error) {
	if text == "" {
		return fund.Rules{}, backoffice.ErrNoRules
	}
	return fund.ParseRules(text)
}
