// Package audit has what is kept of every act of administration: who did what,
// when, from where and why.
//
// An act travels in the context of the call that carries it out. The storage writes it in the
// transaction of that call, so that an act is kept if and only if it took effect.
package audit

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"bankingapi/domain/operation"
)

// Who is a person who administers, and why.
type Who struct {
	Actor      string // the name that the person gave, or else the system user
	SystemUser string // the user of the operating system, or of the console
	Origin     string // where it was done: the name of the host
	Reason     string // in the words of the actor; may be empty
}

// Act is one act of administration. It has no keys and no contents of messages.
type Act struct {
	ID operation.ID
	At time.Time
	Who
	Action  string // what was done, such as SubscriptionsCreate
	Object  string // what it was done to, such as the name of a subscription
	Details string // more, such as what changed; may be empty
}

// NamesCustomer reports whether Object names a customer, so that not everybody may read it.
func (a *Act) NamesCustomer() bool {
	return a.Action == AdjustHolding || a.Action == AdjustAccount
}

// ShowsCustomer reports whether Details are the number of a customer.
func (a *Act) ShowsCustomer() bool { return a.Action == CommandShow && a.Object == "customer" }

// CustomerObject returns the object of acts that showed a customer. It hides the number: only
// somebody with the key can find the acts of a customer.
func CustomerObject(key []byte, customerNo int64) string {
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "console audit %d", customerNo) // it never fails
	return "customer " + hex.EncodeToString(mac.Sum(nil)[:8])
}

type (
	whoKey struct{}
	actKey struct{}
)

// By returns a context whose acts are those of who.
func By(ctx context.Context, who Who) context.Context { return context.WithValue(ctx, whoKey{}, who) }

// Actor returns who By has put into the context. It is the zero value if the context has none.
func Actor(ctx context.Context) Who {
	who, _ := ctx.Value(whoKey{}).(Who)
	return who
}

// With returns a context that carries the act.
func With(ctx context.Context, act Act) context.Context {
	return context.WithValue(ctx, actKey{}, &act)
}

// From returns the act that a context carries. ok is false if it carries none.
func From(ctx context.Context) (act Act, ok bool) {
	if carried, ok := ctx.Value(actKey{}).(*Act); ok {
		return *carried, true
	}
	return act, false
}

// Describe sets the details of the act that a context carries, if it carries one.
// It is for details that are known only while the act is carried out.
func Describe(ctx context.Context, details string) {
	if carried, ok := ctx.Value(actKey{}).(*Act); ok {
		carried.Details = storable(details)
	}
}

// Acts makes acts.
type Acts struct {
	NewID func() operation.ID
	Now   func() time.Time // the time of the bank
}

// New returns an act of the person whom By has put into the context.
func (a Acts) New(ctx context.Context, action, object, details string) Act {
	who := Actor(ctx)
	who.Actor, who.SystemUser = storable(who.Actor), storable(who.SystemUser)
	who.Origin, who.Reason = storable(who.Origin), storable(who.Reason)
	return Act{ID: a.NewID(), At: a.Now(), Who: who, Action: action, Object: storable(object), Details: storable(details)}
}

// storable replaces what Postgres cannot keep. A terminal or the name of a file may have another
// encoding than UTF-8. SQLite would keep it, and then the book could not be copied to Postgres.
func storable(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}

// Begin returns a context that carries a new act.
func (a Acts) Begin(ctx context.Context, action, object, details string) context.Context {
	return With(ctx, a.New(ctx, action, object, details))
}
