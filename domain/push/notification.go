// Package push has the rules of push notifications: messages that an external
// system sent to a user and reports to the bank (the contract, section 4).
package push

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/idempotency"
)

// Platform is the platform of the user's device.
type Platform uint8

// The platforms of the API's document.
const (
	Android Platform = 65
	IOS     Platform = 73
	Other   Platform = 79
)

// TranDataItem is an extra value of a push: Code of 1 to 100 characters, Name of at most 1,000.
type TranDataItem struct{ Code, Name string }

// Fields is a push notification as a caller sends it. The zero value of a field
// means that the field is absent.
type Fields struct {
	ExternalApplicationCode string
	ExternalTranCode        string
	UserID                  string
	PushID                  string
	PushInteractionID       decimal.Decimal
	Platform                decimal.Decimal
	Subject                 string
	Content                 string
	DeepLinkURL             string
	SendStatus              decimal.Decimal
	SendDate                string
	TranData                []TranDataItem
}

// Values are the content of a Notification, for storage and export.
type Values struct {
	ExternalApplicationCode string
	ExternalTranCode        string
	UserID                  string
	PushID                  string
	PushInteractionID       int64
	HasPushInteractionID    bool
	Platform                Platform
	Subject                 string
	Content                 string
	DeepLinkURL             string
	Sent                    bool    // SendStatus 1 (Success)
	SendDate                day.Day // the zero value if the caller sent no date
	TranData                []TranDataItem
}

// Kind is what the value of a Member is.
type Kind uint8

// The kinds of values.
const (
	Code    Kind = iota + 1 // a text that the external system gave: a code, an ID, a day
	Number                  // an integer
	User                    // a text that names the user
	Message                 // a text that the user saw
)

// Member is a member of a push notification record (the contract, section 4).
type Member struct {
	Name string // in a request
	Kind Kind
	// Limit is the maximum length of a text, in characters. It is 0 for another member.
	Limit int
	// Value returns a number in decimal digits and a day as YYYY-MM-DD. It returns
	// an empty text if the notification does not have the member.
	Value func(*Values) string
	// text returns the field of a text. It is nil for another member.
	text func(*Values) *string
}

// IsPersonal reports whether an erasure empties the member: it names the user, or the user saw it.
func (m *Member) IsPersonal() bool { return m.Kind == User || m.Kind == Message }

// textMember returns a member that is a text.
func textMember(name string, kind Kind, limit int, field func(*Values) *string) Member {
	return Member{name, kind, limit, func(r *Values) string { return *field(r) }, field}
}

// otherMember returns a member that is not a text.
func otherMember(name string, kind Kind, value func(*Values) string) Member {
	return Member{Name: name, Kind: kind, Value: value}
}

// Erase empties the personal members and TranData. An erased message keeps its identity. The
// ChannelSessionId of its request belongs to the header: an erasure of the messages of a request
// empties it too (package calls).
func (r *Values) Erase() {
	for i := range Members {
		m := &Members[i]
		if m.IsPersonal() {
			*m.text(r) = ""
		}
	}
	r.TranData = nil
}

// Members are the members of a notification, without TranData, which is an array. Files,
// pages and clients are made of this list. Programs may read an exported file by
// position: a new member is the last.
var Members = []Member{
	textMember("ExternalApplicationCode", Code, 100, func(r *Values) *string { return &r.ExternalApplicationCode }),
	textMember("ExternalTranCode", Code, 100, func(r *Values) *string { return &r.ExternalTranCode }),
	textMember("UserId", User, 200, func(r *Values) *string { return &r.UserID }),
	textMember("PushId", Code, 200, func(r *Values) *string { return &r.PushID }),
	otherMember("PushInteractionId", Number, func(r *Values) string {
		if !r.HasPushInteractionID {
			return ""
		}
		return strconv.FormatInt(r.PushInteractionID, 10)
	}),
	otherMember("Platform", Number, func(r *Values) string { return strconv.Itoa(int(r.Platform)) }),
	textMember("Subject", Message, 1000, func(r *Values) *string { return &r.Subject }),
	textMember("Content", Message, 10_000, func(r *Values) *string { return &r.Content }),
	textMember("DeepLinkUrl", Message, 2048, func(r *Values) *string { return &r.DeepLinkURL }),
	otherMember("SendStatus", Number, func(r *Values) string { return strconv.Itoa(r.SendStatus()) }),
	otherMember("SendDate", Code, func(r *Values) string { return r.SendDate.String() }),
}

// Notification is a push notification that keeps every rule of the contract,
// section 4. Its texts are byte for byte what the caller sent.
type Notification struct{ values Values }

// New checks all fields. It returns either a notification or all faults, with
// pointers from the record (/UserId).
func New(f Fields) (Notification, []fault.Fault) {
	var faults fault.List
	n := Notification{Values{
		ExternalApplicationCode: faults.RequiredText("/ExternalApplicationCode", f.ExternalApplicationCode, 100),
		ExternalTranCode:        faults.Text("/ExternalTranCode", f.ExternalTranCode, 100),
		UserID:                  faults.RequiredText("/UserId", f.UserID, 200),
		PushID:                  faults.RequiredText("/PushId", f.PushID, 200),
		Subject:                 faults.Text("/Subject", f.Subject, 1000),
		Content:                 faults.Text("/Content", f.Content, 10_000),
		DeepLinkURL:             faults.Text("/DeepLinkUrl", f.DeepLinkURL, 2048),
		TranData:                slices.Clone(f.TranData), // the fields are the caller's
	}}
	r := &n.values
	if f.DeepLinkURL != "" && !isURL(f.DeepLinkURL) {
		faults.Add("/DeepLinkUrl", fault.InvalidURL, "Must be empty or a URL without spaces, absolute or relative.")
	}
	if !f.PushInteractionID.IsAbsent() {
		r.PushInteractionID = integer(&faults, "/PushInteractionId", f.PushInteractionID)
		r.HasPushInteractionID = true
	}
	r.Platform = oneOf(&faults, "/Platform", f.Platform, "65 (Android), 73 (iOS) or 79 (Other).", Android, IOS, Other)
	r.Sent = oneOf(&faults, "/SendStatus", f.SendStatus, "0 (Fail) or 1 (Success).", 0, 1) == 1
	r.SendDate, _ = faults.Date("/SendDate", f.SendDate)
	if len(f.TranData) > maxTranData {
		faults.Add("/TranData", fault.TooMany, "At most 100 items.")
	} else {
		for i, item := range f.TranData {
			before := len(faults)
			faults.RequiredText("/Code", item.Code, 100)
			faults.Text("/Name", item.Name, 1000)
			if len(faults) > before {
				fault.Under("/TranData/"+strconv.Itoa(i), faults[before:])
			}
		}
	}
	return fault.Either(n, faults)
}

// FromValues checks the same rules for a Go program that has typed values. It
// returns either a notification or all faults, with the pointers of New.
func FromValues(r Values) (Notification, []fault.Fault) { return New(r.Fields()) }

// Fields returns the values as a caller would send it.
func (r *Values) Fields() Fields {
	f := Fields{
		ExternalApplicationCode: r.ExternalApplicationCode,
		ExternalTranCode:        r.ExternalTranCode,
		UserID:                  r.UserID,
		PushID:                  r.PushID,
		Platform:                decimal.Int(int64(r.Platform)),
		Subject:                 r.Subject,
		Content:                 r.Content,
		DeepLinkURL:             r.DeepLinkURL,
		SendStatus:              decimal.Int(int64(r.SendStatus())),
		SendDate:                r.SendDate.String(),
		TranData:                r.TranData,
	}
	if r.HasPushInteractionID {
		f.PushInteractionID = decimal.Int(r.PushInteractionID)
	}
	return f
}

// Restore returns a stored notification. It does not check today's rules, so that old
// notifications can always be read.
func Restore(r Values) Notification { return Notification{r} }

// Values returns the content of the notification. It must not be changed.
func (n *Notification) Values() *Values { return &n.values }

const maxTranData = 100

// oneOf returns d, which must be one of the allowed numbers.
func oneOf[T ~uint8 | ~int](faults *fault.List, pointer string, d decimal.Decimal, rule string, allowed ...T) T {
	for _, n := range allowed {
		if d == decimal.Int(int64(n)) {
			return n
		}
	}
	if d.IsAbsent() {
		faults.Add(pointer, fault.Required, "Required: "+rule)
	} else {
		faults.Add(pointer, fault.NotAllowed, rule)
	}
	return 0
}

func integer(faults *fault.List, pointer string, d decimal.Decimal) int64 {
	n, err := d.Integer(0)
	switch {
	case errors.Is(err, decimal.ErrPrecision):
		faults.Add(pointer, fault.NotAnInteger, "An integer.")
	case err != nil:
		faults.Add(pointer, fault.OutOfRange, "An integer from -2^63 to 2^63-1.")
	}
	return n
}

// isURL reports whether the text is a URL: a reference of RFC 3986, absolute or
// relative. Any scheme is allowed, because deep links have schemes of their own.
// A URL of the web needs a host.
func isURL(text string) bool {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return false
	}
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	isOfWeb := u.Scheme == "http" || u.Scheme == "https"
	return !isOfWeb || u.Hostname() != ""
}

func (r *Values) content(d *idempotency.Digest) {
	d.Text(r.ExternalApplicationCode)
	d.Text(r.ExternalTranCode)
	d.Text(r.UserID)
	d.Text(r.PushID)
	if r.HasPushInteractionID {
		d.Int(1)
	} else {
		d.Int(0)
	}
	d.Int(r.PushInteractionID)
	d.Int(int64(r.Platform))
	d.Text(r.Subject)
	d.Text(r.Content)
	d.Text(r.DeepLinkURL)
	d.Int(int64(r.SendStatus()))
	var buffer [len("2006-01-02")]byte
	d.Text(string(r.SendDate.Append(buffer[:0])))
	d.Int(int64(len(r.TranData)))
	for _, item := range r.TranData {
		d.Text(item.Code)
		d.Text(item.Name)
	}
}

// SendStatus returns the send status as a caller sends it: 0 (Fail) or 1 (Success).
func (r *Values) SendStatus() int {
	if r.Sent {
		return 1
	}
	return 0
}
