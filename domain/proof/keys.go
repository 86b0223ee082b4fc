package proof

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"bankingapi/domain/operation"
)

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
	p.IsAdopted, p.ByAct = base[0]&adopted != 0, base[0]&byAct != 0
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
