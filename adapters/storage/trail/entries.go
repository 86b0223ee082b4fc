// Package trail keeps the batches and the hashes of the log, and passes what is stored to package
// proof, which compares it with the log for verify.
package trail

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
	"bankingapi/domain/push"
)

// trailWriter adds the leaves of a transaction to the transaction, as one row. It reads
// nothing, so writers do not wait for each other.
type trailWriter struct {
	addBatch *batch.Statement[tables.TrailBatchRow]
	// place and hash are used to seal.
	place *batch.Statement[tables.TrailBatchRow]
	hash  *batch.Statement[tables.TrailHashRow]
	// maker is nil while no trail is kept. base is emptyLog until the writer follows the log.
	maker atomic.Pointer[batchMaker]
	base  atomic.Pointer[proof.Base]
}

// batchMaker holds the arguments of trailLog.Use.
type batchMaker struct {
	keys   *proof.Keys
	newID  func() operation.ID
	mended atomic.Pointer[time.Time] // when lost hashes were last written again; nil if never
}

// emptyLog is the state of a log without batches.
var emptyLog = proof.Base{Root: new(proof.Tree).Root()}

// Request writes the entries as one batch.
func (w *trailWriter) Request(entries ...proof.Entry) batch.Request {
	maker := w.maker.Load()
	if maker == nil || len(entries) == 0 {
		return batch.Request{}
	}
	return w.addBatch.Request([]tables.TrailBatchRow{w.row(maker, entries, proof.Provenance{})})
}

// later writes the entries that work returns. The leaves of 256 sales take 0.6 ms. The database
// runs the other statements meanwhile.
func (w *trailWriter) later(maker *batchMaker, work func() []proof.Entry) batch.Request {
	return w.addBatch.Later(func() tables.TrailBatchRow { return w.row(maker, work(), proof.Provenance{}) })
}

// row returns the batch of the entries. from says how they came into the log.
func (w *trailWriter) row(maker *batchMaker, entries []proof.Entry, from proof.Provenance) tables.TrailBatchRow {
	b := proof.Batch{ID: maker.newID(), Entries: entries}
	encoded := proof.AppendEntries([]byte{}, entries)
	from.Base = *w.base.Load()
	return tables.TrailBatchRow{BatchID: batch.UUID(b.ID), Entries: encoded, MAC: maker.keys.MAC(b.Record(), encoded, from)}
}

// Writer writes the entries of what is decided.
type Writer struct {
	DB *tables.Database
	*trailWriter
}

// NewWriter returns a writer that keeps no trail until Use is called.
func NewWriter(d *tables.Database) Writer {
	w := &trailWriter{
		addBatch: d.TrailBatches.Insert(), place: d.TrailBatches.Update("position"), hash: d.TrailHashes.Insert(),
	}
	w.base.Store(&emptyLog)
	return Writer{d, w}
}

// Keys returns the keys that Use received, or nil while no trail is kept.
func (w *trailWriter) Keys() *proof.Keys {
	if maker := w.maker.Load(); maker != nil {
		return maker.keys
	}
	return nil
}

// BookEntryWrite writes the entries of what a settled book decided.
func (w *trailWriter) BookEntryWrite(c *fund.Changes, register *idempotency.Register) batch.Request {
	maker := w.maker.Load()
	if maker == nil || len(c.Sales)+len(c.Settled)+len(c.Refusals)+len(c.Reversals) == 0 {
		return batch.Request{} // do not allocate a closure
	}
	return w.later(maker, func() []proof.Entry { return proof.OfBook(c, register) })
}

// InboxEntryWrite writes the entries of what an inbox accepted.
func (w *trailWriter) InboxEntryWrite(accepted []push.Accepted) batch.Request {
	maker := w.maker.Load()
	if maker == nil || len(accepted) == 0 {
		return batch.Request{} // do not allocate a closure
	}
	return w.later(maker, func() []proof.Entry { return proof.OfInbox(maker.keys, accepted) })
}

// NewSum returns an empty sum, or nil while no trail is kept.
func (w *trailWriter) NewSum() *proof.Sum {
	if keys := w.Keys(); keys != nil {
		return proof.NewSum(keys)
	}
	return nil
}

// Changes is what an act has changed, beside operations.
type Changes struct {
	// Entries are the entries of prices and subscriptions.
	Entries []proof.Entry
	// ID is the ID of the postings in Adjusted, which the act shares unless a host chose another.
	ID               operation.ID
	Adjusted, Erased *proof.Sum
}

// ActWrites writes the act that ctx carries, if any. It also writes the entries of the act and
// of what it has changed. more is added to the details of the act.
func (d Writer) ActWrites(ctx context.Context, c Changes, more ...string) []batch.Request {
	act, hasAct := audit.From(ctx)
	entries, adjusted := c.Entries, c.Adjusted
	if adjusted.Rows() > 0 && (!hasAct || act.ID != c.ID) {
		l := proof.OfAct(c.ID, nil, adjusted, nil)
		entries, adjusted = append(entries, l.Entry()), nil
	}
	var rows []tables.AuditRow
	if hasAct {
		act.Details = strings.TrimPrefix(strings.Join(append([]string{act.Details}, more...), "; "), "; ")
		l := proof.OfAct(act.ID, &act, adjusted, c.Erased)
		entries = append(entries, l.Entry())
		rows = []tables.AuditRow{tables.NewAuditRow(&act)}
	}
	return batch.NonEmpty(d.DB.Audits.Add.Request(rows), d.Request(entries...))
}
