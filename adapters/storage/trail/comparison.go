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

// comparison compares rows with leaves. Each of both waits for the other. Operations and
// batches are read nearly in the order of time, so that few wait. Of the other kinds, all
// rows are read before the leaves.
type comparison struct {
	logComparison
	pending map[leafKey]*pending
	batch   *batch.UUID // the last one that was read
	ended   bool
	// isLogOnly leaves out the leaves.
	isLogOnly bool
	begun     time.Time // of the first batch
	// compared counts rows.
	compared map[trail.Kind]int64
}

// pending is a row, or leaves with its key, or both.
type pending struct {
	name     string         // that of StoredLeaf; empty without a row
	row      trail.Hash     // the leaf of the row
	recorded *[2]trail.Hash // that of StoredLeaf
	leaf     trail.Hash     // the last one that came
	// hasLeaf says that one came, isMatched that it is that of the row. isLate is that of
	// postings.
	hasLeaf, isMatched, isLate bool
	// first is the first place of a leaf, own that of one that is the row's. Of subscriptions and
	// prices, which change, first is the place of the newest leaf.
	first, own place
}

// place is where a batch is. The log has the order in which batches were written, nearly: a clock
// that is ahead makes IDs that are not in this order. The time orders what is sealed together.
type place struct {
	position int64
	time     time.Time
}

// isOpen is the position of a batch that is not sealed.
const isOpen = math.MaxInt64

// note keeps the first place.
func (p *place) note(other place) {
	if p.time.IsZero() || other.position < p.position {
		*p = other
	}
}

// isLongAfter reports whether a batch was written long after another one.
func (p *place) isLongAfter(other place) bool {
	return (p.position > other.position || p.position == isOpen) && p.time.Sub(other.time) > longestLate
}

func newComparison(m Writer, tx *gorm.DB, w *backoffice.Witness) *comparison {
	return &comparison{
		logComparison: logComparison{Writer: m, tx: tx, w: w, early: make(map[int64]*backoffice.BatchRow)},
		pending:       make(map[leafKey]*pending), compared: make(map[trail.Kind]int64),
	}
}

// compareLog compares the log, and all rows but those of which there are many. seen
// receives each operation.
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

// eachRow reads the rows of the kinds of which there are many, or of all others.
func (c *comparison) eachRow(many bool, found func(tables.StoredLeaf)) error {
	for _, kind := range c.kinds() {
		if isOfMany(kind.Kind) != many {
			continue
		}
		err := kind.Each(c.tx, c.w.Keys, func(s tables.StoredLeaf) error {
			found(s)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sameCallers finds CallerIds with several records: only a table without its
// primary key has them. A lookup finds one of them.
func (c *comparison) sameCallers() error {
	var callers []string
	const key = "caller_id, subscription, operation"
	err := c.tx.Table(c.Operations.Name).Group(key).Having("COUNT(*) > 1").Pluck("caller_id", &callers).Error
	for _, caller := range callers {
		c.found(backoffice.Added, fmt.Sprintf("second record of CallerId %q", caller))
	}
	return err
}

// compareDecisions reads decisions and batches side by side.
func (c *comparison) compareDecisions(head *backoffice.HeadRow, seen func(*read.StoredOperation) error) error {
	return read.EachRange(c.Database, c.tx, func(w read.Range) error {
		err := read.Operations(c.Database, c.tx, w, func(of *read.StoredOperation) error {
			if err := seen(of); err != nil || !of.IsDecided() {
				return err
			}
			if of.Refusal != nil {
				head.Compared.Refusals++
			}
			c.row(c.storedDecisionLeaf(of))
			return nil
		})
		if err != nil {
			return err
		}
		return c.readBatches(w.Until)
	})
}

// row compares a row with the leaf that came before it, if one did.
func (c *comparison) row(s tables.StoredLeaf) {
	c.compared[s.Kind]++
	if s.HasOtherTexts {
		c.found(backoffice.OtherTexts, s.Name)
	}
	p := c.of(keyOf(&s.Entry))
	if p.name != "" { // only a table without its primary key has a row twice
		c.found(backoffice.Added, s.Name)
		return
	}
	p.name, p.row, p.recorded = s.Name, s.Leaf, s.Recorded
	c.decide(keyOf(&s.Entry), p)
}

func (c *comparison) of(key leafKey) *pending {
	p := c.pending[key]
	if p == nil {
		p = new(pending)
		c.pending[key] = p
	}
	return p
}

// leaf compares a leaf with its row.
func (c *comparison) leaf(row *tables.TrailBatchRow, e *trail.Entry, isLate bool) {
	at := place{isOpen, operation.ID(row.BatchID).Time()}
	if row.Position.Valid {
		at.position = row.Position.Int64
	}
	key := keyOf(e)
	isDecision := e.Kind == trail.Decided || e.Kind == trail.Settled
	p := c.pending[key]
	if p == nil && isOfMany(e.Kind) || isDecision && p != nil && p.name != "" && p.hasLeaf {
		c.found(backoffice.Removed, c.name(e.Kind, e.ID))
		return
	}
	p = c.of(key)
	p.leaf, p.hasLeaf, p.isLate = e.Leaf, true, p.isLate || isLate
	switch isMatched := p.name != "" && p.row == e.Leaf; {
	case isDecision:
		c.decide(key, p)
	case e.Kind == trail.Changed || e.Kind == trail.Priced: // the newest one counts
		if at.position >= p.first.position {
			p.first, p.isMatched = at, isMatched
		}
	default:
		if p.first.note(at); isMatched {
			p.isMatched = true
			p.own.note(at)
		}
	}
}

// decide ends the waiting of a decision that has its leaf. Rows that were recorded first
// have another leaf since they were settled.
func (c *comparison) decide(key leafKey, p *pending) {
	switch {
	case p.name == "" || !p.hasLeaf:
	case p.leaf == p.row:
		delete(c.pending, key)
	case p.recorded != nil && p.leaf == p.recorded[0]:
		delete(c.pending, key)
		key.kind = trail.Settled
		settled := c.of(key)
		settled.name, settled.row = p.name, p.recorded[1]
		c.decide(key, settled)
	}
}

// isMisplaced reports whether a decision has its postings in a leaf of their own. Versions
// with a schema up to 9 wrote such leaves when one commit had due sales and new ones.
func (c *comparison) isMisplaced(key leafKey, p *pending) (is bool, err error) {
	apart := c.pending[leafKey{kind: trail.Posted, id: key.id}]
	if apart == nil || apart.name != "" {
		return false, nil
	}
	id := batch.UUID(key.id)
	err = read.Operations(c.Database, c.tx, read.Range{Only: &id}, func(of *read.StoredOperation) error {
		decided, postings := of.WithoutPostings()
		l, own := c.DecisionLeaf(nil, key.kind, decided), c.Postings.Leaves.SumOf(c.w.Keys, key.id, postings)
		is = len(postings) > 0 && l.Hash() == p.leaf && own.Hash() == apart.leaf
		return nil
	})
	apart.isMatched, apart.isLate = is, apart.isLate && !is // a due sale is older than its postings
	return is, err
}

// readBatches reads the next batches, up to one that is later than the
// operation; nil reads to the end.
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
	from := c.note(row, b.Record())
	if c.isLogOnly {
		return
	}
	for i := range b.Entries {
		e := &b.Entries[i]
		isLate := c.isLate(id, e, from)
		if isLate && e.Kind != trail.Posted {
			c.found(backoffice.Late, c.name(e.Kind, e.ID))
			isLate = false
		}
		if !isOfMany(e.Kind) {
			c.leaf(row, e, isLate)
		}
	}
}

// A leaf is written with its rows. Only when the trail begins, older rows get
// their leaves. longestLate is the most that an import, or the beginning, takes.
const longestLate = 24 * time.Hour

// isLate reports whether a leaf was written long after its rows. Somebody who
// sets the state of the log back can make the service take rows over that it has
// not written. The MACs of earlier versions do not tell such batches from others.
func (c *comparison) isLate(in operation.ID, e *trail.Entry, from trail.Provenance) bool {
	written := in.Time()
	if c.begun.IsZero() {
		c.begun = written
	}
	switch e.Kind {
	case trail.Settled, trail.Priced, trail.Changed, trail.Reversed: // their IDs do not say when
		return false
	default:
	}
	return (from.IsAdopted || !from.IsBound) && isTimed(in) && isTimed(e.ID) && written.Sub(e.ID.Time()) > longestLate && written.Sub(c.begun) > longestLate
}

// isTimed reports whether an ID has a time: whether it is a UUID of version 7.
func isTimed(id operation.ID) bool { return id[6]>>4 == 7 }

// leftover judges what waits to the end.
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
			c.found(backoffice.Late, c.name(key.kind, key.id))
		}
		flaw, name := backoffice.Changed, p.name
		switch {
		case p.isMatched && !p.own.isLongAfter(p.first):
			continue
		case p.name == "":
			if first := c.pending[leafKey{kind: trail.Decided, id: key.id}]; key.kind == trail.Settled && first != nil && first.name != "" {
				continue // its first leaf is missing, or another one
			}
			flaw, name = backoffice.Removed, c.name(key.kind, key.id)
		case !p.hasLeaf || isOfMany(key.kind): // leaves with its key are those of repeats
			flaw = backoffice.Added
		}
		c.found(flaw, name)
	}
	return nil
}

// name names a leaf without its rows.
func (c *comparison) name(kind trail.Kind, id operation.ID) string {
	if kind == trail.Changed { // the leaf has its name's hash only, and acts mention the name
		var objects []string
		_ = c.tx.Table(c.Audits.Name).Distinct().Pluck("object", &objects).Error // then the hash must do
		if at := slices.IndexFunc(objects, func(object string) bool { return trail.NameID(object) == id }); at >= 0 {
			return fmt.Sprintf("subscription %q", objects[at])
		}
	}
	for _, of := range c.kinds() {
		if of.Kind == kind && of.NameOf != nil {
			return of.NameOf(id)
		}
	}
	return fmt.Sprintf("operation %s (%s)", id, kind)
}

// partSize bounds how many notifications and answers are compared at once: they
// have no order in common with the batches.
const partSize = 1_000_000

// compareOthers compares the kinds of which there are many, in parts, and counts messages.
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

func (c *comparison) comparePart(own func(*trail.Entry) bool) error {
	err := c.eachRow(true, func(s tables.StoredLeaf) {
		if own(&s.Entry) {
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
			if e.Digest = c.entryDigest(row, e); own(e) {
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

// logComparison is the part that compares the batches with the log.
type logComparison struct {
	Writer
	tx *gorm.DB
	w  *backoffice.Witness
	// early are records that came before their turn, which is that of next.
	next   int64
	early  map[int64]*backoffice.BatchRow
	opened []*backoffice.BatchRow
	// isMissing says that a batch is missing in the log.
	isMissing bool
}

// found tells the witness. Its error ends the reading: see serial.
func (c *logComparison) found(flaw backoffice.Flaw, name string) { _ = c.w.Found(flaw.Of(name)) }

func (c *logComparison) changedBatch(id operation.ID) {
	c.found(backoffice.Changed, "batch "+id.String())
}

// note keeps the record for its turn in the log. It returns what the MAC says.
func (c *logComparison) note(row *tables.TrailBatchRow, record []byte) trail.Provenance {
	from, ok := c.w.Keys.OpenMAC(record, row.Entries, row.MAC)
	r := &backoffice.BatchRow{ID: operation.ID(row.BatchID), Record: record, IsGenuine: ok}
	if ok && from.IsBound {
		r.Base = &from.Base
	}
	if ok && row.IsElsewhere(&from) {
		r.Base = &trail.Base{Size: -1} // no log has it
	}
	switch position := row.Position.Int64; {
	case !row.Position.Valid:
		r.Record = nil
		if c.opened = append(c.opened, r); !ok {
			c.changedBatch(r.ID)
		}
	case c.early[position] != nil || position < c.next:
		if other := c.early[position]; other != nil { // one of them was there
			c.changedBatch(other.ID)
		}
		c.changedBatch(r.ID)
	default:
		c.early[position] = r
	}
	return from
}

// compareOpen names the open batches that were made for another log.
func (c *logComparison) compareOpen() error {
	known := c.knownRoots()
	for _, r := range c.opened {
		if r.Base == nil {
			continue
		}
		has, err := c.has(c.tx, *r.Base, known)
		if err != nil && !errors.Is(err, errNoHash) { // that hash is found with its batch
			return err
		}
		if err == nil && !has {
			c.found(backoffice.Foreign, r.String())
		}
	}
	return nil
}

// records hands over the records whose turn it is, with the hashes that are stored for them.
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
		own := c.tx.Where("t.hash_index >= ? AND t.hash_index < ?", first, first+int64(len(hashes)))
		err := tables.Each(own, c.TrailHashes, func(row *tables.TrailHashRow) error {
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
		from := trail.StoredHashes(size) - first
		size++
		if r.Hashes = hashes[from : trail.StoredHashes(size)-first]; c.isMissing {
			r.Base, r.Hashes = nil, nil
		}
		if err := c.w.Batch(r); err != nil {
			return err
		}
	}
	return nil
}

// gaps names the batches that are missing in a log of that size, and those that
// are behind its end.
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
			c.found(backoffice.Removed, name)
			c.next, c.isMissing = next, true
		}
		if err := c.records(); err != nil {
			return err
		}
	}
	return nil
}
