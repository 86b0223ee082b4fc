package tables

import "bankingapi/domain/fund"

// HoldingRow is a row of the table holdings.
type HoldingRow struct {
	CustomerNo            int64  `gorm:"primaryKey"`
	IMKBCode              string `gorm:"primaryKey"`
	HolderCorporationName string `gorm:"primaryKey"`
	Units                 int64  `gorm:"not null"`
}

// NewHoldingRow returns the row of a holding.
func NewHoldingRow(h fund.Holding) HoldingRow {
	return HoldingRow{h.Key.CustomerNo, h.Key.IMKBCode, h.Key.HolderCorporationName, int64(h.Units)}
}

// Holding converts the row.
func (r *HoldingRow) Holding() (fund.Holding, error) {
	return fund.Holding{Key: holdingKey(r.CustomerNo, r.IMKBCode, r.HolderCorporationName), Units: fund.Units(r.Units)}, nil
}

func holdingKey(customerNo int64, imkbCode, holder string) fund.HoldingKey {
	return fund.HoldingKey{CustomerNo: customerNo, Fund: fund.Fund{IMKBCode: imkbCode, HolderCorporationName: holder}}
}
