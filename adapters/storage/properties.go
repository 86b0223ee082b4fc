package storage

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fault"
)

// PropertyRow is a row of the table properties: something that is true of the book
// as a whole.
type PropertyRow struct {
	Name  string `gorm:"primaryKey"`
	Value string `gorm:"not null"`
}

// zoneProperty is the time zone of the book. The first service that asks sets it.
const zoneProperty = "time_zone"

// keyProperty is the key of what is kept of messages whose personal data are erased: with
// it somebody can test what a text was. So it is in no export, and in no other table.
const keyProperty = "messages_key"

// property reads a property. It is empty if the book does not have it.
func (d *database) property(ctx context.Context, name string) (value string, err error) {
	err = d.reads.WithContext(ctx).Table(d.properties.Name).Where("name = ?", name).Select("value").Scan(&value).Error
	return value, d.Translate(err)
}

// setProperty writes a property. existing says what happens if the book has it.
func (d *database) setProperty(ctx context.Context, name, value string, existing clause.OnConflict) error {
	return d.change(ctx, func(tx *gorm.DB) error {
		return tx.Table(d.properties.Name).Clauses(existing).Create(&PropertyRow{name, value}).Error
	})
}

// messagesKey is the key of the book that was checked last.
func (d *database) messagesKey() []byte {
	if key := d.secret.Load(); key != nil {
		return *key
	}
	return nil
}

// makeKey makes the key, unless the book has one.
func (d *database) makeKey(ctx context.Context) error {
	var key [32]byte
	_, _ = rand.Read(key[:]) // it never fails
	if err := d.setProperty(ctx, keyProperty, hex.EncodeToString(key[:]), clause.OnConflict{DoNothing: true}); err != nil {
		return err
	}
	return d.readKey(ctx)
}

func (d *database) readKey(ctx context.Context) error {
	text, err := d.property(ctx, keyProperty)
	if err != nil {
		return err
	}
	var erased []string
	if text == "" { // a book that was made by hand
		if err := d.reads.WithContext(ctx).Table(d.notifications.Name).Where("user_id = ''").Limit(1).Pluck("user_id", &erased).Error; err != nil {
			return d.Translate(err)
		}
		if len(erased) == 0 {
			return d.makeKey(ctx)
		}
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) == 0 {
		return fault.New(fault.Unavailable, "The table "+d.properties.Name+" has no valid "+keyProperty+
			", by which erased messages are known again. Restore this row from a backup.")
	}
	d.secret.Store(&key)
	return nil
}

// clock is store.Store's Clock.
func (d service) clock(ctx context.Context, zone string) (now, newest time.Time, err error) {
	if err := d.Ready(ctx); err != nil {
		return now, newest, err
	}
	var found struct {
		Zone        string
		Now, Newest batch.Instant
	}
	err = d.reads.WithContext(ctx).Raw(fmt.Sprintf("SELECT COALESCE((SELECT value FROM %s WHERE name = ?), '') AS zone, %s AS now,"+
		" (SELECT received_at FROM %s ORDER BY operation_id DESC LIMIT 1) AS newest",
		d.properties.Name, d.engine.Now, d.sales.Name), zoneProperty).Scan(&found).Error
	if err == nil && found.Zone == "" {
		found.Zone = zone
		err = d.setProperty(ctx, zoneProperty, zone, clause.OnConflict{DoNothing: true})
	}
	if err == nil && found.Zone != zone {
		err = fault.New(fault.Unavailable, fmt.Sprintf("bank.time_zone is %[2]s, but the days of this book are those of %[1]s. Set bank.time_zone to %[1]s."+
			" To give the book another time zone, stop all services and run: UPDATE %[3]s SET value = '%[2]s' WHERE name = '%[4]s'",
			found.Zone, zone, d.properties.Name, zoneProperty))
	}
	return found.Now.Time, found.Newest.Time, d.Translate(err)
}
