package tables

import (
	"fmt"
	"strings"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/subscription"
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
	// A time is NULL if it is not known, or if a key does not expire.
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

// neverLogged has the columns that change without an act. They are in no leaf.
var neverLogged = []string{"primary_used_at", "secondary_used_at", "without_caller_id_at"}

func openSubscriptions(d *Database) {
	t := &d.Subscriptions
	open(d, t, Relied{Rights: addAndChange})
	t.Add = t.Insert().Racing()
	columns := batch.Names(t.Columns)
	t.Find = t.Table.Find(batch.ForUpdate, "", columns...)
	t.Put = t.Update(columns[1:]...)
	d.UseSubscription = t.Update(neverLogged...)
}

// NewSubscriptionRow returns the row of a subscription.
func NewSubscriptionRow(s *subscription.Subscription) SubscriptionRow {
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
		RequireCallerID:   Flag(s.RequireCallerID),

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

// Subscription converts the row.
func (r *SubscriptionRow) Subscription() (*subscription.Subscription, error) {
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
	s.PrimaryHash = subscription.Hash(r.PrimaryHash)
	s.SecondaryHash = subscription.Hash(r.SecondaryHash)
	return s, nil
}
