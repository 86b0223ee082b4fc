package evidence

import (
	"fmt"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// eachOther reads the leaves of prices, subscriptions and acts.
func eachOther(d *tables.Database, tx *gorm.DB, keys *proof.Keys, visit func(proof.Entry, string)) error {
	return tables.InTurn(
		func() error {
			return tables.Each(tx, d.Prices.Table, func(row *tables.PriceRow) error {
				name := fmt.Sprintf("price %d", row.PriceID)
				price, err := row.ToPrice()
				if err != nil {
					visit(unreadable(proof.Price, proof.PriceID(row.PriceID)), name)
					return nil //nolint:nilerr // the row is reported as unreadable
				}
				l := proof.OfPrice(&price)
				visit(l.Entry(), name)
				return nil
			})
		},
		func() error {
			return tables.Each(tx, d.Subscriptions.Table, func(row *tables.SubscriptionRow) error {
				name := fmt.Sprintf("subscription %q", row.Name)
				s, err := row.Subscription()
				if err != nil {
					visit(unreadable(proof.Subscription, proof.NameID(row.Name)), name)
					return nil //nolint:nilerr // the row is reported as unreadable
				}
				l := proof.OfSubscription(s)
				visit(l.Entry(), name)
				return nil
			})
		},
		func() error { return eachAct(d, tx, keys, visit) },
	)
}

// unreadable is the entry of a row with values that the service never writes. No leaf is equal.
func unreadable(kind proof.Kind, id operation.ID) proof.Entry { return proof.Entry{Kind: kind, ID: id} }

// sums has the sums of the rows of each act.
type sums map[operation.ID]*proof.Sum

func (s sums) of(keys *proof.Keys, id operation.ID) *proof.Sum {
	if s[id] == nil {
		s[id] = proof.NewSum(keys)
	}
	return s[id]
}

// eachAct reads the leaves of acts, and of postings without an act.
func eachAct(d *tables.Database, tx *gorm.DB, keys *proof.Keys, visit func(proof.Entry, string)) error {
	return eachActOf(d, tx, keys, nil, func(l *proof.Named, name string) {
		e := l.Entry()
		if l.Kind == 0 {
			e = unreadable(proof.Act, l.ID)
		}
		visit(e, name)
	})
}

// eachActOf reads the leaves of acts with everything that they have changed. only selects one
// ID. A leaf of the kind 0 has rows with values that the service never writes.
func eachActOf(d *tables.Database, tx *gorm.DB, keys *proof.Keys, only *operation.ID, visit func(*proof.Named, string)) error {
	rows := func(column string) *gorm.DB {
		if only == nil {
			return tx
		}
		return tx.Where("t."+column+" = ?", d.Bind(batch.UUID(*only)))
	}
	adjusted, erased, broken := make(sums), make(sums), make(map[operation.ID]bool)
	err := tables.Each(rows("act_id"), d.Adjustments.Table, func(row *tables.AdjustmentRow) error {
		posting, err := row.Entry()
		id := operation.ID(row.ActID)
		broken[id] = broken[id] || err != nil || !row.IsShaped()
		adjusted.of(keys, id).Adjustment(&posting)
		return nil //nolint:nilerr // the posting is reported as broken
	})
	if err != nil {
		return err
	}
	messages := rows("erasure_id").Where("t.user_id = '' OR t.erasure_id IS NOT NULL")
	err = tables.Each(messages, d.Notifications.Table, func(row *tables.NotificationRow) error {
		message, err := row.Entry(operation.Envelope{ID: operation.ID(row.OperationID)})
		id := operation.ID(row.ErasureID)
		broken[id] = broken[id] || err != nil
		erased.of(keys, id).Erased(&message)
		return nil
	})
	if err != nil {
		return err
	}
	leaf := func(id operation.ID, act *audit.Act, name string) {
		l := proof.OfAct(id, act, adjusted[id], erased[id])
		if broken[id] {
			l.Kind = 0
		}
		visit(&l, name)
		delete(adjusted, id)
		delete(erased, id)
	}
	err = tables.Each(rows("audit_id"), d.Audits.Table, func(row *tables.AuditRow) error {
		act, err := row.Act()
		leaf(act.ID, &act, "act "+act.ID.String())
		return err
	})
	if err != nil {
		return err
	}
	for id := range adjusted {
		leaf(id, nil, "postings of "+id.String())
	}
	for id := range erased {
		leaf(id, nil, "erasure "+id.String())
	}
	return nil
}
