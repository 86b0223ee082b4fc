package trail

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/read"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// comparison compares rows with leaves. A row waits for its leaf, and a leaf for its row.
// Operations and batches are read almost in the order of time, so few of them wait. The rows of
// the other kinds are all read before the leaves.
type comparison struct {
	logComparison
	pending map[leafKey]*pending
	batch   *batch.UUID // the last batch that was read
	ended   bool
	// isLogOnly compares the batches with the log, but no leaves.
	isLogOnly bool
	begun     time.Time // time of the first batch
	// compared counts rows.
	compared map[trail.Kind]int64
}

// pending is a row, or the leaves with its key, or both.
type pending struct {
	name     string         // StoredLeaf.Name; empty without a row
	row      trail.Hash     // the leaf of the row
	recorded *[2]trail.Hash // StoredLeaf.Recorded
	leaf     trail.Hash     // the last leaf that was read
	// hasLeaf: a leaf was read. isMatched: it equals the row's leaf. isLate: for postings only.
	hasLeaf, isMatched, isLate bool
	// first is the place of the first leaf, firstMatch of the first leaf that equals the row's leaf.
	// Of subscriptions and prices, which change, first is the place of the newest leaf.
	first, firstMatch place
}

// place is the position of a batch in the log, and its time. The log has almost the order in
// which the batches were written: a clock that is ahead makes IDs that are out of order. The
// time orders batches that are sealed together.
type place struct {
	position int64
	time     time.Time
}

// openPosition is the position of a batch that is not sealed yet.
const openPosition = math.MaxInt64

// note keeps the earlier place of p and other.
func (p *place) note(other place) {
	if p.time.IsZero() || other.position < p.position {
		*p = other
	}
}

// isLongAfter reports whether a batch was written long after another one.
func (p *place) isLongAfter(other place) bool {
	return (p.position > other.position || p.position == openPosition) && p.time.Sub(other.time) > longestLate
}

func newComparison(d Writer, tx *gorm.DB, w *backoffice.Witness) *comparison {
	return &comparison{
		logComparison: logComparison{Writer: d, tx: tx, w: w, early: make(map[int64]*backoffice.BatchRow)},
		pending:       make(map[leafKey]*pending), compared: make(map[trail.Kind]int64),
	}
}

// compareLog compares the log, and all rows except the kinds with many rows. It calls seen for
// each operation.
func (c *comparison) compareLog(head *backoffice.HeadRow, seen func(*read.StoredOperation) error) error {
	err := tables.InTurn(
		func() error { return c.eachRow(false, c.row) },
		c.sameCallers,
		func() error { return c.compareDecisions(head, seen) },
		c.leftover,
		func() error { return c.gaps(head.Size) },
		c.compareOpen,
	)
	if err != nil {
		return err
	}
	n := &head.Compared
	n.Prices, n.Subscriptions, n.Acts = c.compared[trail.Priced], c.compared[trail.Changed], c.compared[trail.Act]
	head.Unsealed = int64(len(c.opened))
	var other []int64
	err = c.tx.Table(c.TrailHashes.Name).Where("hash_index < 0 OR hash_index >= ?", trail.StoredHashes(max(head.Size, 0))).Limit(1).Pluck("hash_index", &other).Error
	head.HasOtherHashes = len(other) > 0
	return err
}

// eachRow reads the rows of the kinds with many rows, or of all other kinds.
func (c *comparison) eachRow(many bool, visit func(tables.StoredLeaf)) error {
	for _, kind := range c.kinds() {
		if isOfMany(kind.Kind) != many {
			continue
		}
		err := kind.Each(c.tx, c.w.Keys, func(s tables.StoredLeaf) error {
			visit(s)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sameCallers reports CallerIds that have several records. This is only possible if the table
// has lost its primary key. A lookup returns only one of the records.
func (c *comparison) sameCallers() error {
	var callers []string
	const key = "caller_id, subscription, operation"
	err := c.tx.Table(c.Operations.Name).Group(key).Having("COUNT(*) > 1").Pluck("caller_id", &callers).Error
	for _, caller := range callers {
		c.report(backoffice.Added, fmt.Sprintf("second record of CallerId %q", caller))
	}
	return err
}

// compareDecisions reads decisions and batches side by side.
func (c *comparison) compareDecisions(head *backoffice.HeadRow, seen func(*read.StoredOperation) error) error {
	return read.EachRange(c.Database, c.tx, func(ids read.Range) error {
		err := read.Operations(c.Database, c.tx, ids, func(stored *read.StoredOperation) error {
			if err := seen(stored); err != nil || !stored.IsDecided() {
				return err
			}
			if stored.Refusal != nil {
				head.Compared.Refusals++
			}
			c.row(c.storedDecisionLeaf(stored))
			return nil
		})
		if err != nil {
			return err
		}
		return c.readBatches(ids.Until)
	})
}

// row compares a row with its leaf, if the leaf was read before.
func (c *comparison) row(s tables.StoredLeaf) {
	c.compared[s.Kind]++
	if s.HasOtherTexts {
		c.report(backoffice.OtherTexts, s.Name)
	}
	p := c.pendingFor(keyOf(&s.Entry))
	if p.name != "" { // a table can have a row twice only if it has lost its primary key
		c.report(backoffice.Added, s.Name)
		return
	}
	p.name, p.row, p.recorded = s.Name, s.Leaf, s.Recorded
	c.decide(keyOf(&s.Entry), p)
}

func (c *comparison) pendingFor(key leafKey) *pending {
	p := c.pending[key]
	if p == nil {
		p = new(pending)
		c.pending[key] = p
	}
	return p
}

// leaf compares a leaf with its row.
func (c *comparison) leaf(row *tables.TrailBatchRow, e *trail.Entry, isLate bool) {
	at := place{openPosition, operation.ID(row.BatchID).Time()}
	if row.Position.Valid {
		at.position = row.Position.Int64
	}
	key := keyOf(e)
	isDecision := e.Kind == trail.Decided || e.Kind == trail.Settled
	p := c.pending[key]
	if p == nil && isOfMany(e.Kind) || isDecision && p != nil && p.name != "" && p.hasLeaf {
		c.report(backoffice.Removed, c.name(e.Kind, e.ID))
		return
	}
	p = c.pendingFor(key)
	p.leaf, p.hasLeaf, p.isLate = e.Leaf, true, p.isLate || isLate
	switch isMatched := p.name != "" && p.row == e.Leaf; {
	case isDecision:
		c.decide(key, p)
	case e.Kind == trail.Changed || e.Kind == trail.Priced: // the newest leaf counts
		if at.position >= p.first.position {
			p.first, p.isMatched = at, isMatched
		}
	default:
		if p.first.note(at); isMatched {
			p.isMatched = true
			p.firstMatch.note(at)
		}
	}
}

// decide removes a decision from pending when its row and its leaf match. A sale that was
// recorded first has another leaf after its settlement.
func (c *comparison) decide(key leafKey, p *pending) {
	switch {
	case p.name == "" || !p.hasLeaf:
	case p.leaf == p.row:
		delete(c.pending, key)
	case p.recorded != nil && p.leaf == p.recorded[0]:
		delete(c.pending, key)
		key.kind = trail.Settled
		settled := c.pendingFor(key)
		settled.name, settled.row = p.name, p.recorded[1]
		c.decide(key, settled)
	}
}

// isMisplaced reports whether the postings of a decision are in a separate leaf. Versions with
// a schema up to 9 wrote such leaves if one commit had due sales and new sales.
func (c *comparison) isMisplaced(key leafKey, p *pending) (misplaced bool, err error) {
	apart := c.pending[leafKey{kind: trail.Posted, id: key.id}]
	if apart == nil || apart.name != "" {
		return false, nil
	}
	id := batch.UUID(key.id)
	err = read.Operations(c.Database, c.tx, read.Range{Only: &id}, func(stored *read.StoredOperation) error {
		decided, postings := stored.WithoutPostings()
		l, posted := c.DecisionLeaf(nil, key.kind, decided), c.Postings.Leaves.SumOf(c.w.Keys, key.id, postings)
		misplaced = len(postings) > 0 && l.Hash() == p.leaf && posted.Hash() == apart.leaf
		return nil
	})
	apart.isMatched, apart.isLate = misplaced, apart.isLate && !misplaced // a due sale is older than its postings
	return misplaced, err
}

// readBatches reads the next batches, up to the first batch that is later than the operation.
// If until is nil, it reads all batches.
func (c *comparison) readBatches(until *batch.UUID) error {
	for !c.ended && (until == nil || c.batch == nil || bytes.Compare(c.batch[:], until[:]) <= 0) {
		page, err := c.batchPage(c.tx, c.batch)
		for i := range page {
			c.batch = &page[i].BatchID
			c.readBatch(&page[i])
		}
		if err == nil {
			err = c.records()
		}
		if err != nil {
			return err
		}
		c.ended = len(page) < batchesRead
	}
	return nil
}

func (c *comparison) readBatch(row *tables.TrailBatchRow) {
	id := operation.ID(row.BatchID)
	b, err := row.Batch()
	if err != nil {
		c.changedBatch(id)
		return
	}
	provenance := c.note(row, b.Record())
	if c.isLogOnly {
		return
	}
	for i := range b.Entries {
		e := &b.Entries[i]
		isLate := c.isLate(id, e, provenance)
		if isLate && e.Kind != trail.Posted {
			c.report(backoffice.Late, c.name(e.Kind, e.ID))
			isLate = false
		}
		if !isOfMany(e.Kind) {
			c.leaf(row, e, isLate)
		}
	}
}

// A leaf is written together with its rows. Only when the trail begins, older rows get leaves.
// longestLate is the maximum duration of an import, or of the beginning of the trail.
const longestLate = 24 * time.Hour

// isLate reports whether a leaf was written long after its rows. A person who resets the state
// of the log can make the service adopt rows that the service did not write. The MACs of
// earlier versions do not mark adopted batches.
func (c *comparison) isLate(batchID operation.ID, e *trail.Entry, provenance trail.Provenance) bool {
	written := batchID.Time()
	if c.begun.IsZero() {
		c.begun = written
	}
	switch e.Kind {
	case trail.Settled, trail.Priced, trail.Changed, trail.Reversed: // their IDs do not contain the time
		return false
	default:
	}
	return (provenance.IsAdopted || !provenance.IsBound) && isTimed(batchID) && isTimed(e.ID) && written.Sub(e.ID.Time()) > longestLate && written.Sub(c.begun) > longestLate
}

// isTimed reports whether an ID contains a time, that is, whether it is a UUID of version 7.
func isTimed(id operation.ID) bool { return id[6]>>4 == 7 }

// leftover reports the rows and leaves that are still pending at the end.
func (c *comparison) leftover() error {
	for key, p := range c.pending {
		if key.kind != trail.Decided && key.kind != trail.Settled || p.name == "" || !p.hasLeaf {
			continue
		}
		if misplaced, err := c.isMisplaced(key, p); err != nil {
			return err
		} else if misplaced {
			delete(c.pending, key)
		}
	}
	for key, p := range c.pending {
		if p.isLate {
			c.report(backoffice.Late, c.name(key.kind, key.id))
		}
		flaw, name := backoffice.Changed, p.name
		switch {
		case p.isMatched && !p.firstMatch.isLongAfter(p.first):
			continue
		case p.name == "":
			if first := c.pending[leafKey{kind: trail.Decided, id: key.id}]; key.kind == trail.Settled && first != nil && first.name != "" {
				continue // its decision leaf is missing or different
			}
			flaw, name = backoffice.Removed, c.name(key.kind, key.id)
		case !p.hasLeaf || isOfMany(key.kind): // leaves with its key come from repeated requests
			flaw = backoffice.Added
		}
		c.report(flaw, name)
	}
	return nil
}

// name returns the name of a leaf that has no rows.
func (c *comparison) name(kind trail.Kind, id operation.ID) string {
	if kind == trail.Changed { // the leaf has only the hash of the name, but acts contain the name
		var objects []string
		_ = c.tx.Table(c.Audits.Name).Distinct().Pluck("object", &objects).Error // without the acts, the hash is reported
		if i := slices.IndexFunc(objects, func(object string) bool { return trail.NameID(object) == id }); i >= 0 {
			return fmt.Sprintf("subscription %q", objects[i])
		}
	}
	for _, k := range c.kinds() {
		if k.Kind == kind && k.NameOf != nil {
			return k.NameOf(id)
		}
	}
	return fmt.Sprintf("operation %s (%s)", id, kind)
}

// partSize bounds how many notifications and answers are compared at once. Their order is
// unrelated to the order of the batches.
const partSize = 1_000_000

// compareOthers compares the kinds with many rows, in parts, and counts the messages.
func (c *comparison) compareOthers(messages *int64) error {
	var rows int64
	for _, table := range []string{c.Notifications.Name, c.Operations.Name} {
		var count int64
		if err := c.tx.Table(table).Count(&count).Error; err != nil {
			return err
		}
		rows += count
	}
	parts := min(1+rows/partSize, 256)
	for part := range parts {
		err := c.comparePart(func(e *trail.Entry) bool {
			key := keyOf(e)
			return isOfMany(e.Kind) && int64(key.id[15]^key.digest[31])%parts == part
		})
		if err != nil {
			return err
		}
		clear(c.pending)
	}
	*messages = c.compared[trail.Notified]
	return nil
}

func (c *comparison) comparePart(isInPart func(*trail.Entry) bool) error {
	err := c.eachRow(true, func(s tables.StoredLeaf) {
		if isInPart(&s.Entry) {
			c.row(s)
		}
	})
	if err != nil {
		return err
	}
	err = tables.Each(c.tx, c.TrailBatches, func(row *tables.TrailBatchRow) error {
		b, err := row.Batch()
		if err != nil {
			return nil //nolint:nilerr // readBatch has found it
		}
		for i := range b.Entries {
			e := &b.Entries[i]
			if e.Digest = c.entryDigest(row, e); isInPart(e) {
				c.leaf(row, e, false)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.leftover()
}

// logComparison compares the batches with the log.
type logComparison struct {
	Writer
	tx *gorm.DB
	w  *backoffice.Witness
	// early has records that were read before their turn. next is the position of the next one.
	next   int64
	early  map[int64]*backoffice.BatchRow
	opened []*backoffice.BatchRow
	// isMissing is true if a batch is missing in the log.
	isMissing bool
}

// report passes a flaw to the witness. It drops the error: serial stops all readers after it.
func (c *logComparison) report(flaw backoffice.Flaw, name string) { _ = c.w.Found(flaw.Of(name)) }

func (c *logComparison) changedBatch(id operation.ID) {
	c.report(backoffice.Changed, "batch "+id.String())
}

// note stores the record until its turn in the log. It returns the provenance from the MAC.
func (c *logComparison) note(row *tables.TrailBatchRow, record []byte) trail.Provenance {
	provenance, ok := c.w.Keys.OpenMAC(record, row.Entries, row.MAC)
	r := &backoffice.BatchRow{ID: operation.ID(row.BatchID), Record: record, IsGenuine: ok}
	if ok && provenance.IsBound {
		r.Base = &provenance.Base
	}
	if ok && row.IsElsewhere(&provenance) {
		r.Base = &trail.Base{Size: -1} // no log has this size
	}
	switch position := row.Position.Int64; {
	case !row.Position.Valid:
		r.Record = nil
		if c.opened = append(c.opened, r); !ok {
			c.changedBatch(r.ID)
		}
	case c.early[position] != nil || position < c.next:
		if other := c.early[position]; other != nil { // two batches have this position
			c.changedBatch(other.ID)
		}
		c.changedBatch(r.ID)
	default:
		c.early[position] = r
	}
	return provenance
}

// compareOpen reports the open batches that were made for another log.
func (c *logComparison) compareOpen() error {
	known := c.knownRoots()
	for _, r := range c.opened {
		if r.Base == nil {
			continue
		}
		has, err := c.has(c.tx, *r.Base, known)
		if err != nil && !errors.Is(err, errNoHash) { // the missing hash is reported with its batch
			return err
		}
		if err == nil && !has {
			c.report(backoffice.Foreign, r.String())
		}
	}
	return nil
}

// records passes the records whose turn it is to the witness, with their stored hashes.
func (c *logComparison) records() error {
	var ready []*backoffice.BatchRow
	size := c.next
	for r := c.early[c.next]; r != nil; r = c.early[c.next] {
		delete(c.early, c.next)
		ready = append(ready, r)
		c.next++
	}
	first := trail.StoredHashes(size)
	hashes := make([]trail.Hash, trail.StoredHashes(c.next)-first)
	if len(ready) > 0 && !c.isMissing {
		query := c.tx.Where("t.hash_index >= ? AND t.hash_index < ?", first, first+int64(len(hashes)))
		err := tables.Each(query, c.TrailHashes, func(row *tables.TrailHashRow) error {
			if len(row.Hash) == len(trail.Hash{}) {
				hashes[row.HashIndex-first] = trail.Hash(row.Hash)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, r := range ready {
		offset := trail.StoredHashes(size) - first
		size++
		if r.Hashes = hashes[offset : trail.StoredHashes(size)-first]; c.isMissing {
			r.Base, r.Hashes = nil, nil
		}
		if err := c.w.Batch(r); err != nil {
			return err
		}
	}
	return nil
}

// gaps reports the batches that are missing in a log of this size, and batches after its end.
func (c *logComparison) gaps(size int64) error {
	places := slices.Sorted(maps.Keys(c.early))
	for i, place := range places {
		if place >= size {
			c.changedBatch(c.early[place].ID)
			places[i] = size
		}
	}
	for _, next := range append(places, size) {
		if next > c.next {
			name := fmt.Sprintf("batch %d of the log", c.next+1)
			if next > c.next+1 {
				name = fmt.Sprintf("batch %d to %d of the log", c.next+1, next)
			}
			c.report(backoffice.Removed, name)
			c.next, c.isMissing = next, true
		}
		if err := c.records(); err != nil {
			return err
		}
	}
	return nil
}
