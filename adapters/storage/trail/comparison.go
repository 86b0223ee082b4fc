package trail

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/read"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	compare "bankingapi/application/proof"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
	"bankingapi/domain/push"
)

// comparison reads operations and batches side by side for compare.Comparison.
type comparison struct {
	logComparison
	judge *compare.Comparison
}

// flaws are the flaws of the comparison in the words of verify.
var flaws = map[compare.Flaw]backoffice.Flaw{
	compare.Changed: backoffice.Changed, compare.Added: backoffice.Added, compare.Removed: backoffice.Removed,
	compare.Late: backoffice.Late, compare.OtherTexts: backoffice.OtherTexts,
}

func newLogComparison(d Writer, tx *gorm.DB, w *backoffice.Witness) logComparison {
	return logComparison{db: d.DB, log: d, tx: tx, w: w, early: make(map[int64]*backoffice.BatchRow)}
}

func newComparison(d Writer, tx *gorm.DB, w *backoffice.Witness) *comparison {
	c := &comparison{logComparison: newLogComparison(d, tx, w)}
	c.judge = compare.NewComparison(w.Keys, push.NewIdentifier(d.DB.MessagesKey()), func(flaw compare.Flaw, name string) {
		c.report(flaws[flaw], name)
	})
	c.entries = c.judge.Batch
	return c
}

// compareAll compares the log and everything that has leaves. It calls seen for each operation.
func (c *comparison) compareAll(head *backoffice.HeadRow, seen func(*read.StoredOperation) error) error {
	err := tables.InTurn(
		func() error { return c.log.eachOther(c.tx, c.w.Keys, c.judge.Row) },
		c.sameCallers,
		func() error { return c.compareOperations(seen) },
		func() error { return c.readBatches(nil) },
		c.findElsewhere,
		func() error { return c.judge.Suspects(c.placeOf) },
		c.leftover,
		func() error { return c.gaps(head.Size) },
		c.compareOpen,
	)
	if err != nil {
		return err
	}
	n := &head.Compared
	n.Prices, n.Subscriptions, n.Acts = c.judge.Compared[proof.Price], c.judge.Compared[proof.Subscription], c.judge.Compared[proof.Act]
	n.Messages, n.Refusals = c.judge.Messages, c.judge.Refusals
	head.Unsealed = int64(len(c.opened))
	var other []int64
	err = c.tx.Table(c.db.TrailHashes.Name).Where("hash_index < 0 OR hash_index >= ?", proof.StoredHashes(max(head.Size, 0))).Limit(1).Pluck("hash_index", &other).Error
	head.HasOtherHashes = len(other) > 0
	return err
}

// eachOther reads the leaves of prices, subscriptions and acts.
func (d Writer) eachOther(tx *gorm.DB, keys *proof.Keys, visit func(proof.Entry, string)) error {
	return tables.InTurn(
		func() error {
			return tables.Each(tx, d.DB.Prices.Table, func(row *tables.PriceRow) error {
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
			return tables.Each(tx, d.DB.Subscriptions.Table, func(row *tables.SubscriptionRow) error {
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
		func() error { return d.eachAct(tx, keys, visit) },
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
func (d Writer) eachAct(tx *gorm.DB, keys *proof.Keys, visit func(proof.Entry, string)) error {
	return d.eachActOf(tx, keys, nil, func(l *proof.Named, name string) {
		e := l.Entry()
		if l.Kind == 0 {
			e = unreadable(proof.Act, l.ID)
		}
		visit(e, name)
	})
}

// eachActOf reads the leaves of acts with everything that they have changed. only selects one
// ID. A leaf of the kind 0 has rows with values that the service never writes.
func (d Writer) eachActOf(tx *gorm.DB, keys *proof.Keys, only *operation.ID, visit func(*proof.Named, string)) error {
	rows := func(column string) *gorm.DB {
		if only == nil {
			return tx
		}
		return tx.Where("t."+column+" = ?", d.DB.Bind(batch.UUID(*only)))
	}
	adjusted, erased, broken := make(sums), make(sums), make(map[operation.ID]bool)
	err := tables.Each(rows("act_id"), d.DB.Adjustments.Table, func(row *tables.AdjustmentRow) error {
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
	err = tables.Each(messages, d.DB.Notifications.Table, func(row *tables.NotificationRow) error {
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
	err = tables.Each(rows("audit_id"), d.DB.Audits.Table, func(row *tables.AuditRow) error {
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

// sameCallers reports CallerIds that have several records. This is only possible if the table
// has lost its index operations_identity. A lookup returns only one of the records.
func (c *comparison) sameCallers() error {
	var callers []string
	const key = "caller_id, subscription, operation"
	err := c.tx.Table(c.db.Operations.Name).Where("caller_id <> ''").Group(key).Having("COUNT(*) > 1").Pluck("caller_id", &callers).Error
	for _, caller := range callers {
		c.report(backoffice.Added, fmt.Sprintf("second record of CallerId %q", caller))
	}
	return err
}

// compareOperations reads operations and batches side by side.
func (c *comparison) compareOperations(seen func(*read.StoredOperation) error) error {
	return read.EachRange(c.db, c.tx, func(ids read.Range) error {
		err := read.Operations(c.db, c.tx, ids, func(rows *read.StoredOperation) error {
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
		if err := c.readBatches(ids.Until); err != nil {
			return err
		}
		return c.findElsewhere()
	})
}

// findElsewhere looks up the messages that other operations have stored.
func (c *comparison) findElsewhere() error {
	stored := make(map[push.Identity]compare.Stored)
	for part := range slices.Chunk(c.judge.Elsewhere(), tables.Chunk) {
		ids := tables.Convert(part, func(id push.Identity) any { return c.db.Bind(batch.UUID(id)) })
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
	for row, err := range c.log.batches(c.tx, &after) {
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
		return placeOfBatch(row), nil
	}
	return compare.Place{Position: compare.Open, Batch: id}, nil
}

func placeOfBatch(row *tables.TrailBatchRow) compare.Place {
	at := compare.Place{Position: compare.Open, Batch: operation.ID(row.BatchID)}
	if row.Position.Valid {
		at.Position = row.Position.Int64
	}
	return at
}

// leftover reports what still waits. A leaf of a subscription has only the hash of its name, but
// acts contain the name.
func (c *comparison) leftover() error {
	var objects []string
	isRead := false
	c.judge.End(func(id operation.ID) string {
		if !isRead {
			isRead = true
			_ = c.tx.Table(c.db.Audits.Name).Distinct().Pluck("object", &objects).Error // without the acts, the hash is reported
		}
		at := slices.IndexFunc(objects, func(object string) bool { return proof.NameID(object) == id })
		if at < 0 {
			return ""
		}
		return objects[at]
	})
	return nil
}

// readBatches reads the next batches, up to the first batch that is later than the operation.
// If until is nil, it reads all batches.
func (c *logComparison) readBatches(until *batch.UUID) error {
	for !c.ended && (until == nil || c.batch == nil || bytes.Compare(c.batch[:], until[:]) <= 0) {
		page, err := c.log.batchPage(c.tx, c.batch)
		for i := range page {
			c.batch = &page[i].BatchID
			c.readBatch(&page[i])
		}
		if err != nil {
			return err
		}
		err = c.records()
		if err != nil {
			return err
		}
		c.ended = len(page) < batchesRead
	}
	return nil
}

func (c *logComparison) readBatch(row *tables.TrailBatchRow) {
	b, err := row.Batch()
	if err != nil {
		c.changedBatch(operation.ID(row.BatchID))
		return
	}
	provenance := c.note(row, b.Record())
	if c.entries == nil {
		return
	}
	c.entries(&b, placeOfBatch(row), &provenance)
}

// logComparison compares the batches with the log.
type logComparison struct {
	db  *tables.Database
	log Writer
	tx  *gorm.DB
	w   *backoffice.Witness
	// early has records that were read before their turn. next is the position of the next one.
	next   int64
	early  map[int64]*backoffice.BatchRow
	opened []*backoffice.BatchRow
	batch  *batch.UUID // the last batch that was read
	ended  bool        // all batches were read
	// entries receives the entries of each batch. It may be nil.
	entries func(*proof.Batch, compare.Place, *proof.Provenance)
	// isMissing is true if a batch is missing in the log.
	isMissing bool
}

// report passes a flaw to the witness. It drops the error: serial stops all readers after it.
func (c *logComparison) report(flaw backoffice.Flaw, name string) { _ = c.w.Found(flaw.Of(name)) }

func (c *logComparison) changedBatch(id operation.ID) {
	c.report(backoffice.Changed, "batch "+id.String())
}

// note stores the record until its turn in the log. It returns the provenance from the MAC.
func (c *logComparison) note(row *tables.TrailBatchRow, record []byte) proof.Provenance {
	provenance, ok := c.w.Keys.OpenMAC(record, row.Entries, row.MAC)
	r := &backoffice.BatchRow{ID: operation.ID(row.BatchID), Record: record, IsGenuine: ok}
	if ok {
		r.Base = &provenance.Base
	}
	if ok && row.IsElsewhere(&provenance) {
		r.Base = &proof.Base{Size: -1} // no log has this size
	}
	switch position := row.Position.Int64; {
	case !row.Position.Valid:
		r.Record = nil
		if c.opened = append(c.opened, r); !ok {
			c.changedBatch(r.ID)
		}
	case c.early[position] != nil || position < c.next:
		if other := c.early[position]; other != nil { // two batches have this position
			c.changedBatch(other.ID)
		}
		c.changedBatch(r.ID)
	default:
		c.early[position] = r
	}
	return provenance
}

// compareOpen reports the open batches that were made for another log.
func (c *logComparison) compareOpen() error {
	known := c.log.knownRoots()
	for _, r := range c.opened {
		if r.Base == nil {
			continue
		}
		has, err := c.log.has(c.tx, *r.Base, known)
		if err != nil && !errors.Is(err, errNoHash) { // the missing hash is reported with its batch
			return err
		}
		if err == nil && !has {
			c.report(backoffice.Foreign, r.String())
		}
	}
	return nil
}

// records passes the records whose turn it is to the witness, with their stored hashes.
func (c *logComparison) records() error {
	var ready []*backoffice.BatchRow
	size := c.next
	for r := c.early[c.next]; r != nil; r = c.early[c.next] {
		delete(c.early, c.next)
		ready = append(ready, r)
		c.next++
	}
	first := proof.StoredHashes(size)
	hashes := make([]proof.Hash, proof.StoredHashes(c.next)-first)
	if len(ready) > 0 && !c.isMissing {
		query := c.tx.Where("t.hash_index >= ? AND t.hash_index < ?", first, first+int64(len(hashes)))
		err := tables.Each(query, c.db.TrailHashes, func(row *tables.TrailHashRow) error {
			if len(row.Hash) == len(proof.Hash{}) {
				hashes[row.HashIndex-first] = proof.Hash(row.Hash)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, r := range ready {
		offset := proof.StoredHashes(size) - first
		size++
		if r.Hashes = hashes[offset : proof.StoredHashes(size)-first]; c.isMissing {
			r.Base, r.Hashes = nil, nil
		}
		if err := c.w.Batch(r); err != nil {
			return err
		}
	}
	return nil
}

// gaps reports the batches that are missing in a log of this size, and batches after its end.
func (c *logComparison) gaps(size int64) error {
	places := slices.Sorted(maps.Keys(c.early))
	for i, place := range places {
		if place >= size {
			c.changedBatch(c.early[place].ID)
			places[i] = size
		}
	}
	for _, next := range append(places, size) {
		if next > c.next {
			name := fmt.Sprintf("batch %d of the log", c.next+1)
			if next > c.next+1 {
				name = fmt.Sprintf("batch %d to %d of the log", c.next+1, next)
			}
			c.report(backoffice.Removed, name)
			c.next, c.isMissing = next, true
		}
		if err := c.records(); err != nil {
			return err
		}
	}
	return nil
}
