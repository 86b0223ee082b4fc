package tables

import (
	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// ReversalRow is a row of the table reversals: a completed operation that was reversed.
type ReversalRow struct {
	OperationID batch.UUID    `gorm:"primaryKey"`
	ReversalID  batch.UUID    `gorm:"not null"`
	ReversedAt  batch.Instant `gorm:"not null"`
}

// NewReversalRow returns the row of a reversal.
func NewReversalRow(r fund.Reversal) ReversalRow {
	return ReversalRow{batch.UUID(r.OperationID), batch.UUID(r.ID), batch.Instant{Time: r.At}}
}

// Reversal converts the row.
func (r *ReversalRow) Reversal() fund.Reversal {
	return fund.Reversal{OperationID: operation.ID(r.OperationID), ID: operation.ID(r.ReversalID), At: r.ReversedAt.Time}
}
