package storage

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

func holdingKey(k fund.HoldingKey) HoldingRow {
	return HoldingRow{CustomerNo: k.CustomerNo, IMKBCode: k.IMKBCode, HolderCorporationName: k.HolderCorporationName}
}

// NewHoldingRow returns the row of a holding.
func NewHoldingRow(h fund.Holding) HoldingRow {
	r := holdingKey(h.Key)
	r.Units = int64(h.Units)
	return r
}

func (r *HoldingRow) holding() (fund.Holding, error) {
	return fund.Holding{
		Key: fund.HoldingKey{
			CustomerNo: r.CustomerNo,
			Fund:       fund.Fund{IMKBCode: r.IMKBCode, HolderCorporationName: r.HolderCorporationName},
		},
		Units: fund.Units(r.Units),
	}, nil
}

// convert converts all values.
func convert[T, R any](values []T, row func(T) R) []R {
	rows := make([]R, len(values))
	for i := range values {
		rows[i] = row(values[i])
	}
	return rows
}
