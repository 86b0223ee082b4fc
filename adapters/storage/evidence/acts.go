package evidence

import (
	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// eachAct reads the leaves of acts, and of rows without their act.
func eachAct(d *tables.Database, tx *gorm.DB, keys *proof.Keys, visit func(proof.Entry, string)) error {
	return eachActOf(d, tx, keys, nil, func(l *proof.Named, name string) {
		if l.Kind == 0 {
			visit(unreadable(proof.Act, l.ID), name)
			return
		}
		visit(l.Entry(), name)
	})
}

// eachActOf reads the leaves of acts with everything that they have changed. only selects one
// ID. A leaf of the kind 0 has rows with values that the service never writes.
func eachActOf(d *tables.Database, tx *gorm.DB, keys *proof.Keys, only *operation.ID, visit func(*proof.Named, string)) error {
	c := changes{keys: keys, adjusted: make(sums), erased: make(sums), broken: make(map[operation.ID]bool)}
	err := tables.Each(tx.Scopes(ofAct("act_id", only)), d.Adjustments.Table, c.addAdjustment)
	if err != nil {
		return err
	}
	erased := tx.Scopes(ofAct("erasure_id", only)).Where("t.user_id = '' OR t.erasure_id IS NOT NULL")
	err = tables.Each(erased, d.Notifications.Table, c.addErased)
	if err != nil {
		return err
	}
	err = tables.Each(tx.Scopes(ofAct("audit_id", only)), d.Audits.Table, func(row *tables.AuditRow) error {
		act, err := row.Act()
		if err != nil {
			return err
		}
		visit(c.leaf(act.ID, &act), "act "+act.ID.String())
		return nil
	})
	if err != nil {
		return err
	}
	for id := range c.adjusted {
		visit(c.leaf(id, nil), "postings of "+id.String())
	}
	for id := range c.erased {
		visit(c.leaf(id, nil), "erasure "+id.String())
	}
	return nil
}

// ofAct is a scope of the rows t with this act in a column. nil means all rows.
func ofAct(column string, only *operation.ID) func(*gorm.DB) *gorm.DB {
	return func(tx *gorm.DB) *gorm.DB {
		if only == nil {
			return tx
		}
		return tx.Where("t."+column+" = ?", batch.UUID(*only))
	}
}

// changes has the sums of the rows that acts have changed, until their leaves are made.
type changes struct {
	keys             *proof.Keys
	adjusted, erased sums
	// broken are acts of rows with values that the service never writes.
	broken map[operation.ID]bool
}

func (c *changes) addAdjustment(row *tables.AdjustmentRow) error {
	posting, err := row.Entry()
	id := operation.ID(row.ActID)
	if err != nil || !row.IsShaped() {
		c.broken[id] = true
	}
	c.adjusted.of(c.keys, id).Adjustment(&posting)
	return nil // the posting is reported as broken
}

func (c *changes) addErased(row *tables.NotificationRow) error {
	message, err := row.Entry(operation.Envelope{ID: operation.ID(row.OperationID)})
	id := operation.ID(row.ErasureID)
	if err != nil {
		c.broken[id] = true
	}
	c.erased.of(c.keys, id).Erased(&message)
	return nil // the message is reported as broken
}

// leaf makes the leaf of an act, which is nil if no act is stored, and forgets its sums.
func (c *changes) leaf(id operation.ID, act *audit.Act) *proof.Named {
	l := proof.OfAct(id, act, c.adjusted[id], c.erased[id])
	if c.broken[id] {
		l.Kind = 0
	}
	delete(c.adjusted, id)
	delete(c.erased, id)
	return &l
}

// sums has the sums of the rows of each act.
type sums map[operation.ID]*proof.Sum

func (s sums) of(keys *proof.Keys, id operation.ID) *proof.Sum {
	if s[id] == nil {
		s[id] = proof.NewSum(keys)
	}
	return s[id]
}
