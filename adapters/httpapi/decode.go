package httpapi

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// The codes of what is wrong with the JSON itself. Rules about fields have
// theirs in package fault.
const (
	invalidJSON     = "invalid-json"
	nestingTooDeep  = "nesting-too-deep"
	unknownMember   = "unknown-member"
	duplicateMember = "duplicate-member"
)

const (
	// maxDepth is how deep a body may nest; its outermost object is depth 1.
	maxDepth = 16
	// maxFaults is how many faults one answer lists: a body of a few kilobytes
	// can break thousands of rules.
	maxFaults = 100
	// maxName is the longest unknown name that a pointer repeats, in bytes.
	maxName = 64
	// keptBody and keptRecords bound the memory a request may leave in a pool.
	keptBody    = 64 << 10
	keptRecords = 16
)

// reader reads one JSON text (the contract, section 2) in one pass, straight
// into the fields that the domain checks: no reflection, nothing in between.
//
// What breaks a rule is collected with its pointer and reading goes on. Only a
// text that is not JSON, or nests too deep, ends the pass: its members cannot
// be judged, so that is its one fault, and broken is set.
type reader struct {
	body    bytes.Buffer
	decoder jsontext.Decoder
	// text is the body once more: all texts without escapes are cut from this
	// one string, which costs one allocation in place of one for each.
	text    string
	scratch []byte

	broken bool
	faults []fault.Fault
	more   bool // there are faults beyond maxFaults
	// unread has the pointers of values that are there but did not reach a
	// field: what the domain says about such a field is not to be reported.
	unread map[string]bool
}

// readerOptions: the members seen are noted by readObject, which can go on
// after a duplicate; the library cannot.
var readerOptions = []jsontext.Options{jsontext.AllowDuplicateNames(true)}

// start begins with the text that is in body.
func (r *reader) start() {
	r.text = r.body.String()
	r.decoder.Reset(&r.body, readerOptions...)
}

// reset forgets the text, for the next one.
func (r *reader) reset() {
	if r.body.Cap() > keptBody {
		r.body = bytes.Buffer{}
	}
	if cap(r.scratch) > keptBody {
		r.scratch = nil
	}
	r.body.Reset()
	r.text = ""
	r.broken, r.more, r.faults, r.unread = false, false, nil, nil
}

// member is one row of the table that says what an object may have.
type member[T any] struct {
	name string
	read func(r *reader, into *T)
}

func text[T any](name string, field func(*T) *string) member[T] {
	return member[T]{name, func(r *reader, into *T) { *field(into) = r.readText() }}
}

func number[T any](name string, field func(*T) *decimal.Decimal) member[T] {
	return member[T]{name, func(r *reader, into *T) { *field(into) = r.readNumber() }}
}

func object[T, M any](name string, field func(*T) **M, members []member[M]) member[T] {
	return member[T]{name, func(r *reader, into *T) {
		if r.isNull() {
			return
		}
		value := new(M)
		if readObject(r, members, value) {
			*field(into) = value
		}
	}}
}

// array keeps one item more than the most there may be, so that the domain
// sees that there are too many, and a hostile body costs no more memory.
func array[T, M any](name string, field func(*T) *[]M, most int, members []member[M]) member[T] {
	return member[T]{name, func(r *reader, into *T) {
		if !r.isNull() {
			readArray(r, field(into), most, members)
		}
	}}
}

// readObject reads the next value, which must be an object of these members.
// It reports whether it was an object at all.
func readObject[T any](r *reader, members []member[T], into *T) bool {
	if !r.enter(jsontext.KindBeginObject, "Must be an object.") {
		return false
	}
	var seen uint64 // one bit for each member
	expected := 0   // members mostly come in the order of the document
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
			r.unreadFault(duplicateMember, "This name is there twice in one object.")
		default:
			seen |= 1 << i
			expected = i + 1
			members[i].read(r, into)
		}
	}
	return !r.broken
}

func find[T any](members []member[T], name []byte, expected int) int {
	for n := range members {
		i := expected + n
		if i >= len(members) {
			i -= len(members)
		}
		if string(name) == members[i].name {
			return i
		}
	}
	return -1
}

func readArray[T any](r *reader, into *[]T, most int, members []member[T]) {
	if !r.enter(jsontext.KindBeginArray, "Must be an array.") {
		return
	}
	for r.next(jsontext.KindEndArray) {
		if len(*into) > most {
			r.skip()
			continue
		}
		var item T
		*into = append(*into, item)
		readObject(r, members, &(*into)[len(*into)-1])
	}
}

// readText reads the next value, which must be a string or null (absent).
func (r *reader) readText() string {
	switch r.decoder.PeekKind() {
	case jsontext.KindNull:
		r.value()
		return ""
	case jsontext.KindString:
	default:
		r.wrongType("Must be a string.")
		return ""
	}
	quoted := r.value()
	if r.broken {
		return ""
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		end := int(r.decoder.InputOffset())
		return r.text[end-len(quoted)+1 : end-1]
	}
	unquoted := r.unquote(quoted)
	if bytes.IndexByte(unquoted, 0) >= 0 {
		r.unreadFault(fault.InvalidCharacter, "Must not have the character U+0000.")
		return ""
	}
	return string(unquoted)
}

// readNumber reads the next value, which must be a number or null (absent).
func (r *reader) readNumber() decimal.Decimal {
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

// isNull reads past a null.
func (r *reader) isNull() bool {
	if r.decoder.PeekKind() != jsontext.KindNull {
		return false
	}
	r.value()
	return true
}

// readName reads the name of a member. It is valid until the next reading.
func (r *reader) readName() []byte {
	quoted := r.value()
	switch {
	case r.broken:
		return nil
	case bytes.IndexByte(quoted, '\\') < 0:
		return quoted[1 : len(quoted)-1]
	}
	return r.unquote(quoted)
}

func (r *reader) unquote(quoted []byte) []byte {
	r.scratch, _ = jsontext.AppendUnquote(r.scratch[:0], quoted) // it was read as a string
	return r.scratch
}

// enter reads the bracket that the next value must begin with, and reports
// whether it did.
func (r *reader) enter(begin jsontext.Kind, rule string) bool {
	if r.decoder.PeekKind() != begin {
		r.wrongType(rule)
		return false
	}
	r.token()
	return !r.broken
}

// next reports whether there is another member or item, and reads past the end.
func (r *reader) next(end jsontext.Kind) bool {
	if r.broken {
		return false
	}
	if r.decoder.PeekKind() == end {
		r.token()
		return false
	}
	return true
}

func (r *reader) wrongType(rule string) {
	r.skip()
	r.unreadFault(fault.WrongType, rule)
}

// refuseName is for a member that no table has. The pointer repeats the
// caller's name when it is short and printable, else it ends before it.
func refuseName[T any](r *reader, name string, members []member[T]) {
	if len(r.faults) == maxFaults { // no more of them are listed, and a suggestion costs time
		r.more = true
		r.skip()
		return
	}
	code, detail := unknownMember, "There is no member of this name."
	if strings.IndexByte(name, 0) >= 0 {
		code, detail = fault.InvalidCharacter, "A name must not have the character U+0000."
	} else if ours := closest(name, members); ours != "" {
		detail += ` Did you mean "` + ours + `"?`
	}
	if r.skip(); r.broken {
		return
	}
	pointer := r.pointer()
	if !isSafeName(name) {
		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}
	r.fault(pointer, code, detail)
}

func isSafeName(name string) bool {
	return len(name) <= maxName && !strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) })
}

// skip reads past the next value, whatever it is.
func (r *reader) skip() {
	for depth := r.decoder.StackDepth(); !r.broken; {
		switch r.decoder.PeekKind() {
		case jsontext.KindBeginObject, jsontext.KindBeginArray:
			// The tables do not go down so far: only what is skipped can.
			if r.decoder.StackDepth() == maxDepth {
				r.breakOff(safePointer(r.decoder.StackPointer()), nestingTooDeep, "The body must not nest deeper than 16.")
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

func (r *reader) token() {
	if _, err := r.decoder.ReadToken(); err != nil {
		r.fail(err)
	}
}

func (r *reader) value() jsontext.Value {
	v, err := r.decoder.ReadValue()
	if err != nil {
		r.fail(err)
	}
	return v
}

// end checks that nothing follows the outermost value.
func (r *reader) end() {
	if r.broken {
		return
	}
	after := int(r.decoder.InputOffset())
	if _, err := r.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		blank := len(r.text[after:]) - len(strings.TrimLeft(r.text[after:], " \t\r\n"))
		r.notJSON("", "Nothing may follow the object, at byte", after+blank)
	}
}

// pointer is where the value is that was read last. On the way to it are only
// names of ours.
func (r *reader) pointer() string { return string(r.decoder.StackPointer()) }

// unreadFault is a fault of the value that was read last, and that no field has.
func (r *reader) unreadFault(code, detail string) {
	if r.broken || len(r.faults) == maxFaults { // what is not listed shadows nothing that is
		r.more = true
		return
	}
	r.shadow(r.pointer(), code, detail)
}

func (r *reader) shadow(pointer, code, detail string) {
	r.fault(pointer, code, detail)
	if r.unread == nil {
		r.unread = make(map[string]bool)
	}
	r.unread[pointer] = true
}

func (r *reader) fault(pointer, code, detail string) {
	switch {
	case r.broken:
	case len(r.faults) == maxFaults:
		r.more = true
	default:
		r.faults = append(r.faults, fault.Fault{Pointer: pointer, Code: code, Detail: detail})
	}
}

// fail ends the pass for an error of the library, whose text repeats what the
// caller sent and therefore goes nowhere.
func (r *reader) fail(err error) {
	var pointer jsontext.Pointer
	offset := len(r.text)
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		pointer, offset = syntactic.JSONPointer, int(syntactic.ByteOffset)
	}
	rest := r.text[offset:]
	where := safePointer(pointer)
	switch {
	case strings.HasPrefix(r.text, "\ufeff"):
		r.notJSON("", "The body must not begin with a byte order mark, at byte", 0)
	case strings.Trim(r.text, " \t\r\n") == "":
		r.breakOff("", invalidJSON, "The body is empty: it must be an object with Header and Parameters.")
	case !utf8.ValidString(r.text[:min(offset+utf8.UTFMax, len(r.text))]) && invalidUTF8(r.text) <= offset:
		r.notJSON(where, "The body is not valid UTF-8 at byte", invalidUTF8(r.text))
	case strings.HasPrefix(rest, `\ud`) || strings.HasPrefix(rest, `\uD`):
		r.notJSON(where, "A string has a lone surrogate at byte", offset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		r.notJSON(where, "The body ends too early, at byte", offset)
	default:
		r.notJSON(where, "The body is not valid JSON at byte", offset)
	}
}

func invalidUTF8(s string) int {
	for i, c := range s {
		if c == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return len(s)
}

func (r *reader) notJSON(pointer, detail string, offset int) {
	r.breakOff(pointer, invalidJSON, detail+" "+strconv.Itoa(offset)+".")
}

// breakOff leaves one fault: about a text that is not JSON nothing else is
// certain.
func (r *reader) breakOff(pointer, code, detail string) {
	if r.broken {
		return
	}
	r.faults, r.more = []fault.Fault{{Pointer: pointer, Code: code, Detail: detail}}, false
	r.broken = true
}

// safePointer cuts a pointer before the first name that is not safe to repeat.
func safePointer(p jsontext.Pointer) string {
	// Safe names, escaped, fill less than this: behind it is nothing to look for.
	if most := maxDepth * (1 + 2*maxName); len(p) > most {
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

// closest is the name of ours that the caller may have meant, or none.
func closest[T any](name string, members []member[T]) string {
	if len(name) > maxName {
		return ""
	}
	best, least := "", 4
	for _, m := range members {
		allowed := max(1, min(3, len(m.name)/4))
		if d := distance(strings.ToLower(name), strings.ToLower(m.name)); d <= allowed && d < least {
			best, least = m.name, d
		}
	}
	return best
}

// distance is the edit distance of two short texts, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// request is the body of either operation, whose records differ.
type request[Record any] struct {
	reader
	header                   operation.Header
	parameters               []Record
	hasHeader, hasParameters bool
}

// requestMembers is the outermost object.
func requestMembers[Record any](records []member[Record], limit int) []member[request[Record]] {
	return []member[request[Record]]{
		{"Header", func(r *reader, q *request[Record]) {
			if q.hasHeader = !r.isNull(); q.hasHeader {
				readObject(r, headerMembers, &q.header)
			}
		}},
		{"Parameters", func(r *reader, q *request[Record]) {
			if q.hasParameters = !r.isNull(); q.hasParameters {
				readArray(r, &q.parameters, limit, records)
			}
		}},
	}
}

var headerMembers = []member[operation.Header]{
	text("AppKey", func(h *operation.Header) *string { return &h.AppKey }),
	text("Channel", func(h *operation.Header) *string { return &h.Channel }),
	text("TellerName", func(h *operation.Header) *string { return &h.TellerName }),
	text("CallerId", func(h *operation.Header) *string { return &h.CallerID }),
	text("ChannelSessionId", func(h *operation.Header) *string { return &h.ChannelSessionID }),
	text("ChannelRequestId", func(h *operation.Header) *string { return &h.ChannelRequestID }),
}

// decode reads the text that is in body. After it, faults has what is wrong
// with the JSON.
func (q *request[Record]) decode(members []member[request[Record]]) {
	q.start()
	isObject := readObject(&q.reader, members, q)
	q.end()
	if !isObject {
		return
	}
	if !q.hasHeader {
		q.shadow("/Header", fault.Required, "Required: an object, which may be empty.")
	}
	if !q.hasParameters {
		q.shadow("/Parameters", fault.Required, "Required: an array of records.")
	}
}

// join is everything that is wrong: the faults of the JSON and those that the
// domain found in the fields which could be read. more says that there are
// faults which are not listed.
func (q *request[Record]) join(domain []fault.Fault) (all []fault.Fault, more bool) {
	all = q.faults
	for _, f := range domain {
		if !q.isUnread(f.Pointer) {
			all = append(all, f)
		}
	}
	return all, q.more
}

// isUnread reports whether the pointer is of, or within, a value that no field
// has.
func (q *request[Record]) isUnread(pointer string) bool {
	for len(q.unread) > 0 {
		if q.unread[pointer] {
			return true
		}
		parent := strings.LastIndexByte(pointer, '/')
		if parent < 0 {
			return false
		}
		pointer = pointer[:parent]
	}
	return false
}

func (q *request[Record]) reset() {
	q.reader.reset()
	// What is pooled must not keep a request's texts alive.
	clear(q.parameters)
	q.parameters = q.parameters[:0]
	if cap(q.parameters) > keptRecords {
		q.parameters = nil
	}
	q.header = operation.Header{}
	q.hasHeader, q.hasParameters = false, false
}
