package fake

import (
	"context"
	"errors"
	"fmt"
	"slices"

	application "bankingapi/application/trail"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// Trail implements the ports of package application/trail on a Store. A leaf has
// the values of this store as text.
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
	keys   *trail.Keys // nil before Use
	newID  func() operation.ID
	begun  bool
	base   trail.Base
	open   pending // of the transaction that runs
	older  pending // what was written before Use
	sealed int
	all    []sealedBatch
	state  application.State
	hashes map[int64]trail.Hash
}

type pending struct {
	entries  []trail.Entry
	contents [][]byte
}

type sealedBatch struct {
	trail.Batch
	contents [][]byte
	mac      []byte
}

// leaf adds a leaf to the transaction that runs.
func (s *Store) leaf(kind trail.Kind, id operation.ID, table string, values ...any) {
	if s.trail == nil {
		return
	}
	l := trail.NewLeaf(nil, kind, id)
	for _, value := range values {
		l.BeginRow(table)
		l.Text("value", fmt.Sprintf("%+v", value))
		l.EndRow()
	}
	p := &s.trail.open
	p.entries = append(p.entries, trail.Entry{Kind: kind, ID: id, Leaf: l.Hash()})
	p.contents = append(p.contents, l.Content())
}

// commit makes a batch of the leaves of a transaction.
func (l *trailLog) commit(done bool) {
	if l == nil {
		return
	}
	p := l.open
	l.open = pending{}
	switch {
	case !done || len(p.entries) == 0:
	case l.keys == nil:
		l.older.entries, l.older.contents = append(l.older.entries, p.entries...), append(l.older.contents, p.contents...)
	default:
		l.add(p)
	}
}

func (l *trailLog) add(p pending) {
	b := trail.Batch{ID: l.newID(), Entries: p.entries}
	l.all = append(l.all, sealedBatch{b, p.contents, l.keys.MAC(b.Record(), trail.AppendEntries(nil, b.Entries), trail.Provenance{Base: l.base})})
}

// Use implements Writer.
func (t Trail) Use(keys *trail.Keys, newID func() operation.ID) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	t.store.trail.keys, t.store.trail.newID = keys, newID
}

// Follow implements Writer.
func (t Trail) Follow(base trail.Base) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	t.store.trail.base = base
}

// Clear implements Origin.
func (t Trail) Clear(ctx context.Context) error {
	return t.change(ctx, func(l *trailLog) {
		for i := range l.all {
			l.older.entries, l.older.contents = append(l.older.entries, l.all[i].Entries...), append(l.older.contents, l.all[i].contents...)
		}
		l.begun, l.base, l.sealed, l.all, l.state, l.hashes = false, trail.Base{}, 0, nil, application.State{}, nil
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
		if leaves = int64(len(l.older.entries)); leaves > 0 {
			l.add(l.older)
			l.older = pending{}
		}
	})
	return leaves, err
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
			state, records = l.state, nil
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
			added, err = seal(state, records, func(indexes []int64) ([]trail.Hash, error) { return t.Hashes(ctx, indexes) })
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
				l.hashes = make(map[int64]trail.Hash)
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
func (t Trail) Hashes(ctx context.Context, indexes []int64) (found []trail.Hash, err error) {
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
func (t Trail) IsOf(ctx context.Context, keys *trail.Keys) (own bool, err error) {
	err = t.store.read(ctx, t.strike, func() {
		all := t.store.trail.all
		own = len(all) == 0
		for i := range all {
			b := &all[i]
			if keys != nil && !own {
				_, own = keys.OpenMAC(b.Record(), trail.AppendEntries(nil, b.Entries), b.mac)
			}
		}
	})
	return own, err
}

// Leaf implements Finder.
func (t Trail) Leaf(ctx context.Context, id operation.ID) (application.Leaf, error) {
	return t.find(ctx, id, func(kind trail.Kind) bool { return kind != trail.Reversed })
}

// Reversal implements Finder.
func (t Trail) Reversal(ctx context.Context, id operation.ID) (application.Leaf, error) {
	return t.find(ctx, id, func(kind trail.Kind) bool { return kind == trail.Reversed })
}

func (t Trail) find(ctx context.Context, id operation.ID, wanted func(trail.Kind) bool) (found application.Leaf, err error) {
	err = t.store.read(ctx, t.strike, func() {
		l := t.store.trail
		for place := range l.all {
			b := &l.all[place]
			for i := range b.Entries {
				if b.Entries[i].ID == id && wanted(b.Entries[i].Kind) {
					found = application.Leaf{Content: b.contents[i], Batch: b.Batch, Index: i, BatchIndex: int64(place)}
				}
			}
			if place >= l.sealed && found.Batch.ID == b.ID {
				found.BatchIndex = -1
			}
		}
	})
	if err == nil && found.Content == nil {
		err = application.ErrNotFound
	}
	return found, err
}
