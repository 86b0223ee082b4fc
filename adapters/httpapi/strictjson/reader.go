// Package strictjson reads one JSON object strictly (the contract, section 2): RFC 8259 as
// I-JSON. It refuses duplicate, unknown and misspelled members, invalid UTF-8, lone surrogates,
// trailing text and deep nesting, and it collects every fault with its pointer.
//
// Tables of members say what an object may contain. The reader stores values straight
// into the fields, without reflection.
package strictjson

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
)

// MaxFaults is how many faults a Reader lists. A body of a few kilobytes can
// break thousands of rules.
const MaxFaults = 100

const (
	// maxDepth is how deep a body may nest. Its outermost object is depth 1.
	maxDepth = 16
	// maxName is the longest unknown name that a pointer repeats, in bytes.
	maxName = 64
	// keptBuffer bounds the memory that Reset keeps for the next text.
	keptBuffer = 64 << 10
)

// Reader reads one JSON text in one pass. Fill Body, call Decode, ask for the faults,
// and call Reset before the next text. It is not safe for concurrent use.
//
// A Reader collects each broken rule with its pointer and reads on. Text that is not
// JSON or that nests too deep says nothing certain about the members, so that is the
// only fault then, and Broken returns true.
type Reader struct {
	Body bytes.Buffer // the text

	decoder jsontext.Decoder
	// text is a copy of the body. All strings without escapes are cut from this
	// one string, which costs one allocation instead of one for each.
	text    string
	scratch []byte

	broken bool
	faults fault.List
	more   bool // there are more than MaxFaults faults
	// unread has the pointers of values that are present but did not reach a
	// field. What the domain says about such a field must not be reported.
	unread map[string]bool
}

// readerOptions: the library would stop at a duplicate member. ReadObject reads on.
var readerOptions = []jsontext.Options{jsontext.AllowDuplicateNames(true)}

// Decode reads the text in r.Body, which must be one object with these members, into
// the value. It reports whether it is an object. Afterwards r has every fault.
func Decode[T any](r *Reader, members []Member[T], into *T) (isObject bool) {
	r.text = r.Body.String()
	r.decoder.Reset(&r.Body, readerOptions...)
	isObject = ReadObject(r, members, into)
	if r.broken {
		return isObject
	}
	after := int(r.decoder.InputOffset())
	if _, err := r.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		blank := len(r.text[after:]) - len(strings.TrimLeft(r.text[after:], " \t\r\n"))
		r.breakOff("", fault.InvalidJSON, atByte("Nothing may follow the object. There is text", after+blank))
	}
	return isObject
}

// Broken reports whether the text is not JSON or nests too deep.
func (r *Reader) Broken() bool { return r.broken }

// Faults returns the faults found, at most MaxFaults.
func (r *Reader) Faults() []fault.Fault { return r.faults }

// Missing adds the fault of a required member that is absent.
func (r *Reader) Missing(pointer, detail string) { r.shadow(pointer, fault.Required, detail) }

// Join returns the faults of the JSON followed by those of the domain in the fields
// that could be read. more reports whether there are faults that are not listed.
func (r *Reader) Join(domain []fault.Fault) (all []fault.Fault, more bool) {
	all = r.faults
	for _, f := range domain {
		if !isUnder(f.Pointer, r.unread) {
			all = append(all, f)
		}
	}
	return all, r.more
}

// isUnder reports whether the pointer leads to, or into, one of these places.
func isUnder(pointer string, places map[string]bool) bool {
	for !places[pointer] {
		if pointer == "" {
			return false
		}
		pointer = pointer[:max(0, strings.LastIndexByte(pointer, '/'))]
	}
	return true
}

// Reset forgets everything, and keeps small buffers for the next text.
func (r *Reader) Reset() {
	if r.Body.Cap() > keptBuffer {
		r.Body = bytes.Buffer{}
	}
	if cap(r.scratch) > keptBuffer {
		r.scratch = nil
	}
	r.Body.Reset()
	r.text = ""
	r.broken = false
	r.more = false
	r.faults = nil
	r.unread = nil
}

// unreadText is in a text field whose value is present, but could not be read. The domain
// refuses it, and its fault is hidden. An empty text would be read as absent, which says
// something: a sale without a day takes place today, and then differs from the others.
const unreadText = "\x00"

// Member is one member that an object may have. Read stores its value.
type Member[T any] struct {
	Name string
	Read func(r *Reader, into *T)
	// unread stores that the object around the member could not be read. It may be nil.
	unread func(into *T)
}

// Text is a member whose value is a string.
func Text[T any](name string, field func(*T) *string) Member[T] {
	return Member[T]{
		Name:   name,
		Read:   func(r *Reader, into *T) { *field(into) = r.readText() },
		unread: func(into *T) { *field(into) = unreadText },
	}
}

// Number is a member whose value is a number.
func Number[T any](name string, field func(*T) *decimal.Decimal) Member[T] {
	return Member[T]{Name: name, Read: func(r *Reader, into *T) { *field(into) = r.readNumber() }}
}

// Object is a member whose value is an object. The field stays nil if the
// member is absent or null.
func Object[T, M any](name string, field func(*T) **M, members []Member[M]) Member[T] {
	return Member[T]{Name: name, Read: func(r *Reader, into *T) {
		if r.IsNull() {
			return
		}
		value := new(M)
		if ReadObject(r, members, value) {
			*field(into) = value
		}
	}}
}

// Array is a member whose value is an array of objects, as ReadArray reads it.
func Array[T, M any](name string, field func(*T) *[]M, limit int, members []Member[M]) Member[T] {
	return Member[T]{Name: name, Read: func(r *Reader, into *T) {
		if !r.IsNull() {
			ReadArray(r, field(into), limit, members)
		}
	}}
}

// ReadObject reads the next value, which must be an object with these members,
// at most 64. It reports whether the value is an object.
func ReadObject[T any](r *Reader, members []Member[T], into *T) bool {
	if !r.enter(jsontext.KindBeginObject, "Must be an object.") {
		return false
	}
	var seen uint64 // one bit for each member
	expected := 0   // members usually come in the order of the document
	for r.next(jsontext.KindEndObject) {
		name := r.readName()
		if r.broken {
			return false
		}
		i := find(members, name, expected)
		switch {
		case i < 0:
			refuseName(r, string(name), members)
		case seen&(1<<i) != 0:
			r.skip()
			r.unreadFault(fault.DuplicateMember, "Duplicate member name in this object.")
		default:
			seen |= 1 << i
			expected = i + 1
			members[i].Read(r, into)
		}
	}
	return !r.broken
}

func find[T any](members []Member[T], name []byte, expected int) int {
	for n := range members {
		i := (expected + n) % len(members)
		if string(name) == members[i].Name {
			return i
		}
	}
	return -1
}

// ReadArray appends the objects of the next value, which must be an array. It
// does not look at the items beyond limit, so that a hostile body costs no more memory.
// It adds one empty item for them, so that the domain sees that there are too many.
func ReadArray[T any](r *Reader, into *[]T, limit int, members []Member[T]) {
	if !r.enter(jsontext.KindBeginArray, "Must be an array.") {
		return
	}
	for r.next(jsontext.KindEndArray) {
		if len(*into) > limit {
			r.skip()
			continue
		}
		*into = append(*into, *new(T))
		if len(*into) > limit {
			r.skip()
			continue
		}
		item := &(*into)[len(*into)-1]
		if !ReadObject(r, members, item) {
			markUnread(members, item)
		}
	}
}

func markUnread[T any](members []Member[T], item *T) {
	for _, m := range members {
		if m.unread != nil {
			m.unread(item)
		}
	}
}

// readText reads the next value: a string, or null for an absent one.
func (r *Reader) readText() string {
	if r.IsNull() {
		return ""
	}
	if r.decoder.PeekKind() != jsontext.KindString {
		r.wrongType("Must be a string.")
		return unreadText
	}
	quoted := r.value()
	if r.broken {
		return ""
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		end := int(r.decoder.InputOffset())
		return r.text[end-len(quoted)+1 : end-1]
	}
	unquoted := unquote(r, quoted)
	if bytes.IndexByte(unquoted, 0) >= 0 {
		r.unreadFault(fault.InvalidCharacter, "Must not have the character U+0000.")
		return unreadText
	}
	return string(unquoted)
}

// readNumber reads the next value: a number, or null for an absent one.
func (r *Reader) readNumber() decimal.Decimal {
	var d decimal.Decimal
	switch r.decoder.PeekKind() {
	case jsontext.KindNull:
		r.value()
	case jsontext.KindNumber:
		d, _ = decimal.ParseBytes(r.value()) // the decoder has the same grammar
	case jsontext.KindString:
		r.wrongType("Must be a number, without quotes.")
	default:
		r.wrongType("Must be a number.")
	}
	return d
}

// IsNull reports whether the next value is null, and reads past it if so.
func (r *Reader) IsNull() bool {
	if r.decoder.PeekKind() != jsontext.KindNull {
		return false
	}
	r.value()
	return true
}

// readName reads the name of a member. The name is valid until the next read.
func (r *Reader) readName() []byte {
	quoted := r.value()
	switch {
	case r.broken:
		return nil
	case bytes.IndexByte(quoted, '\\') < 0:
		return quoted[1 : len(quoted)-1]
	}
	return unquote(r, quoted)
}

func unquote(r *Reader, quoted []byte) []byte {
	r.scratch, _ = jsontext.AppendUnquote(r.scratch[:0], quoted) // it was read as a string
	return r.scratch
}

// enter reports whether the next value begins with the bracket, and reads past it.
func (r *Reader) enter(begin jsontext.Kind, rule string) bool {
	if r.decoder.PeekKind() != begin {
		r.wrongType(rule)
		return false
	}
	r.token()
	return !r.broken
}

// next reports whether there is another member or item, or reads past the end.
func (r *Reader) next(end jsontext.Kind) bool {
	if r.broken {
		return false
	}
	if r.decoder.PeekKind() == end {
		r.token()
		return false
	}
	return true
}

func (r *Reader) wrongType(rule string) {
	r.skip()
	r.unreadFault(fault.WrongType, rule)
}

// refuseName adds the fault of a member that no table has. The pointer repeats a name
// that is short and printable. Otherwise it leads to the object.
func refuseName[T any](r *Reader, name string, members []Member[T]) {
	if len(r.faults) == MaxFaults { // no more are listed, and a suggestion costs time
		r.more = true
		r.skip()
		return
	}
	code := fault.UnknownMember
	detail := "Unknown member."
	if strings.IndexByte(name, 0) >= 0 {
		code = fault.InvalidCharacter
		detail = "A name must not have the character U+0000."
	} else if len(name) <= maxName {
		var names []string
		for _, m := range members {
			names = append(names, m.Name)
		}
		if meant, found := fault.Closest(name, slices.Values(names), max(1, min(3, len(name)/4))); found {
			detail += ` Did you mean "` + meant + `"?`
		}
	}
	if r.skip(); r.broken {
		return
	}
	pointer := string(r.decoder.StackPointer())
	if !isSafeName(name) {
		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}
	r.fault(pointer, code, detail)
}

func isSafeName(name string) bool {
	return len(name) <= maxName && !strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) })
}

// skip reads past the next value of any type.
func (r *Reader) skip() {
	for depth := r.decoder.StackDepth(); !r.broken; {
		switch r.decoder.PeekKind() {
		case jsontext.KindBeginObject, jsontext.KindBeginArray:
			// The tables are not so deep. Only a skipped value can be.
			if r.decoder.StackDepth() == maxDepth {
				r.breakOff(safePointer(r.decoder.StackPointer()), fault.NestingTooDeep, "The body must not nest deeper than 16.")
				return
			}
			r.token()
		case jsontext.KindEndObject, jsontext.KindEndArray:
			r.token()
		default:
			r.value()
		}
		if r.decoder.StackDepth() <= depth {
			return
		}
	}
}

func (r *Reader) token() {
	if _, err := r.decoder.ReadToken(); err != nil {
		r.fail(err)
	}
}

func (r *Reader) value() jsontext.Value {
	v, err := r.decoder.ReadValue()
	if err != nil {
		r.fail(err)
	}
	return v
}

// unreadFault adds a fault of the value that was read last and that reached no field.
// All names on the way to it are known names.
func (r *Reader) unreadFault(code, detail string) {
	if r.broken || len(r.faults) == MaxFaults { // a fault that is not listed hides none that is
		r.more = true
		return
	}
	r.shadow(string(r.decoder.StackPointer()), code, detail)
}

// shadow adds a fault and hides what the domain says about the same place.
func (r *Reader) shadow(pointer, code, detail string) {
	r.fault(pointer, code, detail)
	if r.unread == nil {
		r.unread = make(map[string]bool)
	}
	r.unread[pointer] = true
}

func (r *Reader) fault(pointer, code, detail string) {
	switch {
	case r.broken:
	case len(r.faults) == MaxFaults:
		r.more = true
	default:
		r.faults.Add(pointer, code, detail)
	}
}

// isWide reports whether a text looks like UTF-16 or UTF-32: it begins with a byte order mark of
// these, or has U+0000 as one of its first two bytes, which no JSON has.
func isWide(text string) bool {
	return strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") || strings.Contains(text[:min(2, len(text))], "\x00")
}

// fail ends the pass because of an error of the library. The error's text
// repeats what the caller sent, so it is dropped.
func (r *Reader) fail(err error) {
	var pointer jsontext.Pointer
	offset := len(r.text)
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		pointer, offset = syntactic.JSONPointer, int(syntactic.ByteOffset)
	}
	rest := r.text[offset:]
	where := safePointer(pointer)
	switch {
	case isWide(r.text):
		r.breakOff("", fault.InvalidJSON, "The body is in UTF-16 or UTF-32. Send UTF-8.")
	case strings.HasPrefix(r.text, "\ufeff"):
		r.breakOff("", fault.InvalidJSON, "The body must not begin with a byte order mark (U+FEFF). Send UTF-8 without one.")
	case strings.Trim(r.text, " \t\r\n") == "":
		r.breakOff("", fault.InvalidJSON, "The body is empty. It must be a JSON object.")
	case !utf8.ValidString(r.text[:min(offset+utf8.UTFMax, len(r.text))]) && invalidUTF8(r.text) <= offset:
		r.breakOff(where, fault.InvalidJSON, atByte("The body is not valid UTF-8", invalidUTF8(r.text)))
	case strings.HasPrefix(rest, `\ud`) || strings.HasPrefix(rest, `\uD`):
		r.breakOff(where, fault.InvalidJSON, atByte("A string has a lone surrogate", offset))
	case errors.Is(err, io.ErrUnexpectedEOF):
		r.breakOff(where, fault.InvalidJSON, atByte("The body ends too early", offset))
	default:
		r.breakOff(where, fault.InvalidJSON, atByte("The body is not valid JSON", offset))
	}
}

func invalidUTF8(s string) int {
	for i, c := range s {
		if c == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			return i
		}
	}
	return len(s)
}

func atByte(detail string, offset int) string {
	return detail + " at byte " + strconv.Itoa(offset) + "."
}

// breakOff ends the pass with this one fault.
func (r *Reader) breakOff(pointer, code, detail string) {
	if r.broken {
		return
	}
	r.faults = []fault.Fault{{Pointer: pointer, Code: code, Detail: detail}}
	r.more = false
	r.broken = true
}

// safePointer cuts a pointer before the first name that must not be repeated.
func safePointer(p jsontext.Pointer) string {
	// Safe names, escaped, are shorter than this. There is nothing to find behind.
	most := maxDepth * (1 + 2*maxName)
	if len(p) > most {
		p = p[:strings.LastIndexByte(string(p[:most]), '/')]
	}
	end := 0
	for token := range p.Tokens() {
		if !isSafeName(token) {
			break
		}
		end += 1 + len(token) + strings.Count(token, "~") + strings.Count(token, "/")
	}
	return string(p[:end])
}
