package fake

import (
	"context"
	"errors"
	"slices"

	application "bankingapi/application/trail"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// Trail implements the ports of package application/trail on a Store.
type Trail struct {
	store  *Store
	strike Strike
}

// Trail returns the ports. Call it before anything is stored. strike may be nil.
func (s *Store) Trail(strike Strike) application.Ports {
	s.trail = new(trailLog)
	t := Trail{s, strike}
	return application.Ports{Writer: t, Log: t, Finder: t, Origin: t}
}

// trailLog is the trail of a Store.
type trailLog struct {
	keys   *proof.Keys // nil before Use
	newID  func() operation.ID
	begun  bool
	base   proof.Base
	open   pending // of the transaction that runs
	older  pending // what was written before Use
	sealed int
	all    []sealedBatch
	state  application.State
	hashes map[int64]proof.Hash
}

// pending are functions that make the entries of a transaction.
type pending []func(*proof.Keys) []proof.Entry

type sealedBatch struct {
	proof.Batch
	mac []byte
}

// prove adds entries to the transaction that runs.
func (s *Store) prove(entries func(*proof.Keys) []proof.Entry) {
	if s.trail != nil {
		s.trail.open = append(s.trail.open, entries)
	}
}

func entriesOf(l proof.Named) []proof.Entry { return []proof.Entry{l.Entry()} }

func (s *Store) provePrice(p fund.Price) {
	act := s.priceActs[p.ID].ID
	s.prove(func(*proof.Keys) []proof.Entry { return entriesOf(proof.OfPrice(&p, act)) })
}

func (s *Store) proveSubscription(name string) {
	changed := s.subscriptions[name]
	s.prove(func(*proof.Keys) []proof.Entry { return entriesOf(proof.OfSubscription(&changed)) })
}

// commit makes a batch of the entries of a transaction.
func (l *trailLog) commit(done bool) {
	if l == nil {
		return
	}
	p := l.open
	l.open = nil
	switch {
	case !done:
	case l.keys == nil:
		l.older = append(l.older, p...)
	default:
		l.add(p)
	}
}

// add adds a batch and returns the number of its entries. It adds no batch without entries.
func (l *trailLog) add(p pending) int64 {
	b := proof.Batch{}
	for _, entries := range p {
		b.Entries = append(b.Entries, entries(l.keys)...)
	}
	if len(b.Entries) == 0 {
		return 0
	}
	b.ID = l.newID()
	mac := l.keys.MAC(b.Record(), proof.AppendEntries(nil, b.Entries), proof.Provenance{Base: l.base})
	l.all = append(l.all, sealedBatch{b, mac})
	return int64(len(b.Entries))
}

// Use implements Writer.
func (t Trail) Use(keys *proof.Keys, newID func() operation.ID) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	t.store.trail.keys = keys
	t.store.trail.newID = newID
}

// Follow implements Writer.
func (t Trail) Follow(base proof.Base) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	t.store.trail.base = base
}

// Clear implements Origin.
func (t Trail) Clear(ctx context.Context, act audit.Act) error {
	return t.change(ctx, func(l *trailLog) {
		t.store.acts = append(t.store.acts, act)
		for i := range l.all {
			entries := l.all[i].Entries
			l.older = append(l.older, func(*proof.Keys) []proof.Entry { return entries })
		}
		l.older = append(l.older, func(keys *proof.Keys) []proof.Entry { return entriesOf(t.store.actLeaf(keys, act.ID)) })
		l.begun = false
		l.base = proof.Base{}
		l.sealed = 0
		l.all = nil
		l.state = application.State{}
		l.hashes = nil
	})
}

func (t Trail) change(ctx context.Context, do func(*trailLog)) error {
	return t.store.transact(ctx, t.strike, func() {}, func() error { return nil }, func() error {
		do(t.store.trail)
		return nil
	})
}

// Adopt implements Origin.
func (t Trail) Adopt(ctx context.Context) (leaves int64, err error) {
	err = t.change(ctx, func(l *trailLog) {
		if l.keys == nil || l.begun {
			return
		}
		l.begun = true
		leaves = l.add(l.older)
		l.older = nil
	})
	return leaves, err
}

// TakeIn implements Origin. Whatever the fake writes after the log has begun has its leaf.
func (t Trail) TakeIn(ctx context.Context, _ func([]string) audit.Act) ([]string, error) {
	return nil, t.change(ctx, func(*trailLog) {})
}

// State implements Log.
func (t Trail) State(ctx context.Context) (state application.State, err error) {
	err = t.store.read(ctx, t.strike, func() { state = t.store.trail.state })
	return state, err
}

// Seal implements Log.
func (t Trail) Seal(ctx context.Context, limit int, mark bool, seal application.Seal) (round application.Round, err error) {
	l := t.store.trail
	var state application.State
	var marked sealedBatch
	var records [][]byte
	var added application.Sealed
	err = t.store.transact(ctx, t.strike,
		func() {
			state = l.state
			records = nil
			if mark {
				marked.ID = l.newID()
				records = append(records, marked.Record())
			}
			for i := l.sealed; i < min(len(l.all), l.sealed+limit-len(records)); i++ {
				records = append(records, l.all[i].Record())
			}
		},
		func() error {
			if len(records) == 0 {
				return nil
			}
			added, err = seal(state, records, func(indexes []int64) ([]proof.Hash, error) { return t.Hashes(ctx, indexes) })
			return err
		},
		func() error {
			if len(records) == 0 {
				return nil
			}
			if mark {
				l.all = slices.Insert(l.all, l.sealed, marked)
			}
			l.sealed += len(records)
			l.state = application.State{Size: state.Size + int64(len(records)), Checkpoint: added.Checkpoint}
			if l.hashes == nil {
				l.hashes = make(map[int64]proof.Hash)
			}
			for i, hash := range added.Hashes {
				l.hashes[added.First+int64(i)] = hash
			}
			return nil
		})
	if err != nil {
		return round, err
	}
	round.Sealed = len(records)
	return round, nil
}

// Hashes implements Log.
func (t Trail) Hashes(ctx context.Context, indexes []int64) (found []proof.Hash, err error) {
	missing := false
	err = t.store.read(ctx, t.strike, func() {
		for _, index := range indexes {
			hash, ok := t.store.trail.hashes[index]
			missing = missing || !ok
			found = append(found, hash)
		}
	})
	if err == nil && missing {
		err = errors.New("the trail does not have this hash")
	}
	return found, err
}

// IsOf implements Log.
func (t Trail) IsOf(ctx context.Context, keys *proof.Keys) (own bool, err error) {
	err = t.store.read(ctx, t.strike, func() {
		all := t.store.trail.all
		own = len(all) == 0
		for i := range all {
			b := &all[i]
			if keys != nil && !own {
				_, own = keys.OpenMAC(b.Record(), proof.AppendEntries(nil, b.Entries), b.mac)
			}
		}
	})
	return own, err
}

// Leaves implements Finder.
func (t Trail) Leaves(ctx context.Context, id operation.ID) (found []application.Leaf, err error) {
	err = t.store.read(ctx, t.strike, func() {
		l := t.store.trail
		if l.keys == nil {
			return
		}
		stored := t.store.stored(id)
		var leaves []proof.Named
		if stored != nil {
			leaves = proof.Leaves(l.keys, stored)
		} else {
			leaves = []proof.Named{t.store.actLeaf(l.keys, id)}
		}
		for i := range leaves {
			leaf := l.find(&leaves[i], stored)
			if leaf != nil {
				found = append(found, *leaf)
			}
		}
	})
	if err == nil && len(found) == 0 {
		err = application.ErrNotFound
	}
	return found, err
}

// find looks for a leaf in the batches. The entry of a push has the identities of all its
// messages.
func (l *trailLog) find(wanted *proof.Named, stored *proof.Stored) *application.Leaf {
	for place := range l.all {
		b := &l.all[place]
		for i := range b.Entries {
			e := &b.Entries[i]
			if e.Kind != wanted.Kind || e.ID != wanted.ID {
				continue
			}
			if e.Kind == proof.Push {
				stored.Identities = e.Identities
				wanted = &proof.Leaves(l.keys, stored)[0]
			}
			if wanted.Leaf.Hash() != e.Leaf {
				continue
			}
			found := &application.Leaf{Content: wanted.Leaf.Content(), Batch: b.Batch, Index: i, BatchIndex: int64(place)}
			if place >= l.sealed {
				found.BatchIndex = -1
			}
			return found
		}
	}
	return nil
}

// actLeaf is the leaf of an act, or of postings without an act.
func (s *Store) actLeaf(keys *proof.Keys, id operation.ID) proof.Named {
	for i := range s.acts {
		if s.acts[i].ID == id {
			return proof.OfAct(id, &s.acts[i], s.adjusted(keys, id), nil)
		}
	}
	return proof.OfAct(id, nil, s.adjusted(keys, id), nil)
}

// stored is everything that is stored of an operation, or nil.
func (s *Store) stored(id operation.ID) *proof.Stored {
	o, exists := s.operation(id)
	decision, isDecided := o.Decision()
	if !exists || !isDecided {
		return nil
	}
	stored := &proof.Stored{
		Envelope: decision.Envelope, Operation: decision.Operation, State: decision.State, Faults: decision.Faults,
		Sales: append(o.Sales, o.RefusedSales...), Messages: o.Notifications, Reversal: o.Reversal,
	}
	if o.Record != nil {
		stored.Fingerprint = o.Record.Fingerprint
	}
	if len(o.Sales) > 0 {
		stored.EndedAt = o.Sales[0].SettledAt
	}
	if s.recorded[id] {
		stored.DueOn = o.Sales[0].Terms.SelectedDay
	}
	for _, e := range s.ended {
		switch {
		case e.OperationID != id:
		case e.Reversed:
			stored.ReversalNumber = e.Number
		default:
			stored.DueOn = o.Sales[0].Terms.SelectedDay
			stored.Faults = e.Faults
			stored.EndNumber = e.Number
		}
	}
	return stored
}
