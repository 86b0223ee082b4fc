package proof

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// Entry is one leaf of a batch, as the batch keeps it.
type Entry struct {
	Kind Kind
	ID   operation.ID
	Leaf Hash
	// Identities are the identities of the messages of a Push, in the order of the request. A
	// message that was stored before is not stored again: its identity leads to the stored one.
	Identities []push.Identity
}

// PriceID returns the ID of the entry of a price.
func PriceID(id int64) (entryID operation.ID) {
	binary.BigEndian.PutUint64(entryID[8:], uint64(id)) //nolint:gosec // the bytes of the number
	return entryID
}

// ParsePriceID returns the ID of the price from the ID of its entry.
func ParsePriceID(id operation.ID) int64 {
	return int64(binary.BigEndian.Uint64(id[8:])) //nolint:gosec // as above
}

// NameID returns the ID of the entry of a subscription.
func NameID(name string) operation.ID {
	sum := sha256.Sum256([]byte(name))
	return operation.ID(sum[:16])
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

// AppendEntries encodes the entries in the order of the leaves. Each entry has its kind, its ID
// and its leaf. A Push also has the number of its identities, as a uvarint, and the identities.
func AppendEntries(b []byte, entries []Entry) []byte {
	b = slices.Grow(b, len(entries)*(1+len(operation.ID{})+len(Hash{})))
	for i := range entries {
		e := &entries[i]
		b = append(b, byte(e.Kind))
		b = append(b, e.ID[:]...)
		b = append(b, e.Leaf[:]...)
		if e.Kind == Push {
			b = binary.AppendUvarint(b, uint64(len(e.Identities)))
			for k := range e.Identities {
				b = append(b, e.Identities[k][:]...)
			}
		}
	}
	return b
}

// ParseEntries decodes the output of AppendEntries. The error is ErrFormat.
func ParseEntries(b []byte) ([]Entry, error) {
	var entries []Entry
	for len(b) > 0 {
		e := Entry{Kind: Kind(b[0])}
		b = b[1:]
		if e.Kind.String() == "" || len(b) < len(e.ID)+len(e.Leaf) {
			return nil, ErrFormat
		}
		b = b[copy(e.ID[:], b):]
		b = b[copy(e.Leaf[:], b):]
		if e.Kind == Push {
			count, n := binary.Uvarint(b)
			size := len(push.Identity{})
			if n <= 0 || !isShortest(count, n) || count > uint64((len(b)-n)/size) { //nolint:gosec // n is at most the length
				return nil, ErrFormat
			}
			b = b[n:]
			e.Identities = make([]push.Identity, count)
			for k := range e.Identities {
				b = b[copy(e.Identities[k][:], b):]
			}
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// isShortest reports whether n bytes is the shortest form of a uvarint: entries have one form.
func isShortest(value uint64, n int) bool {
	return n == len(binary.AppendUvarint(nil, value))
}

// Keys are the secrets that a writer of the trail needs. They are derived from the signing key.
// So a person who can write to the database, but does not have the key, can neither make a
// batch nor test guesses of a text. Make them with NewKeys.
type Keys struct{ texts, batches, sums []byte }

// NewKeys derives the keys from a secret.
func NewKeys(secret []byte) *Keys {
	return &Keys{
		texts:   derive(secret, "bankingapi trail texts 2"),
		batches: derive(secret, "bankingapi trail batches 3"),
		sums:    derive(secret, "bankingapi trail sums 2"),
	}
}

func derive(secret []byte, purpose string) []byte {
	return keyedHash(secret, nil, []byte(purpose))
}

// text returns the keyed hash that replaces a personal text in a leaf.
func (k *Keys) text(text string) []byte {
	if text == "" {
		return nil
	}
	return keyedHash(k.texts, nil, []byte(text))
}

// Provenance says who wrote a batch: a service with these keys, when the log was in state Base.
type Provenance struct {
	// Base is a state of the log that the writer has seen. The Base of a service contains the
	// service's own mark. It binds the batch to this log: a copy of the book that continues
	// separately has another log.
	Base Base
	// IsAdopted says that the service took over rows that were there before.
	IsAdopted bool
	// ByAct says that a person ordered this. The batch has the act.
	ByAct bool
}

// Base is a state of the log: the number of its batches, and the root of its tree.
type Base struct {
	Size int64
	Root Hash
}

// The MAC of a batch is a byte of flags, the size and root of its base, and a keyed hash of
// these, of the record and of the entries.
const (
	baseSize = 1 + 8 + sha256.Size
	adopted  = 1
	byAct    = 2
)

// MAC returns the message authentication code of a batch. It covers the record, which depends
// on the leaves only, and the entries as AppendEntries encodes them.
func (k *Keys) MAC(record, entries []byte, p Provenance) []byte {
	mac := make([]byte, 1, baseSize+sha256.Size)
	if p.IsAdopted {
		mac[0] |= adopted
	}
	if p.ByAct {
		mac[0] |= byAct
	}
	mac = binary.BigEndian.AppendUint64(mac, uint64(p.Base.Size)) //nolint:gosec // a size is not negative
	mac = append(mac, p.Base.Root[:]...)
	return keyedHash(k.batches, mac, mac, record, entries)
}

// OpenMAC returns the provenance from the MAC of a batch. It returns false if no service with
// these keys made the batch.
func (k *Keys) OpenMAC(record, entries, mac []byte) (p Provenance, ok bool) {
	if len(mac) != baseSize+sha256.Size {
		return p, false
	}
	base := mac[:baseSize]
	p.IsAdopted = base[0]&adopted != 0
	p.ByAct = base[0]&byAct != 0
	p.Base.Size = int64(binary.BigEndian.Uint64(base[1:])) //nolint:gosec // MAC wrote the size
	copy(p.Base.Root[:], base[1+8:])
	return p, hmac.Equal(keyedHash(k.batches, nil, base, record, entries), mac[baseSize:])
}

// keyedHash appends the keyed hash of the parts.
func keyedHash(key, dst []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(dst)
}
