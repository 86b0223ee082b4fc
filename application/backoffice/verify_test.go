package backoffice_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// rows is evidence that a test makes up.
type rows struct {
	holdings   []backoffice.HoldingRow
	accounts   []backoffice.AccountRow
	sales      []backoffice.SaleRow
	postings   []backoffice.PostingRow
	operations []backoffice.OperationRow
	reversals  []backoffice.ReversalRow
	err        error
}

func (r *rows) Read(_ context.Context, w backoffice.Witness) error {
	return errors.Join(tell(r.holdings, w.Holding), tell(r.accounts, w.Account), tell(r.sales, w.Sale),
		tell(r.postings, w.Posting), tell(r.operations, w.Operation), tell(r.reversals, w.Reversal), r.err)
}

func tell[Row any](all []Row, to func(*Row) error) error {
	for i := range all {
		if err := to(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

var (
	afa     = fund.Fund{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy"}
	holding = fund.HoldingKey{CustomerNo: 1, Fund: afa}
	account = backoffice.AccountName{CustomerNo: 2, BranchCode: 7, AccountSuffix: 3, CurrencyCode: "TRY"}
	saleID  = operation.ID{1}
)

func at[T any](value T) *T { return &value }

// completed is a sale of 10 units at 2.50 that breaks no rule.
func completed() backoffice.SaleRow {
	return backoffice.SaleRow{
		OperationID: saleID, Holding: holding, Units: 10_000_000, Account: account, State: 2, HasSettledAt: true,
		SettledPriceID: at(int64(1)), SettledPrice: at(int64(250_000_000)), Proceeds: at(int64(2500)),
		UnitPosting:  &backoffice.UnitPostingRow{Kind: 1, Fund: afa, Quantity: -10_000_000},
		MoneyPosting: &backoffice.MoneyPostingRow{Kind: 1, Account: account, Quantity: 2500},
		Price:        &backoffice.PriceRow{Fund: afa, PerUnit: 250_000_000, CurrencyCode: "TRY"},
		HasCallerID:  true, Record: &backoffice.RecordRow{OperationID: saleID, State: 2},
	}
}

// reversed is the reversal of a sale like completed.
func reversed() backoffice.ReversalRow {
	return backoffice.ReversalRow{
		OperationID: saleID, ReversalID: operation.ID{2}, HasSale: true, State: 2, Holding: holding, Units: 10_000_000, Account: account, Proceeds: at(int64(2500)),
		UnitPosting:  &backoffice.UnitPostingRow{Kind: 4, Fund: afa, Quantity: 10_000_000},
		MoneyPosting: &backoffice.MoneyPostingRow{Kind: 4, Account: account, Quantity: -2500},
	}
}

func recorded() backoffice.SaleRow {
	return backoffice.SaleRow{
		OperationID: saleID, Index: 1, Holding: holding, Units: 10_000_000, Account: account, State: 1, HasSelectedDay: true,
		HasCallerID: true, Record: &backoffice.RecordRow{OperationID: saleID, State: 1},
	}
}

func failed() backoffice.SaleRow {
	s := recorded()
	s.State, s.HasSettledAt, s.Record.State = 8, true, 8
	return s
}

func unitPosting() backoffice.PostingRow {
	return backoffice.PostingRow{OperationID: saleID, Leg: 1, Kind: 1, CustomerNo: 1, Fund: afa, HasSale: true}
}

func moneyPosting() backoffice.PostingRow {
	return backoffice.PostingRow{OperationID: saleID, Leg: 2, Kind: 1, CustomerNo: 2, CurrencyCode: "TRY", HasSale: true}
}

func holdingRow() backoffice.HoldingRow {
	return backoffice.HoldingRow{Key: holding, PositionSums: backoffice.PositionSums{
		Quantity: 1_500_000_000_250, Exists: true, Postings: 2, Posted: backoffice.Sum{High: 1500, Low: 250},
	}}
}

func accountRow() backoffice.AccountRow {
	return backoffice.AccountRow{Key: account, PositionSums: backoffice.PositionSums{
		Quantity: 2500, Exists: true, Postings: 1, Posted: backoffice.Sum{Low: 2500},
	}}
}

// lawful is evidence of every kind that breaks no rule.
func lawful() *rows {
	opening, adjustment := unitPosting(), moneyPosting()
	opening.Kind, opening.HasSale = 2, false
	adjustment.Kind, adjustment.HasSale = 3, false
	anonymous := completed()
	anonymous.HasCallerID, anonymous.Record = false, nil
	return &rows{
		holdings: []backoffice.HoldingRow{holdingRow()},
		accounts: []backoffice.AccountRow{accountRow()},
		sales:    []backoffice.SaleRow{completed(), recorded(), failed(), anonymous},
		postings: []backoffice.PostingRow{unitPosting(), moneyPosting(), opening, adjustment},
		operations: []backoffice.OperationRow{
			{ID: saleID, RecordState: 2, Sales: 2, LastIndex: 1, LowestState: 2, HighestState: 2},
			{ID: saleID, RecordState: 8},
			{ID: saleID, Sales: 1, LowestState: 1, HighestState: 1},
		},
		reversals: []backoffice.ReversalRow{reversed()},
	}
}

func verify(t *testing.T, evidence backoffice.Evidence) (proof backoffice.Proof, found []backoffice.Finding) {
	t.Helper()
	proof, err := backoffice.NewVerifier(evidence).Verify(t.Context(), backoffice.Watch{
		Found: func(f backoffice.Finding) { found = append(found, f) },
	})
	require.NoError(t, err)
	require.EqualValues(t, len(found), proof.Findings)
	return proof, found
}

func TestALawfulBookHolds(t *testing.T) {
	t.Parallel()
	proof, found := verify(t, lawful())
	require.Empty(t, found)
	require.Equal(t, backoffice.Proof{
		Holdings: 1, Accounts: 1, Sales: 4, Postings: 3,
		Units: []backoffice.Total{{Of: "AFA Demo Portfoy", Customers: "1500000.000250", Bank: "-1500000.000250"}},
		Money: []backoffice.Total{{Of: "TRY", Customers: "25.00", Bank: "-25.00"}},
	}, proof)
}

const saleName = "sale 01000000-0000-0000-0000-000000000000"

// Each case changes one value of a lawful row. The rules that it breaks are the
// only findings.
func TestEveryColumnIsProved(t *testing.T) {
	t.Parallel()
	sale := func(of func() backoffice.SaleRow, change func(*backoffice.SaleRow)) *rows {
		s := of()
		change(&s)
		return &rows{sales: []backoffice.SaleRow{s}}
	}
	posting := func(of func() backoffice.PostingRow, change func(*backoffice.PostingRow)) *rows {
		p := of()
		change(&p)
		return &rows{postings: []backoffice.PostingRow{p}}
	}
	reversal := func(change func(*backoffice.ReversalRow)) *rows {
		r := reversed()
		change(&r)
		return &rows{reversals: []backoffice.ReversalRow{r}}
	}
	type cases map[string]*rows
	tested := make(map[string]bool)
	for rule, group := range map[string]struct {
		text  string
		cases cases
	}{
		"sale-units-posted": {saleName + "/0 of customer 1: has no posting of its units", cases{
			"no posting":       sale(completed, func(s *backoffice.SaleRow) { s.UnitPosting = nil }),
			"another kind":     sale(completed, func(s *backoffice.SaleRow) { s.UnitPosting.Kind = 3 }),
			"an absurd kind":   sale(completed, func(s *backoffice.SaleRow) { s.UnitPosting.Kind = 257 }),
			"another code":     sale(completed, func(s *backoffice.SaleRow) { s.UnitPosting.Fund.IMKBCode = "AFB" }),
			"another holder":   sale(completed, func(s *backoffice.SaleRow) { s.UnitPosting.Fund.HolderCorporationName = "x" }),
			"another quantity": sale(completed, func(s *backoffice.SaleRow) { s.UnitPosting.Quantity++ }),
			"the wrong sign":   sale(completed, func(s *backoffice.SaleRow) { s.UnitPosting.Quantity *= -1 }),
		}},
		"sale-proceeds-posted": {saleName + "/0 of customer 1: has no posting of its proceeds", cases{
			"no posting":       sale(completed, func(s *backoffice.SaleRow) { s.MoneyPosting = nil }),
			"another kind":     sale(completed, func(s *backoffice.SaleRow) { s.MoneyPosting.Kind = 2 }),
			"another quantity": sale(completed, func(s *backoffice.SaleRow) { s.MoneyPosting.Quantity-- }),
			"another customer": sale(completed, func(s *backoffice.SaleRow) { s.MoneyPosting.Account.CustomerNo++ }),
			"another branch":   sale(completed, func(s *backoffice.SaleRow) { s.MoneyPosting.Account.BranchCode++ }),
			"another suffix":   sale(completed, func(s *backoffice.SaleRow) { s.MoneyPosting.Account.AccountSuffix++ }),
			"another currency": sale(completed, func(s *backoffice.SaleRow) { s.MoneyPosting.Account.CurrencyCode = "USD" }),
		}},
		"sale-price": {saleName + "/0 of customer 1: was not settled at a price of its fund and currency", cases{
			"no price":         sale(completed, func(s *backoffice.SaleRow) { s.Price = nil }),
			"another code":     sale(completed, func(s *backoffice.SaleRow) { s.Price.Fund.IMKBCode = "AFB" }),
			"another holder":   sale(completed, func(s *backoffice.SaleRow) { s.Price.Fund.HolderCorporationName = "x" }),
			"another currency": sale(completed, func(s *backoffice.SaleRow) { s.Price.CurrencyCode = "USD" }),
			"another value":    sale(completed, func(s *backoffice.SaleRow) { s.Price.PerUnit++ }),
		}},
		"sale-settled-at": {saleName + "/0 of customer 1: is completed at no time", cases{
			"no time": sale(completed, func(s *backoffice.SaleRow) { s.HasSettledAt = false }),
		}},
		"sale-proceeds": {saleName + "/0 of customer 1: its proceeds are not units times price", cases{
			"another amount": sale(completed, func(s *backoffice.SaleRow) { *s.Proceeds, s.MoneyPosting.Quantity = 2501, 2501 }),
			"other units":    sale(completed, func(s *backoffice.SaleRow) { s.Units, s.UnitPosting.Quantity = 11_000_000, -11_000_000 }),
			"other price":    sale(completed, func(s *backoffice.SaleRow) { *s.SettledPrice, s.Price.PerUnit = 260_000_000, 260_000_000 }),
			"units below zero": sale(completed, func(s *backoffice.SaleRow) {
				s.Units, s.UnitPosting.Quantity, *s.Proceeds, s.MoneyPosting.Quantity = -10_000_000, 10_000_000, -2500, -2500
			}),
			"another minor unit": sale(completed, func(s *backoffice.SaleRow) {
				s.Account.CurrencyCode, s.MoneyPosting.Account.CurrencyCode, s.Price.CurrencyCode = "JPY", "JPY", "JPY"
			}),
		}},
		"sale-state": {saleName + "/1 of customer 1: is in a state that contradicts itself", cases{
			"recorded without a day":         sale(recorded, func(s *backoffice.SaleRow) { s.HasSelectedDay = false }),
			"recorded and settled":           sale(recorded, func(s *backoffice.SaleRow) { s.HasSettledAt = true }),
			"recorded with a price's ID":     sale(recorded, func(s *backoffice.SaleRow) { s.SettledPriceID = at(int64(1)) }),
			"recorded with a price":          sale(recorded, func(s *backoffice.SaleRow) { s.SettledPrice = at(int64(1)) }),
			"recorded with proceeds":         sale(recorded, func(s *backoffice.SaleRow) { s.Proceeds = at(int64(0)) }),
			"failed at no time":              sale(failed, func(s *backoffice.SaleRow) { s.HasSettledAt = false }),
			"failed with a price's ID":       sale(failed, func(s *backoffice.SaleRow) { s.SettledPriceID = at(int64(1)) }),
			"failed with a price":            sale(failed, func(s *backoffice.SaleRow) { s.SettledPrice = at(int64(1)) }),
			"failed with proceeds":           sale(failed, func(s *backoffice.SaleRow) { s.Proceeds = at(int64(1)) }),
			"an unknown state":               sale(failed, func(s *backoffice.SaleRow) { s.State, s.Record.State = 3, 3 }),
			"a state that only looks like 2": sale(failed, func(s *backoffice.SaleRow) { s.State, s.Record.State = 258, 258 }),
		}},
		"sale-caller-id": {saleName + "/0 of customer 1: is in another state than its CallerId answers", cases{
			"no record":         sale(completed, func(s *backoffice.SaleRow) { s.Record = nil }),
			"another operation": sale(completed, func(s *backoffice.SaleRow) { s.Record.OperationID[15] = 1 }),
			"another state":     sale(completed, func(s *backoffice.SaleRow) { s.Record.State = 8 }),
		}},
		"posting-units-have-sale": {saleName + "/0 of customer 1: is not completed, but has a posting of units", cases{
			"no sale": posting(unitPosting, func(p *backoffice.PostingRow) { p.HasSale = false }),
		}},
		"posting-proceeds-have-sale": {saleName + "/0 of customer 2: is not completed, but has a posting of proceeds", cases{
			"no sale": posting(moneyPosting, func(p *backoffice.PostingRow) { p.HasSale = false }),
		}},
		"posting-once": {"posting 01000000-0000-0000-0000-000000000000/0/1 of customer 1: its sale was posted before", cases{
			"twice": posting(unitPosting, func(p *backoffice.PostingRow) { p.IsSecond = true }),
		}},
		"posting-reversal-has-sale": {"posting 01000000-0000-0000-0000-000000000000/0/1 of customer 1: belongs to no reversal of a sale", cases{
			"no sale": posting(unitPosting, func(p *backoffice.PostingRow) { p.Kind, p.HasSale = 4, false }),
		}},
		"reversal-of-completed": {"is reversed, but was not completed", cases{
			"no sale":       reversal(func(r *backoffice.ReversalRow) { r.HasSale = false }),
			"another state": reversal(func(r *backoffice.ReversalRow) { r.State = 8 }),
		}},
		"reversal-posted": {saleName + "/0 of customer 1: is reversed, but its postings are not undone", cases{
			"no units":         reversal(func(r *backoffice.ReversalRow) { r.UnitPosting = nil }),
			"units of a sale":  reversal(func(r *backoffice.ReversalRow) { r.UnitPosting.Kind = 1 }),
			"other units":      reversal(func(r *backoffice.ReversalRow) { r.UnitPosting.Quantity++ }),
			"another fund":     reversal(func(r *backoffice.ReversalRow) { r.UnitPosting.Fund.IMKBCode = "AFB" }),
			"no money":         reversal(func(r *backoffice.ReversalRow) { r.MoneyPosting = nil }),
			"money of a sale":  reversal(func(r *backoffice.ReversalRow) { r.MoneyPosting.Kind = 1 }),
			"other money":      reversal(func(r *backoffice.ReversalRow) { r.MoneyPosting.Quantity++ }),
			"another account":  reversal(func(r *backoffice.ReversalRow) { r.MoneyPosting.Account.AccountSuffix++ }),
			"without proceeds": reversal(func(r *backoffice.ReversalRow) { r.Proceeds = nil }),
		}},
		"posting-shape": {"posting 01000000-0000-0000-0000-000000000000/0/", cases{
			"an unknown kind":     posting(unitPosting, func(p *backoffice.PostingRow) { p.Kind = 5 }),
			"no kind":             posting(moneyPosting, func(p *backoffice.PostingRow) { p.Kind = 0 }),
			"an absurd kind":      posting(moneyPosting, func(p *backoffice.PostingRow) { p.Kind = 257 }),
			"an unknown leg":      posting(moneyPosting, func(p *backoffice.PostingRow) { p.Leg = 3 }),
			"units of a currency": posting(unitPosting, func(p *backoffice.PostingRow) { p.CurrencyCode = "TRY" }),
			"money of a fund":     posting(moneyPosting, func(p *backoffice.PostingRow) { p.Fund = afa }),
			"units of nothing":    posting(unitPosting, func(p *backoffice.PostingRow) { p.Fund = fund.Fund{} }),
			"money of nothing":    posting(moneyPosting, func(p *backoffice.PostingRow) { p.CurrencyCode = "" }),
			"units on leg 2":      posting(unitPosting, func(p *backoffice.PostingRow) { p.Leg = 2 }),
			"money on leg 1":      posting(moneyPosting, func(p *backoffice.PostingRow) { p.Leg = 1 }),
		}},
		"operation-has-sales": {"operation 01000000-0000-0000-0000-000000000000: its CallerId answers that it took place, but it has no sales", cases{
			"completed": {operations: []backoffice.OperationRow{{ID: saleID, RecordState: 2}}},
			"recorded":  {operations: []backoffice.OperationRow{{ID: saleID, RecordState: 1}}},
			"unknown":   {operations: []backoffice.OperationRow{{ID: saleID, RecordState: 264}}},
		}},
		"operation-one-state": {"operation 01000000-0000-0000-0000-000000000000: its sales are in different states", cases{
			"two states": {operations: []backoffice.OperationRow{{ID: saleID, Sales: 2, LastIndex: 1, LowestState: 2, HighestState: 8}}},
		}},
		"operation-complete": {"operation 01000000-0000-0000-0000-000000000000: some of its sales are missing", cases{
			"two have one index": {operations: []backoffice.OperationRow{{ID: saleID, Sales: 3, SharesIndex: true, LastIndex: 2, LowestState: 2, HighestState: 2}}},
			"the first of two":   {operations: []backoffice.OperationRow{{ID: saleID, Sales: 1, LastIndex: 1, LowestState: 2, HighestState: 2}}},
		}},
	} {
		tested[rule] = true
		for name, evidence := range group.cases {
			t.Run(rule+"/"+name, func(t *testing.T) {
				t.Parallel()
				_, found := verify(t, evidence)
				require.Len(t, found, 1, "%v", found)
				require.Equal(t, rule, found[0].Rule)
				require.Contains(t, found[0].Text, group.text)
			})
		}
	}

	// Positions, totals and the trail have tests of their own.
	for _, name := range []string{
		"trail-key", "trail-unchanged", "trail-not-removed", "trail-not-added", "trail-texts", "trail-batch", "trail-hashes", "trail-place", "trail-log", "trail-extends",
		"holding-exists", "holding-not-negative", "holding-is-its-postings",
		"account-exists", "account-not-negative", "account-is-its-postings", "zero-sum",
	} {
		tested[name] = true
	}
	for _, r := range backoffice.Rules() {
		require.True(t, tested[r.Name], "the rule %s has no test", r.Name)
		require.NotEmpty(t, r.Proves)
	}
}

func TestPositionsAreProved(t *testing.T) {
	t.Parallel()
	type finding = backoffice.Finding
	for name, c := range map[string]struct {
		holding func(*backoffice.HoldingRow)
		account func(*backoffice.AccountRow)
		want    []finding
	}{
		"units appear": {holding: func(h *backoffice.HoldingRow) { h.Quantity++ }, want: []finding{
			{Rule: "holding-is-its-postings", Text: `holding 1 AFA "Demo Portfoy": is 1500000.000251, but its postings sum to 1500000.000250`},
			{Rule: "zero-sum", Text: "AFA Demo Portfoy: customers have 1500000.000251 and the bank -1500000.000250, which is not zero together"},
		}},
		"a posting changes": {holding: func(h *backoffice.HoldingRow) { h.Posted.High++ }, want: []finding{
			{Rule: "holding-is-its-postings", Text: `holding 1 AFA "Demo Portfoy": is 1500000.000250, but its postings sum to 1501000.000250`},
			{Rule: "zero-sum", Text: "AFA Demo Portfoy: customers have 1500000.000250 and the bank -1501000.000250, which is not zero together"},
		}},
		"a holding is missing": {holding: func(h *backoffice.HoldingRow) { h.Exists, h.Quantity, h.Posted = false, 0, backoffice.Sum{} }, want: []finding{
			{Rule: "holding-exists", Text: `holding 1 AFA "Demo Portfoy": is not there, but has 2 postings`},
		}},
		"units below zero": {holding: func(h *backoffice.HoldingRow) { h.Quantity, h.Posted = -1, backoffice.Sum{Low: -1} }, want: []finding{
			{Rule: "holding-not-negative", Text: `holding 1 AFA "Demo Portfoy": is below zero: -0.000001`},
		}},
		"money appears": {account: func(a *backoffice.AccountRow) { a.Quantity = 2600 }, want: []finding{
			{Rule: "account-is-its-postings", Text: "account 7-2-3 TRY: is 26.00, but its postings sum to 25.00"},
			{Rule: "zero-sum", Text: "TRY: customers have 26.00 and the bank -25.00, which is not zero together"},
		}},
		"an account is missing": {account: func(a *backoffice.AccountRow) { a.Exists, a.Quantity, a.Posted = false, 0, backoffice.Sum{} }, want: []finding{
			{Rule: "account-exists", Text: "account 7-2-3 TRY: is not there, but has 1 postings"},
		}},
		"a balance below zero": {account: func(a *backoffice.AccountRow) { a.Quantity, a.Posted.Low = -5, -5 }, want: []finding{
			{Rule: "account-not-negative", Text: "account 7-2-3 TRY: is below zero: -0.05"},
		}},
		"an unknown currency": {account: func(a *backoffice.AccountRow) { a.Key.CurrencyCode, a.Quantity = "QQQ", 2600 }, want: []finding{
			{Rule: "account-is-its-postings", Text: "account 7-2-3 QQQ: is 2600, but its postings sum to 2500"},
			{Rule: "zero-sum", Text: "QQQ: customers have 2600 and the bank -2500, which is not zero together"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, a := holdingRow(), accountRow()
			if c.holding != nil {
				c.holding(&h)
			}
			if c.account != nil {
				c.account(&a)
			}
			_, found := verify(t, &rows{holdings: []backoffice.HoldingRow{h}, accounts: []backoffice.AccountRow{a}})
			require.Equal(t, c.want, found)
		})
	}
}

// Two holdings that are wrong by the same units, one up and one down, are found
// though the total is right.
func TestErrorsDoNotCancelOut(t *testing.T) {
	t.Parallel()
	up, down := holdingRow(), holdingRow()
	down.Key.CustomerNo = 2
	up.Quantity++
	down.Quantity--
	_, found := verify(t, &rows{holdings: []backoffice.HoldingRow{up, down}})
	require.Len(t, found, 2)
	for _, f := range found {
		require.Equal(t, "holding-is-its-postings", f.Rule)
	}
}

func TestVerifyNeedsNoCallbacks(t *testing.T) {
	t.Parallel()
	broken := lawful()
	broken.holdings[0].Quantity++
	proof, err := backoffice.NewVerifier(broken).Verify(t.Context(), backoffice.Watch{})
	require.NoError(t, err)
	require.EqualValues(t, 2, proof.Findings)
}

func TestVerifyReportsProgress(t *testing.T) {
	t.Parallel()
	evidence := &rows{operations: slices.Repeat([]backoffice.OperationRow{{ID: saleID, RecordState: 8}}, 2500)}
	var progress []int64
	_, err := backoffice.NewVerifier(evidence).Verify(t.Context(), backoffice.Watch{Progress: func(n int64) { progress = append(progress, n) }})
	require.NoError(t, err)
	require.Equal(t, []int64{1000, 2000, 2500}, progress)
}

func TestVerifyReturnsTheErrorOfReading(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	_, err := backoffice.NewVerifier(&rows{err: lost}).Verify(t.Context(), backoffice.Watch{})
	require.ErrorIs(t, err, lost)
}
