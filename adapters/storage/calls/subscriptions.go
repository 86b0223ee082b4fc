package calls

import (
	"context"
	"slices"
	"strings"
	"time"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/proof"
	"bankingapi/domain/subscription"
)

// subscribers implements subscriptions.Repository.
type subscribers struct {
	db      *tables.Database
	journal journal.Journal
}

var (
	_ subscriptions.Repository = subscribers{}
	_ subscriptions.Usage      = subscribers{}
)

func (s subscribers) All(ctx context.Context) ([]*subscription.Subscription, error) {
	var rows []tables.SubscriptionRow
	err := s.db.Query(ctx).Order("name").Find(&rows).Error
	if err != nil {
		return nil, s.db.Translate(err)
	}
	list, err := tables.AppendEntries([]*subscription.Subscription{}, rows, (*tables.SubscriptionRow).Subscription)
	return list, s.db.Translate(err)
}

// Create implements subscriptions.Repository. If two transactions create one name at the same
// moment, the second one loses the race and is run again.
func (s subscribers) Create(ctx context.Context, sub *subscription.Subscription) error {
	row := tables.NewSubscriptionRow(sub)
	return s.db.Transact(ctx, func(session batch.Session) error {
		taken, err := tables.LookUp(ctx, session, s.db.Subscriptions.Find, row)
		if err != nil {
			return err
		}
		if taken != nil {
			return batch.FailureError{Failure: batch.Refused, Cause: subscriptions.ErrNameTaken}
		}
		return s.commit(ctx, session, s.db.Subscriptions.Add, row)
	})
}

func (s subscribers) Change(ctx context.Context, name string, change func(*subscription.Subscription) error) error {
	return s.db.Transact(ctx, func(session batch.Session) error {
		row, err := tables.LookUp(ctx, session, s.db.Subscriptions.Find, tables.SubscriptionRow{Name: name})
		if err != nil {
			return err
		}
		if row == nil {
			return batch.FailureError{Failure: batch.Refused, Cause: subscriptions.ErrNotFound}
		}
		sub, err := row.Subscription()
		if err != nil {
			return err
		}
		err = change(sub)
		if err != nil {
			return batch.FailureError{Failure: batch.Refused, Cause: err}
		}
		return s.commit(ctx, session, s.db.Subscriptions.Put, tables.NewSubscriptionRow(sub))
	})
}

// KeepUses implements subscriptions.Usage. It locks rows in the order of their names.
func (s subscribers) KeepUses(ctx context.Context, uses []subscriptions.Use) error {
	if len(uses) == 0 {
		return nil
	}
	uses = slices.SortedFunc(slices.Values(uses), func(a, b subscriptions.Use) int { return strings.Compare(a.Name, b.Name) })
	keys := tables.Convert(uses, func(u subscriptions.Use) tables.SubscriptionRow { return tables.SubscriptionRow{Name: u.Name} })
	return s.db.Transact(ctx, func(session batch.Session) error {
		var rows []tables.SubscriptionRow
		find := s.db.Subscriptions.Find.Request(keys, func(i int, row *tables.SubscriptionRow) error {
			u := &uses[i]
			rows = append(rows, tables.SubscriptionRow{
				Name:              u.Name,
				PrimaryUsedAt:     later(row.PrimaryUsedAt, u.Primary),
				SecondaryUsedAt:   later(row.SecondaryUsedAt, u.Secondary),
				WithoutCallerIDAt: later(row.WithoutCallerIDAt, u.WithoutCallerID),
			})
			return nil
		})
		err := session.Exchange(ctx, find)
		if err != nil {
			return err
		}
		return session.Commit(ctx, batch.NonEmpty(s.db.UseSubscription.Request(rows))...)
	})
}

func later(a batch.Instant, b time.Time) batch.Instant {
	if b.After(a.Time) {
		a.Time = b
	}
	return a
}

// commit writes a locked row, or a new one, and the act that ctx carries.
func (s subscribers) commit(ctx context.Context, session batch.Session, write *batch.Statement[tables.SubscriptionRow], row tables.SubscriptionRow) error {
	changed, err := row.Subscription()
	if err != nil {
		return err
	}
	ordered, err := s.journal.After(ctx, session)
	if err != nil {
		return err
	}
	l := proof.OfSubscription(changed)
	acts := ordered.ActWrites(ctx, journal.Changes{Entries: []proof.Entry{l.Entry()}})
	return session.Commit(ctx, append(acts, write.Request([]tables.SubscriptionRow{row}))...)
}
