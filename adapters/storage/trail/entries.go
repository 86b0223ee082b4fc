// Package trail makes the leaves of rows, keeps the log of their batches, and compares both
// for verify.
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

// trailWriter adds the leaves of a transaction to it, as one row. It reads
// nothing, so that writers do not wait for each other.
type trailWriter struct {
	addBatch *batch.Statement[tables.TrailBatchRow]
	// place, hash and advance are for sealing.
	place   *batch.Statement[tables.TrailBatchRow]
	hash    *batch.Statement[tables.TrailHashRow]
	advance *batch.Statement[tables.TrailLogRow]
	// on is nil while no trail is kept. base is emptyLog until the log is followed.
	on      atomic.Pointer[batchMaker]
	base    atomic.Pointer[trail.Base]
	buffers sync.Pool // of *[]byte, for leaves
}

// batchMaker has the arguments of Writer.Use.
type batchMaker struct {
	keys   *trail.Keys
	newID  func() operation.ID
	mended atomic.Pointer[time.Time] // when lost hashes were written last; nil if never
}

// emptyLog is the state of a log without batches.
var emptyLog = trail.Base{Root: new(trail.Tree).Root()}

// Request writes the entries as one batch.
func (w *trailWriter) Request(entries ...trail.Entry) batch.Request {
	r := w.on.Load()
	if r == nil || len(entries) == 0 {
		return batch.Request{}
	}
	return w.addBatch.Request([]tables.TrailBatchRow{w.row(r, entries, false)})
}

// later writes the entries that work returns. The leaves of 256 sales take 0.6 ms, in which
// the database runs the other statements.
func (w *trailWriter) later(m *batchMaker, work func() []trail.Entry) batch.Request {
	return w.addBatch.Later(func() tables.TrailBatchRow { return w.row(m, work(), false) })
}

// row is the batch of the entries. adopted says that their rows are older than the trail.
func (w *trailWriter) row(m *batchMaker, entries []trail.Entry, adopted bool) tables.TrailBatchRow {
	b := trail.Batch{ID: m.newID(), Entries: entries}
	encoded := trail.AppendEntries([]byte{}, entries)
	from := trail.Provenance{Base: *w.base.Load(), IsAdopted: adopted, IsKeyed: true}
	return tables.TrailBatchRow{BatchID: batch.UUID(b.ID), Entries: encoded, MAC: m.keys.MAC(b.Record(), encoded, from)}
}

// buffer lends memory to do, which returns it, possibly grown.
func (w *trailWriter) buffer(do func([]byte) []byte) {
	b := w.buffers.Get().(*[]byte)
	*b = do(*b)
	w.buffers.Put(b)
}

// Writer makes the leaves of rows, and writes their entries.
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

// Keys are those of Use; nil while no trail is kept.
func (w *trailWriter) Keys() *trail.Keys {
	if r := w.on.Load(); r != nil {
		return r.keys
	}
	return nil
}

// BookRows are the rows that a settled book adds and settles.
type BookRows struct {
	Added, Answered []tables.OperationRow
	Sold, Settled   []tables.SaleRow
	Units, Money    []tables.PostingRow
	Refused         []tables.RefusalRow
	RefusedSales    []tables.SaleRow
	Reversed        []tables.ReversalRow
}

// BookEntryWrite writes the entries of the rows. Every row has one, except records that
// change: the sales that change with them have it.
func (d Writer) BookEntryWrite(rows *BookRows) batch.Request {
	n := len(rows.Added) + len(rows.Sold) + len(rows.Settled) + len(rows.Units) + len(rows.Money) + len(rows.Refused) + len(rows.Reversed)
	r := d.on.Load()
	if r == nil || n == 0 {
		return batch.Request{} // without the memory of a closure
	}
	return d.later(r, func() []trail.Entry { return d.bookEntries(r.keys, rows) })
}

// bookEntries returns the entries of the operations in the rows. The sales of an
// operation are consecutive. Its postings are found by its ID: due operations and
// new ones are apart among the sales, and mixed among the postings.
func (d Writer) bookEntries(keys *trail.Keys, rows *BookRows) (entries []trail.Entry) {
	records := make(map[batch.UUID]*tables.OperationRow, len(rows.Added)+len(rows.Answered))
	for _, all := range [][]tables.OperationRow{rows.Added, rows.Answered} {
		for i := range all {
			records[all[i].OperationID] = &all[i]
		}
	}
	units, money := byOperation(rows.Units), byOperation(rows.Money)
	entries = make([]trail.Entry, 0, len(rows.Sold)+len(rows.Settled)+len(rows.Refused))
	d.buffer(func(buffer []byte) []byte {
		add := func(kind trail.Kind, of *read.StoredOperation) {
			l := d.DecisionLeaf(buffer, kind, of)
			entries = append(entries, tables.EntryOf(kind, operation.ID(of.ID), l))
			buffer = l.Memory()
		}
		ofSales := func(kind trail.Kind, sales []tables.SaleRow) {
			for len(sales) > 0 {
				id := sales[0].OperationID
				of := read.StoredOperation{ID: id, Record: records[id], Units: units[id], Money: money[id]}
				of.Sales, sales = cut(sales, id, saleOperation)
				delete(units, id)
				delete(money, id)
				delete(records, id)
				add(kind, &of)
			}
		}
		ofSales(trail.Decided, rows.Sold)
		ofSales(trail.Settled, rows.Settled)
		asked := rows.RefusedSales
		for i := range rows.Refused {
			id := rows.Refused[i].OperationID
			of := read.StoredOperation{ID: id, Record: records[id], Refusal: &rows.Refused[i]}
			of.Asked, asked = cut(asked, id, saleOperation)
			add(trail.Decided, &of)
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
	for id, own := range money { // a correction may post units, money or both
		units[id] = append(units[id], own...)
	}
	for _, id := range slices.SortedFunc(maps.Keys(units), tables.CompareIDs) {
		own := units[id]
		id := operation.ID(id)
		entries = append(entries, tables.EntryOf(trail.Posted, id, d.Postings.Leaves.SumOf(keys, id, own)))
	}
	return entries
}

func saleOperation(r *tables.SaleRow) batch.UUID       { return r.OperationID }
func postingOperation(r *tables.PostingRow) batch.UUID { return r.OperationID }

// cut takes the rows of an operation from the beginning.
func cut[R any](rows []R, id batch.UUID, of func(*R) batch.UUID) (own, others []R) {
	n := 0
	for n < len(rows) && of(&rows[n]) == id {
		n++
	}
	return rows[:n:n], rows[n:]
}

// byOperation groups postings by their operation.
func byOperation(rows []tables.PostingRow) map[batch.UUID][]tables.PostingRow {
	groups := make(map[batch.UUID][]tables.PostingRow, len(rows))
	for len(rows) > 0 {
		var own []tables.PostingRow
		id := rows[0].OperationID
		if own, rows = cut(rows, id, postingOperation); groups[id] != nil {
			own = append(groups[id], own...)
		}
		groups[id] = own
	}
	return groups
}

// DecisionLeaf encodes the decision.
func (d Writer) DecisionLeaf(buffer []byte, kind trail.Kind, of *read.StoredOperation) trail.Leaf {
	l := trail.NewLeaf(buffer, kind, operation.ID(of.ID))
	if of.Twice { // no such leaf was written
		l.BeginRow("twice")
		l.EndRow()
	}
	if of.Record != nil {
		tables.Encode(&l, "operations", d.Operations.Table, of.Record)
	}
	if of.Refusal != nil {
		tables.Encode(&l, "refusals", d.Refusals.Table, of.Refusal)
	}
	encode(&l, "refused_sales", d.RefusedSales.Table, of.Asked)
	encode(&l, "sales", d.Sales.Table, of.Sales)
	encode(&l, "postings", d.Postings.Table, of.Units)
	encode(&l, "postings", d.Postings.Table, of.Money)
	return l
}

func encode[R any](l *trail.Leaf, name string, t *batch.Table[R], rows []R) {
	for i := range rows {
		tables.Encode(l, name, t, &rows[i])
	}
}

// NotificationLeaf encodes a notification. Its texts enter by a keyed hash of their digest.
func (d Writer) NotificationLeaf(buffer []byte, keys *trail.Keys, row *tables.NotificationRow) trail.Leaf {
	l := trail.NewLeaf(buffer, trail.Notified, operation.ID(row.OperationID))
	l.BeginRow("notifications")
	l.Bytes("keyed_digest", keys.Text(row.Digest))
	batch.Encode(d.Notifications.Table, row, &l, tables.Personal...)
	l.EndRow()
	return l
}

// InboxEntryWrite writes the entries of accepted notifications and of the records of
// their operations.
func (d Writer) InboxEntryWrite(records []tables.OperationRow, rows []tables.NotificationRow) batch.Request {
	r := d.on.Load()
	if r == nil || len(records)+len(rows) == 0 {
		return batch.Request{} // without the memory of a closure
	}
	return d.later(r, func() []trail.Entry { return d.inboxEntries(r.keys, records, rows) })
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

// entryDigest is the digest of an entry, keyed if that of its batch is not.
func (d Writer) entryDigest(of *tables.TrailBatchRow, e *trail.Entry) trail.Hash {
	if trail.HasKeyedDigests(of.MAC) || e.Kind != trail.Notified {
		return e.Digest
	}
	return tables.ShortDigest(tables.ErasedDigests(d.MessagesKey())(e.Digest[:]))
}

// NewSum is the sum of an import. It is nil while no trail is kept.
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

// ActWrites writes the act that ctx carries, if it carries one, and the entries in
// the trail of the act and of what it has changed. more is added to its details.
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
