// Package push has the push notification: a message an external system sent
// to a user and reports to the bank (the contract, section 4).
package push

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Platform is where a push was shown.
type Platform uint8

// The platforms of the customer's document.
const (
	Android Platform = 65
	IOS     Platform = 73
	Other   Platform = 79
)

// TranDataItem is an extra value of a push: Code of 1 to 100 characters, Name
// of at most 1,000.
type TranDataItem struct{ Code, Name string }

// Fields is a push notification as a caller sends it; the zero value of a
// field is an absent one.
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

// Record is what a Notification holds, for storage and export.
type Record struct {
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
	SendDate                day.Day // none when the caller gave none
	TranData                []TranDataItem
}

// Notification is a push notification that keeps every rule of the contract,
// section 4. Its texts are the caller's, byte for byte.
type Notification struct{ record Record }

// New checks all fields and returns either a notification or every fault,
// with pointers from the record (/UserId).
func New(f Fields) (Notification, []fault.Fault) {
	var c check
	n := Notification{Record{
		ExternalApplicationCode: c.required("/ExternalApplicationCode", f.ExternalApplicationCode, 100),
		ExternalTranCode:        c.text("/ExternalTranCode", f.ExternalTranCode, 100),
		UserID:                  c.required("/UserId", f.UserID, 200),
		PushID:                  c.required("/PushId", f.PushID, 200),
		Subject:                 c.text("/Subject", f.Subject, 1000),
		Content:                 c.text("/Content", f.Content, 10_000),
		DeepLinkURL:             c.text("/DeepLinkUrl", f.DeepLinkURL, 2048),
		TranData:                f.TranData,
	}}
	r := &n.record
	if f.DeepLinkURL != "" && !isAbsoluteURL(f.DeepLinkURL) {
		c.fault("/DeepLinkUrl", fault.InvalidURL, "Empty, or an absolute URL.")
	}
	if !f.PushInteractionID.IsAbsent() {
		r.PushInteractionID, r.HasPushInteractionID = c.integer("/PushInteractionId", f.PushInteractionID), true
	}
	switch platform := f.Platform; {
	case platform.IsAbsent():
		c.fault("/Platform", fault.Required, "Required: "+platforms)
	case platform == decimal.Int(int64(Android)):
		r.Platform = Android
	case platform == decimal.Int(int64(IOS)):
		r.Platform = IOS
	case platform == decimal.Int(int64(Other)):
		r.Platform = Other
	default:
		c.fault("/Platform", fault.NotAllowed, platforms)
	}
	switch status := f.SendStatus; {
	case status.IsAbsent():
		c.fault("/SendStatus", fault.Required, "Required: "+statuses)
	case status == decimal.Int(0), status == decimal.Int(1):
		r.Sent = !status.IsZero()
	default:
		c.fault("/SendStatus", fault.NotAllowed, statuses)
	}
	if f.SendDate != "" {
		var err error
		if r.SendDate, err = day.Parse(f.SendDate); err != nil {
			c.fault("/SendDate", fault.InvalidDate, "Empty, or a day that exists as YYYY-MM-DD.")
		}
	}
	if len(f.TranData) > maxTranData {
		c.fault("/TranData", fault.TooMany, "At most 100 items.")
	} else {
		for i, item := range f.TranData {
			before := len(c.faults)
			c.required("/Code", item.Code, 100)
			c.text("/Name", item.Name, 1000)
			if len(c.faults) > before {
				fault.Under("/TranData/"+strconv.Itoa(i), c.faults[before:])
			}
		}
	}
	if len(c.faults) > 0 {
		return Notification{}, c.faults
	}
	return n, nil
}

// Restore makes a notification of what storage kept. It does not judge by
// today's rules, so that history always loads.
func Restore(r Record) Notification { return Notification{r} }

// Record is what the notification holds. Its TranData is not to be changed.
func (n *Notification) Record() *Record { return &n.record }

const (
	maxTranData = 100
	platforms   = "65 (Android), 73 (iOS) or 79 (Other)."
	statuses    = "0 (Fail) or 1 (Success)."
)

// check collects the faults of one record.
type check struct{ faults []fault.Fault }

func (c *check) fault(pointer, code, detail string) {
	c.faults = append(c.faults, fault.Fault{Pointer: pointer, Code: code, Detail: detail})
}

// text is a text of at most that many characters.
func (c *check) text(pointer, value string, most int) string {
	if utf8.RuneCountInString(value) > most {
		c.fault(pointer, fault.TooLong, "At most "+strconv.Itoa(most)+" characters.")
	}
	return value
}

// required is a text of 1 to that many characters.
func (c *check) required(pointer, value string, most int) string {
	if value == "" {
		c.fault(pointer, fault.Required, "Required: 1 to "+strconv.Itoa(most)+" characters.")
	}
	return c.text(pointer, value, most)
}

func (c *check) integer(pointer string, d decimal.Decimal) int64 {
	n, err := d.Scaled(0)
	switch {
	case errors.Is(err, decimal.ErrPrecision):
		c.fault(pointer, fault.NotAnInteger, "An integer.")
	case err != nil:
		c.fault(pointer, fault.OutOfRange, "An integer from -2^63 to 2^63-1.")
	}
	return n
}

// isAbsoluteURL takes any scheme, since deep links have their own; only of the
// web's it knows that they need a host.
func isAbsoluteURL(text string) bool {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return false
	}
	u, err := url.Parse(text)
	if err != nil || !u.IsAbs() {
		return false
	}
	if u.Scheme == "http" || u.Scheme == "https" {
		return u.Hostname() != ""
	}
	return len(text) > len(u.Scheme+":")
}

// digest is the identity of the notification among those of a subscription:
// equal in every field is equal (the contract, section 4).
func (n *Notification) digest(d *operation.Digest, subscription string) operation.Fingerprint {
	d.Text(subscription)
	n.content(d)
	return d.Sum()
}

func (n *Notification) content(d *operation.Digest) {
	r := &n.record
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
	d.Text(r.SendDate.String())
	d.Int(int64(len(r.TranData)))
	for _, item := range r.TranData {
		d.Text(item.Code)
		d.Text(item.Name)
	}
}

// SendStatus is the send status on the wire: 0 (Fail) or 1 (Success).
func (r *Record) SendStatus() int {
	if r.Sent {
		return 1
	}
	return 0
}
