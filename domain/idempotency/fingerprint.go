package idempotency

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"bankingapi/domain/operation"
)

// Fingerprint identifies the content of an operation: requests with equal
// fingerprints ask for the same. The zero value is no fingerprint.
//
// It has a version, because it is stored permanently. Version 1 is a SHA-256 of
// what the operation writes into a Digest: that of a sale. Version 2 is a keyed hash
// of version 1: that of a push, whose texts may be erased. What version 1 hashes
// never changes; golden values in the tests of packages fund and push hold it. A new
// field is hashed only if it is present, after everything else and with its name
// before it. Then the fingerprints of all other contents stay the same.
type Fingerprint struct {
	// stored is the version and the hash.
	stored [1 + sha256.Size]byte
}

// The versions that this program knows.
const (
	version1 = 1
	version2 = 2
)

// ErrFingerprint is returned for bytes that are not a stored fingerprint.
var ErrFingerprint = errors.New("not a stored fingerprint")

// Bytes returns the stored form, which must not be changed: the hash alone for version 1, and
// the version and the hash for every other one.
func (f *Fingerprint) Bytes() []byte {
	if f.stored[0] == version1 {
		return f.stored[1:]
	}
	return f.stored[:]
}

// ParseFingerprint reads the stored form. Fingerprints of later versions can be
// read too: a replica of a later version may have written them.
func ParseFingerprint(stored []byte) (Fingerprint, error) {
	var f Fingerprint
	switch {
	case len(stored) == sha256.Size:
		f.stored[0] = version1
		copy(f.stored[1:], stored)
	case len(stored) == len(f.stored) && stored[0] > version1:
		copy(f.stored[:], stored)
	default:
		return Fingerprint{}, ErrFingerprint
	}
	return f, nil
}

// Keyer returns a function that makes version 2 of a fingerprint: its HMAC-SHA-256. Without
// the key, nobody can test whether a text belongs to it. The function returns a fingerprint
// that has version 2 already as it is, and every one if key is empty. It is not safe for
// concurrent use.
func Keyer(key []byte) func(Fingerprint) Fingerprint {
	if len(key) == 0 {
		return func(f Fingerprint) Fingerprint { return f }
	}
	mac := hmac.New(sha256.New, key)
	return func(f Fingerprint) Fingerprint {
		if f.stored[0] != version1 {
			return f
		}
		mac.Reset()
		mac.Write(f.stored[1:])
		f.stored[0] = version2
		mac.Sum(f.stored[:1])
		return f
	}
}

// sameVersion reports whether two fingerprints can be compared.
func (f Fingerprint) sameVersion(other Fingerprint) bool { return f.stored[0] == other.stored[0] }

// Digest collects decoded content for a Fingerprint. Each value is written
// with its length, so that different contents never look the same.
type Digest struct{ content []byte }

// Text adds a text.
func (d *Digest) Text(s string) { d.content = appendText(d.content, s) }

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// Int adds a number.
func (d *Digest) Int(n int64) { d.content = binary.AppendVarint(d.content, n) }

// Header adds the fields of a Header that belong to the content, as the caller sent them: a
// filled field is left out. The CallerId is the key, and the tracking fields do not count (the
// contract, section 6).
func (d *Digest) Header(h *operation.Header, filled operation.Filled) {
	d.sent(h.AppKey, filled.AppKey)
	d.sent(h.Channel, filled.Channel)
	d.sent(h.TellerName, filled.TellerName)
}

// sent adds a field of a Header, or an empty text if the caller left it out.
func (d *Digest) sent(recorded string, filled bool) {
	if filled {
		recorded = ""
	}
	d.Text(recorded)
}

// Take returns everything that was added. The result is valid until the next call. Take empties
// the digest, so that its memory can be used again.
func (d *Digest) Take() []byte {
	content := d.content
	d.content = d.content[:0]
	return content
}

// IsZero reports whether f is the zero value, which is no fingerprint.
func (f *Fingerprint) IsZero() bool { return f.stored == [1 + sha256.Size]byte{} }

// Sum returns the fingerprint of everything that was added. It empties the
// digest, so that its memory can be used again.
func (d *Digest) Sum() Fingerprint {
	sum := sha256.Sum256(d.content)
	d.content = d.content[:0]
	f := Fingerprint{}
	f.stored[0] = version1
	copy(f.stored[1:], sum[:])
	return f
}
