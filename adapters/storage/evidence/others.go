package evidence

import (
	"fmt"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/tables"
	compare "bankingapi/application/proof"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// eachOther reads the leaves of prices, subscriptions, the calendar and acts.
func eachOther(d *tables.Database, tx *gorm.DB, keys *proof.Keys, visit func(proof.Entry, string)) error {
	err := eachChanging(d, tx, visit)
	if err != nil {
		return err
	}
	return eachAct(d, tx, keys, visit)
}

// eachChanging reads the leaves of prices, subscriptions and the calendar. Only their newest leaf is
// that of their row. It reads in the order of keys: tx may lock the rows.
func eachChanging(d *tables.Database, tx *gorm.DB, visit func(proof.Entry, string)) error {
	err := tables.Each(tx.Order("t.price_id"), d.Prices.Table, func(row *tables.PriceRow) error {
		visit(priceEntry(row), fmt.Sprintf("price %d", row.PriceID))
		return nil
	})
	if err != nil {
		return err
	}
	err = tables.Each(tx.Order("t.name"), d.Subscriptions.Table, func(row *tables.SubscriptionRow) error {
		visit(subscriptionEntry(row), fmt.Sprintf("subscription %q", row.Name))
		return nil
	})
	if err != nil {
		return err
	}
	calendar, err := d.PropertyIn(tx, tables.CalendarProperty)
	if err != nil {
		return err
	}
	visit(calendarEntry(calendar), compare.CalendarName)
	return nil
}

// withdrawnPrices returns the IDs of the leaves of prices that are withdrawn.
func withdrawnPrices(d *tables.Database, tx *gorm.DB) (map[operation.ID]bool, error) {
	withdrawn := make(map[operation.ID]bool)
	err := tables.Each(tx, d.Prices.Table, func(row *tables.PriceRow) error {
		price, err := row.ToPrice()
		if err == nil && price.IsWithdrawn() {
			withdrawn[proof.PriceID(row.PriceID)] = true
		}
		return nil
	})
	return withdrawn, err
}

func priceEntry(row *tables.PriceRow) proof.Entry {
	price, err := row.ToPrice()
	if err != nil {
		return unreadable(proof.Price, proof.PriceID(row.PriceID))
	}
	leaf := proof.OfPrice(&price, operation.ID(row.ActID))
	return leaf.Entry()
}

func subscriptionEntry(row *tables.SubscriptionRow) proof.Entry {
	subscription, err := row.Subscription()
	if err != nil {
		return unreadable(proof.Subscription, proof.NameID(row.Name))
	}
	leaf := proof.OfSubscription(subscription)
	return leaf.Entry()
}

func calendarEntry(calendar string) proof.Entry {
	row := tables.PropertyRow{Name: tables.CalendarProperty, Value: calendar}
	var all []fund.ClosedDay
	for closed, err := range row.Days {
		if err != nil {
			return unreadable(proof.Calendar, operation.ID{})
		}
		all = append(all, closed)
	}
	leaf := proof.OfCalendar(all)
	return leaf.Entry()
}

// unreadable is the entry of a row with values that the service never writes. No leaf is equal.
func unreadable(kind proof.Kind, id operation.ID) proof.Entry { return proof.Entry{Kind: kind, ID: id} }
