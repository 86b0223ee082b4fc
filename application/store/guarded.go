package store

import (
	"context"

	"bankingapi/application/addpush"
	"bankingapi/application/buyfund"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/push"
)

// guard makes both operations ask mayWrite first, for an adapter that does not ask itself.
func (s *Store) guard(mayWrite func(context.Context) error) {
	s.Books = guardedBooks{s.Books, mayWrite}
	s.Inboxes = guardedInboxes{s.Inboxes, mayWrite}
}

type guardedBooks struct {
	buyfund.Books
	mayWrite func(context.Context) error
}

func (b guardedBooks) Update(ctx context.Context, touched fund.LockSet, settle func(*fund.Book)) error {
	if err := b.mayWrite(ctx); err != nil {
		return err
	}
	return b.Books.Update(ctx, touched, settle)
}

type guardedInboxes struct {
	addpush.Inboxes
	mayWrite func(context.Context) error
}

func (i guardedInboxes) Update(ctx context.Context, callers []idempotency.Key, accept func(*push.Inbox)) error {
	if err := i.mayWrite(ctx); err != nil {
		return err
	}
	return i.Inboxes.Update(ctx, callers, accept)
}
