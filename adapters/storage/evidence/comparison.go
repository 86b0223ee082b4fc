package evidence

import (
	"bytes"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/office"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	compare "bankingapi/application/proof"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
	"bankingapi/domain/push"
)

// comparison reads operations and batches side by side for compare.Comparison.
type comparison struct {
	db      *tables.Database
	journal journal.Journal
	tx      *gorm.DB
	witness *backoffice.Witness
	log     *journal.Reading
	judge   *compare.Comparison
}

// flaws are the flaws of the comparison in the words of verify.
var flaws = map[compare.Flaw]backoffice.Flaw{
	compare.Changed: backoffice.Changed, compare.Added: backoffice.Added, compare.Removed: backoffice.Removed,
	compare.Late: backoffice.Late, compare.OtherTexts: backoffice.OtherTexts,
}

func newComparison(e evidence, tx *gorm.DB, w *backoffice.Witness) *comparison {
	c := &comparison{db: e.db, journal: e.journal, tx: tx, witness: w}
	c.judge = compare.NewComparison(w.Keys, push.NewIdentifier(e.db.MessagesKey()), func(flaw compare.Flaw, name string) {
		c.report(flaws[flaw], name)
	})
	c.log = e.journal.Read(tx, journal.Witness{Keys: w.Keys, Found: c.report, Batch: w.Batch, Entries: c.judge.Batch})
	return c
}

// report passes a flaw to the witness. It drops the error: serial stops all readers after it.
func (c *comparison) report(flaw backoffice.Flaw, name string) { _ = c.witness.Found(flaw.Of(name)) }

// compareAll compares the log and everything that has leaves. It calls seen for each operation.
func (c *comparison) compareAll(head *backoffice.HeadRow, seen func(*office.StoredOperation) error) error {
	err := tables.InTurn(
		func() error { return eachOther(c.db, c.tx, c.witness.Keys, c.judge.Row) },
		c.sameCallers,
		func() error { return c.compareOperations(seen) },
		func() error { return c.log.Until(nil) },
		c.findElsewhere,
		func() error { return c.judge.Suspects(c.placeOf) },
		c.leftover,
		func() error { return c.log.Gaps(head.Size) },
	)
	if err != nil {
		return err
	}
	head.Unsealed, err = c.log.Open()
	if err != nil {
		return err
	}
	n := &head.Compared
	n.Prices = c.judge.Compared[proof.Price]
	n.Subscriptions = c.judge.Compared[proof.Subscription]
	n.Acts = c.judge.Compared[proof.Act]
	n.Messages = c.judge.Messages
	n.Refusals = c.judge.Refusals
	head.HasOtherHashes, err = c.log.HasOtherHashes(head.Size)
	return err
}

// sameCallers reports CallerIds that have several records. This is only possible if the table
// has lost its index operations_identity. A lookup returns only one of the records.
func (c *comparison) sameCallers() error {
	var callers []string
	const key = "caller_id, subscription, operation"
	err := c.tx.Model(&tables.OperationRow{}).Where("caller_id <> ''").Group(key).Having("COUNT(*) > 1").Pluck("caller_id", &callers).Error
	for _, caller := range callers {
		c.report(backoffice.Added, fmt.Sprintf("second record of CallerId %q", caller))
	}
	return err
}

// compareOperations reads operations and batches side by side.
func (c *comparison) compareOperations(seen func(*office.StoredOperation) error) error {
	return office.EachRange(c.db, c.tx, func(ids office.Range) error {
		err := office.Operations(c.db, c.tx, ids, func(rows *office.StoredOperation) error {
			if err := seen(rows); err != nil || !rows.IsDecided() {
				return err
			}
			stored, contradicts := rows.Stored()
			c.judge.Operation(&stored, contradicts)
			return nil
		})
		if err != nil {
			return err
		}
		if err := c.log.Until(ids.Until); err != nil {
			return err
		}
		return c.findElsewhere()
	})
}

// findElsewhere looks up the messages that other operations have stored.
func (c *comparison) findElsewhere() error {
	stored := make(map[push.Identity]compare.Stored)
	for part := range slices.Chunk(c.judge.Elsewhere(), tables.Chunk) {
		ids := tables.Convert(part, func(id push.Identity) batch.UUID { return batch.UUID(id) })
		err := tables.Each(c.tx.Where("t.identity IN ?", ids), c.db.Notifications.Table, func(row *tables.NotificationRow) error {
			stored[push.Identity(row.Identity)] = compare.Stored{Operation: operation.ID(row.OperationID), Index: int(row.Position)}
			return nil
		})
		if err != nil {
			return err
		}
	}
	c.judge.Found(stored)
	return nil
}

// placeOf returns the place of the entry of a push. It is open if there is none.
func (c *comparison) placeOf(id operation.ID) (compare.Place, error) {
	after := batch.UUID(id)
	for row, err := range c.journal.Batches(c.tx, &after) {
		if err != nil {
			return compare.Place{}, err
		}
		if !bytes.Contains(row.Entries, id[:]) {
			continue
		}
		b, err := row.Batch()
		isOf := func(e proof.Entry) bool { return e.Kind == proof.Push && e.ID == id }
		if err != nil || !slices.ContainsFunc(b.Entries, isOf) {
			continue
		}
		return journal.Place(row), nil
	}
	return compare.Place{Position: compare.Open, Batch: id}, nil
}

// leftover reports what still waits. A leaf of a subscription has only the hash of its name, but
// acts contain the name.
func (c *comparison) leftover() error {
	var objects []string
	isRead := false
	c.judge.End(func(id operation.ID) string {
		if !isRead {
			isRead = true
			_ = c.tx.Model(&tables.AuditRow{}).Distinct().Pluck("object", &objects).Error // without the acts, the hash is reported
		}
		at := slices.IndexFunc(objects, func(object string) bool { return proof.NameID(object) == id })
		if at < 0 {
			return ""
		}
		return objects[at]
	})
	return nil
}
