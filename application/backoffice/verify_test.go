package backoffice_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// rows is evidence that a test makes up.
type rows struct {
	positions  []backoffice.Position
	operations []backoffice.Operation
	found      []backoffice.Finding
	err        error
}

func (r *rows) Read(_ context.Context, w backoffice.Witness) error {
	for _, f := range r.found {
		_ = w.Found(f)
	}
	return errors.Join(tell(r.positions, w.Position), tell(r.operations, w.Operation), r.err)
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
	account = fund.AccountKey{CustomerNo: 2, BranchCode: 7, AccountSuffix: 3, Currency: lira}
	saleID  = operation.ID{1}
	usd, _  = money.ParseCurrency("USD")
	yen, _  = money.ParseCurrency("JPY")
)

// one is an operation with a sale of 10 units in that state.
func one(state operation.State) backoffice.Operation {
	envelope := operation.Envelope{ID: saleID, Subscription: "shop", Header: operation.Header{CallerID: "c"}}
	return backoffice.Operation{
		ID:       saleID,
		Answered: &operation.Decision{Envelope: envelope, Operation: operation.BuyFundFromCustomer, State: state},
		Sales: []fund.SaleEntry{{
			Envelope: envelope,
			Terms:    fund.Terms{Holding: holding, Units: 10_000_000, Account: account}, State: state,
		}},
		Record: &idempotency.Record{
			Key: idempotency.Key{CallerID: "c", Subscription: "shop", Operation: operation.BuyFundFromCustomer}, Outcome: operation.Outcome{ID: saleID, State: state},
		},
	}
}

// completed is a sale at 2.50 that breaks no rule.
func completed() backoffice.Operation {
	o := one(operation.Completed)
	s := &o.Sales[0]
	s.PriceID, s.PerUnit, s.Proceeds, s.SettledAt = 1, 250_000_000, money.New(2500, lira), noon
	o.Prices = map[int64]fund.Price{1: onePrice}
	return o
}

func reversed() backoffice.Operation {
	o := completed()
	o.Reversal = &fund.Reversal{OperationID: saleID, ID: operation.ID{2}, At: noon}
	return o
}

func recorded() backoffice.Operation {
	o := one(operation.Recorded)
	o.Sales[0].Terms.SelectedDay = today
	return o
}

func failed() backoffice.Operation {
	o := one(operation.Failed)
	o.Sales[0].SettledAt = noon
	return o
}

// answered is an operation of which only its CallerId is left.
func answered(state operation.State) backoffice.Operation {
	o := one(state)
	o.Sales = nil
	return o
}

// refused is an operation that was refused at once.
func refused() backoffice.Operation {
	o := one(operation.Failed)
	o.Refusal, o.RefusedSales, o.Sales = o.Answered, o.Sales, nil
	return o
}

func holdingRow() backoffice.Position {
	return backoffice.Position{
		Holding:  holding,
		Quantity: 1_500_000_000_250, Exists: true, Postings: 2, Posted: backoffice.Sum{High: 1500, Low: 250},
	}
}

func accountRow() backoffice.Position {
	return backoffice.Position{
		IsMoney: true, Account: backoffice.AccountName{CustomerNo: 2, BranchCode: 7, AccountSuffix: 3, CurrencyCode: "TRY"},
		Quantity: 2500, Exists: true, Postings: 1, Posted: backoffice.Sum{Low: 2500},
	}
}

// lawful is evidence of every kind that breaks no rule.
func lawful() *rows {
	anonymous := completed()
	anonymous.Sales[0].Header.CallerID, anonymous.Answered.Header.CallerID, anonymous.Record = "", "", nil
	return &rows{
		positions:  []backoffice.Position{holdingRow(), accountRow()},
		operations: []backoffice.Operation{completed(), recorded(), failed(), anonymous, reversed(), refused()},
	}
}

func verify(t *testing.T, evidence backoffice.Evidence) (proof backoffice.Proof, found []backoffice.Finding) {
	t.Helper()
	proof, err := backoffice.Verify(t.Context(), evidence, nil, backoffice.Watch{
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
		Holdings: 1, Accounts: 1, Sales: 5, Postings: 3,
		Units: []backoffice.Total{{Of: "AFA Demo Portfoy", Customers: "1500000.000250", Bank: "-1500000.000250"}},
		Money: []backoffice.Total{{Of: "TRY", Customers: "25.00", Bank: "-25.00"}},
	}, proof)
}

const saleName = "sale 01000000-0000-0000-0000-000000000000"

// Each case changes one value of a lawful row. The rules that it breaks are the
// only findings.
func TestEveryColumnIsProved(t *testing.T) {
	t.Parallel()
	type (
		whole = backoffice.Operation
		cases map[string]*rows
	)
	of := func(o whole, change func(*whole)) *rows {
		change(&o)
		return &rows{operations: []whole{o}}
	}
	sale := func(o whole, change func(*fund.SaleEntry)) *rows {
		return of(o, func(o *whole) { change(&o.Sales[0]) })
	}
	found := func(f backoffice.Finding) *rows { return &rows{found: []backoffice.Finding{f}} }
	price := func(change func(*fund.Price)) *rows {
		return of(completed(), func(o *whole) {
			p := o.Prices[1]
			change(&p)
			o.Prices = map[int64]fund.Price{1: p}
		})
	}
	tested := make(map[string]bool)
	for rule, group := range map[string]struct {
		text  string
		cases cases
	}{
		"sale-price": {saleName + "/0 of customer 1: was not settled at a price of its fund and currency", cases{
			"no price":         of(completed(), func(o *whole) { o.Prices = nil }),
			"another code":     price(func(p *fund.Price) { p.Fund.IMKBCode = "AFB" }),
			"another holder":   price(func(p *fund.Price) { p.Fund.HolderCorporationName = "x" }),
			"another currency": price(func(p *fund.Price) { p.Currency = usd }),
			"another value":    price(func(p *fund.Price) { p.PerUnit++ }),
		}},
		"sale-settled-at": {saleName + "/0 of customer 1: is completed but has no settlement time", cases{
			"no time": sale(completed(), func(s *fund.SaleEntry) { s.SettledAt = time.Time{} }),
		}},
		"sale-proceeds": {saleName + "/0 of customer 1: its proceeds are not units times price", cases{
			"another amount": sale(completed(), func(s *fund.SaleEntry) { s.Proceeds = money.New(2501, lira) }),
			"other units":    sale(completed(), func(s *fund.SaleEntry) { s.Terms.Units = 11_000_000 }),
			"other price": of(completed(), func(o *whole) {
				p := onePrice
				p.PerUnit = 260_000_000
				o.Sales[0].PerUnit, o.Prices = p.PerUnit, map[int64]fund.Price{1: p}
			}),
			"units below zero": sale(completed(), func(s *fund.SaleEntry) { s.Terms.Units, s.Proceeds = -10_000_000, money.New(-2500, lira) }),
			"another minor unit": of(completed(), func(o *whole) {
				p := onePrice
				p.Currency = yen
				o.Sales[0].Terms.Account.Currency, o.Prices = yen, map[int64]fund.Price{1: p}
				o.Sales[0].Proceeds = money.New(2500, yen)
			}),
		}},
		"sale-state": {saleName + "/0 of customer 1: is in a state that contradicts itself", cases{
			"recorded without a day":     sale(recorded(), func(s *fund.SaleEntry) { s.Terms.SelectedDay = day.Day{} }),
			"recorded and settled":       sale(recorded(), func(s *fund.SaleEntry) { s.SettledAt = noon }),
			"recorded with a price's ID": sale(recorded(), func(s *fund.SaleEntry) { s.PriceID = 1 }),
			"recorded with a price":      sale(recorded(), func(s *fund.SaleEntry) { s.PerUnit = 1 }),
			"recorded with proceeds":     sale(recorded(), func(s *fund.SaleEntry) { s.Proceeds = money.New(0, lira) }),
			"failed at no time":          sale(failed(), func(s *fund.SaleEntry) { s.SettledAt = time.Time{} }),
			"failed with a price's ID":   sale(failed(), func(s *fund.SaleEntry) { s.PriceID = 1 }),
			"failed with a price":        sale(failed(), func(s *fund.SaleEntry) { s.PerUnit = 1 }),
			"failed with proceeds":       sale(failed(), func(s *fund.SaleEntry) { s.Proceeds = money.New(1, lira) }),
			"an unknown state":           of(failed(), func(o *whole) { o.Sales[0].State, o.Answered.State = 3, 3 }),
		}},
		"sale-of-operation": {saleName + "/0 of customer 1: contradicts its operation", cases{
			"no operation":         of(completed(), func(o *whole) { o.Answered = nil }),
			"a push":               of(completed(), func(o *whole) { o.Answered.Operation = operation.AddPushNotificationResponse }),
			"another state":        of(completed(), func(o *whole) { o.Answered.State = operation.Failed }),
			"another CallerId":     of(completed(), func(o *whole) { o.Sales[0].Header.CallerID = "d" }),
			"another subscription": of(completed(), func(o *whole) { o.Sales[0].Subscription = "x" }),
			"of a refused one": of(whole{ID: saleID, Answered: failed().Answered}, func(o *whole) {
				o.Refusal, o.RefusedSales = o.Answered, recorded().Sales
			}),
		}},
		"reversal-of-completed": {"is reversed, but was not completed", cases{
			"no sale":       of(whole{ID: saleID}, func(o *whole) { o.Reversal = reversed().Reversal }),
			"another state": of(failed(), func(o *whole) { o.Reversal = reversed().Reversal }),
		}},
		"posting-shape": {"posting 01000000-0000-0000-0000-000000000000/0/1 of customer 1: its kind is unknown, or it is not either of units or of money", cases{
			"a shape": found(backoffice.WrongShape.Of("posting 01000000-0000-0000-0000-000000000000/0/1 of customer 1")),
		}},
		"outcome-of-end": {"outcome 1 of operation 1: is not how the operation ended", cases{
			"an outcome": found(backoffice.OutcomeOfNoEnd.Of("outcome 1 of operation 1")),
		}},
		"rules-are-of-act": {"the rules of the bank: no act wrote them: cut-off=none", cases{
			"no act": found(backoffice.RulesOfNoAct("cut-off=none", "").Of("the rules of the bank")),
		}},
		"row-readable": {"operation 1: a sale is in the state 258", cases{
			"a state that only looks like 2": found(backoffice.Unreadable(errors.New("a sale is in the state 258")).Of("operation 1")),
		}},
		"search-complete": {"searches of sales by customer_no: they do not find 2 rows", cases{
			"two rows": found(backoffice.NotFound(2).Of("searches of sales by customer_no")),
		}},
		"operation-has-sales": {"operation 01000000-0000-0000-0000-000000000000: was answered, but it has no sales", cases{
			"completed": {operations: []whole{answered(operation.Completed)}},
			"recorded":  {operations: []whole{answered(operation.Recorded)}},
			"unknown":   {operations: []whole{answered(3)}},
		}},
		"operation-complete": {"operation 01000000-0000-0000-0000-000000000000: some of its sales are missing", cases{
			"two have one index": of(failed(), func(o *whole) { o.Sales = append(o.Sales, o.Sales[0]) }),
			"the first of two":   of(failed(), func(o *whole) { o.Sales[0].Index = 1 }),
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
		"holding-exists", "holding-not-negative", "holding-is-its-postings", "holding-was-imported",
		"account-exists", "account-not-negative", "account-is-its-postings", "account-was-imported", "zero-sum",
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
		holding func(*backoffice.Position)
		account func(*backoffice.Position)
		want    []finding
	}{
		"an empty holding appears": {holding: func(h *backoffice.Position) { h.Quantity, h.Posted, h.Postings = 0, backoffice.Sum{}, 0 }, want: []finding{
			{Rule: "holding-was-imported", Text: `holding 1 AFA "Demo Portfoy": exists, but no import has written it`},
		}},
		"an empty account appears": {account: func(a *backoffice.Position) { a.Quantity, a.Posted, a.Postings = 0, backoffice.Sum{}, 0 }, want: []finding{
			{Rule: "account-was-imported", Text: "account 7-2-3 TRY: exists, but no import has written it"},
		}},
		"units appear": {holding: func(h *backoffice.Position) { h.Quantity++ }, want: []finding{
			{Rule: "holding-is-its-postings", Text: `holding 1 AFA "Demo Portfoy": is 1500000.000251, but its postings sum to 1500000.000250`},
			{Rule: "zero-sum", Text: "AFA Demo Portfoy: customers have 1500000.000251 and the bank -1500000.000250, which is not zero together"},
		}},
		"a posting changes": {holding: func(h *backoffice.Position) { h.Posted.High++ }, want: []finding{
			{Rule: "holding-is-its-postings", Text: `holding 1 AFA "Demo Portfoy": is 1500000.000250, but its postings sum to 1501000.000250`},
			{Rule: "zero-sum", Text: "AFA Demo Portfoy: customers have 1500000.000250 and the bank -1501000.000250, which is not zero together"},
		}},
		"a holding is missing": {holding: func(h *backoffice.Position) { h.Exists, h.Quantity, h.Posted = false, 0, backoffice.Sum{} }, want: []finding{
			{Rule: "holding-exists", Text: `holding 1 AFA "Demo Portfoy": does not exist but has 2 postings`},
		}},
		"units below zero": {holding: func(h *backoffice.Position) { h.Quantity, h.Posted = -1, backoffice.Sum{Low: -1} }, want: []finding{
			{Rule: "holding-not-negative", Text: `holding 1 AFA "Demo Portfoy": is below zero: -0.000001`},
		}},
		"money appears": {account: func(a *backoffice.Position) { a.Quantity = 2600 }, want: []finding{
			{Rule: "account-is-its-postings", Text: "account 7-2-3 TRY: is 26.00, but its postings sum to 25.00"},
			{Rule: "zero-sum", Text: "TRY: customers have 26.00 and the bank -25.00, which is not zero together"},
		}},
		"an account is missing": {account: func(a *backoffice.Position) { a.Exists, a.Quantity, a.Posted = false, 0, backoffice.Sum{} }, want: []finding{
			{Rule: "account-exists", Text: "account 7-2-3 TRY: does not exist but has 1 postings"},
		}},
		"a balance below zero": {account: func(a *backoffice.Position) { a.Quantity, a.Posted.Low = -5, -5 }, want: []finding{
			{Rule: "account-not-negative", Text: "account 7-2-3 TRY: is below zero: -0.05"},
		}},
		"an unknown currency": {account: func(a *backoffice.Position) { a.Account.CurrencyCode, a.Quantity = "QQQ", 2600 }, want: []finding{
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
			_, found := verify(t, &rows{positions: []backoffice.Position{h, a}})
			require.Equal(t, c.want, found)
		})
	}
}

// Two holdings that are wrong by the same units, one up and one down, are found
// though the total is right.
func TestErrorsDoNotCancelOut(t *testing.T) {
	t.Parallel()
	up, down := holdingRow(), holdingRow()
	down.Holding.CustomerNo = 2
	up.Quantity++
	down.Quantity--
	_, found := verify(t, &rows{positions: []backoffice.Position{up, down}})
	require.Len(t, found, 2)
	for _, f := range found {
		require.Equal(t, "holding-is-its-postings", f.Rule)
	}
}

func TestVerifyNeedsNoCallbacks(t *testing.T) {
	t.Parallel()
	broken := lawful()
	broken.positions[0].Quantity++
	proof, err := backoffice.Verify(t.Context(), broken, nil, backoffice.Watch{})
	require.NoError(t, err)
	require.EqualValues(t, 2, proof.Findings)
}

func TestVerifyReportsProgress(t *testing.T) {
	t.Parallel()
	evidence := &rows{operations: slices.Repeat([]backoffice.Operation{refused()}, 2500)}
	var progress []int64
	_, err := backoffice.Verify(t.Context(), evidence, nil, backoffice.Watch{Progress: func(n int64) { progress = append(progress, n) }})
	require.NoError(t, err)
	require.Equal(t, []int64{1000, 2000, 2500}, progress)
}

func TestAReportListsTheFirstFindings(t *testing.T) {
	t.Parallel()
	var report backoffice.Report
	evidence := &rows{positions: slices.Repeat([]backoffice.Position{{Holding: holding, Quantity: -1, Exists: true}}, 1002)}
	proof, err := backoffice.Verify(t.Context(), evidence, nil, backoffice.Watch{Report: &report})
	require.NoError(t, err)
	require.Greater(t, proof.Findings, int64(1001))
	require.Len(t, report.Findings, backoffice.MaxFindings)
}

func TestVerifyReturnsTheErrorOfReading(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	_, err := backoffice.Verify(t.Context(), &rows{err: lost}, nil, backoffice.Watch{})
	require.ErrorIs(t, err, lost)
}
