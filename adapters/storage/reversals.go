package storage

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

type reversals struct{ table[ReversalRow] }

func newReversalRow(r fund.Reversal) ReversalRow {
	return ReversalRow{batch.UUID(r.OperationID), batch.UUID(r.ID), batch.Instant{Time: r.At}}
}

func (r *ReversalRow) reversal() fund.Reversal {
	return fund.Reversal{OperationID: operation.ID(r.OperationID), ID: operation.ID(r.ReversalID), At: r.ReversedAt.Time}
}

// load finds which of the operations are reversed. If two reverse one operation
// at the same moment, the key of the table lets one of them lose that race.
func (r *reversals) load(ids []operation.ID, book *fund.Book) batch.Request {
	keys := convert(ids, func(id operation.ID) ReversalRow { return ReversalRow{OperationID: batch.UUID(id)} })
	return r.find.Request(keys, func(i int, _ *ReversalRow) error {
		book.LoadReversal(ids[i])
		return nil
	})
}
