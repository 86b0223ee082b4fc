package trail

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"

	"bankingapi/domain/operation"
)

// Keys are what a writer of the trail needs. They are derived from the signing
// key, so that a person who can write the database, and nothing else, can
// neither make a batch nor test guesses of a text. Make them with NewKeys.
type Keys struct{ texts, batches, rows []byte }

// NewKeys derives the keys from a secret.
func NewKeys(secret []byte) *Keys {
	return &Keys{
		texts:   derive(secret, "bankingapi trail texts 1"),
		batches: derive(secret, "bankingapi trail batches 1"),
		rows:    derive(secret, "bankingapi trail rows 1"),
	}
}

func derive(secret []byte, purpose string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(purpose))
	return h.Sum(nil)
}

// Text is the keyed hash that stands for a text in a leaf.
func (k *Keys) Text(text []byte) []byte {
	h := hmac.New(sha256.New, k.texts)
	h.Write(text)
	return h.Sum(nil)
}

// Seal is the keyed hash of a batch: of its record, and of its entries as
// AppendEntries encodes them. The record has the leaves only. It says that a
// service made the batch.
func (k *Keys) Seal(record, entries []byte) []byte {
	h := hmac.New(sha256.New, k.batches)
	h.Write(record)
	h.Write(entries)
	return h.Sum(nil)
}

// IsSealed reports whether a service made the batch. The seals of earlier
// versions are of the record alone.
func (k *Keys) IsSealed(record, entries, seal []byte) bool {
	return subtle.ConstantTimeCompare(k.Seal(record, entries), seal)|subtle.ConstantTimeCompare(k.Seal(record, nil), seal) == 1
}

// PriceID is the ID of the entry of a price.
func PriceID(id int64) operation.ID {
	var of operation.ID
	for i := range 8 {
		of[15-i] = byte(id >> (8 * i)) //nolint:gosec // the bytes of the number
	}
	return of
}

// ParsePriceID returns the price of an entry.
func ParsePriceID(id operation.ID) (price int64) {
	for i := range 8 {
		price |= int64(id[15-i]) << (8 * i)
	}
	return price
}

// NameID is the ID of the entry of a named row.
func NameID(name string) operation.ID {
	sum := sha256.Sum256([]byte(name))
	return operation.ID(sum[:16])
}
