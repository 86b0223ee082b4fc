package backoffice

import (
	"cmp"
	"fmt"
	"slices"

	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
)

// TrailCheck is what Verify needs to check the trail.
type TrailCheck struct {
	// Keys are those with which the leaves were written. nil means that the trail is not compared;
	// Reason says why not.
	Keys   *trail.Keys
	Reason string
	// PublicKey is the key of Open, for people.
	PublicKey string
	// Open verifies the signature of a checkpoint and returns what it says.
	Open func(checkpoint string) (size int64, root trail.Hash, err error)
	// Earlier are files with checkpoints, which the log must extend.
	Earlier []Earlier
	// Problem says why the trail cannot be checked. It is empty if it can.
	Problem string
	// Warnings are what people should know of the check.
	Warnings []string
}

// Earlier is what a file has of this log.
type Earlier struct {
	// Name names the file.
	Name        string
	Checkpoints []trail.Base
	// Problem says why none of its checkpoints can be used. It is empty if one can.
	Problem string
}

// TrailProof says what the trail was compared with.
type TrailProof struct {
	// Reason says why the trail was not compared. It is empty if it was.
	Reason    string
	PublicKey string
	// Newest is the newest checkpoint in the database, Extends are the newest ones of the files
	// whose checkpoints the log must extend.
	Newest  string
	Extends []string
	// Warnings are what people should know of the check.
	Warnings []string
}

// WithTrail returns a Verifier that also checks the trail.
func (v *Verifier) WithTrail(c TrailCheck) *Verifier { return &Verifier{v.evidence, &c} }

// The rules of the trail. They are checked if there is one.
var (
	trailKey        = Rule{"trail-key", "The trail is checked with its own key."}
	trailUnchanged  = Rule{"trail-unchanged", "Every row is as it was when its leaf was written."}
	trailNotRemoved = Rule{"trail-not-removed", "Every leaf has its rows."}
	trailNotAdded   = Rule{"trail-not-added", "Every row has its leaf."}
	trailTexts      = Rule{"trail-texts", "Every notification has the texts of its digest."}
	trailBatch      = Rule{"trail-batch", "Every batch of the trail was made by this service."}
	trailHashes     = Rule{"trail-hashes", "The stored hashes of the log are those of its batches."}
	trailPlace      = Rule{"trail-place", "Every batch is at its place in the log."}
	trailLog        = Rule{"trail-log", "The log is that of its newest checkpoint."}
	trailExtends    = Rule{"trail-extends", "The log extends every earlier checkpoint."}

	trailRules = []Rule{trailKey, trailUnchanged, trailNotRemoved, trailNotAdded, trailTexts, trailBatch, trailHashes, trailPlace, trailLog, trailExtends}
)

// trailRun checks the trail.
type trailRun struct {
	*verification
	check *TrailCheck
	tree  trail.Tree
	// newest are the roots at the newest sizes of the tree.
	newest []trail.Hash
	// roots are those of the log at the sizes of checkpoints.
	roots map[int64]trail.Hash
	// last is the newest record, hashes are those that the log stores for it.
	last   operation.ID
	hashes []trail.Hash
	// other are the stored hashes that differ.
	other []otherHash
}

// otherHash is a stored hash that is not that of the batches. batch is not zero if
// it is the hash of a record.
type otherHash struct {
	index int64
	batch operation.ID
}

// mostOther bounds how many stored hashes are named.
const mostOther = 10_000

// witness returns nil if the trail is not to be checked.
func (c *TrailCheck) witness(v *verification) *TrailWitness {
	if c == nil {
		return nil
	}
	v.proof.Trail = TrailProof{Reason: cmp.Or(c.Problem, c.Reason), PublicKey: c.PublicKey, Warnings: c.Warnings}
	if c.Problem != "" {
		v.found(trailKey, c.Problem)
		return nil
	}
	if c.Keys == nil {
		return nil
	}
	run := &trailRun{verification: v, check: c, roots: make(map[int64]trail.Hash)}
	for _, file := range c.Earlier {
		for _, c := range file.Checkpoints {
			run.roots[c.Size] = trail.Hash{}
		}
	}
	run.keep()
	return &TrailWitness{Keys: c.Keys, Record: run.record, Foreign: run.foreign, Hashes: run.compare, Head: run.head, Leaf: run.leaf}
}

// state names a state of the log.
func state(size int64, root trail.Hash) string {
	return fmt.Sprintf("size %d and root %s", size, root)
}

// keep keeps the root of the tree if a checkpoint is of its size.
func (r *trailRun) keep() {
	if _, isWanted := r.roots[r.tree.Size()]; isWanted {
		r.roots[r.tree.Size()] = r.tree.Root()
	}
}

func (r *trailRun) record(b *BatchRow) error {
	if !b.IsSealed {
		r.found(trailBatch, fmt.Sprintf("batch %s of the trail: it was not made by this service", b.ID))
	}
	if len(r.newest) < mostRoots {
		r.newest = append(r.newest, trail.Hash{})
	}
	r.newest[r.tree.Size()%mostRoots] = r.tree.Root()
	if b.Base != nil && len(r.other) == 0 && !r.has(b.Base) { // a batch that was changed changes the roots too
		if err := r.foreign(b.ID); err != nil {
			return err
		}
	}
	r.last, r.hashes = b.ID, r.tree.Append(b.Record)
	r.keep()
	r.rows++
	return nil
}

// mostRoots bounds how old a base may be, and the memory for roots.
const mostRoots = 1 << 20

// has reports whether the log was in that state.
func (r *trailRun) has(base *trail.Base) bool {
	return base.Size >= 0 && base.Size <= r.tree.Size() && base.Size > r.tree.Size()-mostRoots && r.newest[base.Size%mostRoots] == base.Root
}

func (r *trailRun) foreign(id operation.ID) error {
	r.found(trailBatch, fmt.Sprintf("batch %s of the trail: it was made for another log, by a copy of this book or before a restore", id))
	return nil
}

// compare compares the stored hashes of the newest record.
func (r *trailRun) compare(stored []trail.Hash) error {
	first := trail.StoredHashes(r.tree.Size() - 1)
	for i, hash := range r.hashes {
		if i < len(stored) && stored[i] == hash || len(r.other) == mostOther {
			continue
		}
		o := otherHash{index: first + int64(i)}
		if i == 0 {
			o.batch = r.last
		}
		r.other = append(r.other, o)
	}
	return nil
}

// judgeHashes names what belongs to the stored hashes that differ. If the batches
// are those of the checkpoint, the hashes were changed. If not, the hash of a
// record shows that another batch was at its place. The hashes above it differ
// too, and say nothing then.
func (r *trailRun) judgeHashes(isLog bool) {
	isBatch := func(o otherHash) bool { return o.batch != operation.ID{} }
	if !isLog && slices.ContainsFunc(r.other, isBatch) {
		for _, o := range r.other {
			if isBatch(o) {
				r.found(trailPlace, fmt.Sprintf("batch %s of the trail: the log has another batch at its place", o.batch))
			}
		}
		return
	}
	for _, o := range r.other {
		r.found(trailHashes, fmt.Sprintf("hash %d of the log: was changed or removed", o.index))
	}
}

func (r *trailRun) leaf(l *LeafRow) error {
	switch {
	case l.HasOtherTexts:
		r.found(trailTexts, l.Name+": its texts are not those that came")
	case l.IsLate:
		r.found(trailNotAdded, l.Name+": came into the trail long after its time")
	case l.HasRows && l.HasLeaf:
		r.found(trailUnchanged, l.Name+": was changed after it was written")
	case l.HasRows:
		r.found(trailNotAdded, l.Name+": is not in the trail")
	default:
		r.found(trailNotRemoved, l.Name+": is in the trail, but its rows are not there")
	}
	return nil
}

func (r *trailRun) head(h *HeadRow) error {
	r.proof.Batches, r.proof.Unsealed = r.tree.Size(), h.Unsealed
	for _, file := range r.check.Earlier {
		flaws, newest := 0, trail.Base{}
		flaw := func(text string) {
			flaws++
			r.found(trailExtends, text)
		}
		if file.Problem != "" {
			flaw("an earlier checkpoint cannot be used: " + file.Problem)
		}
		for _, c := range file.Checkpoints {
			switch {
			case c.Size > r.tree.Size():
				flaw(fmt.Sprintf("the log has become shorter: it has %d batches, and had %d", r.tree.Size(), c.Size))
			case r.roots[c.Size] != c.Root:
				flaw(fmt.Sprintf("the log has changed: its first %d batches are not those of the earlier checkpoint", c.Size))
			}
			if c.Size >= newest.Size {
				newest = c
			}
		}
		if flaws == 0 {
			r.proof.Trail.Extends = append(r.proof.Trail.Extends, fmt.Sprintf("%s: %s, the newest has %s",
				file.Name, plural(len(file.Checkpoints), "checkpoint"), state(newest.Size, newest.Root)))
		}
	}
	if h.Size == 0 && h.Checkpoint == "" && r.tree.Size() == 0 {
		return nil
	}
	size, root, err := r.check.Open(h.Checkpoint)
	if err == nil {
		r.proof.Trail.Newest = state(size, root)
	}
	r.judgeHashes(err == nil && root == r.tree.Root())
	if h.HasOtherHashes {
		r.found(trailHashes, "the log has hashes that no batch has")
	}
	switch {
	case err != nil:
		r.found(trailLog, "the newest checkpoint cannot be used: "+err.Error())
	case size != r.tree.Size() || h.Size != size:
		r.found(trailLog, fmt.Sprintf("the log has %d batches, and its checkpoint says %d", r.tree.Size(), size))
	case root != r.tree.Root():
		r.found(trailLog, "the batches of the log are not those of its checkpoint")
	}
	return nil
}
