package storage

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/backoffice"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// comparison holds what was read of the trail against what was read of the
// rows. Rows and batches are read nearly in the order of time, so that it holds
// little at once.
type comparison struct {
	logComparison
	ctx   context.Context
	state backoffice.HeadRow
	// hasBegun says that there is a trail.
	hasBegun bool
	batch    *batch.UUID // the last one that was read
	ended    bool
	begun    time.Time // of the first batch
	// rows are stored decisions without their leaf so far, leaves the reverse.
	rows   map[leafKey]*storedDecision
	leaves map[leafKey]trail.Hash
	few    map[leafKey]*fewLeaf
	// doubted are the decisions that differ from their leaf.
	doubted []storedLeaf
}

// logComparison is the part that compares the batches with the log.
type logComparison struct {
	rowReader
	tx *gorm.DB
	w  *backoffice.TrailWitness
	// early are records that came before their turn, which is that of next.
	next   int64
	early  map[int64]*backoffice.BatchRow
	opened []*backoffice.BatchRow
	// missing says that a batch is missing in the log. nodes are the next of its
	// hashes, of those before the index read.
	missing bool
	nodes   []TrailHashRow
	read    int64
}

func newLogComparison(r rowReader, tx *gorm.DB, w *backoffice.TrailWitness) logComparison {
	return logComparison{rowReader: r, tx: tx, w: w, early: make(map[int64]*backoffice.BatchRow)}
}

type leafKey struct {
	kind trail.Kind
	id   operation.ID
}

type storedDecision struct {
	storedLeaf
	settled trail.Hash
}

type fewLeaf struct {
	storedLeaf
	matched, seen, late bool
}

// trail returns the comparison of the trail with the rows.
func (e evidence) trail(ctx context.Context, tx *gorm.DB, w *backoffice.TrailWitness) (*comparison, error) {
	c := &comparison{
		logComparison: newLogComparison(newRowReader(e.db), nil, w), ctx: ctx,
		rows: make(map[leafKey]*storedDecision), leaves: make(map[leafKey]trail.Hash),
		few: make(map[leafKey]*fewLeaf),
	}
	head, err := trailLog{c.rowReader}.state(tx)
	if err != nil {
		return nil, err
	}
	c.state = backoffice.HeadRow{Begun: head.Begun != 0, Size: head.Size, Checkpoint: head.Checkpoint}
	if c.hasBegun = c.state.Begun || head.Size != 0 || head.Checkpoint != ""; c.hasBegun {
		return c, nil
	}
	// It has not begun, unless somebody has set it back.
	var placed []int64
	err = tx.Table(e.db.batches.Name).Where("position IS NOT NULL").Limit(1).Pluck("position", &placed).Error
	c.hasBegun = len(placed) > 0
	return c, err
}

// compareLog reads the log, and everything but notifications and answers. seen receives
// each operation.
func (c *comparison) compareLog(tx *gorm.DB, seen func(*storedOperation) error) error {
	c.tx = tx
	return inTurn(
		func() error {
			return c.rowReader.few(tx, c.w.Keys, func(s storedLeaf) error {
				key := leafKey{s.Kind, s.ID}
				if c.few[key] != nil { // only a table without its primary key has a row twice
					return c.found(&backoffice.LeafRow{Name: s.name, HasRows: true})
				}
				c.few[key] = &fewLeaf{storedLeaf: s}
				return nil
			})
		},
		c.sameCallers, func() error { return c.compareDecisions(seen) }, c.leftover,
		func() error { return c.gaps(c.state.Size) },
		func() (err error) {
			c.state.HasOtherHashes, err = c.hasOtherHashes(max(c.state.Size, 0))
			c.state.Unsealed = int64(len(c.opened))
			return err
		},
		c.compareOpen,
	)
}

// sameCallers finds CallerIds with several records: only a table without its
// primary key has them. A lookup finds one of them.
func (c *comparison) sameCallers() error {
	var callers []string
	const key = "caller_id, subscription, operation"
	err := c.tx.Table(c.operations.Name).Group(key).Having("COUNT(*) > 1").Pluck("caller_id", &callers).Error
	if err != nil {
		return err
	}
	for _, caller := range callers {
		if err := c.found(&backoffice.LeafRow{Name: fmt.Sprintf("second record of CallerId %q", caller), HasRows: true}); err != nil {
			return err
		}
	}
	return nil
}

// compareDecisions reads decisions and batches side by side.
func (c *comparison) compareDecisions(seen func(*storedOperation) error) error {
	var buffer []byte
	return c.eachRange(c.tx, func(w idRange) error {
		err := c.readOperations(c.ctx, c.tx, w, func(of *storedOperation) error {
			if err := seen(of); err != nil || !of.isDecided() {
				return err
			}
			s := &storedDecision{storedLeaf: c.storedDecisionLeaf(&buffer, of)}
			if s.recorded != nil {
				l := c.decisionLeaf(buffer, trail.Settled, of)
				s.settled = l.Hash()
			}
			key := leafKey{trail.Decided, s.ID}
			if leaf, ok := c.leaves[key]; ok {
				delete(c.leaves, key)
				return c.judge(s, leaf)
			}
			c.rows[key] = s
			return nil
		})
		if err != nil {
			return err
		}
		return c.readBatches(w.until)
	})
}

// judge compares a decision with its leaf. Rows that were recorded first have
// another leaf since they were settled.
func (c *comparison) judge(s *storedDecision, leaf trail.Hash) error {
	switch {
	case leaf == s.Leaf:
		return nil
	case s.recorded != nil && leaf == *s.recorded:
		second := &storedDecision{storedLeaf: s.storedLeaf}
		second.Kind, second.Leaf, second.recorded = trail.Settled, s.settled, nil
		key := leafKey{trail.Settled, s.ID}
		if leaf, ok := c.leaves[key]; ok {
			delete(c.leaves, key)
			return c.judge(second, leaf)
		}
		c.rows[key] = second
		return nil
	}
	doubt := s.storedLeaf
	doubt.Leaf = leaf
	c.doubted = append(c.doubted, doubt)
	return nil
}

// isMisplaced reports whether a decision has its postings in a leaf of their own.
// Versions
// with a schema up to 9 wrote such leaves when one commit had due sales and new ones.
func (c *comparison) isMisplaced(s *storedLeaf) (is bool, err error) {
	apart := c.few[leafKey{trail.Posted, s.ID}]
	if apart == nil || apart.name != "" {
		return false, nil
	}
	id := batch.UUID(s.ID)
	err = c.readOperations(c.ctx, c.tx, idRange{only: &id}, func(of *storedOperation) error {
		decided, postings := of.withoutPostings()
		l := c.decisionLeaf(nil, s.Kind, decided)
		is = len(postings) > 0 && l.Hash() == s.Leaf && c.postingsEntry(c.w.Keys, postings).Leaf == apart.Leaf
		return nil
	})
	apart.matched, apart.late = is, apart.late && !is // a due sale is older than its postings
	return is, err
}

func (c *logComparison) found(row *backoffice.LeafRow) error { return c.w.Leaf(row) }

// batchesRead is how many batches are read together.
const batchesRead = 200

// readBatches reads the next batches, up to one that is later than the
// operation; nil reads to the end.
func (c *comparison) readBatches(until *batch.UUID) error {
	for !c.ended && (until == nil || c.batch == nil || bytes.Compare(c.batch[:], until[:]) <= 0) {
		read := 0
		err := c.eachBatch(c.tx, c.batch, batchesRead, func(row *TrailBatchRow) error {
			read++
			id := row.BatchID
			c.batch = &id
			b, err := row.batch()
			if err != nil {
				return c.changedBatch(operation.ID(id))
			}
			seal, err := c.note(row, b.Record())
			if err != nil {
				return err
			}
			for i := range b.Entries {
				e := &b.Entries[i]
				if err := c.entry(e, c.isLate(operation.ID(id), e, seal)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := c.records(); err != nil {
			return err
		}
		c.ended = read < batchesRead
	}
	return nil
}

// A leaf is written with its rows. Only when the trail begins, older rows get
// their leaves. longestLate is the most that an import, or the beginning, takes.
const longestLate = 24 * time.Hour

// isLate reports whether a leaf was written long after its rows. Somebody who
// sets the state of the log back can make the service take rows over that it has
// not written. The seals of earlier versions do not tell such batches from others.
func (c *comparison) isLate(in operation.ID, e *trail.Entry, seal trail.Seal) bool {
	written := in.Time()
	if c.begun.IsZero() {
		c.begun = written
	}
	switch e.Kind {
	case trail.Settled, trail.Priced, trail.Changed, trail.Reversed: // their IDs do not say when
		return false
	default:
	}
	return (seal.IsAdopted || !seal.IsBound) && isTimed(in) && isTimed(e.ID) && written.Sub(e.ID.Time()) > longestLate && written.Sub(c.begun) > longestLate
}

// isTimed reports whether an ID has a time: whether it is a UUID of version 7.
func isTimed(id operation.ID) bool { return id[6]>>4 == 7 }

// note keeps the record for its turn in the log. It returns what the seal says.
func (c *logComparison) note(row *TrailBatchRow, record []byte) (trail.Seal, error) {
	seal, ok := c.w.Keys.OpenSeal(record, row.Entries, row.Seal)
	r := &backoffice.BatchRow{ID: operation.ID(row.BatchID), Record: record, IsSealed: ok}
	if ok && seal.IsBound {
		r.Base = &seal.Base
	}
	if ok && row.isElsewhere(&seal) {
		r.Base = &trail.Base{Size: -1} // no log has it
	}
	if !row.Position.Valid {
		r.Record = nil
		c.opened = append(c.opened, r)
		if ok {
			return seal, nil
		}
		return seal, c.changedBatch(r.ID)
	}
	position := row.Position.Int64
	if other, twice := c.early[position]; twice || position < c.next {
		if twice { // one of them was there
			if err := c.changedBatch(other.ID); err != nil {
				return seal, err
			}
		}
		return seal, c.changedBatch(r.ID)
	}
	c.early[position] = r
	return seal, nil
}

// compareOpen names the open batches that were made for another log.
func (c *logComparison) compareOpen() error {
	log := trailLog{c.rowReader}
	known := log.knownRoots()
	for _, r := range c.opened {
		if r.Base == nil {
			continue
		}
		has, err := log.has(c.tx, *r.Base, known)
		if err == nil && !has {
			err = c.w.Foreign(r.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// records hands over the records whose turn it is.
func (c *logComparison) records() error {
	for {
		r, ok := c.early[c.next]
		if !ok {
			return nil
		}
		delete(c.early, c.next)
		c.next++
		if c.missing {
			r.Base = nil
		}
		if err := c.w.Record(r); err != nil {
			return err
		}
		if err := c.hashes(c.next); err != nil {
			return err
		}
	}
}

// hashesRead is how many stored hashes are read together.
const hashesRead = 1000

// hashes hands over the hashes that are stored for the last record of a log of
// that size.
func (c *logComparison) hashes(size int64) error {
	if c.missing {
		return nil
	}
	first, end := trail.StoredHashes(size-1), trail.StoredHashes(size)
	if end > c.read {
		c.read = end + hashesRead
		err := c.tx.Table(c.prefix+"trail_hashes").Where("hash_index >= ? AND hash_index < ?", first, c.read).Order("hash_index").Find(&c.nodes).Error
		if err != nil {
			return err
		}
	}
	hashes := make([]trail.Hash, end-first)
	for len(c.nodes) > 0 && c.nodes[0].HashIndex < end {
		if row := &c.nodes[0]; row.HashIndex >= first && len(row.Hash) == len(trail.Hash{}) {
			hashes[row.HashIndex-first] = trail.Hash(row.Hash)
		}
		c.nodes = c.nodes[1:]
	}
	return c.w.Hashes(hashes)
}

// hasOtherHashes reports whether a log of that size stores more hashes than its batches
// have.
func (c *logComparison) hasOtherHashes(size int64) (bool, error) {
	var other []int64
	err := c.tx.Table(c.prefix+"trail_hashes").Where("hash_index < 0 OR hash_index >= ?", trail.StoredHashes(size)).Limit(1).Pluck("hash_index", &other).Error
	return len(other) > 0, err
}

// gaps names the batches that are missing in a log of that size, and those that
// are behind its end.
func (c *logComparison) gaps(size int64) error {
	places := slices.Sorted(maps.Keys(c.early))
	for i, place := range places {
		if place >= size {
			if err := c.changedBatch(c.early[place].ID); err != nil {
				return err
			}
			places[i] = size
		}
	}
	for _, next := range append(places, size) {
		if next > c.next {
			name := fmt.Sprintf("batch %d of the log", c.next+1)
			if next > c.next+1 {
				name = fmt.Sprintf("batch %d to %d of the log", c.next+1, next)
			}
			if err := c.found(&backoffice.LeafRow{Name: name, HasLeaf: true}); err != nil {
				return err
			}
			c.next, c.missing = next, true
		}
		if err := c.records(); err != nil {
			return err
		}
	}
	return nil
}

func (c *logComparison) changedBatch(id operation.ID) error {
	return c.found(&backoffice.LeafRow{Name: "batch " + id.String(), HasRows: true, HasLeaf: true})
}

func (c *comparison) entry(e *trail.Entry, late bool) error {
	key := leafKey{e.Kind, e.ID}
	if late && e.Kind != trail.Posted {
		if err := c.late(e); err != nil {
			return err
		}
	}
	switch e.Kind {
	case trail.Decided, trail.Settled:
		if s, ok := c.rows[key]; ok {
			delete(c.rows, key)
			return c.judge(s, e.Leaf)
		}
		c.leaves[key] = e.Leaf
	case trail.Notified, trail.Answered: // compareOthers
	default:
		f := c.few[key]
		if f == nil {
			f = &fewLeaf{}
			c.few[key] = f
		}
		f.seen, f.late = true, f.late || late
		switch matches := f.name != "" && f.Leaf == e.Leaf; {
		case e.Kind == trail.Changed: // the newest one counts
			f.matched = matches
		case matches:
			f.matched = true
		}
		if f.name == "" {
			f.Entry = *e
		}
	}
	return nil
}

func (c *comparison) late(e *trail.Entry) error {
	return c.found(&backoffice.LeafRow{Name: c.name(e.Kind, e.ID), HasRows: true, IsLate: true})
}

// leftover judges what has no counterpart.
func (c *comparison) leftover() error {
	for i := range c.doubted {
		s := &c.doubted[i]
		switch misplaced, err := c.isMisplaced(s); {
		case err != nil:
			return err
		case misplaced:
			continue
		}
		delete(c.leaves, leafKey{trail.Settled, s.ID})
		if err := c.found(&backoffice.LeafRow{Name: s.name, HasRows: true, HasLeaf: true}); err != nil {
			return err
		}
	}
	for key := range c.leaves {
		if _, ok := c.rows[leafKey{trail.Decided, key.id}]; ok {
			continue // its first leaf is missing, which is found below
		}
		if err := c.found(&backoffice.LeafRow{Name: c.name(key.kind, key.id), HasLeaf: true}); err != nil {
			return err
		}
	}
	for _, s := range c.rows {
		if err := c.found(&backoffice.LeafRow{Name: s.name, HasRows: true}); err != nil {
			return err
		}
	}
	for _, f := range c.few {
		if f.late {
			if err := c.late(&f.Entry); err != nil {
				return err
			}
		}
		row := backoffice.LeafRow{Name: f.name, HasRows: f.name != "", HasLeaf: f.seen}
		if row.Name == "" {
			row.Name = c.name(f.Kind, f.ID)
		}
		if !f.matched {
			if err := c.found(&row); err != nil {
				return err
			}
		}
	}
	return nil
}

// name names a leaf without its rows.
func (c *comparison) name(kind trail.Kind, id operation.ID) string {
	for _, of := range c.leafKinds() {
		if !of.is(kind) {
			continue
		}
		if kind == trail.Changed { // the leaf has its name's hash only, and acts mention the name
			var objects []string
			_ = c.tx.Table(c.audits.Name).Distinct().Pluck("object", &objects).Error // then the hash must do
			if at := slices.IndexFunc(objects, func(object string) bool { return trail.NameID(object) == id }); at >= 0 {
				return fmt.Sprintf("subscription %q", objects[at])
			}
		}
		return of.nameOf(id)
	}
	switch kind {
	case trail.Posted:
		return "postings of " + id.String()
	case trail.Erased:
		return "erasure " + id.String()
	default:
	}
	return fmt.Sprintf("operation %s (%s)", id, kind)
}

// partSize bounds how many notifications and answers are compared at once: they
// have no order in common with the batches.
const partSize = 1_000_000

type otherLeaf struct {
	name    string
	leaf    trail.Hash
	id      operation.ID
	matched bool // a leaf is its own
	// own is the first place of its leaf, first that of any leaf with its digest.
	own, first place
}

// place is where a batch is. The log has the order in which batches were written, nearly: a
// clock that is ahead makes IDs that are not in this order. The time orders what is sealed
// together.
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

// compareOthers compares notifications and answers without sales, in parts. It
// shares nothing with compareLog.
func (c *comparison) compareOthers(tx *gorm.DB) error {
	other := comparison{logComparison: newLogComparison(c.rowReader, tx, c.w), ctx: c.ctx}
	return other.compareParts()
}

func (c *comparison) compareParts() error {
	var notifications, answers int64
	if err := c.tx.Table(c.notifications.Name).Count(&notifications).Error; err != nil {
		return err
	}
	if err := c.tx.Table(c.operations.Name).Count(&answers).Error; err != nil {
		return err
	}
	parts := min(1+(notifications+answers)/partSize, 256)
	for part := range parts {
		if err := c.comparePart(func(last byte) bool { return int64(last)%parts == part }); err != nil {
			return err
		}
	}
	return nil
}

type otherKey struct {
	id     operation.ID // of an answer
	digest trail.Hash   // of a notification
}

func (c *comparison) comparePart(own func(last byte) bool) error {
	rows := make(map[otherKey]*otherLeaf)
	err := c.eachAnswer(c.tx, func(s storedLeaf) error {
		if !own(s.ID[15]) {
			return nil
		}
		key := otherKey{id: s.ID}
		if rows[key] != nil {
			return c.found(&backoffice.LeafRow{Name: s.name, HasRows: true})
		}
		rows[key] = &otherLeaf{name: s.name, leaf: s.Leaf, id: s.ID}
		return nil
	})
	if err != nil {
		return err
	}
	err = c.eachNotification(c.tx, c.w.Keys, func(s storedLeaf, texts bool) error {
		if !own(s.Digest[31]) {
			return nil
		}
		if !texts {
			if err := c.found(&backoffice.LeafRow{Name: s.name, HasRows: true, HasLeaf: true, HasOtherTexts: true}); err != nil {
				return err
			}
		}
		key := otherKey{digest: s.Digest}
		if rows[key] != nil {
			return c.found(&backoffice.LeafRow{Name: s.name, HasRows: true})
		}
		rows[key] = &otherLeaf{name: s.name, leaf: s.Leaf, id: s.ID}
		return nil
	})
	if err != nil {
		return err
	}
	err = c.eachBatch(c.tx, nil, 0, func(row *TrailBatchRow) error {
		b, err := row.batch()
		if err != nil {
			return nil //nolint:nilerr // readBatches has found it
		}
		for i := range b.Entries {
			e := &b.Entries[i]
			digest := c.entryDigest(row, e)
			key, last := otherKey{digest: digest}, digest[31]
			switch e.Kind {
			case trail.Notified:
			case trail.Answered:
				key, last = otherKey{id: e.ID}, e.ID[15]
			default:
				continue
			}
			if !own(last) {
				continue
			}
			s := rows[key]
			if s == nil {
				if err := c.found(&backoffice.LeafRow{Name: c.name(e.Kind, e.ID), HasLeaf: true}); err != nil {
					return err
				}
				continue
			}
			at := place{isOpen, operation.ID(row.BatchID).Time()}
			if row.Position.Valid {
				at.position = row.Position.Int64
			}
			if s.first.note(at); s.leaf == e.Leaf { // otherwise it came again: its digest leads to the stored one
				s.matched = true
				s.own.note(at)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range rows {
		if !s.matched || s.own.isLongAfter(s.first) {
			if err := c.found(&backoffice.LeafRow{Name: s.name, HasRows: true, HasLeaf: false}); err != nil {
				return err
			}
		}
	}
	return nil
}
