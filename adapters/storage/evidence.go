package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/backoffice"
	"bankingapi/domain/operation"
)

// evidence is backoffice.Evidence. The database joins and sums; what the rows
// mean is for the rules of package backoffice to say.
type evidence struct{ db *database }

// Read is as backoffice.Evidence promises.
func (e evidence) Read(ctx context.Context, w backoffice.Witness) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var one serial
	one.witness(&w)
	err := e.db.snapshots(ctx, func(all []*gorm.DB) error {
		parts := []func(*gorm.DB) error{
			func(tx *gorm.DB) error { return e.sales(tx, &w) },
			func(tx *gorm.DB) error { return e.holdings(tx, &w) },
			func(tx *gorm.DB) error { return e.accounts(tx, &w) },
			func(tx *gorm.DB) error { return e.operations(tx, &w) },
			func(tx *gorm.DB) error { return e.reversals(tx, &w) },
		}
		if w.Trail == nil {
			return inParallel(cancel, all, parts)
		}
		c, err := e.trail(ctx, all[0], w.Trail)
		if err != nil {
			return err
		}
		if c.hasBegun {
			parts = append([]func(*gorm.DB) error{c.compareLog, c.compareOthers}, parts...) // the longest first
		}
		if err := inParallel(cancel, all, parts); err != nil {
			return err
		}
		return w.Trail.Head(&c.state)
	})
	if one.told != nil {
		return one.told
	}
	return err
}

// inParallel reads the parts with the transactions, each of which takes the next
// one. The first error ends all.
func inParallel(cancel func(), all []*gorm.DB, parts []func(*gorm.DB) error) error {
	waiting := make(chan func(*gorm.DB) error, len(parts))
	for _, part := range parts {
		waiting <- part
	}
	close(waiting)
	var first sync.Once
	var failed error
	var readers []func() error
	for _, tx := range all {
		readers = append(readers, aside(func() error {
			for part := range waiting {
				if err := part(tx); err != nil {
					first.Do(func() { failed = err })
					cancel()
					return err
				}
			}
			return nil
		}))
	}
	ended := make([]error, len(readers))
	for i, wait := range readers {
		ended[i] = wait()
	}
	if failed != nil {
		return failed
	}
	return errors.Join(ended...)
}

// serial lets the readers call a witness one at a time, until its first error. It
// keeps the identity of that error.
type serial struct {
	mu   sync.Mutex
	told error
}

func (s *serial) call(witness func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil {
		s.told = witness()
	}
	return s.told
}

// oneByOne is the witness through call. Who does not want these rows has none.
func oneByOne[R any](s *serial, witness func(R) error) func(R) error {
	if witness == nil {
		return func(R) error { return nil }
	}
	return func(row R) error { return s.call(func() error { return witness(row) }) }
}

func (s *serial) witness(w *backoffice.Witness) {
	w.Holding, w.Account, w.Sale = oneByOne(s, w.Holding), oneByOne(s, w.Account), oneByOne(s, w.Sale)
	w.Posting, w.Operation, w.Reversal = oneByOne(s, w.Posting), oneByOne(s, w.Operation), oneByOne(s, w.Reversal)
	if w.Trail == nil {
		return
	}
	t := *w.Trail
	t.Record, t.Foreign = oneByOne(s, t.Record), oneByOne(s, t.Foreign)
	t.Hashes, t.Head, t.Leaf = oneByOne(s, t.Hashes), oneByOne(s, t.Head), oneByOne(s, t.Leaf)
	w.Trail = &t
}

func (e evidence) each(tx *gorm.DB, query string, row func(*sql.Rows) error) error {
	rows, err := tx.Raw(strings.NewReplacer("{{prefix}}", e.db.prefix, "{{all}}", e.db.postings.all.Name).Replace(query)).Rows() //nolint:rowserrcheck // Each does it
	if err != nil {
		return err
	}
	return batch.Each(rows, func() error { return row(rows) })
}

// positionsOf is a query of every position and the sum of its postings: the key,
// the quantity, whether the position exists, how many postings it has, and the sums
// of the halves of their quantities. A half is 32 bits with a sign, for which low has
// 2^31 less: Postgres sums such integers in 64 bits, and larger ones in 128, which
// takes twice as long.
func positionsOf(table, keys, quantity string, leg int) string {
	return fmt.Sprintf(`SELECT %[2]s, COALESCE(MAX(held), 0), CAST(SUM(present) AS bigint), CAST(SUM(posted) AS bigint),
 CAST(SUM(high) AS bigint), CAST(SUM(low) AS bigint)
FROM (
 SELECT %[2]s, %[3]s AS held, 1 AS present, 0 AS posted, 0 AS high, 0 AS low FROM {{prefix}}%[1]s
 UNION ALL
 SELECT %[2]s, NULL, 0, 1, CAST(quantity >> 32 AS integer), CAST((quantity & 4294967295) - 2147483648 AS integer) FROM {{all}} a WHERE leg = %[4]d
) p GROUP BY %[2]s`, table, keys, quantity, leg)
}

// setPosted reads the sums of positionsOf: high * 2^32 + low + 2^31 for each posting.
// 2^32 is 4 * 10^9 + 294,967,296.
func setPosted(s *backoffice.PositionSums, high, low int64) {
	const billion, rest = 1_000_000_000, 294_967_296
	s.Posted.High = 4*high + high/billion*rest
	s.Posted.Low = high%billion*rest + low + s.Postings<<31
}

func (e evidence) holdings(tx *gorm.DB, w *backoffice.Witness) error {
	var h backoffice.HoldingRow
	var high, low int64
	query := positionsOf("holdings", "customer_no, imkb_code, holder_corporation_name", "units", unitLeg)
	return e.each(tx, query, func(rows *sql.Rows) error {
		err := rows.Scan(&h.Key.CustomerNo, &h.Key.IMKBCode, &h.Key.HolderCorporationName,
			&h.Quantity, &h.Exists, &h.Postings, &high, &low)
		if err != nil {
			return err
		}
		setPosted(&h.PositionSums, high, low)
		return w.Holding(&h)
	})
}

func (e evidence) accounts(tx *gorm.DB, w *backoffice.Witness) error {
	var a backoffice.AccountRow
	var high, low int64
	query := positionsOf("accounts", "customer_no, branch_code, account_suffix, currency_code", "balance", moneyLeg)
	return e.each(tx, query, func(rows *sql.Rows) error {
		err := rows.Scan(&a.Key.CustomerNo, &a.Key.BranchCode, &a.Key.AccountSuffix, &a.Key.CurrencyCode,
			&a.Quantity, &a.Exists, &a.Postings, &high, &low)
		if err != nil {
			return err
		}
		setPosted(&a.PositionSums, high, low)
		return w.Account(&a)
	})
}

// saleEvidence leaves a joined value out where it is that of the sale: NULL is
// read much faster than another copy of a text.
const saleEvidence = `SELECT s.operation_id, s.position, s.customer_no, s.imkb_code, s.holder_corporation_name, s.units,
 s.account_customer_no, s.branch_code, s.account_suffix, s.currency_code, s.state,
 CASE WHEN s.selected_date IS NULL THEN 0 ELSE 1 END + CASE WHEN s.settled_at IS NULL THEN 0 ELSE 2 END
  + CASE WHEN s.caller_id = '' THEN 0 ELSE 4 END
  + CASE WHEN t.customer_no = s.customer_no AND t.account_customer_no = s.account_customer_no THEN 8 ELSE 0 END,
 s.settled_price_id, s.settled_price, s.proceeds,
 CASE WHEN t.customer_no = s.customer_no THEN 1 ELSE u.kind END, COALESCE(t.unit_quantity, u.quantity),
 NULLIF(COALESCE(t.imkb_code, u.imkb_code), s.imkb_code), NULLIF(COALESCE(t.holder_corporation_name, u.holder_corporation_name), s.holder_corporation_name),
 CASE WHEN t.account_customer_no = s.account_customer_no THEN 1 ELSE m.kind END, COALESCE(t.money_quantity, m.quantity),
 NULLIF(COALESCE(t.branch_code, m.branch_code), s.branch_code), NULLIF(COALESCE(t.account_suffix, m.account_suffix), s.account_suffix),
 NULLIF(COALESCE(t.currency_code, m.currency_code), s.currency_code),
 p.price, NULLIF(p.imkb_code, s.imkb_code), NULLIF(p.holder_corporation_name, s.holder_corporation_name), NULLIF(p.currency_code, s.currency_code),
 o.state, NULLIF(o.operation_id, s.operation_id)
FROM {{prefix}}sales s
LEFT JOIN {{prefix}}transfers t ON t.operation_id = s.operation_id AND t.position = s.position
LEFT JOIN {{prefix}}postings u ON u.customer_no = s.customer_no AND u.operation_id = s.operation_id AND u.position = s.position AND u.leg = 1 AND u.kind = 1
LEFT JOIN {{prefix}}postings m ON m.customer_no = s.account_customer_no AND m.operation_id = s.operation_id AND m.position = s.position AND m.leg = 2 AND m.kind = 1
LEFT JOIN {{prefix}}prices p ON p.price_id = s.settled_price_id
LEFT JOIN {{prefix}}operations o ON o.caller_id = s.caller_id AND o.subscription = s.subscription AND o.operation = 2 AND s.caller_id <> ''`

// sales reads the sales, and then the postings without one.
func (e evidence) sales(tx *gorm.DB, w *backoffice.Witness) error {
	posted, err := e.joinedSales(tx, w)
	if err != nil {
		return err
	}
	var transfers int64
	err = e.each(tx, "SELECT COUNT(*) FROM {{prefix}}transfers", func(rows *sql.Rows) error { return rows.Scan(&transfers) })
	if err != nil {
		return err
	}
	return e.postings(tx, w, transfers == posted)
}

// joinedSales reads the sales. posted counts completed ones that have the customers of
// their transfer. No two of them have the same.
func (e evidence) joinedSales(tx *gorm.DB, w *backoffice.Witness) (posted int64, err error) {
	var s backoffice.SaleRow
	var units backoffice.UnitPostingRow
	var money backoffice.MoneyPostingRow
	var price backoffice.PriceRow
	var record backoffice.RecordRow
	var flags int64
	var settledPriceID, settledPrice, proceeds sql.NullInt64
	var unitKind, unitQuantity, moneyKind, moneyQuantity, branch, suffix, perUnit, recordState sql.NullInt64
	var unitCode, unitHolder, moneyCurrency, priceCode, priceHolder, priceCurrency sql.NullString
	var recordID nullID
	into := []any{
		(*batch.UUID)(&s.OperationID), &s.Index, &s.Holding.CustomerNo, &s.Holding.IMKBCode, &s.Holding.HolderCorporationName, &s.Units,
		&s.Account.CustomerNo, &s.Account.BranchCode, &s.Account.AccountSuffix, &s.Account.CurrencyCode, &s.State,
		&flags,
		&settledPriceID, &settledPrice, &proceeds,
		&unitKind, &unitQuantity, &unitCode, &unitHolder,
		&moneyKind, &moneyQuantity, &branch, &suffix, &moneyCurrency,
		&perUnit, &priceCode, &priceHolder, &priceCurrency,
		&recordState, &recordID,
	}
	err = e.each(tx, saleEvidence, func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		s.SettledPriceID, s.SettledPrice, s.Proceeds = pointer(&settledPriceID), pointer(&settledPrice), pointer(&proceeds)
		s.HasSelectedDay, s.HasSettledAt, s.HasCallerID = flags&1 != 0, flags&2 != 0, flags&4 != 0
		s.UnitPosting, s.MoneyPosting, s.Price, s.Record = nil, nil, nil, nil
		if s.State == int64(operation.Completed) && flags&8 != 0 {
			posted++
		}
		if unitKind.Valid {
			s.UnitPosting = &units
			units.Kind, units.Quantity = unitKind.Int64, unitQuantity.Int64
			units.Fund.IMKBCode = or(unitCode, s.Holding.IMKBCode)
			units.Fund.HolderCorporationName = or(unitHolder, s.Holding.HolderCorporationName)
		}
		if moneyKind.Valid {
			s.MoneyPosting = &money
			money.Kind, money.Quantity, money.Account = moneyKind.Int64, moneyQuantity.Int64, s.Account
			if branch.Valid {
				money.Account.BranchCode = branch.Int64
			}
			if suffix.Valid {
				money.Account.AccountSuffix = suffix.Int64
			}
			money.Account.CurrencyCode = or(moneyCurrency, s.Account.CurrencyCode)
		}
		if perUnit.Valid {
			s.Price = &price
			price.PerUnit = perUnit.Int64
			price.Fund.IMKBCode = or(priceCode, s.Holding.IMKBCode)
			price.Fund.HolderCorporationName = or(priceHolder, s.Holding.HolderCorporationName)
			price.CurrencyCode = or(priceCurrency, s.Account.CurrencyCode)
		}
		if recordState.Valid {
			s.Record = &record
			record.State, record.OperationID = recordState.Int64, s.OperationID
			if recordID.Valid {
				record.OperationID = recordID.ID
			}
		}
		return w.Sale(&s)
	})
	return posted, err
}

func pointer(n *sql.NullInt64) *int64 {
	if n.Valid {
		return &n.Int64
	}
	return nil
}

func or(text sql.NullString, otherwise string) string {
	if text.Valid {
		return text.String
	}
	return otherwise
}

// nullID reads an ID or NULL.
type nullID struct {
	ID    operation.ID
	Valid bool
}

// Scan implements sql.Scanner.
func (n *nullID) Scan(value any) error {
	if n.Valid = value != nil; !n.Valid {
		return nil
	}
	return (*batch.UUID)(&n.ID).Scan(value)
}

// misshapen is the condition that a posting is neither of units nor of money.
const misshapen = `(p.kind NOT IN (1, 2, 3, 4) OR p.leg NOT IN (1, 2) OR (p.leg = 1) <> (p.currency_code = '') OR (p.leg = 2) <> (p.imkb_code = ''))`

// misshapenPostings finds those whose shape breaks a rule.
const misshapenPostings = `SELECT p.operation_id, p.position, p.leg, p.kind, p.customer_no, p.imkb_code, p.holder_corporation_name, p.currency_code, 1, 0
FROM {{all}} p WHERE ` + misshapen

// postingsWithoutSale finds the postings of a leg that belong to no completed sale.
func postingsWithoutSale(leg, joined, hasSale string) string {
	return `SELECT p.operation_id, p.position, p.leg, p.kind, p.customer_no, p.imkb_code, p.holder_corporation_name, p.currency_code, 0, 0
FROM {{all}} p
` + joined + `
WHERE ` + leg + ` AND p.kind = 1 AND NOT (` + hasSale + `) AND NOT ` + misshapen
}

// Money may go to another customer than the seller. No key leads from such a
// posting to its sale, so these sales are joined on their own.
var (
	unitsWithoutSale = postingsWithoutSale("p.leg = 1", `LEFT JOIN {{prefix}}sales s
 ON s.customer_no = p.customer_no AND s.operation_id = p.operation_id AND s.position = p.position AND s.state = 2`,
		"s.customer_no IS NOT NULL")
	moneyWithoutSale = postingsWithoutSale("p.leg <> 1", `LEFT JOIN {{prefix}}sales s
 ON s.customer_no = p.customer_no AND s.operation_id = p.operation_id AND s.position = p.position
 AND s.account_customer_no = p.customer_no AND s.state = 2
LEFT JOIN (
 SELECT account_customer_no, operation_id, position FROM {{prefix}}sales WHERE account_customer_no <> customer_no AND state = 2
) o ON o.account_customer_no = p.customer_no AND o.operation_id = p.operation_id AND o.position = p.position`,
		"s.customer_no IS NOT NULL OR o.operation_id IS NOT NULL")
)

// secondPostings finds the postings of sales that have a transfer too.
const secondPostings = `SELECT p.operation_id, p.position, p.leg, p.kind, p.customer_no, p.imkb_code, p.holder_corporation_name, p.currency_code, 1, 1
FROM {{prefix}}postings p
JOIN {{prefix}}transfers t ON t.operation_id = p.operation_id AND t.position = p.position
WHERE p.kind = 1`

// reversalPostings finds the postings of reversals that belong to no sale of a
// reversed operation.
const reversalPostings = `SELECT p.operation_id, p.position, p.leg, p.kind, p.customer_no, p.imkb_code, p.holder_corporation_name, p.currency_code, 0, 0
FROM {{prefix}}postings p
LEFT JOIN {{prefix}}reversals r ON r.reversal_id = p.operation_id
LEFT JOIN {{prefix}}sales s ON s.operation_id = r.operation_id AND s.position = p.position
 AND p.customer_no = CASE WHEN p.leg = 1 THEN s.customer_no ELSE s.account_customer_no END
WHERE p.kind = 4 AND s.operation_id IS NULL`

// reversalEvidence has the sales of reversed operations.
const reversalEvidence = `SELECT r.operation_id, r.reversal_id, s.position, s.customer_no, s.imkb_code, s.holder_corporation_name, s.units,
 s.account_customer_no, s.branch_code, s.account_suffix, s.currency_code, s.state, s.proceeds,
 u.kind, u.quantity, u.imkb_code, u.holder_corporation_name,
 m.kind, m.quantity, m.branch_code, m.account_suffix, m.currency_code
FROM {{prefix}}reversals r
LEFT JOIN {{prefix}}sales s ON s.operation_id = r.operation_id
LEFT JOIN {{prefix}}postings u ON u.customer_no = s.customer_no AND u.operation_id = r.reversal_id AND u.position = s.position AND u.leg = 1
LEFT JOIN {{prefix}}postings m ON m.customer_no = s.account_customer_no AND m.operation_id = r.reversal_id AND m.position = s.position AND m.leg = 2`

func (e evidence) reversals(tx *gorm.DB, w *backoffice.Witness) error {
	return e.each(tx, reversalEvidence, func(rows *sql.Rows) error {
		var r backoffice.ReversalRow
		var position, customer, units, accountCustomer, branch, suffix, state, proceeds sql.NullInt64
		var unitKind, unitQuantity, moneyKind, moneyQuantity, moneyBranch, moneySuffix sql.NullInt64
		var code, holder, currency, unitCode, unitHolder, moneyCurrency sql.NullString
		err := rows.Scan((*batch.UUID)(&r.OperationID), (*batch.UUID)(&r.ReversalID), &position, &customer, &code, &holder, &units,
			&accountCustomer, &branch, &suffix, &currency, &state, &proceeds,
			&unitKind, &unitQuantity, &unitCode, &unitHolder,
			&moneyKind, &moneyQuantity, &moneyBranch, &moneySuffix, &moneyCurrency)
		if err != nil {
			return err
		}
		r.HasSale, r.Index, r.State, r.Units, r.Proceeds = position.Valid, position.Int64, state.Int64, units.Int64, pointer(&proceeds)
		r.Holding.CustomerNo, r.Holding.IMKBCode, r.Holding.HolderCorporationName = customer.Int64, code.String, holder.String
		r.Account = backoffice.AccountName{
			CustomerNo: accountCustomer.Int64, BranchCode: branch.Int64, AccountSuffix: suffix.Int64, CurrencyCode: currency.String,
		}
		if unitKind.Valid {
			r.UnitPosting = &backoffice.UnitPostingRow{Kind: unitKind.Int64, Quantity: unitQuantity.Int64}
			r.UnitPosting.Fund.IMKBCode, r.UnitPosting.Fund.HolderCorporationName = unitCode.String, unitHolder.String
		}
		if moneyKind.Valid {
			r.MoneyPosting = &backoffice.MoneyPostingRow{Kind: moneyKind.Int64, Quantity: moneyQuantity.Int64, Account: backoffice.AccountName{
				CustomerNo: accountCustomer.Int64, BranchCode: moneyBranch.Int64, AccountSuffix: moneySuffix.Int64, CurrencyCode: moneyCurrency.String,
			}}
		}
		return w.Reversal(&r)
	})
}

// postings reads those that may break a rule. If every transfer has its sale, only
// the other postings are joined with sales.
func (e evidence) postings(tx *gorm.DB, w *backoffice.Witness, transfersHaveSales bool) error {
	queries := []string{misshapenPostings, unitsWithoutSale, moneyWithoutSale, secondPostings, reversalPostings}
	if transfersHaveSales {
		for i := range queries[1:] {
			queries[i+1] = strings.ReplaceAll(queries[i+1], "{{all}}", "{{prefix}}postings")
		}
	}
	for _, query := range queries {
		err := e.each(tx, query, func(rows *sql.Rows) error {
			var p backoffice.PostingRow
			err := rows.Scan((*batch.UUID)(&p.OperationID), &p.Index, &p.Leg, &p.Kind, &p.CustomerNo,
				&p.Fund.IMKBCode, &p.Fund.HolderCorporationName, &p.CurrencyCode, &p.HasSale, &p.IsSecond)
			if err != nil {
				return err
			}
			return w.Posting(&p)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (e evidence) operations(tx *gorm.DB, w *backoffice.Witness) error {
	for _, query := range []string{
		`SELECT o.operation_id, o.state, 0, 0, 0, 0, 0 FROM {{prefix}}operations o
WHERE o.operation = 2 AND o.state <> 8 AND NOT EXISTS (SELECT 1 FROM {{prefix}}sales s WHERE s.operation_id = o.operation_id)`,
		`SELECT operation_id, 0, COUNT(*), MAX(position), MIN(state), MAX(state), CASE WHEN COUNT(*) <> COUNT(DISTINCT position) THEN 1 ELSE 0 END FROM {{prefix}}sales
GROUP BY operation_id HAVING MIN(state) <> MAX(state) OR COUNT(*) <> MAX(position) + 1 OR COUNT(*) <> COUNT(DISTINCT position)`,
	} {
		err := e.each(tx, query, func(rows *sql.Rows) error {
			var o backoffice.OperationRow
			err := rows.Scan((*batch.UUID)(&o.ID), &o.RecordState, &o.Sales, &o.LastIndex, &o.LowestState, &o.HighestState, &o.SharesIndex)
			if err != nil {
				return err
			}
			return w.Operation(&o)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
