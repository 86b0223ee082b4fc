package proof

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math/bits"

	"bankingapi/domain/fund"
	"bankingapi/domain/push"
)

// Sum is the hash of any number of rows, in any order. An act can adjust or erase more rows
// than fit into one leaf. It is the sum of their keyed hashes: without a key, a person could
// find other rows with the same sum. Make one with NewSum.
type Sum struct {
	row     Leaf
	mac     hash.Hash
	words   [4]uint64 // the lowest first
	counted int64
}

// NewSum returns the sum of no rows.
func NewSum(keys *Keys) *Sum { return &Sum{mac: hmac.New(sha256.New, keys.sums)} }

// Adjustment adds a posting of an import or a correction. A nil sum counts nothing.
func (s *Sum) Adjustment(p *fund.PostingEntry) {
	if s == nil {
		return
	}
	s.row.content = s.row.content[:0]
	adjustment(&s.row, p)
	s.add()
}

// Erased adds a message as it is since it was erased.
func (s *Sum) Erased(m *push.Entry) {
	s.row.content = s.row.content[:0]
	erased(&s.row, m)
	s.add()
}

func (s *Sum) add() {
	s.mac.Reset()
	s.mac.Write(s.row.content)
	var buffer [sha256.Size]byte
	added := s.mac.Sum(buffer[:0])
	var carry uint64
	for i := range s.words {
		s.words[i], carry = bits.Add64(s.words[i], binary.LittleEndian.Uint64(added[8*i:]), carry)
	}
	s.counted++
}

// Rows returns the number of rows. A nil sum has none.
func (s *Sum) Rows() int64 {
	if s == nil {
		return 0
	}
	return s.counted
}

// encode adds the number of rows and their sum as a group. It adds nothing for no rows.
func (s *Sum) encode(l *Leaf, name string) {
	if s.Rows() == 0 {
		return
	}
	l.group(name)
	l.number("Count", s.counted)
	var sum []byte
	for _, word := range s.words {
		sum = binary.LittleEndian.AppendUint64(sum, word)
	}
	l.bytes("KeyedSum", sum)
}
