// Package trail makes the leaves of rows, keeps the log of their batches, and compares rows and
// log for verify.
package trail

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/read"
	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// trailWriter adds the leaves of a transaction to the transaction, as one row. It reads
// nothing, so writers do not wait for each other.
type trailWriter struct {
	addBatch *batch.Statement[tables.TrailBatchRow]
	// place, hash and advance are used to seal.
	place   *batch.Statement[tables.TrailBatchRow]
	hash    *batch.Statement[tables.TrailHashRow]
	advance *batch.Statement[tables.TrailLogRow]
	// maker is nil while no trail is kept. base is emptyLog until the writer follows the log.
	maker   atomic.Pointer[batchMaker]
	base    atomic.Pointer[trail.Base]
	buffers sync.Pool // of *[]byte, for leaves
}

// batchMaker holds the arguments of trailLog.Use.
type batchMaker struct {
	keys   *trail.Keys
	newID  func() operation.ID
	mended atomic.Pointer[time.Time] // when lost hashes were last written again; nil if never
}

// emptyLog is the state of a log without batches.
var emptyLog = trail.Base{Root: new(trail.Tree).Root()}

// Request writes the entries as one batch.
func (w *trailWriter) Request(entries ...trail.Entry) batch.Request {
	maker := w.maker.Load()
	if maker == nil || len(entries) == 0 {
		return batch.Request{}
	}
	return w.addBatch.Request([]tables.TrailBatchRow{w.row(maker, entries, false)})
}

// later writes the entries that work returns. The leaves of 256 sales take 0.6 ms. The database
// runs the other statements meanwhile.
func (w *trailWriter) later(maker *batchMaker, work func() []trail.Entry) batch.Request {
	return w.addBatch.Later(func() tables.TrailBatchRow { return w.row(maker, work(), false) })
}

// row returns the batch of the entries. adopted means that their rows are older than the trail.
func (w *trailWriter) row(maker *batchMaker, entries []trail.Entry, adopted bool) tables.TrailBatchRow {
	b := trail.Batch{ID: maker.newID(), Entries: entries}
	encoded := trail.AppendEntries([]byte{}, entries)
	provenance := trail.Provenance{Base: *w.base.Load(), IsAdopted: adopted, IsKeyed: true}
	return tables.TrailBatchRow{BatchID: batch.UUID(b.ID), Entries: encoded, MAC: maker.keys.MAC(b.Record(), encoded, provenance)}
}

// buffer lends memory to do. do returns it, possibly grown.
func (w *trailWriter) buffer(do func([]byte) []byte) {
	b := w.buffers.Get().(*[]byte)
	*b = do(*b)
	w.buffers.Put(b)
}

// Writer makes the leaves of rows and writes their entries.
type Writer struct {
	*tables.Database
	*trailWriter
}

// NewWriter returns a writer that keeps no trail until Use is called.
func NewWriter(d *tables.Database) Writer {
	w := &trailWriter{
		addBatch: d.TrailBatches.Insert(), place: d.TrailBatches.Update("position"), hash: d.TrailHashes.Insert(), advance: d.TrailLogs.Update("size", "checkpoint"),
		buffers: sync.Pool{New: func() any { return new([]byte) }},
	}
	w.base.Store(&emptyLog)
	return Writer{d, w}
}

// Keys returns the keys that Use received, or nil while no trail is kept.
func (w *trailWriter) Keys() *trail.Keys {
	if maker := w.maker.Load(); maker != nil {
		return maker.keys
	}
	return nil
}

// BookRows has the rows that a settled book adds and settles.
type BookRows struct {
	Added, Answered []tables.OperationRow
	Sold, Settled   []tables.SaleRow
	Units, Money    []tables.PostingRow
	Refused         []tables.RefusalRow
	RefusedSales    []tables.SaleRow
	Reversed        []tables.ReversalRow
}

// BookEntryWrite writes the entries of the rows. Every row has an entry, except records that
// change: the sales that change with them have the entry.
func (d Writer) BookEntryWrite(rows *BookRows) batch.Request {
	n := len(rows.Added) + len(rows.Sold) + len(rows.Settled) + len(rows.Units) + len(rows.Money) + len(rows.Refused) + len(rows.Reversed)
	maker := d.maker.Load()
	if maker == nil || n == 0 {
		return batch.Request{} // do not allocate a closure
	}
	return d.later(maker, func() []trail.Entry { return d.bookEntries(maker.keys, rows) })
}

// bookEntries returns the entries of the operations in the rows. The sales of an operation are
// consecutive. Its postings are looked up by its ID: due and new operations are separate in the
// sales, but mixed in the postings.
func (d Writer) bookEntries(keys *trail.Keys, rows *BookRows) (entries []trail.Entry) {
	records := make(map[batch.UUID]*tables.OperationRow, len(rows.Added)+len(rows.Answered))
	for _, group := range [][]tables.OperationRow{rows.Added, rows.Answered} {
		for i := range group {
			records[group[i].OperationID] = &group[i]
		}
	}
	units, money := byOperation(rows.Units), byOperation(rows.Money)
	entries = make([]trail.Entry, 0, len(rows.Sold)+len(rows.Settled)+len(rows.Refused))
	d.buffer(func(buffer []byte) []byte {
		add := func(kind trail.Kind, stored *read.StoredOperation) {
			l := d.DecisionLeaf(buffer, kind, stored)
			entries = append(entries, tables.EntryOf(kind, operation.ID(stored.ID), l))
			buffer = l.Memory()
		}
		addSales := func(kind trail.Kind, sales []tables.SaleRow) {
			for len(sales) > 0 {
				id := sales[0].OperationID
				stored := read.StoredOperation{ID: id, Record: records[id], Units: units[id], Money: money[id]}
				stored.Sales, sales = cut(sales, id, saleOperation)
				delete(units, id)
				delete(money, id)
				delete(records, id)
				add(kind, &stored)
			}
		}
		addSales(trail.Decided, rows.Sold)
		addSales(trail.Settled, rows.Settled)
		asked := rows.RefusedSales
		for i := range rows.Refused {
			id := rows.Refused[i].OperationID
			stored := read.StoredOperation{ID: id, Record: records[id], Refusal: &rows.Refused[i]}
			stored.Asked, asked = cut(asked, id, saleOperation)
			add(trail.Decided, &stored)
			delete(records, id)
		}
		for i := range rows.Added {
			if record := &rows.Added[i]; records[record.OperationID] == record {
				add(trail.Answered, &read.StoredOperation{ID: record.OperationID, Record: record})
			}
		}
		return buffer
	})
	for i := range rows.Reversed {
		entries = append(entries, d.Reversals.Leaves.Entry(&rows.Reversed[i]))
	}
	for id, postings := range money { // a correction may post units, money or both
		units[id] = append(units[id], postings...)
	}
	for _, id := range slices.SortedFunc(maps.Keys(units), tables.CompareIDs) {
		postings := units[id]
		id := operation.ID(id)
		entries = append(entries, tables.EntryOf(trail.Posted, id, d.Postings.Leaves.SumOf(keys, id, postings)))
	}
	return entries
}

func saleOperation(r *tables.SaleRow) batch.UUID       { return r.OperationID }
func postingOperation(r *tables.PostingRow) batch.UUID { return r.OperationID }

// cut splits off the rows of an operation from the beginning.
func cut[R any](rows []R, id batch.UUID, operationOf func(*R) batch.UUID) (first, rest []R) {
	n := 0
	for n < len(rows) && operationOf(&rows[n]) == id {
		n++
	}
	return rows[:n:n], rows[n:]
}

// byOperation groups postings by their operation.
func byOperation(rows []tables.PostingRow) map[batch.UUID][]tables.PostingRow {
	groups := make(map[batch.UUID][]tables.PostingRow, len(rows))
	for len(rows) > 0 {
		var group []tables.PostingRow
		id := rows[0].OperationID
		if group, rows = cut(rows, id, postingOperation); groups[id] != nil {
			group = append(groups[id], group...)
		}
		groups[id] = group
	}
	return groups
}

// DecisionLeaf encodes a decision.
func (d Writer) DecisionLeaf(buffer []byte, kind trail.Kind, stored *read.StoredOperation) trail.Leaf {
	l := trail.NewLeaf(buffer, kind, operation.ID(stored.ID))
	if stored.Twice { // the service never writes such a leaf
		l.BeginRow("twice")
		l.EndRow()
	}
	if stored.Record != nil {
		tables.Encode(&l, "operations", d.Operations.Table, stored.Record)
	}
	if stored.Refusal != nil {
		tables.Encode(&l, "refusals", d.Refusals.Table, stored.Refusal)
	}
	encode(&l, "refused_sales", d.RefusedSales.Table, stored.Asked)
	encode(&l, "sales", d.Sales.Table, stored.Sales)
	encode(&l, "postings", d.Postings.Table, stored.Units)
	encode(&l, "postings", d.Postings.Table, stored.Money)
	return l
}

func encode[R any](l *trail.Leaf, name string, t *batch.Table[R], rows []R) {
	for i := range rows {
		tables.Encode(l, name, t, &rows[i])
	}
}

// NotificationLeaf encodes a notification, with a keyed hash of a digest instead of its texts.
func (d Writer) NotificationLeaf(buffer []byte, keys *trail.Keys, row *tables.NotificationRow) trail.Leaf {
	l := trail.NewLeaf(buffer, trail.Notified, operation.ID(row.OperationID))
	l.BeginRow("notifications")
	l.Bytes("keyed_digest", keys.Text(row.Digest))
	batch.Encode(d.Notifications.Table, row, &l, tables.Personal...)
	l.EndRow()
	return l
}

// InboxEntryWrite writes the entries of accepted notifications, and of the records of their
// operations.
func (d Writer) InboxEntryWrite(records []tables.OperationRow, rows []tables.NotificationRow) batch.Request {
	maker := d.maker.Load()
	if maker == nil || len(records)+len(rows) == 0 {
		return batch.Request{} // do not allocate a closure
	}
	return d.later(maker, func() []trail.Entry { return d.inboxEntries(maker.keys, records, rows) })
}

func (d Writer) inboxEntries(keys *trail.Keys, records []tables.OperationRow, rows []tables.NotificationRow) []trail.Entry {
	erased, entries := tables.ErasedDigests(d.MessagesKey()), make([]trail.Entry, 0, len(records)+len(rows))
	d.buffer(func(buffer []byte) []byte {
		for i := range records {
			l := d.Operations.Leaves.Leaf(buffer, &records[i])
			entries = append(entries, tables.EntryOf(trail.Answered, operation.ID(records[i].OperationID), l))
			buffer = l.Memory()
		}
		for i := range rows {
			l := d.NotificationLeaf(buffer, keys, &rows[i])
			entries = append(entries, trail.Entry{
				Kind: trail.Notified, ID: operation.ID(rows[i].OperationID), Digest: tables.ShortDigest(erased(rows[i].Digest)), Leaf: l.Hash(),
			})
			buffer = l.Memory()
		}
		return buffer
	})
	return entries
}

// entryDigest returns the keyed digest of an entry. Older batches have digests without a key.
func (d Writer) entryDigest(row *tables.TrailBatchRow, e *trail.Entry) trail.Hash {
	if trail.HasKeyedDigests(row.MAC) || e.Kind != trail.Notified {
		return e.Digest
	}
	return tables.ShortDigest(tables.ErasedDigests(d.MessagesKey())(e.Digest[:]))
}

// NewSum returns an empty sum for an import, or nil while no trail is kept.
func (w *trailWriter) NewSum() *trail.Sum {
	if keys := w.Keys(); keys != nil {
		return trail.NewSum(keys)
	}
	return nil
}

// ImportEntryWrite writes the entry of an import. It writes nothing if the import posted
// nothing.
func (w *trailWriter) ImportEntryWrite(id operation.ID, sum *trail.Sum) []batch.Request {
	if sum == nil || sum.Rows() == 0 {
		return nil
	}
	return batch.NonEmpty(w.Request(tables.EntryOf(trail.Posted, id, sum.Leaf(trail.Posted, id))))
}

// ActWrites writes the act that ctx carries, if any. It also writes the trail entries of the
// act and of what the act has changed. more is added to the details of the act.
func (d Writer) ActWrites(ctx context.Context, changed []trail.Entry, more ...string) []batch.Request {
	var rows []tables.AuditRow
	if act, ok := audit.From(ctx); ok {
		rows = []tables.AuditRow{{
			AuditID: batch.UUID(act.ID), At: batch.Instant{Time: act.At}, Actor: act.Actor, SystemUser: act.SystemUser,
			Origin: act.Origin, Action: act.Action, Object: act.Object, Reason: act.Reason,
			Details: strings.TrimPrefix(strings.Join(append([]string{act.Details}, more...), "; "), "; "),
		}}
		changed = append(changed, d.Audits.Leaves.Entry(&rows[0]))
	}
	return batch.NonEmpty(d.Audits.Add.Request(rows), d.Request(changed...))
}
