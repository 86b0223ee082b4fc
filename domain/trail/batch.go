package trail

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"bankingapi/domain/operation"
)

// Entry is one leaf of a batch, as the batch keeps it.
type Entry struct {
	Kind Kind
	ID   operation.ID
	// Digest is the digest of a notification, if the kind is Notified, and zero otherwise. It
	// is keyed if the MAC of the batch says so. A notification that is equal to a stored one is
	// not stored again; its digest leads to the stored one.
	Digest Hash
	Leaf   Hash
}

// Batch has all leaves of one commit, in the order of their arrival.
type Batch struct {
	ID      operation.ID // a UUID of version 7 that the writer made
	Entries []Entry
}

// Root is the root of the Merkle tree over the leaves (RFC 6962, section 2.1).
func (b *Batch) Root() Hash { return root(b.Entries) }

func root(entries []Entry) Hash {
	switch len(entries) {
	case 0:
		return new(Tree).Root()
	case 1:
		return entries[0].Leaf
	}
	left := 1 << (bits.Len(uint(len(entries)-1)) - 1) // the largest power of two below the length
	return tlog.NodeHash(root(entries[:left]), root(entries[left:]))
}

// Path returns the path from the leaf at this index to the root.
func (b *Batch) Path(index int) []Hash {
	var tree Tree
	var stored []Hash
	for i := range b.Entries {
		stored = append(stored, tree.add(b.Entries[i].Leaf)...)
	}
	path, _ := tlog.ProveRecord(tree.size, int64(index), Hashes(func(indexes []int64) ([]Hash, error) {
		hashes := make([]Hash, len(indexes))
		for i, n := range indexes {
			hashes[i] = stored[n]
		}
		return hashes, nil
	}))
	return path
}

// recordFormat is the prefix of every record.
const recordFormat = "bankingapi batch 1\n"

// Record returns the record of the batch in the log: the ID, the number of leaves and the root.
func (b *Batch) Record() []byte {
	record := append([]byte(recordFormat), b.ID[:]...)
	record = binary.BigEndian.AppendUint32(record, uint32(len(b.Entries))) //nolint:gosec // a batch has some thousand leaves
	root := b.Root()
	return append(record, root[:]...)
}

// AppendEntries encodes the entries in the order of the leaves. Each entry has its kind, ID,
// digest (only if the kind is Notified) and leaf.
func AppendEntries(b []byte, entries []Entry) []byte {
	b = slices.Grow(b, len(entries)*(1+len(Entry{}.ID)+len(Hash{})))
	for i := range entries {
		e := &entries[i]
		b = append(b, byte(e.Kind))
		b = append(b, e.ID[:]...)
		if e.Kind == Notified {
			b = append(b, e.Digest[:]...)
		}
		b = append(b, e.Leaf[:]...)
	}
	return b
}

// ParseEntries decodes the output of AppendEntries. The error is ErrFormat.
func ParseEntries(b []byte) ([]Entry, error) {
	var entries []Entry
	for len(b) > 0 {
		var e Entry
		size := 1 + len(e.ID) + len(e.Leaf)
		e.Kind = Kind(b[0])
		if e.Kind == Notified {
			size += len(e.Digest)
		}
		if e.Kind.String() == "" || len(b) < size {
			return nil, ErrFormat
		}
		copy(e.ID[:], b[1:])
		if e.Kind == Notified {
			copy(e.Digest[:], b[1+len(e.ID):])
		}
		copy(e.Leaf[:], b[size-len(e.Leaf):])
		entries, b = append(entries, e), b[size:]
	}
	return entries, nil
}

// ParseRecord reads the root and the number of leaves of a record. The error is ErrFormat.
func ParseRecord(record []byte) (root Hash, leaves int64, err error) {
	rest, ok := bytes.CutPrefix(record, []byte(recordFormat))
	if !ok || len(rest) != len(operation.ID{})+4+len(root) {
		return root, 0, ErrFormat
	}
	rest = rest[len(operation.ID{}):]
	copy(root[:], rest[4:])
	return root, int64(binary.BigEndian.Uint32(rest)), nil
}
