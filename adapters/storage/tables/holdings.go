package tables

import (
	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fund"
)

// HoldingRow is a row of the table holdings.
type HoldingRow struct {
	CustomerNo            int64  `gorm:"primaryKey"`
	IMKBCode              string `gorm:"primaryKey"`
	HolderCorporationName string `gorm:"primaryKey"`
	Units                 int64  `gorm:"not null"`
}

func openHoldings(d *Database) {
	t := &d.Holdings
	open(d, t, Relied{Rights: addAndChange, Checks: []string{"units >= 0"}})
	t.Add = t.Insert().Racing()
	t.Find = t.Table.Find(batch.ForUpdate, "", "units")
	t.Put = t.Upsert("units")
	d.ReadHolding = t.Table.Find(batch.NoLock, "", "units")
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
