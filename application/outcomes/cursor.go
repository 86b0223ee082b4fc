package outcomes

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"bankingapi/domain/fund"
)

// place is a place in the outcomes of a subscription: after the outcome that it names. The zero
// value is the place before the first outcome.
type place struct {
	number int64
	// name is a hash of the outcome. After a restore another outcome may have the number.
	name [16]byte
}

func placeOf(e *fund.Ended) place {
	content := append([]byte(nil), e.OperationID[:]...)
	content = append(content, byte(e.State))
	if e.Reversed {
		content = append(content, 1)
	}
	content = binary.BigEndian.AppendUint64(content, uint64(e.At.UnixMicro()))
	sum := sha256.Sum256(content)
	return place{number: e.Number, name: [16]byte(sum[:])}
}

// cursors seals places for subscriptions. Only the holder of the key can read or make a cursor,
// so a cursor says nothing about the outcomes of others. A cursor opens only for its
// subscription. Equal places have equal cursors.
type cursors struct {
	seal   cipher.AEAD
	nonces []byte // the key that nonces are made with
}

// nonceSize is the size of a nonce of GCM.
const nonceSize = 12

func newCursors(secret []byte) (*cursors, error) {
	block, err := aes.NewCipher(keyed(secret, "outcome cursors 1: content"))
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &cursors{seal: seal, nonces: keyed(secret, "outcome cursors 1: nonces")}, nil
}

func keyed(key []byte, parts ...string) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// text returns the cursor of a place.
func (c *cursors) text(subscription string, p place) string {
	content := binary.BigEndian.AppendUint64(nil, uint64(p.number)) //nolint:gosec // not negative
	content = append(content, p.name[:]...)
	// Other contents have other nonces. Equal ones may share theirs.
	nonce := keyed(c.nonces, string(content), subscription)[:nonceSize]
	return base64.RawURLEncoding.EncodeToString(c.seal.Seal(nonce, nonce, content, []byte(subscription)))
}

// open returns the place of a cursor. ok is false if the text is no cursor of the subscription.
func (c *cursors) open(subscription, text string) (p place, ok bool) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	isExact := base64.RawURLEncoding.EncodeToString(sealed) == text // the decoder passes over ends of lines
	if err != nil || !isExact || len(sealed) < nonceSize {
		return place{}, false
	}
	content, err := c.seal.Open(nil, sealed[:nonceSize], sealed[nonceSize:], []byte(subscription))
	if err != nil || len(content) != 8+len(p.name) {
		return place{}, false
	}
	p.number = int64(binary.BigEndian.Uint64(content)) //nolint:gosec // written by text
	copy(p.name[:], content[8:])
	return p, true
}
