package tables

import (
	"bankingapi/domain/fund"
)

// HoldingRow is a row of the table holdings.
type HoldingRow struct {
	CustomerNo            int64  `gorm:"primaryKey"`
	IMKBCode              string `gorm:"primaryKey"`
	HolderCorporationName string `gorm:"primaryKey"`
	Units                 int64  `gorm:"not null"`
}

// HoldingKey is the row of a holding without its units.
func HoldingKey(k fund.HoldingKey) HoldingRow {
	return HoldingRow{CustomerNo: k.CustomerNo, IMKBCode: k.IMKBCode, HolderCorporationName: k.HolderCorporationName}
}

// NewHoldingRow returns the row of a holding.
func NewHoldingRow(h fund.Holding) HoldingRow {
	r := HoldingKey(h.Key)
	r.Units = int64(h.Units)
	return r
}

// Holding is the holding of the row.
func (r *HoldingRow) Holding() (fund.Holding, error) {
	return fund.Holding{
		Key: fund.HoldingKey{
			CustomerNo: r.CustomerNo,
			Fund:       fund.Fund{IMKBCode: r.IMKBCode, HolderCorporationName: r.HolderCorporationName},
		},
		Units: fund.Units(r.Units),
	}, nil
}
