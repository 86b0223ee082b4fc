package trail

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math/bits"

	"bankingapi/domain/operation"
)

// Sum is the hash of any number of rows, in any order. It is used if the rows may be too many
// for one leaf. It is the sum of their keyed hashes: without a key, a person could find other
// rows with the same sum. Make one with NewSum.
type Sum struct {
	row     Leaf
	mac     hash.Hash
	words   [4]uint64 // the lowest first
	counted int64
}

// NewSum returns the sum of no rows.
func NewSum(keys *Keys) *Sum { return &Sum{mac: hmac.New(sha256.New, keys.rows)} }

// Row adds a row. encode adds the columns of the row to the leaf.
func (s *Sum) Row(table string, encode func(*Leaf)) {
	s.row.content = s.row.content[:0]
	s.row.BeginRow(table)
	encode(&s.row)
	s.row.EndRow()
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

// Rows returns the number of rows.
func (s *Sum) Rows() int64 { return s.counted }

// Leaf returns a leaf with the number of rows and their sum.
func (s *Sum) Leaf(kind Kind, id operation.ID) Leaf {
	l := NewLeaf(nil, kind, id)
	l.BeginRow("rows")
	l.Int("count", s.counted)
	var sum []byte
	for _, word := range s.words {
		sum = binary.LittleEndian.AppendUint64(sum, word)
	}
	l.Bytes("keyed_sum", sum)
	l.EndRow()
	return l
}
