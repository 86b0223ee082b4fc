// Package proof defines what the trail proves: each decision is a leaf, and the leaves of one
// commit are the entries of a Batch.
//
// The trail is a log that only grows. A signed checkpoint proves that a leaf is in the log, and
// that a later checkpoint extends an earlier one. A leaf is made of the domain's values: it has
// the names of the contract and no name of a table or a column, so a storage can change its
// tables without another form of leaves. leaves.go has all forms. They never change.
package proof

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"math/bits"
	"strconv"
	"time"

	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// Kind says what a leaf is about.
type Kind uint8

// The kinds. Numbers and names are stored: never change them.
const (
	Sale         Kind = 1 // a BuyFundFromCustomer as it was answered
	End          Kind = 2 // a BuyFundFromCustomer after it was settled, cancelled or reversed
	Push         Kind = 3 // an AddPushNotificationResponse
	Act          Kind = 4 // an act of administration, with what it adjusted and erased
	Price        Kind = 5 // a price after an import or a change
	Subscription Kind = 6 // a subscription after a change
	Calendar     Kind = 7 // all closed days after an import
)

var kindNames = [...]string{"", "sale", "end", "push", "act", "price", "subscription", "calendar"}

// String returns the name of the kind in leaves, or "" for an unknown kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return ""
}

// Format is the first text of every leaf. Another encoding gets another number.
const Format = "bankingapi leaf 2"

// Leaf is an encoded decision. The same decision always has the same hash. The content is a
// sequence of texts. Each text follows its length as a uvarint:
//
//	Format, the kind's name, the ID,
//	then the name and the value of each member that is not empty
//
// A name with an empty value begins a group of members, such as a sale. Every member after it
// belongs to the group. A member that is added later is left out where it is empty, so the
// hashes of earlier decisions stay the same.
type Leaf struct{ content []byte }

// newLeaf returns a leaf without members. It reuses buffer, which may be nil.
func newLeaf(buffer []byte, kind Kind, id operation.ID) Leaf {
	l := Leaf{append(buffer[:0], 0)} // the prefix of a leaf in RFC 6962
	l.write(Format)
	l.write(kind.String())
	l.id(id)
	return l
}

// group begins a group of members.
func (l *Leaf) group(name string) {
	l.write(name)
	l.write("")
}

// text adds a member with a text.
func (l *Leaf) text(name, value string) {
	if value != "" {
		l.write(name)
		l.write(value)
	}
}

// number adds a member with a number, even if the number is 0.
func (l *Leaf) number(name string, value int64) {
	l.write(name)
	var digits [20]byte
	l.writeBytes(strconv.AppendInt(digits[:0], value, 10))
}

// id writes an ID in the form of operation.ID.String, without making a text.
func (l *Leaf) id(id operation.ID) {
	l.length(36)
	for i, part := range [...][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			l.content = append(l.content, '-')
		}
		l.content = hex.AppendEncode(l.content, part)
	}
}

// optional adds a member with a number, unless the number is 0.
func (l *Leaf) optional(name string, value int64) {
	if value != 0 {
		l.number(name, value)
	}
}

// bytes adds a member with bytes, as hexadecimal digits.
func (l *Leaf) bytes(name string, value []byte) {
	if len(value) == 0 {
		return
	}
	l.write(name)
	l.length(2 * len(value))
	l.content = hex.AppendEncode(l.content, value)
}

// time adds a member with a time in microseconds: 2026-11-20T09:30:00.000000Z. It adds nothing
// for the zero time.
func (l *Leaf) time(name string, value time.Time) {
	if value.IsZero() {
		return
	}
	l.write(name)
	// No layout with six decimals is as fast as RFC3339, which has no decimals.
	var buffer [32]byte
	text := value.UTC().AppendFormat(buffer[:0], time.RFC3339)
	end := len(text) - 1
	text = strconv.AppendInt(text[:end], int64(1_000_000+value.Nanosecond()/1000), 10)
	text[end] = '.'
	l.writeBytes(append(text, 'Z'))
}

// Hash returns the hash of the leaf.
func (l *Leaf) Hash() Hash { return sha256.Sum256(l.content) }

// Content returns the encoded leaf, without the prefix that only the hash includes.
func (l *Leaf) Content() []byte { return l.content[1:] }

func (l *Leaf) write(s string) {
	l.length(len(s))
	l.content = append(l.content, s...)
}

func (l *Leaf) writeBytes(b []byte) {
	l.length(len(b))
	l.content = append(l.content, b...)
}

// length appends a uvarint. Almost all lengths have one byte. This append stores no pointer.
// With AppendUvarint it stores one, and the garbage collector then took a fifth of the time of
// a leaf.
func (l *Leaf) length(n int) {
	if n < 0x80 {
		l.content = append(l.content, byte(n)) //nolint:gosec // at most 127
		return
	}
	l.content = binary.AppendUvarint(l.content, uint64(n))
}

// Group is a part of a decoded leaf. The first group of a leaf has no name.
type Group struct {
	Name    string
	Members []Member
}

// Value returns the value of a member, or "" if the group does not have it.
func (g *Group) Value(name string) string {
	for _, m := range g.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return ""
}

// Member is a member of a decoded leaf, as text.
type Member struct{ Name, Value string }

// Decoded is the content of a leaf, for people to read.
type Decoded struct {
	Kind   string
	ID     operation.ID
	Groups []Group
}

// ErrFormat is returned for content that is not a leaf or a batch of this version.
var ErrFormat = errors.New("not in the format of the trail")

// Decode reads the content of a leaf. The error is ErrFormat.
func Decode(content []byte) (Decoded, error) {
	r := reader{content}
	if r.text() != Format {
		return Decoded{}, ErrFormat
	}
	d := Decoded{Kind: r.text(), Groups: []Group{{}}}
	id, err := operation.ParseID(r.text())
	if err != nil {
		return Decoded{}, ErrFormat
	}
	d.ID = id
	for len(r.rest) > 0 {
		name := r.text()
		value := r.text()
		switch {
		case r.rest == nil:
			return Decoded{}, ErrFormat
		case value == "":
			d.Groups = append(d.Groups, Group{Name: name})
		default:
			last := &d.Groups[len(d.Groups)-1]
			last.Members = append(last.Members, Member{name, value})
		}
	}
	if r.rest == nil {
		return Decoded{}, ErrFormat
	}
	return d, nil
}

// reader reads texts. If the content is too short, it sets rest to nil.
type reader struct{ rest []byte }

func (r *reader) text() string {
	length, n := binary.Uvarint(r.rest)
	if n <= 0 || length > uint64(len(r.rest)-n) { //nolint:gosec // n is at most the length
		r.rest = nil
		return ""
	}
	end := n + int(length) //nolint:gosec // not more than the length of rest
	value := string(r.rest[n:end])
	r.rest = r.rest[end:]
	return value
}

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
