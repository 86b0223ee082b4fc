// Package proof compares what a storage has with the leaves in its log, for verify. It knows no
// table: a storage passes what it reads as values of the domain.
package proof

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
	"bankingapi/domain/push"
)

// Flaw says how what is stored differs from the log.
type Flaw uint8

// The flaws.
const (
	Changed    Flaw = iota + 1 // it has another leaf
	Added                      // it has no leaf
	Removed                    // a leaf is there for which nothing is stored
	Late                       // the leaf was written long after its time, and not when the trail began
	OtherTexts                 // the texts of a message are not those of its identity
)

// Comparison compares stored operations, acts, prices, subscriptions and the calendar with the
// entries of the log. Feed operations and entries in the order of their IDs, so that few of them
// wait in memory: an operation waits for its leaves, and a leaf for its operation. It is not safe
// for concurrent use.
type Comparison struct {
	keys       *proof.Keys
	identifier *push.Identifier
	report     func(Flaw, string)
	waiting    map[key]*waiting
	// elsewhere are messages of entries that their operation has not stored. Another operation
	// has stored them before.
	elsewhere []elsewhere
	// suspects are messages that an operation has stored long after another one named them.
	suspects []suspect
	flawed   map[operation.ID]bool // operations that are reported
	begun    time.Time             // when the log began: a command with the key may have written batches before

	// Compared counts what was stored. Messages and Refusals are parts of it.
	Compared           map[proof.Kind]int64
	Messages, Refusals int64
}

// key names what waits. The ends of an operation wait together.
type key struct {
	kind proof.Kind
	id   operation.ID
}

// isOfOperation reports whether an operation is reported, once, and not its leaf.
func (k key) isOfOperation() bool {
	return k.kind == proof.Sale || k.kind == proof.End || k.kind == proof.Push
}

// waiting is what is stored under a key, and the leaves with this key, until they match.
type waiting struct {
	name   string // of what is stored; empty if nothing was read
	stored []proof.Hash
	leaves []proof.Hash
	newest Place // of the leaf, if the newest counts
	// push and entry are of a push.
	push  *proof.Stored
	entry *proof.Entry
	at    Place // of entry
}

// elsewhere is a message of a push that must be stored by another one.
type elsewhere struct {
	identity push.Identity
	of       operation.ID
	index    int
	at       Place // of the entry that names it
}

// Stored says which operation has stored a message, and its index there.
type Stored struct {
	Operation operation.ID
	Index     int
}

// suspect is a message, and the place of an entry that names it.
type suspect struct {
	stored Stored
	at     Place
}

// NewComparison returns a comparison. identifier has the key of the book.
func NewComparison(keys *proof.Keys, identifier *push.Identifier, report func(Flaw, string)) *Comparison {
	return &Comparison{
		keys: keys, identifier: identifier, report: report, waiting: make(map[key]*waiting),
		flawed: make(map[operation.ID]bool), Compared: make(map[proof.Kind]int64),
	}
}

// Place is the place of a batch in the order of the log.
type Place struct {
	// Position is the index in the log. It is Open for a batch that is not sealed yet.
	Position int64
	Batch    operation.ID
}

// Open is the position of a batch that is not sealed yet.
const Open = math.MaxInt64

// IsBefore reports whether the place is before the other one.
func (p Place) IsBefore(other Place) bool { return p.compare(other) < 0 }

func (p Place) compare(other Place) int {
	return cmp.Or(cmp.Compare(p.Position, other.Position), bytes.Compare(p.Batch[:], other.Batch[:]))
}

// CalendarName names the closed days of the bank in findings.
const CalendarName = "the calendar of closed days"

// OperationName names an operation in findings.
func OperationName(id operation.ID) string { return "operation " + id.String() }

// endName names the leaves of ends that nothing stored has, while the rest of the operation is
// right. They have one key, so it is not known which of the two it is.
func endName(id operation.ID) string { return "end or reversal of " + OperationName(id) }

func messageName(id operation.ID, index int) string {
	return fmt.Sprintf("notification %s/%d", id, index)
}

// flaw reports an operation once.
func (c *Comparison) flaw(flaw Flaw, id operation.ID) { c.flawAs(flaw, id, OperationName(id)) }

func (c *Comparison) flawAs(flaw Flaw, id operation.ID, name string) {
	if !c.flawed[id] {
		c.flawed[id] = true
		c.report(flaw, name)
	}
}

func (c *Comparison) at(k key) *waiting {
	w := c.waiting[k]
	if w == nil {
		w = new(waiting)
		c.waiting[k] = w
	}
	return w
}

// Operation compares a stored operation. contradicts says that its rows contradict each other,
// or have values that the service never writes: then they were changed.
func (c *Comparison) Operation(o *proof.Stored, contradicts bool) {
	if contradicts {
		c.flaw(Changed, o.ID)
	}
	if o.Operation == operation.AddPushNotificationResponse {
		c.push(o)
		return
	}
	if o.State == operation.Failed && o.DueOn.IsNone() {
		c.Refusals++
	}
	for _, e := range proof.Of(c.keys, o) {
		c.Row(e, OperationName(o.ID))
	}
}

// push waits for its entry, which has the identities of all messages of the request. A storage
// has only those that this operation stored first.
func (c *Comparison) push(o *proof.Stored) {
	for i := range o.Messages {
		m := &o.Messages[i]
		c.Messages++
		if m.Erasure == nil && c.identifier.Of(m.Subscription, &m.Values) != m.Identity {
			c.report(OtherTexts, messageName(o.ID, m.Index))
		}
	}
	k := key{proof.Push, o.ID}
	w := c.at(k)
	if w.push != nil {
		c.flaw(Added, o.ID)
		return
	}
	c.Compared[proof.Push]++
	kept := *o
	kept.Messages = slices.Clone(o.Messages)
	w.push = &kept
	w.name = OperationName(o.ID)
	c.match(k, w)
}

// Row compares what has one leaf of its own.
func (c *Comparison) Row(e proof.Entry, name string) {
	if IsNoClosedDay(&e) {
		return // nothing is stored
	}
	c.Compared[e.Kind]++
	k := key{e.Kind, e.ID}
	w := c.at(k)
	if w.name != "" && e.Kind != proof.End { // only a table that has lost its primary key has a row twice
		c.report(Added, name)
		return
	}
	w.name = name
	w.stored = append(w.stored, e.Leaf)
	c.match(k, w)
}

// Batch compares the entries of a batch. The caller reports batches that are not genuine.
func (c *Comparison) Batch(b *proof.Batch, at Place, p *proof.Provenance) {
	if c.begun.IsZero() && p.IsAdopted && !p.ByAct {
		c.begun = b.ID.Time()
	}
	for i := range b.Entries {
		e := &b.Entries[i]
		k := key{e.Kind, e.ID}
		if c.isLate(b.ID, e, p) {
			c.report(Late, c.nameOf(k))
		}
		w := c.at(k)
		switch {
		case NewestCounts(e.Kind):
			if w.newest != (Place{}) && at.IsBefore(w.newest) {
				continue
			}
			w.leaves = []proof.Hash{e.Leaf}
			w.newest = at
			if IsNoClosedDay(e) {
				w.leaves = nil
			}
		case e.Kind == proof.Push && w.entry != nil, e.Kind != proof.End && len(w.leaves) > 0:
			c.removed(k)
		case e.Kind == proof.Push:
			kept := *e
			w.entry = &kept
			w.at = at
			c.match(k, w)
		default:
			w.leaves = append(w.leaves, e.Leaf)
			c.match(k, w)
		}
	}
}

// NewestCounts reports whether what is stored must have only the newest of its leaves.
func NewestCounts(k proof.Kind) bool {
	return k == proof.Price || k == proof.Subscription || k == proof.Calendar
}

// IsNoClosedDay reports whether an entry is that of an empty calendar. Then a storage has nothing, and a
// log may have no entry.
func IsNoClosedDay(e *proof.Entry) bool { return e.Kind == proof.Calendar && e.Leaf == noClosedDays }

// noClosedDays is the leaf of an empty calendar.
var noClosedDays = func() proof.Hash { l := proof.OfCalendar(nil); return l.Leaf.Hash() }()

// longestLate is the maximum duration of an import, or of the beginning of the trail. A leaf is
// written together with what it is about. Only when the trail begins, or when a person takes
// rows into the log, older rows get leaves.
const longestLate = 24 * time.Hour

// isLate reports whether a leaf was written long after its time. A person who resets the state
// of the log can make the service take over rows that the service did not write.
func (c *Comparison) isLate(batch operation.ID, e *proof.Entry, p *proof.Provenance) bool {
	if e.Kind == proof.End || NewestCounts(e.Kind) { // their IDs do not have the time
		return false
	}
	written := batch.Time()
	return p.IsAdopted && !p.ByAct && isTimed(batch) && isTimed(e.ID) && written.Sub(e.ID.Time()) > longestLate && written.Sub(c.begun) > longestLate
}

// isTimed reports whether an ID contains a time, that is, whether it is a UUID of version 7.
func isTimed(id operation.ID) bool { return id[6]>>4 == 7 }

// match forgets what matches.
func (c *Comparison) match(k key, w *waiting) {
	if NewestCounts(k.kind) {
		return // a newer leaf may follow
	}
	if k.kind == proof.Push {
		if w.push != nil && w.entry != nil {
			c.matchPush(w.push, w.entry, w.at)
			delete(c.waiting, k)
		}
		return
	}
	for i := 0; i < len(w.stored); {
		at := slices.Index(w.leaves, w.stored[i])
		if at < 0 {
			i++
			continue
		}
		w.leaves = slices.Delete(w.leaves, at, at+1)
		w.stored = slices.Delete(w.stored, i, i+1)
	}
	if len(w.stored) == 0 && len(w.leaves) == 0 {
		delete(c.waiting, k)
	}
}

// matchPush compares a push with its entry. Every stored message must be named at its place in
// the request. Every other message of the request must be stored by another operation.
func (c *Comparison) matchPush(o *proof.Stored, e *proof.Entry, at Place) {
	o.Identities = e.Identities
	of := proof.Of(c.keys, o)
	if of[0].Leaf != e.Leaf {
		c.flaw(Changed, o.ID)
	}
	named := make(map[int]bool)
	for i := range o.Messages {
		m := &o.Messages[i]
		switch {
		case m.Index < 0 || m.Index >= len(e.Identities) || named[m.Index]:
			c.report(Added, messageName(o.ID, m.Index))
			continue
		case m.Identity != e.Identities[m.Index]:
			c.report(Changed, messageName(o.ID, m.Index))
		}
		named[m.Index] = true
	}
	for i, identity := range e.Identities {
		if !named[i] && identity != (push.Identity{}) {
			c.elsewhere = append(c.elsewhere, elsewhere{identity, o.ID, i, at})
		}
	}
}

// Elsewhere returns the identities of messages that must be stored. The caller looks them up and
// calls Found. Call it after each page.
func (c *Comparison) Elsewhere() []push.Identity {
	identities := make([]push.Identity, len(c.elsewhere))
	for i := range c.elsewhere {
		identities[i] = c.elsewhere[i].identity
	}
	return identities
}

// Found receives who has stored the messages of the last Elsewhere.
func (c *Comparison) Found(stored map[push.Identity]Stored) {
	type missing struct {
		of       operation.ID
		identity push.Identity
	}
	reported := make(map[missing]bool) // a request may have a message twice
	for i := range c.elsewhere {
		m := &c.elsewhere[i]
		found, ok := stored[m.identity]
		switch {
		case !ok && reported[missing{m.of, m.identity}]:
		case !ok:
			reported[missing{m.of, m.identity}] = true
			c.report(Removed, messageName(m.of, m.index))
		case found.Operation.Time().Sub(m.at.Batch.Time()) > longestLate:
			c.suspects = append(c.suspects, suspect{found, m.at})
		}
	}
	c.elsewhere = c.elsewhere[:0]
}

// Suspects calls placeOf for operations that have stored a message although another operation
// named it long before. They are reported, unless their entry is the earlier one in the log: a
// clock may have been ahead. placeOf returns the place of the entry of an operation.
func (c *Comparison) Suspects(placeOf func(operation.ID) (Place, error)) error {
	for _, s := range c.suspects {
		at, err := placeOf(s.stored.Operation)
		if err != nil {
			return err
		}
		isLater := at.Position > s.at.Position || at.Position == Open
		if isLater && at.Batch.Time().Sub(s.at.Batch.Time()) > longestLate {
			c.report(Added, messageName(s.stored.Operation, s.stored.Index))
		}
	}
	c.suspects = nil
	return nil
}

func (c *Comparison) removed(k key) {
	if k.isOfOperation() {
		c.flaw(Removed, k.id)
		return
	}
	c.report(Removed, c.nameOf(k))
}

// nameOf names a leaf without anything stored.
func (c *Comparison) nameOf(k key) string {
	switch k.kind {
	case proof.Act:
		return "act " + k.id.String()
	case proof.Price:
		return fmt.Sprintf("price %d", proof.ParsePriceID(k.id))
	case proof.Subscription:
		return fmt.Sprintf("subscription %q", k.id.String())
	case proof.Calendar:
		return CalendarName
	default:
		return OperationName(k.id)
	}
}

// End reports what still waits. nameOf returns the name of a subscription from the ID of its
// leaf, or "".
func (c *Comparison) End(nameOf func(operation.ID) string) {
	left := slices.SortedFunc(maps.Keys(c.waiting), func(a, b key) int {
		return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.kind, b.kind))
	})
	for _, k := range left {
		w := c.waiting[k]
		flaw := w.flaw(k.kind)
		if flaw == 0 {
			continue
		}
		if k.kind == proof.End && flaw == Removed { // without its sale it was reported before
			c.flawAs(flaw, k.id, endName(k.id))
			continue
		}
		if k.isOfOperation() {
			c.flaw(flaw, k.id)
			continue
		}
		name := w.name
		if name == "" && k.kind == proof.Subscription {
			name = fmt.Sprintf("subscription %q", cmp.Or(nameOf(k.id), k.id.String()))
		}
		if name == "" {
			name = c.nameOf(k)
		}
		c.report(flaw, name)
	}
	clear(c.waiting)
}

// flaw says what is wrong at the end. It is 0 if what is stored has the newest leaf.
func (w *waiting) flaw(kind proof.Kind) Flaw {
	switch {
	case kind == proof.Calendar && len(w.stored)+len(w.leaves) == 0: // no day was closed, and none is
		return 0
	case w.name == "":
		return Removed
	case kind == proof.Push || len(w.leaves) == 0:
		return Added
	case len(w.stored) != 1 || w.stored[0] != w.leaves[0]:
		return Changed
	}
	return 0
}
