package tables

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"gorm.io/gorm/clause"

	"bankingapi/domain/fault"
)

// MessagesKey returns the key of the book that was checked last.
func (d *Database) MessagesKey() []byte { return *d.secret.Load() }

// MakeKey makes the key, unless the book has one.
func (d *Database) MakeKey(ctx context.Context) error {
	var key [32]byte
	_, _ = rand.Read(key[:]) // it never fails
	if err := d.SetProperty(ctx, KeyProperty, hex.EncodeToString(key[:]), clause.OnConflict{DoNothing: true}); err != nil {
		return err
	}
	return d.ReadKey(ctx)
}

// ReadKey reads the key. It makes a key if the book has no key and no message.
func (d *Database) ReadKey(ctx context.Context) error {
	text, err := d.Property(ctx, KeyProperty)
	if err != nil {
		return err
	}
	if text == "" { // a book that was made by hand
		var stored []int64
		err = d.DB.Translate(d.Reads.WithContext(ctx).Model(&NotificationRow{}).Limit(1).Pluck("position", &stored).Error)
		if err != nil {
			return err
		}
		if len(stored) == 0 {
			return d.MakeKey(ctx)
		}
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) == 0 {
		return fault.New(fault.Unavailable, "The table "+d.Properties.Name+" has no valid "+KeyProperty+
			", by which stored messages are known again. Restore this row from a backup.")
	}
	d.secret.Store(&key)
	return nil
}
