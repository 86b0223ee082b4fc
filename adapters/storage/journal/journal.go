// Package journal keeps the log of the trail. A person who can write the database can change a row
// and whatever depends on it. So each transaction also adds a batch: the leaves of what it decided,
// authenticated with a key that the database does not have. Sealing gives the batches their places
// in one log, whose hashes make it known if a batch is changed or taken away.
//
// The package knows batches, hashes, and the acts of people, which are written with their leaves.
// It does not know what the leaves are about: the rooms make them, and package evidence compares
// them with the book.
package journal

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"time"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/trail"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// Journal writes batches into a database and reads its log. Writers of batches do not wait for each
// other.
type Journal struct {
	db *tables.Database
	*state
	after batch.UUID // all batches get greater IDs; zero outside After
}

var _ trail.Writer = Journal{}

// state is what a journal shares with those in transactions of hosts.
type state struct {
	addBatch *batch.Statement[tables.TrailBatchRow]
	// place and hash are used to seal.
	place *batch.Statement[tables.TrailBatchRow]
	hash  *batch.Statement[tables.TrailHashRow]
	// maker is nil while no trail is kept. base is emptyLog until the journal follows the log.
	maker atomic.Pointer[batchMaker]
	base  atomic.Pointer[proof.Base]
}

// batchMaker holds the arguments of Use.
type batchMaker struct {
	keys   *proof.Keys
	newID  func() operation.ID
	mended atomic.Pointer[time.Time] // when lost hashes were last written again; nil if never
}

// emptyLog is the state of a log without batches.
var emptyLog = proof.Base{Root: new(proof.Tree).Root()}

// New returns a journal that keeps no trail until Use is called.
func New(d *tables.Database) Journal {
	s := &state{addBatch: d.TrailBatches.Insert(), place: d.TrailBatches.Update("position"), hash: d.TrailHashes.Insert()}
	s.base.Store(&emptyLog)
	return Journal{db: d, state: s}
}

// Inside returns the journal in the transaction of a host.
func (j Journal) Inside(d *tables.Database) Journal { return Journal{db: d, state: j.state} }

// Use implements trail.Writer.
func (j Journal) Use(keys *proof.Keys, newID func() operation.ID) {
	j.maker.Store(&batchMaker{keys: keys, newID: newID})
}

// Follow implements trail.Writer.
func (j Journal) Follow(base proof.Base) { j.base.Store(&base) }

// After returns the journal for a transaction that writes a leaf of a price, a subscription or the
// calendar which exists. The newest leaf of these must be that of their row, whatever the clocks of the
// replicas say that changed it. So the batches of the journal get IDs greater than that of every batch
// that the transaction sees. Call After when the row is locked.
func (j Journal) After(ctx context.Context, session batch.Session) (Journal, error) {
	maker := j.maker.Load()
	if maker == nil {
		return j, nil
	}
	newer, err := tables.LookUp(ctx, session, j.db.FindNewerBatch, tables.TrailBatchRow{BatchID: batch.UUID(maker.newID())})
	if err != nil || newer == nil {
		return j, err
	}
	j.after = newer.BatchID
	return j, nil
}

// Keys returns the keys that Use received, or nil while no trail is kept.
func (j Journal) Keys() *proof.Keys {
	maker := j.maker.Load()
	if maker != nil {
		return maker.keys
	}
	return nil
}

// NewSum returns an empty sum, or nil while no trail is kept.
func (j Journal) NewSum() *proof.Sum {
	keys := j.Keys()
	if keys != nil {
		return proof.NewSum(keys)
	}
	return nil
}

// Write writes the entries as one batch.
func (j Journal) Write(entries ...proof.Entry) batch.Request {
	return j.write(entries, proof.Provenance{})
}

// WriteLater writes the entries that work returns. The leaves of 256 sales take 0.6 ms: the
// database runs the other statements of the transaction meanwhile.
func (j Journal) WriteLater(work func(*proof.Keys) []proof.Entry) batch.Request {
	maker := j.maker.Load()
	if maker == nil {
		return batch.Request{}
	}
	return j.addBatch.Later(func() tables.TrailBatchRow { return j.row(maker, work(maker.keys), proof.Provenance{}) })
}

// WriteOlder writes the entries of rows that are older than their batch. byAct says that an act
// has ordered it after the log had begun.
func (j Journal) WriteOlder(byAct bool, entries []proof.Entry) batch.Request {
	return j.write(entries, proof.Provenance{IsAdopted: true, ByAct: byAct})
}

func (j Journal) write(entries []proof.Entry, from proof.Provenance) batch.Request {
	maker := j.maker.Load()
	if maker == nil || len(entries) == 0 {
		return batch.Request{}
	}
	return j.addBatch.Request([]tables.TrailBatchRow{j.row(maker, entries, from)})
}

// row returns the batch of the entries. from says how they came into the log.
func (j Journal) row(maker *batchMaker, entries []proof.Entry, from proof.Provenance) tables.TrailBatchRow {
	b := proof.Batch{ID: operation.ID(greater(batch.UUID(maker.newID()), j.after)), Entries: entries}
	encoded := proof.AppendEntries([]byte{}, entries)
	from.Base = *j.base.Load()
	return tables.TrailBatchRow{BatchID: batch.UUID(b.ID), Entries: encoded, MAC: maker.keys.MAC(b.Record(), encoded, from)}
}

// greater returns the ID, with a later time if it is not greater than the other one.
func greater(id, than batch.UUID) batch.UUID {
	if bytes.Compare(id[:], than[:]) > 0 {
		return id
	}
	const timeBytes = 6 // the first ones, in milliseconds
	copy(id[:timeBytes], than[:timeBytes])
	for i := timeBytes - 1; i >= 0; i-- {
		id[i]++
		if id[i] != 0 {
			break
		}
	}
	return id
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
func (j Journal) ActWrites(ctx context.Context, c Changes, more ...string) []batch.Request {
	act, hasAct := audit.From(ctx)
	entries := c.Entries
	adjusted := c.Adjusted
	if adjusted.Rows() > 0 && (!hasAct || act.ID != c.ID) {
		l := proof.OfAct(c.ID, nil, adjusted, nil)
		entries = append(entries, l.Entry())
		adjusted = nil
	}
	var rows []tables.AuditRow
	if hasAct {
		act.Details = strings.TrimPrefix(strings.Join(append([]string{act.Details}, more...), "; "), "; ")
		l := proof.OfAct(act.ID, &act, adjusted, c.Erased)
		entries = append(entries, l.Entry())
		rows = []tables.AuditRow{tables.NewAuditRow(&act)}
	}
	return batch.NonEmpty(j.db.Audits.Add.Request(rows), j.Write(entries...))
}
