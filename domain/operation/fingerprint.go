package operation

import (
	"crypto/sha256"
	"encoding/binary"
)

// Fingerprint is a SHA-256 over an operation's decoded content: two requests
// with equal fingerprints ask for the same.
type Fingerprint [sha256.Size]byte

// Digest collects decoded content for a Fingerprint. Each value is written
// with its length, so that no two contents run together into one.
type Digest struct{ content []byte }

// Text adds a text.
func (d *Digest) Text(s string) {
	d.content = binary.AppendUvarint(d.content, uint64(len(s)))
	d.content = append(d.content, s...)
}

// Int adds a number.
func (d *Digest) Int(n int64) { d.content = binary.AppendVarint(d.content, n) }

// Header adds what of a Header belongs to the content: not the CallerId, which
// is the key, nor the tracking fields (the contract, section 6).
func (d *Digest) Header(h *Header) {
	d.Text(h.AppKey)
	d.Text(h.Channel)
	d.Text(h.TellerName)
}

// Sum is the fingerprint of all that was added, and empties the digest for
// another use of its memory.
func (d *Digest) Sum() Fingerprint {
	sum := sha256.Sum256(d.content)
	d.content = d.content[:0]
	return sum
}
