package backoffice

import (
	"fmt"
	"slices"

	"bankingapi/domain/proof"
)

// TrailCheck is what Verify needs to check the trail.
type TrailCheck struct {
	// TrailProof has what is known before the check: Reason, PublicKey (the key of Open) and
	// Warnings.
	TrailProof
	// Keys are the keys with which the leaves were written. If Keys is nil, the trail is not
	// compared, and Reason says why.
	Keys *proof.Keys
	// Open verifies the signature of a checkpoint and returns what it says.
	Open func(checkpoint string) (proof.Base, error)
	// Earlier are files with checkpoints, which the log must extend.
	Earlier []Earlier
	// IsProblem says that the trail cannot be checked. Reason says why.
	IsProblem bool
	// IsClosed says that no act can be written, because its leaf would be missing.
	IsClosed bool
}

// Earlier has the checkpoints of this log that a file contains.
type Earlier struct {
	// Name names the file.
	Name        string
	Checkpoints []proof.Base
	// Problem says why no checkpoint of the file can be used. It is empty if one can be.
	Problem string
}

// TrailProof describes what the trail was compared with.
type TrailProof struct {
	// Reason says why the trail was not compared. It is empty if the trail was compared.
	Reason    string
	PublicKey string
	// Newest is the newest checkpoint in the database. Extends are the newest checkpoints of
	// the files whose checkpoints the log must extend.
	Newest   string
	Extends  []string
	Compared Compared
	// Warnings are what the operator should know about the check.
	Warnings []string
}

// The rules of the trail. They are checked if the storage has a trail.
var (
	trailKey        = Rule{"trail-key", "The trail is checked with its own key."}
	trailUnchanged  = Rule{"trail-unchanged", "Every row is as it was when its leaf was written."}
	trailNotRemoved = Rule{"trail-not-removed", "Every leaf has its rows."}
	trailNotAdded   = Rule{"trail-not-added", "Every row has its leaf."}
	trailTexts      = Rule{"trail-texts", "Every notification has the texts of its identity."}
	trailBatch      = Rule{"trail-batch", "Every batch of the trail was made by this service."}
	trailHashes     = Rule{"trail-hashes", "The stored hashes of the log are those of its batches."}
	trailPlace      = Rule{"trail-place", "Every batch is at its place in the log."}
	trailLog        = Rule{"trail-log", "The log is that of its newest checkpoint."}
	trailExtends    = Rule{"trail-extends", "The log extends every earlier checkpoint."}

	trailRules = []Rule{trailKey, trailUnchanged, trailNotRemoved, trailNotAdded, trailTexts, trailBatch, trailHashes, trailPlace, trailLog, trailExtends}
)

type trailRun struct {
	*verification
	check *TrailCheck
	tree  proof.Tree
	// newest are the roots at the newest sizes of the tree.
	newest []proof.Hash
	// roots are the roots of the log at the sizes of checkpoints.
	roots map[int64]proof.Hash
	// other are the stored hashes that differ.
	other []otherHash
}

// otherHash is a stored hash that differs from the hash of the batches. batch is the batch
// whose record has the hash, or empty.
type otherHash struct {
	index int64
	batch string
}

// mostOther is the maximum number of stored hashes that are named.
const mostOther = 10_000

// witness sets the functions of w that receive the trail, if the trail can be checked.
func (c *TrailCheck) witness(v *verification, w *Witness) {
	if c == nil {
		return
	}
	v.proof.Trail = c.TrailProof
	if c.IsProblem {
		v.found(trailKey, c.Reason)
		return
	}
	run := &trailRun{verification: v, check: c, roots: make(map[int64]proof.Hash)}
	for _, file := range c.Earlier {
		for _, c := range file.Checkpoints {
			run.roots[c.Size] = proof.Hash{}
		}
	}
	run.keep()
	w.Keys = c.Keys
	w.Batch = run.batch
	w.Head = run.head
}

// state describes a state of the log in words.
func state(of proof.Base) string { return fmt.Sprintf("size %d and root %s", of.Size, of.Root) }

// keep stores the root of the tree if a checkpoint has the size of the tree.
func (r *trailRun) keep() {
	if _, isWanted := r.roots[r.tree.Size()]; isWanted {
		r.roots[r.tree.Size()] = r.tree.Root()
	}
}

// mostRoots limits how old a base may be, and the memory for roots.
const mostRoots = 1 << 20

func (r *trailRun) batch(b *BatchRow) error {
	size := r.tree.Size()
	if !b.IsGenuine {
		r.found(trailBatch, b.String()+": it was not made by this service")
	}
	if len(r.newest) < mostRoots {
		r.newest = append(r.newest, proof.Hash{})
	}
	r.newest[size%mostRoots] = r.tree.Root()
	if b.Base != nil && len(r.other) == 0 && !r.has(b.Base) { // a changed batch also changes the roots
		r.found(trailBatch, Foreign.Of(b.String()).Text)
	}
	for i, hash := range r.tree.Append(b.Record) {
		if b.Hashes == nil || i < len(b.Hashes) && b.Hashes[i] == hash || len(r.other) == mostOther {
			continue
		}
		o := otherHash{index: proof.StoredHashes(size) + int64(i)}
		if i == 0 {
			o.batch = b.String()
		}
		r.other = append(r.other, o)
	}
	r.keep()
	r.rows++
	return nil
}

// has reports whether the log was in that state.
func (r *trailRun) has(base *proof.Base) bool {
	return base.Size >= 0 && base.Size <= r.tree.Size() && base.Size > r.tree.Size()-mostRoots && r.newest[base.Size%mostRoots] == base.Root
}

// judgeHashes reports the stored hashes that differ, and whether there are others. If the batches
// match the checkpoint, isLog is true, and the hashes were changed. If not, the hash of a record
// shows that another batch was at its place. In that case the hashes above it differ too and are
// not reported.
func (r *trailRun) judgeHashes(h *HeadRow, isLog bool) {
	isPlace := !isLog && slices.ContainsFunc(r.other, func(o otherHash) bool { return o.batch != "" })
	if isLog && len(r.other) > 0 {
		r.proof.Trail.Warnings = append(r.proof.Trail.Warnings, "No batch is lost: the stored hashes follow from the batches."+
			" Delete all rows of the table trail_hashes: a running service writes them again with the next operation.")
	}
	for _, o := range r.other {
		switch {
		case !isPlace:
			r.found(trailHashes, fmt.Sprintf("hash %d of the log: was changed or removed", o.index))
		case o.batch != "":
			r.found(trailPlace, o.batch+": the log has another batch at its place")
		}
	}
	if h.HasOtherHashes {
		r.found(trailHashes, "the log has hashes that no batch has")
	}
}

func (r *trailRun) head(h *HeadRow) error {
	r.proof.Batches = r.tree.Size()
	r.proof.Unsealed = h.Unsealed
	r.proof.Trail.Compared = h.Compared
	if !h.HasBegun {
		r.proof.Trail.Reason = "Its log has not begun. The service begins it, and so does 'trail checkpoint'."
	}
	for _, file := range r.check.Earlier {
		flaws := 0
		newest := proof.Base{}
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
				file.Name, Plural(len(file.Checkpoints), "checkpoint"), state(newest)))
		}
	}
	if h.IsBegunWrong {
		r.found(trailLog, "the property log_begun says that the log has not begun, or is not a count: set log_begun to 1 in the table properties")
	}
	if h.Size == 0 && h.Checkpoint == "" && r.tree.Size() == 0 {
		return nil
	}
	r.judgeCheckpoint(h)
	return nil
}

// judgeCheckpoint reports how the newest checkpoint and the stored hashes differ from the batches.
func (r *trailRun) judgeCheckpoint(h *HeadRow) {
	signed, err := r.check.Open(h.Checkpoint)
	if err != nil {
		r.judgeHashes(h, false)
		r.found(trailLog, "the newest checkpoint cannot be used: "+err.Error())
		r.adviseCheckpoint()
		return
	}
	r.proof.Trail.Newest = state(signed)
	r.judgeHashes(h, signed.Root == r.tree.Root())
	switch {
	case signed.Size != r.tree.Size():
		r.found(trailLog, fmt.Sprintf("the log has %d batches, and its checkpoint says %d", r.tree.Size(), signed.Size))
		r.adviseCheckpoint()
	case signed.Size != h.Size:
		r.found(trailLog, fmt.Sprintf("the stored size of the log (log_size) is %d, and its checkpoint says %d", h.Size, signed.Size))
		r.adviseCheckpoint()
	case signed.Root != r.tree.Root():
		r.found(trailLog, "the batches of the log are not those of its checkpoint")
	}
}

// adviseCheckpoint says what log_size and log_checkpoint are if only they were changed, such as by a
// restore of these rows. The next verify compares the root of the checkpoint, so it must be the right one.
func (r *trailRun) adviseCheckpoint() {
	r.proof.Trail.Warnings = append(r.proof.Trail.Warnings, fmt.Sprintf("If no batch is lost, and only the rows of the log in the table properties"+
		" are wrong: log_size is %[1]d, and log_checkpoint is the checkpoint with %[1]d in its second line, with all its line ends (also the last one), from the file"+
		" trail.checkpoints of a replica or from where you keep checkpoints.", r.tree.Size()))
}
