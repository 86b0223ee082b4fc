package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/subscription"
	"bankingapi/domain/trail"
)

// SubscriptionRow is a row of the table subscriptions.
type SubscriptionRow struct {
	Name              string `gorm:"primaryKey"`
	State             string `gorm:"not null"`
	Operations        string `gorm:"not null"` // names, separated by commas
	RequestsPerSecond int64  `gorm:"not null"`
	AppKey            string `gorm:"not null"`
	Channel           string `gorm:"not null"`
	TellerName        string `gorm:"not null"`
	PrimaryHash       []byte `gorm:"not null"`
	SecondaryHash     []byte `gorm:"not null"`
	RequireCallerID   int64  `gorm:"not null;default:0"` // 0 or 1
	// Rows that are older than these columns have none of the times.
	CreatedAt          batch.Instant
	PrimaryCreatedAt   batch.Instant
	SecondaryCreatedAt batch.Instant
	PrimaryExpiresAt   batch.Instant
	SecondaryExpiresAt batch.Instant
	PrimaryUsedAt      batch.Instant
	SecondaryUsedAt    batch.Instant
	WithoutCallerIDAt  batch.Instant
	ClientCertificate  string `gorm:"not null;default:''"`
}

// subscriptionTable is the table and its statements.
type subscriptionTable struct {
	table[SubscriptionRow]
	use *batch.Statement[SubscriptionRow]
}

// neverLogged are the columns that change without an act. They are in no leaf.
var neverLogged = []string{"primary_used_at", "secondary_used_at", "without_caller_id_at"}

// Subscriptions is subscriptions.Repository.
type Subscriptions struct{ db leafMaker }

var (
	_ subscriptions.Repository = (*Subscriptions)(nil)
	_ subscriptions.Usage      = (*Subscriptions)(nil)
)

// All is subscriptions.Repository.
func (s *Subscriptions) All(ctx context.Context) ([]*subscription.Subscription, error) {
	var rows []SubscriptionRow
	if err := s.db.reads.WithContext(ctx).Table(s.db.subscriptions.Name).Order("name").Find(&rows).Error; err != nil {
		return nil, s.db.Translate(err)
	}
	all, err := appendEntries([]*subscription.Subscription{}, rows, (*SubscriptionRow).subscription)
	return all, s.db.Translate(err)
}

// Create is subscriptions.Repository. If two create one name at the same
// moment, the second one loses that race and is run again.
func (s *Subscriptions) Create(ctx context.Context, sub *subscription.Subscription) error {
	row := newSubscriptionRow(sub)
	return s.db.Transact(ctx, func(session batch.Session) error {
		if taken, err := lookUp(ctx, session, s.db.subscriptions.find, row); err != nil {
			return err
		} else if taken != nil {
			return batch.FailureError{Failure: batch.Refused, Cause: subscriptions.ErrNameTaken}
		}
		return s.commit(ctx, session, s.db.subscriptions.add, row)
	})
}

// Change is subscriptions.Repository.
func (s *Subscriptions) Change(ctx context.Context, name string, change func(*subscription.Subscription) error) error {
	return s.db.Transact(ctx, func(session batch.Session) error {
		row, err := lookUp(ctx, session, s.db.subscriptions.find, SubscriptionRow{Name: name})
		if err != nil {
			return err
		}
		if row == nil {
			return batch.FailureError{Failure: batch.Refused, Cause: subscriptions.ErrNotFound}
		}
		found, err := row.subscription()
		if err != nil {
			return err
		}
		if err := change(found); err != nil {
			return batch.FailureError{Failure: batch.Refused, Cause: err}
		}
		return s.commit(ctx, session, s.db.subscriptions.put, newSubscriptionRow(found))
	})
}

// Used is subscriptions.Usage. Rows are locked in the order of their names.
func (s *Subscriptions) Used(ctx context.Context, uses []subscriptions.Use) error {
	if len(uses) == 0 {
		return nil
	}
	uses = slices.SortedFunc(slices.Values(uses), func(a, b subscriptions.Use) int { return strings.Compare(a.Name, b.Name) })
	keys := convert(uses, func(u subscriptions.Use) SubscriptionRow { return SubscriptionRow{Name: u.Name} })
	return s.db.Transact(ctx, func(session batch.Session) error {
		var rows []SubscriptionRow
		find := s.db.subscriptions.find.Request(keys, func(i int, row *SubscriptionRow) error {
			u := &uses[i]
			rows = append(rows, SubscriptionRow{
				Name:              u.Name,
				PrimaryUsedAt:     later(row.PrimaryUsedAt, u.Primary),
				SecondaryUsedAt:   later(row.SecondaryUsedAt, u.Secondary),
				WithoutCallerIDAt: later(row.WithoutCallerIDAt, u.WithoutCallerID),
			})
			return nil
		})
		if err := session.Exchange(ctx, find); err != nil {
			return err
		}
		return session.Commit(ctx, batch.NonEmpty(s.db.subscriptions.use.Request(rows))...)
	})
}

func later(a batch.Instant, b time.Time) batch.Instant {
	if b.After(a.Time) {
		a.Time = b
	}
	return a
}

// commit writes a row, and the act that ctx carries.
func (s *Subscriptions) commit(ctx context.Context, session batch.Session, write *batch.Statement[SubscriptionRow], row SubscriptionRow) error {
	acts := s.db.actWrites(ctx, []trail.Entry{s.db.subscriptions.leaves.entry(&row)})
	return session.Commit(ctx, append(acts, write.Request([]SubscriptionRow{row}))...)
}

func newSubscriptionRow(s *subscription.Subscription) SubscriptionRow {
	return SubscriptionRow{
		Name:              s.Name,
		State:             string(s.State),
		Operations:        strings.Join(s.Operations, ","),
		RequestsPerSecond: int64(s.RequestsPerSecond),
		AppKey:            s.AppKey,
		Channel:           s.Channel,
		TellerName:        s.TellerName,
		PrimaryHash:       s.PrimaryHash[:],
		SecondaryHash:     s.SecondaryHash[:],
		RequireCallerID:   flag(s.RequireCallerID),

		CreatedAt:          batch.Instant{Time: s.Created},
		PrimaryCreatedAt:   batch.Instant{Time: s.PrimaryKey.Created},
		SecondaryCreatedAt: batch.Instant{Time: s.SecondaryKey.Created},
		PrimaryExpiresAt:   batch.Instant{Time: s.PrimaryKey.Expires},
		SecondaryExpiresAt: batch.Instant{Time: s.SecondaryKey.Expires},
		PrimaryUsedAt:      batch.Instant{Time: s.PrimaryKey.Used},
		SecondaryUsedAt:    batch.Instant{Time: s.SecondaryKey.Used},
		WithoutCallerIDAt:  batch.Instant{Time: s.WithoutCallerID},
		ClientCertificate:  s.ClientCertificate,
	}
}

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

func (r *SubscriptionRow) subscription() (*subscription.Subscription, error) {
	s := &subscription.Subscription{
		Name:              r.Name,
		State:             subscription.State(r.State),
		Operations:        strings.Split(r.Operations, ","),
		RequestsPerSecond: int(r.RequestsPerSecond),
		AppKey:            r.AppKey,
		Channel:           r.Channel,
		TellerName:        r.TellerName,
		RequireCallerID:   r.RequireCallerID != 0,
		Created:           r.CreatedAt.Time,
		PrimaryKey:        subscription.KeyLife{Created: r.PrimaryCreatedAt.Time, Expires: r.PrimaryExpiresAt.Time, Used: r.PrimaryUsedAt.Time},
		SecondaryKey:      subscription.KeyLife{Created: r.SecondaryCreatedAt.Time, Expires: r.SecondaryExpiresAt.Time, Used: r.SecondaryUsedAt.Time},
		WithoutCallerID:   r.WithoutCallerIDAt.Time,
		ClientCertificate: r.ClientCertificate,
	}
	if len(r.PrimaryHash) != len(s.PrimaryHash) || len(r.SecondaryHash) != len(s.SecondaryHash) {
		return nil, fmt.Errorf("subscription %q: a stored key hash is damaged", r.Name)
	}
	s.PrimaryHash, s.SecondaryHash = subscription.Hash(r.PrimaryHash), subscription.Hash(r.SecondaryHash)
	return s, nil
}
