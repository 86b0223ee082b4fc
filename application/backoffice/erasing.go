package backoffice

import (
	"context"
	"errors"
	"time"

	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Erasing empties the personal fields of stored notifications: UserId, Subject, Content,
// DeepLinkUrl, TranData and ChannelSessionId. The other fields and the identity stay, so that
// the same message is not stored again if it is sent again.
type Erasing interface {
	// Erase empties the next q.Limit notifications in the order of their operations. It takes
	// the notifications of q.UserID, or otherwise the notifications from q.From on that were
	// received before q.Until. It keeps the act of the context in the same transaction, unless it
	// found nothing to empty. It returns how many notifications it emptied, and the operation of
	// the last of them.
	Erase(ctx context.Context, q Query) (erased int, last operation.ID, err error)
	// EraseSessions empties the ChannelSessionId of the next q.Limit operations that sent
	// notifications, from q.From on, and were received before q.Until: also of operations all of
	// whose messages were stored before. It returns and keeps what Erase does.
	EraseSessions(ctx context.Context, q Query) (erased int, last operation.ID, err error)
	// ErasedBefore returns the day of the last SetErasedBefore, or no day before the first.
	ErasedBefore(ctx context.Context) (day.Day, error)
	// SetErasedBefore stores the day before which all notifications were erased.
	SetErasedBefore(ctx context.Context, before day.Day) error
}

// ErrNotPast is returned if messages of a day that is not over would be erased.
var ErrNotPast = errors.New("only messages of days that are over can be erased")

// erasedAtOnce is how many notifications one transaction and one act erase.
const erasedAtOnce = 1000

// Eraser erases personal texts of messages. Each transaction keeps an act.
type Eraser struct {
	erasing    Erasing
	audit      Audit
	checkClock func(context.Context) error
	acts       audit.Acts
	zone       func() *time.Location
}

// Eraser returns the use cases that erase messages.
func (o *Office) Eraser() *Eraser {
	return &Eraser{erasing: o.Erasing, audit: o.Audit, checkClock: o.CheckClock, acts: o.Acts, zone: o.Zone}
}

func (e *Eraser) today() day.Day { return day.Of(e.acts.Now(), e.zone()) }

// EraseUser erases the notifications of a user and returns their number. If it is interrupted,
// the next call continues. The act does not name the user. Without a user the error is
// fault.Invalid.
func (e *Eraser) EraseUser(ctx context.Context, userID string, progress func(int64)) (int64, error) {
	if userID == "" {
		return 0, fault.New(fault.Invalid, "The user whose messages are to be erased is missing.")
	}
	return e.erase(ctx, Query{UserID: userID}, "one user", progress)
}

// overlap is how far the clock of a replica that received a notification may be behind.
const overlap = 7 * 24 * time.Hour

// EraseBefore erases the notifications that were received before a day of the bank, as
// EraseUser does. Of the days that an earlier call has erased it reads only the last seven again.
// The error is ErrNotPast if the day is later than the current day, or the error of CheckClock.
func (e *Eraser) EraseBefore(ctx context.Context, before day.Day, progress func(int64)) (int64, error) {
	if err := e.checkClock(ctx); err != nil { // a clock that is ahead would erase messages that must stay
		return 0, err
	}
	if before.After(e.today()) {
		return 0, ErrNotPast
	}
	done, err := e.erasing.ErasedBefore(ctx)
	if err != nil {
		return 0, err
	}
	if done.After(e.today()) { // by a clock that was ahead: messages of these days may have come since
		done = day.Day{}
	}
	q := Query{Until: before.Start(e.zone()), From: FirstID(done.Start(e.zone()).Add(-overlap))} // no day is before all IDs
	erased, err := e.erase(ctx, q, "before "+before.String(), progress)
	if err != nil {
		return erased, err
	}
	if err := e.eraseSessions(ctx, q, "before "+before.String()); err != nil {
		return erased, err
	}
	if before.After(done) {
		err = e.erasing.SetErasedBefore(ctx, before)
	}
	return erased, err
}

// KeepFor calls EraseBefore for the days that are more than days days ago. It does nothing if
// this replica or another one has done this today.
func (e *Eraser) KeepFor(ctx context.Context, days int) (int64, error) {
	before := e.today().Plus(-days)
	if done, err := e.erasing.ErasedBefore(ctx); err != nil || !before.After(done) && !done.After(e.today()) {
		return 0, err
	}
	ctx = audit.By(ctx, audit.Who{Actor: "bankingapi", SystemUser: "bankingapi", Reason: "retention.notifications"})
	return e.EraseBefore(ctx, before, nil)
}

// eraseSessions empties the ChannelSessionId of operations that stored no message, which erase does
// not meet. It keeps an act for each transaction that emptied one.
func (e *Eraser) eraseSessions(ctx context.Context, q Query, object string) (err error) {
	q.Limit = erasedAtOnce
	for erased := q.Limit; erased == q.Limit; {
		erased, q.From, err = e.erasing.EraseSessions(e.acts.Begin(ctx, audit.NotificationsErase, object, ""), q)
		if err != nil {
			return err
		}
	}
	return nil
}

// erase keeps an act for each transaction. If there was nothing to erase, it keeps one act.
func (e *Eraser) erase(ctx context.Context, q Query, object string, progress func(int64)) (total int64, err error) {
	progress = orQuiet(progress)
	q.Limit = erasedAtOnce
	for erased := q.Limit; erased == q.Limit; {
		erased, q.From, err = e.erasing.Erase(e.acts.Begin(ctx, audit.NotificationsErase, object, ""), q)
		total += int64(erased)
		progress(total)
		if err != nil {
			return total, err
		}
	}
	if total == 0 {
		err = e.audit.Keep(ctx, e.acts.New(ctx, audit.NotificationsErase, object, "messages: 0"))
	}
	return total, err
}
