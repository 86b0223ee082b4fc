package storage

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"gorm.io/gorm"

	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Proof is what Verify looked at, and what came of it.
type Proof struct {
	Holdings, Accounts, Sales, Postings int64
	// Findings is how many places do not hold; 0 proves the book.
	Findings int64
	// Units are the totals of each fund, Money those of each currency.
	Units, Money []Total
}

// Total is what there is of a fund or a currency.
type Total struct {
	// Of is the fund's code and holder, or the currency's code.
	Of string
	// Customers is what all holdings or accounts add up to, Bank what the
	// postings left with the bank: together they are 0.
	Customers, Bank string
}

// Watch is told how Verify gets on. Both functions are called from within
// Verify.
type Watch struct {
	// Found is told each place that does not hold, in one line. It names
	// customers and accounts: it is for the operator alone.
	Found func(text string)
	// Progress is told how many rows came by.
	Progress func(rows int64)
}

// Verify proves the book from one snapshot, so that sales may go on meanwhile:
//
//   - every holding and every balance is the sum of its postings, and no
//     posting is without one; nothing is below zero;
//   - every completed sale has its two postings, of its units and its
//     proceeds, and every posting of a sale its completed sale;
//   - proceeds are units times the price of the book, rounded;
//   - units and money sum to zero over customers and bank;
//   - the sales of an operation are in one state, which is the one that its
//     CallerId answers.
//
// What does not hold is told to w.Found and is no error. Nothing is held in
// memory but one total for each fund and currency: the database does the
// sums. The error is one of those the ports promise.
func (s *Store) Verify(ctx context.Context, w Watch) (Proof, error) {
	v := verifier{watch: w, prefix: s.prefix, units: make(map[string]*total), money: make(map[string]*total)}
	err := s.snapshot(ctx, func(tx *gorm.DB) error {
		for _, check := range []func(*gorm.DB) error{
			v.holdings, v.accounts, v.completedSales, v.otherSales, v.salePostings, v.postings, v.operations,
		} {
			if err := check(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return v.proof, err
	}
	v.proof.Units, v.proof.Money = v.totals(v.units), v.totals(v.money)
	v.watch.Progress(v.rows)
	return v.proof, nil
}

type verifier struct {
	watch        Watch
	prefix       string
	rows         int64
	proof        Proof
	units, money map[string]*total
}

// total adds up without an end to its digits.
type total struct {
	customers, postings big.Int
	decimals            int
}

func (v *verifier) found(format string, arguments ...any) {
	v.proof.Findings++
	v.watch.Found(fmt.Sprintf(format, arguments...))
}

// each hands every row of a query to row.
func (v *verifier) each(tx *gorm.DB, query string, row func(*sql.Rows) error) error {
	return each(tx, strings.ReplaceAll(query, "{{prefix}}", v.prefix), nil, func(rows *sql.Rows) (bool, error) {
		if v.rows++; v.rows%1000 == 0 {
			v.watch.Progress(v.rows)
		}
		return true, row(rows)
	})
}

// positionsOf is a query of every position and the sum of its postings: the key,
// the quantity, whether the position is there, how many postings it has, and
// their sum in two parts, each of which fits 64 bits whatever the postings are.
func positionsOf(table, keys, quantity string, leg int) string {
	return fmt.Sprintf(`SELECT %[2]s, CAST(SUM(held) AS bigint), CAST(SUM(there) AS bigint), CAST(SUM(posted) AS bigint),
 CAST(SUM(high) AS bigint), CAST(SUM(low) AS bigint)
FROM (
 SELECT %[2]s, %[3]s AS held, 1 AS there, 0 AS posted, 0 AS high, 0 AS low FROM {{prefix}}%[1]s
 UNION ALL
 SELECT %[2]s, 0, 0, 1, quantity / 1000000000, quantity %% 1000000000 FROM {{prefix}}postings WHERE leg = %[4]d
) p GROUP BY %[2]s`, table, keys, quantity, leg)
}

// position is a row of that query, without its key.
type position struct{ held, there, posted, high, low int64 }

// check proves one position, and adds it to a total.
func (v *verifier) check(p *position, of map[string]*total, name string, decimals int, where string, arguments ...any) {
	t := of[name]
	if t == nil {
		t = &total{decimals: decimals}
		of[name] = t
	}
	held := big.NewInt(p.held)
	sum := big.NewInt(p.high)
	sum.Mul(sum, big.NewInt(1_000_000_000)).Add(sum, big.NewInt(p.low))
	t.customers.Add(&t.customers, held)
	t.postings.Add(&t.postings, sum)
	v.proof.Postings += p.posted
	where = fmt.Sprintf(where, arguments...)
	switch {
	case p.there == 0:
		v.found("%s: is not there, but has %d postings", where, p.posted)
	case p.held < 0:
		v.found("%s: is below zero: %s", where, exact(held, decimals))
	case held.Cmp(sum) != 0:
		v.found("%s: is %s, but its postings sum to %s", where, exact(held, decimals), exact(sum, decimals))
	}
}

// exact writes n / 10^decimals.
func exact(n *big.Int, decimals int) string {
	if n.IsInt64() {
		return decimal.FormatFixed(n.Int64(), decimals)
	}
	digits := n.String()
	return digits[:len(digits)-decimals] + "." + digits[len(digits)-decimals:]
}

func (v *verifier) holdings(tx *gorm.DB) error {
	query := positionsOf("holdings", "customer_no, imkb_code, holder_corporation_name", "units", unitLeg)
	return v.each(tx, query, func(rows *sql.Rows) error {
		var p position
		var k fund.HoldingKey
		err := rows.Scan(&k.CustomerNo, &k.IMKBCode, &k.HolderCorporationName, &p.held, &p.there, &p.posted, &p.high, &p.low)
		if err != nil {
			return err
		}
		v.proof.Holdings += p.there
		v.check(&p, v.units, k.IMKBCode+" "+k.HolderCorporationName, fund.UnitDecimals, "holding %s", holdingName(k))
		return nil
	})
}

func (v *verifier) accounts(tx *gorm.DB) error {
	query := positionsOf("accounts", "customer_no, branch_code, account_suffix, currency_code", "balance", moneyLeg)
	return v.each(tx, query, func(rows *sql.Rows) error {
		var p position
		var customerNo, branch, suffix int64
		var code string
		err := rows.Scan(&customerNo, &branch, &suffix, &code, &p.held, &p.there, &p.posted, &p.high, &p.low)
		if err != nil {
			return err
		}
		currency, _ := money.ParseCurrency(code) // an unknown one has no decimals; the rest can be proved
		v.proof.Accounts += p.there
		v.check(&p, v.money, code, currency.Decimals(), "account %d-%d-%d %s", branch, customerNo, suffix, code)
		return nil
	})
}

func holdingName(k fund.HoldingKey) string {
	return fmt.Sprintf("%d %s %q", k.CustomerNo, k.IMKBCode, k.HolderCorporationName)
}

// completedSales holds each against its postings and its price.
func (v *verifier) completedSales(tx *gorm.DB) error {
	const query = `SELECT s.customer_no, s.operation_id, s.position, s.units, s.currency_code,
 COALESCE(s.settled_price, -1), COALESCE(s.proceeds, -1),
 CASE WHEN u.kind = 1 AND u.quantity = -s.units
  AND u.imkb_code = s.imkb_code AND u.holder_corporation_name = s.holder_corporation_name THEN 1 ELSE 0 END,
 CASE WHEN m.kind = 1 AND m.quantity = s.proceeds
  AND m.branch_code = s.branch_code AND m.account_suffix = s.account_suffix AND m.currency_code = s.currency_code THEN 1 ELSE 0 END,
 CASE WHEN p.price = s.settled_price AND p.currency_code = s.currency_code
  AND p.imkb_code = s.imkb_code AND p.holder_corporation_name = s.holder_corporation_name THEN 1 ELSE 0 END,
 CASE WHEN s.settled_at IS NULL THEN 0 ELSE 1 END
FROM {{prefix}}sales s
LEFT JOIN {{prefix}}postings u ON u.customer_no = s.customer_no AND u.operation_id = s.operation_id AND u.position = s.position AND u.leg = 1
LEFT JOIN {{prefix}}postings m ON m.customer_no = s.account_customer_no AND m.operation_id = s.operation_id AND m.position = s.position AND m.leg = 2
LEFT JOIN {{prefix}}prices p ON p.price_id = s.settled_price_id
WHERE s.state = 2`
	return v.each(tx, query, func(rows *sql.Rows) error {
		var s saleName
		var units, price, proceeds, hasUnits, hasMoney, hasPrice, isSettled int64
		var code string
		err := rows.Scan(&s.customerNo, &idColumn{&s.operation}, &s.position, &units, &code, &price, &proceeds,
			&hasUnits, &hasMoney, &hasPrice, &isSettled)
		if err != nil {
			return err
		}
		v.proof.Sales++
		if hasUnits == 0 {
			v.found("%s: has no posting of its units", s)
		}
		if hasMoney == 0 {
			v.found("%s: has no posting of its proceeds", s)
		}
		if hasPrice == 0 {
			v.found("%s: was not settled at a price of its fund and currency", s)
		}
		if isSettled == 0 {
			v.found("%s: is completed at no time", s)
		}
		currency, _ := money.ParseCurrency(code)
		if exact, ok := fund.Proceeds(fund.Units(units), fund.UnitPrice(price), currency); !ok || exact.Minor() != proceeds {
			v.found("%s: its proceeds are not units times price", s)
		}
		return nil
	})
}

// saleName is how findings name a sale.
type saleName struct {
	customerNo int64
	operation  operation.ID
	position   int64
}

func (s saleName) String() string {
	return fmt.Sprintf("sale %s/%d of customer %d", s.operation, s.position, s.customerNo)
}

// otherSales counts those that are not completed, and looks for what only
// completed ones have.
func (v *verifier) otherSales(tx *gorm.DB) error {
	var count int64
	query := "SELECT COUNT(*) FROM {{prefix}}sales WHERE state <> 2"
	if err := v.each(tx, query, func(rows *sql.Rows) error { return rows.Scan(&count) }); err != nil {
		return err
	}
	v.proof.Sales += count
	return v.sales(tx, "is in a state that contradicts itself", `SELECT customer_no, operation_id, position FROM {{prefix}}sales
WHERE state NOT IN (1, 2, 8)
 OR (state <> 2 AND (settled_price_id IS NOT NULL OR settled_price IS NOT NULL OR proceeds IS NOT NULL))
 OR (state = 1 AND (settled_at IS NOT NULL OR selected_date IS NULL))
 OR (state = 8 AND settled_at IS NULL)`)
}

// sales reports each sale or posting that a query finds.
func (v *verifier) sales(tx *gorm.DB, what, query string) error {
	return v.each(tx, query, func(rows *sql.Rows) error {
		var s saleName
		err := rows.Scan(&s.customerNo, &idColumn{&s.operation}, &s.position)
		if err == nil {
			v.found("%s: %s", s, what)
		}
		return err
	})
}

// salePostings looks for postings of sales that were not completed. Money may
// go to another customer than the one who sold: such sales have no key that
// leads to them from the posting, so they are set apart.
func (v *verifier) salePostings(tx *gorm.DB) error {
	err := v.sales(tx, "is not completed, but has a posting of units", `SELECT p.customer_no, p.operation_id, p.position
FROM {{prefix}}postings p
LEFT JOIN {{prefix}}sales s ON s.customer_no = p.customer_no AND s.operation_id = p.operation_id AND s.position = p.position AND s.state = 2
WHERE p.kind = 1 AND p.leg = 1 AND s.customer_no IS NULL`)
	if err != nil {
		return err
	}
	return v.sales(tx, "is not completed, but has a posting of proceeds", `SELECT p.customer_no, p.operation_id, p.position
FROM {{prefix}}postings p
LEFT JOIN {{prefix}}sales s ON s.customer_no = p.customer_no AND s.operation_id = p.operation_id AND s.position = p.position
 AND s.account_customer_no = p.customer_no AND s.state = 2
LEFT JOIN (
 SELECT account_customer_no, operation_id, position FROM {{prefix}}sales WHERE account_customer_no <> customer_no AND state = 2
) o ON o.account_customer_no = p.customer_no AND o.operation_id = p.operation_id AND o.position = p.position
WHERE p.kind = 1 AND p.leg = 2 AND s.customer_no IS NULL AND o.operation_id IS NULL`)
}

func (v *verifier) postings(tx *gorm.DB) error {
	const query = `SELECT customer_no, operation_id, position, leg FROM {{prefix}}postings
WHERE kind NOT IN (1, 2, 3) OR leg NOT IN (1, 2) OR (leg = 1) <> (currency_code = '') OR (leg = 2) <> (imkb_code = '')`
	return v.each(tx, query, func(rows *sql.Rows) error {
		var customerNo, position, leg int64
		var id operation.ID
		err := rows.Scan(&customerNo, &idColumn{&id}, &position, &leg)
		if err == nil {
			v.found("posting %s/%d/%d of customer %d: is neither of units nor of money", id, position, leg, customerNo)
		}
		return err
	})
}

// operations holds what CallerIds answer against their sales.
func (v *verifier) operations(tx *gorm.DB) error {
	err := v.sales(tx, "is in another state than its CallerId answers", `SELECT s.customer_no, s.operation_id, s.position
FROM {{prefix}}sales s
LEFT JOIN {{prefix}}operations o ON o.caller_id = s.caller_id AND o.subscription = s.subscription AND o.operation = 2
WHERE s.caller_id <> '' AND (o.caller_id IS NULL OR o.operation_id <> s.operation_id OR o.state <> s.state)`)
	if err != nil {
		return err
	}
	// A refused operation has no sales; one that was recorded or completed has.
	err = v.each(tx, `SELECT o.operation_id
FROM {{prefix}}operations o
LEFT JOIN (SELECT operation_id FROM {{prefix}}sales WHERE position = 0 AND caller_id <> '') s ON s.operation_id = o.operation_id
WHERE o.operation = 2 AND o.state <> 8 AND s.operation_id IS NULL`, func(rows *sql.Rows) error {
		var id operation.ID
		err := rows.Scan(&idColumn{&id})
		if err == nil {
			v.found("operation %s: its CallerId answers that it took place, but it has no sales", id)
		}
		return err
	})
	if err != nil {
		return err
	}
	return v.each(tx, `SELECT operation_id FROM {{prefix}}sales GROUP BY operation_id HAVING MIN(state) <> MAX(state)`, func(rows *sql.Rows) error {
		var id operation.ID
		err := rows.Scan(&idColumn{&id})
		if err == nil {
			v.found("operation %s: its sales are in different states", id)
		}
		return err
	})
}

// totals closes the sums, and proves that each is zero over both sides.
func (v *verifier) totals(of map[string]*total) []Total {
	var all []Total
	for _, name := range slices.Sorted(maps.Keys(of)) {
		t := of[name]
		bank := new(big.Int).Neg(&t.postings)
		all = append(all, Total{name, exact(&t.customers, t.decimals), exact(bank, t.decimals)})
		if t.customers.Cmp(&t.postings) != 0 {
			v.found("%s: customers have %s and the bank %s, which is not zero together",
				name, exact(&t.customers, t.decimals), exact(bank, t.decimals))
		}
	}
	return all
}
