package push

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"

	"bankingapi/domain/idempotency"
)

// Identity identifies a message within its subscription: messages that are equal in every field
// have the same identity (the contract, section 4). It is the first half of an HMAC-SHA-256
// with the key of the book. So it never changes, also when the texts of the message are erased,
// and nobody without the key can test whether a text belongs to it.
type Identity [sha256.Size / 2]byte

// Identifier makes identities. It is not safe for concurrent use.
type Identifier struct {
	mac    hash.Hash
	digest idempotency.Digest
	sum    [sha256.Size]byte
}

// NewIdentifier returns an Identifier with the key of the book.
func NewIdentifier(key []byte) *Identifier { return &Identifier{mac: hmac.New(sha256.New, key)} }

// identityFormat is hashed first. Identities are stored: never change what is hashed. A new
// field is hashed only if it is present, after everything else and with its name before it.
const identityFormat = "bankingapi message 1"

// Of returns the identity of a message of the subscription.
func (i *Identifier) Of(subscription string, v *Values) Identity {
	i.digest.Text(identityFormat)
	i.digest.Text(subscription)
	v.content(&i.digest)
	i.mac.Reset()
	i.mac.Write(i.digest.Take())
	return Identity(i.mac.Sum(i.sum[:0])[:len(Identity{})])
}

// Accepted is an operation that an Inbox has accepted as a new one.
type Accepted struct {
	Operation *Operation
	// Fingerprint is the fingerprint of its content. It is zero without a CallerId.
	Fingerprint idempotency.Fingerprint
	// Identities are the identities of its messages, in the order of the request.
	Identities []Identity
}
