package tables

import (
	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// ReversalRow is a row of the table reversals: a completed operation that was
// reversed.
type ReversalRow struct {
	OperationID batch.UUID    `gorm:"primaryKey"`
	ReversalID  batch.UUID    `gorm:"not null"`
	ReversedAt  batch.Instant `gorm:"not null"`
}

type reversals struct{ Statements[ReversalRow] }

// NewReversalRow returns the row of a reversal.
func NewReversalRow(r fund.Reversal) ReversalRow {
	return ReversalRow{batch.UUID(r.OperationID), batch.UUID(r.ID), batch.Instant{Time: r.At}}
}

// Reversal is the reversal of the row.
func (r *ReversalRow) Reversal() fund.Reversal {
	return fund.Reversal{OperationID: operation.ID(r.OperationID), ID: operation.ID(r.ReversalID), At: r.ReversedAt.Time}
}

// Load finds which of the operations are reversed. If two reverse one operation
// at the same moment, the key of the table lets one of them lose that race.
func (r *reversals) Load(ids []operation.ID, book *fund.Book) batch.Request {
	keys := Convert(ids, func(id operation.ID) ReversalRow { return ReversalRow{OperationID: batch.UUID(id)} })
	return r.Find.Request(keys, func(i int, _ *ReversalRow) error {
		book.LoadReversal(ids[i])
		return nil
	})
}
