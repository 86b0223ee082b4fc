package storage

import (
	"context"
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bankingapi/application/subscriptions"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

var _ subscriptions.Repository = (*Store)(nil)

// subscriptionRow is a row of the table subscriptions.
type subscriptionRow struct {
	Name              string `gorm:"primaryKey"`
	State             string
	Operations        string // names, comma-separated
	RequestsPerSecond int64
	AppKey            string
	Channel           string
	TellerName        string
	PrimaryHash       []byte
	SecondaryHash     []byte
}

func (s *Store) subscriptions(ctx context.Context, db *gorm.DB) *gorm.DB {
	return db.WithContext(ctx).Table(s.prefix + "subscriptions")
}

// All is subscriptions.Repository.
func (s *Store) All(ctx context.Context) ([]*subscription.Subscription, error) {
	var rows []subscriptionRow
	if err := s.subscriptions(ctx, s.engine.Reads).Order("name").Find(&rows).Error; err != nil {
		return nil, s.translate(err)
	}
	all := make([]*subscription.Subscription, len(rows))
	for i := range rows {
		var err error
		if all[i], err = rows[i].subscription(); err != nil {
			return nil, s.translate(err)
		}
	}
	return all, nil
}

// Create is subscriptions.Repository.
func (s *Store) Create(ctx context.Context, sub *subscription.Subscription) error {
	row := newSubscriptionRow(sub)
	var created int64
	err := s.again(ctx, func() error {
		result := s.subscriptions(ctx, s.engine.DB).Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
		created = result.RowsAffected
		return result.Error
	})
	if err == nil && created == 0 {
		return subscriptions.ErrNameTaken
	}
	return err
}

// Change is subscriptions.Repository.
func (s *Store) Change(ctx context.Context, name string, change func(*subscription.Subscription) error) error {
	var refused error
	work := func(tx *gorm.DB) error {
		var rows []subscriptionRow
		lock := clause.Locking{Strength: clause.LockingStrengthUpdate} // SQLite drops it: its transactions exclude each other
		if err := s.subscriptions(ctx, tx).Clauses(lock).Where("name = ?", name).Find(&rows).Error; err != nil {
			return err
		}
		if len(rows) == 0 {
			refused = subscriptions.ErrNotFound
			return refused
		}
		sub, err := rows[0].subscription()
		if err != nil {
			return err
		}
		if refused = change(sub); refused != nil {
			return refused
		}
		row := newSubscriptionRow(sub)
		return s.subscriptions(ctx, tx).Where("name = ?", name).Select("*").Updates(&row).Error
	}
	err := s.again(ctx, func() error { return s.engine.DB.WithContext(ctx).Transaction(work) })
	if refused != nil {
		return refused
	}
	return err
}

func newSubscriptionRow(s *subscription.Subscription) subscriptionRow {
	names := make([]string, len(s.Operations))
	for i, n := range s.Operations {
		names[i] = n.String()
	}
	return subscriptionRow{
		Name:              s.Name,
		State:             string(s.State),
		Operations:        strings.Join(names, ","),
		RequestsPerSecond: int64(s.RequestsPerSecond),
		AppKey:            s.AppKey,
		Channel:           s.Channel,
		TellerName:        s.TellerName,
		PrimaryHash:       s.PrimaryHash[:],
		SecondaryHash:     s.SecondaryHash[:],
	}
}

func (r *subscriptionRow) subscription() (*subscription.Subscription, error) {
	s := &subscription.Subscription{
		Name:              r.Name,
		State:             subscription.State(r.State),
		RequestsPerSecond: int(r.RequestsPerSecond),
		AppKey:            r.AppKey,
		Channel:           r.Channel,
		TellerName:        r.TellerName,
	}
	for name := range strings.SplitSeq(r.Operations, ",") {
		n, ok := operation.ParseName(name)
		if !ok {
			return nil, fmt.Errorf("subscription %q may call an operation this version does not know", r.Name)
		}
		s.Operations = append(s.Operations, n)
	}
	if len(r.PrimaryHash) != len(s.PrimaryHash) || len(r.SecondaryHash) != len(s.SecondaryHash) {
		return nil, fmt.Errorf("subscription %q: a stored key hash is damaged", r.Name)
	}
	s.PrimaryHash, s.SecondaryHash = subscription.Hash(r.PrimaryHash), subscription.Hash(r.SecondaryHash)
	return s, nil
}
