package fund_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

func TestASaleTakesUnitsAndCreditsTheProceeds(t *testing.T) {
	t.Parallel()
	b := newBank()
	o := request(1, sale(selling("12.5"), expecting("15.63")))
	changes := b.settle(friday, o)
	requireResult(t, "completed", o)
	require.Equal(t, "987.5", b.units("AFA"))
	require.Equal(t, "15.63", b.balance("TRY")) // 15.625
	require.Equal(t, fund.Changes{
		Holdings: []fund.Holding{{Key: holdingOf("AFA"), Units: unitsOf("987.5")}},
		Accounts: []fund.Account{{Key: accountIn("TRY"), Balance: money.New(1563, currency("TRY"))}},
		Sales: []fund.SaleEntry{{
			Envelope: o.Envelope, Index: 0, Terms: o.Sales[0].Terms(), State: operation.Completed,
			PriceID: 1, PerUnit: b.prices[1].PerUnit, Proceeds: money.New(1563, currency("TRY")), SettledAt: now,
		}},
	}, changes)
	require.Equal(t, []fund.PostingEntry{
		{Posting: fund.UnitPosting(fund.SalePosting, o.ID, 0, holdingOf("AFA"), -12_500_000), PostedAt: now},
		{Posting: fund.MoneyPosting(fund.SalePosting, o.ID, 0, accountIn("TRY"), 1563), PostedAt: now},
	}, changes.Sales[0].Postings())
}

func TestAHoldingIsSoldToTheLastUnitAndNoFurther(t *testing.T) {
	t.Parallel()
	b := newBank()
	all, more := request(1, sale(selling("1000"))), request(2, sale(selling("0.01")))
	b.settle(friday, all)
	requireResult(t, "completed", all)
	require.Equal(t, "0", b.units("AFA"))
	b.settle(friday, more)
	requireResult(t, "failed; holding-insufficient 0/FundAmount", more)
	require.Equal(t, "1250.00", b.balance("TRY"))
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		sale fund.Sale
		want string // "" means completed
	}{
		{"no holding of this fund", sale(of("GAF"), at("2"), into("USD")), "holding-not-found 0/FundToProcess"},
		{"the holding of another institution", sale(func(f *fund.SaleFields) { f.FundToProcess.HolderCorporationName = "Another" }),
			"holding-not-found 0/FundToProcess; price-not-found 0/FundToProcess/PriceID"},
		{"the holding of another customer", sale(func(f *fund.SaleFields) { f.CustomerNo = number("1002") }), "holding-not-found 0/FundToProcess"},
		{"all units and one more", sale(selling("1000.000001")), "holding-insufficient 0/FundAmount"},
		{"all units", sale(selling("1000")), ""},
		{"no such price", sale(at("99")), "price-not-found 0/FundToProcess/PriceID"},
		{"a price of another fund", sale(at("2")), "price-not-found 0/FundToProcess/PriceID"},
		{"tomorrow's price", sale(at("3")), "price-not-current 0/FundToProcess/PriceID"},
		{"no such account", sale(intoSuffix("8")), "account-not-found 0/DestinationAccount"},
		{"the account of another branch", sale(func(f *fund.SaleFields) { f.DestinationAccount.BranchCode = number("2") }),
			"account-not-found 0/DestinationAccount"},
		{"the account of another customer", sale(func(f *fund.SaleFields) { f.DestinationAccount.CustomerNo = number("1002") }),
			"account-not-found 0/DestinationAccount"},
		{"an account in another currency", sale(into("USD")), "currency-mismatch 0/DestinationAccount/CurrencyCode"},
		{"no account, in another currency", sale(into("EUR")),
			"account-not-found 0/DestinationAccount; currency-mismatch 0/DestinationAccount/CurrencyCode"},
		{"expecting a little more", sale(expecting("125.01")), "amount-mismatch 0/Amount"},
		{"expecting a little less", sale(expecting("124.99")), "amount-mismatch 0/Amount"},
		{"expecting just that", sale(expecting("125")), ""},
		{"expecting nothing in particular", sale(expecting("0")), ""},
		{"less than half a kuruş", sale(selling("0.003999")), "proceeds-zero 0/FundAmount"},
		{"half a kuruş", sale(selling("0.004")), ""},
		{"nothing, where something is expected", sale(selling("0.003999"), expecting("0.01")),
			"proceeds-zero 0/FundAmount; amount-mismatch 0/Amount"},
		{"in another currency the proceeds are not compared", sale(into("USD"), expecting("1")),
			"currency-mismatch 0/DestinationAccount/CurrencyCode"},
		{"at another price they are not either", sale(at("3"), expecting("1")), "price-not-current 0/FundToProcess/PriceID"},
		{"too few units, and not what was expected", sale(selling("1001"), expecting("1")),
			"holding-insufficient 0/FundAmount; amount-mismatch 0/Amount"},
		{"nothing is in order", sale(of("QAF"), at("99"), intoSuffix("8"), expecting("1")),
			"holding-not-found 0/FundToProcess; price-not-found 0/FundToProcess/PriceID; account-not-found 0/DestinationAccount"},
		{"too few units at a stale price into no account", sale(selling("1001"), at("3"), intoSuffix("8"), into("USD")),
			"holding-insufficient 0/FundAmount; price-not-current 0/FundToProcess/PriceID; account-not-found 0/DestinationAccount; " +
				"currency-mismatch 0/DestinationAccount/CurrencyCode"},
	} {
		b := newBank()
		o := request(1, tt.sale)
		changes := b.settle(friday, o)
		if tt.want == "" {
			requireResult(t, "completed", o)
			require.Len(t, changes.Sales, 1, tt.name)
			continue
		}
		require.Equal(t, "failed; "+tt.want, result(o), tt.name)
		requireNothingChanged(t, changes)
	}
}

func TestTheProceedsMayGoToAnAccountOfAnotherCustomer(t *testing.T) {
	t.Parallel()
	b := newBank()
	other := accountIn("TRY")
	other.CustomerNo = 1002
	b.accounts[other] = money.New(0, other.Currency)
	ofAnother := func(f *fund.SaleFields) { f.DestinationAccount.CustomerNo = number("1002") }
	atOnce, later := request(1, sale(selling("10"), ofAnother)), request(2, sale(selling("10"), ofAnother, onDay(saturday)))
	b.settle(friday, atOnce, later)
	requireResult(t, "completed", atOnce)
	requireResult(t, "recorded", later)
	require.Equal(t, "12.50", b.accounts[other].String())
	require.Equal(t, "0.00", b.balance("TRY"))
	require.Equal(t, "990", b.units("AFA"))
}

func TestThePriceOfTheDayIsTheNewestThatBegan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ day, price, want string }{
		{friday, "1", "completed"},
		{friday, "3", "failed; price-not-current 0/FundToProcess/PriceID"},
		{saturday, "1", "failed; price-not-current 0/FundToProcess/PriceID"},
		{saturday, "3", "completed"},
		{sunday, "3", "completed"},
		{"2026-11-18", "1", "failed; price-not-current 0/FundToProcess/PriceID"}, // none has begun
	} {
		o := request(1, sale(at(tt.price)))
		newBank().settle(tt.day, o)
		require.Equal(t, tt.want, result(o), tt)
	}
}

func TestSumsBeyond64BitsAreRefused(t *testing.T) {
	t.Parallel()
	b := newBank()
	b.hold("1000000000000", "GAF")
	b.price(7, "GAF", "10000000000", "JPY", friday)
	tooMuch := request(1, sale(of("GAF"), at("7"), selling("1000000000"), into("JPY"), expecting("1")))
	b.settle(friday, tooMuch)
	requireResult(t, "failed; proceeds-out-of-range 0/FundAmount", tooMuch)

	b.accounts[accountIn("TRY")] = money.New(math.MaxInt64-12_500, currency("TRY"))
	fits := request(2, sale())
	b.settle(friday, fits)
	requireResult(t, "completed", fits)
	require.Equal(t, "92233720368547758.07", b.balance("TRY"))
	full := request(3, sale())
	changes := b.settle(friday, full)
	requireResult(t, "failed; balance-out-of-range 0/DestinationAccount", full)
	requireNothingChanged(t, changes)
	several := request(4, sale(selling("1001"), expecting("1")))
	b.settle(friday, several)
	requireResult(t, "failed; holding-insufficient 0/FundAmount; amount-mismatch 0/Amount; balance-out-of-range 0/DestinationAccount", several)
	require.Equal(t, "900", b.units("AFA"))
}

func TestAnArrayIsSettledInOrder(t *testing.T) {
	t.Parallel()
	b := newBank()
	o := request(1, sale(selling("600")), sale(selling("400")))
	changes := b.settle(friday, o)
	requireResult(t, "completed", o)
	require.Equal(t, "0", b.units("AFA"))
	require.Equal(t, "1250.00", b.balance("TRY"))
	require.Len(t, changes.Holdings, 1)
	require.Len(t, changes.Accounts, 1)
	require.Equal(t, []int{0, 1}, []int{changes.Sales[0].Index, changes.Sales[1].Index})
}

func TestALaterSaleOfAnArraySeesAnEarlierOne(t *testing.T) {
	t.Parallel()
	b := newBank()
	o := request(1, sale(selling("600")), sale(selling("400.000001")))
	changes := b.settle(friday, o)
	requireResult(t, "failed; holding-insufficient 1/FundAmount", o)
	requireNothingChanged(t, changes)
	require.Equal(t, "1000", b.units("AFA"))
	require.Equal(t, "0.00", b.balance("TRY"))
}

func TestARefusedSaleOfAnArrayIsTreatedAsNotThere(t *testing.T) {
	t.Parallel()
	b := newBank()
	o := request(1,
		sale(selling("1001")),
		sale(selling("600")),
		sale(selling("600"), at("99")), // would not be enough, if it counted: 400 are left
		sale(selling("400")),
		sale(selling("0.01"), intoSuffix("8")),
		sale(of("QAF")),
	)
	changes := b.settle(friday, o)
	requireResult(t, "failed; holding-insufficient 0/FundAmount; "+
		"holding-insufficient 2/FundAmount; price-not-found 2/FundToProcess/PriceID; "+
		"holding-insufficient 4/FundAmount; account-not-found 4/DestinationAccount; "+
		"holding-not-found 5/FundToProcess; price-not-found 5/FundToProcess/PriceID", o)
	requireNothingChanged(t, changes)
}

func TestARefusalNeverHurtsItsNeighbours(t *testing.T) {
	t.Parallel()
	b := newBank()
	before := request(1, sale(selling("300")))
	refused := request(2, sale(selling("300")), sale(selling("300"), into("USD")), sale(selling("300")))
	after := request(3, sale(selling("700")))
	changes := b.settle(friday, before, refused, after)
	requireResult(t, "completed", before)
	requireResult(t, "failed; currency-mismatch 1/DestinationAccount/CurrencyCode", refused)
	requireResult(t, "completed", after)
	require.Equal(t, "0", b.units("AFA"))
	require.Equal(t, "1250.00", b.balance("TRY"))
	require.Len(t, changes.Sales, 2)
	require.Equal(t, before.Envelope, changes.Sales[0].Envelope)
	require.Equal(t, after.Envelope, changes.Sales[1].Envelope)
}

func TestPositionsThatCameOutAsTheyWereAreNotWritten(t *testing.T) {
	t.Parallel()
	b := newBank()
	refused := request(1, sale(selling("300")), sale(into("USD")))
	requireNothingChanged(t, b.settle(friday, refused))
}

func TestASaleForALaterDayIsRecorded(t *testing.T) {
	t.Parallel()
	b := newBank()
	o := named(1, "c-1", sale(onDay(sunday)), sale(onDay(sunday), selling("5000"), at("3")))
	changes := b.settle(friday, o)
	requireResult(t, "recorded", o)
	require.Equal(t, fund.Changes{Sales: []fund.SaleEntry{
		{Envelope: o.Envelope, Index: 0, Terms: o.Sales[0].Terms(), State: operation.Recorded},
		{Envelope: o.Envelope, Index: 1, Terms: o.Sales[1].Terms(), State: operation.Recorded},
	}}, changes, "the holding is neither checked nor blocked")
	require.Equal(t, operation.Recorded, b.known[keyOf(o)].Outcome.State)
}

func keyOf(o *fund.Operation) idempotency.Key {
	key, _ := o.Key()
	return key
}

func TestWhatIsCheckedWhenASaleIsRecorded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		sale fund.Sale
		want string
	}{
		{"in order", sale(onDay(saturday)), ""},
		{"any price of the fund", sale(onDay(saturday), at("3")), ""},
		{"no holding, or too small", sale(onDay(saturday), selling("1e12")), ""},
		{"not the customer's holding", sale(onDay(saturday), func(f *fund.SaleFields) { f.CustomerNo = number("1002") }), ""},
		{"another amount", sale(onDay(saturday), expecting("1")), ""},
		{"no such price", sale(onDay(saturday), at("99")), "price-not-found 0/FundToProcess/PriceID"},
		{"a price of another fund", sale(onDay(saturday), at("2")), "price-not-found 0/FundToProcess/PriceID"},
		{"a withdrawn price", sale(onDay(saturday), at("98")), "price-not-found 0/FundToProcess/PriceID"},
		{"no such account", sale(onDay(saturday), intoSuffix("8")), "account-not-found 0/DestinationAccount"},
		{"another currency", sale(onDay(saturday), into("USD")), "currency-mismatch 0/DestinationAccount/CurrencyCode"},
		{"no account, in another currency", sale(onDay(saturday), into("EUR")),
			"account-not-found 0/DestinationAccount; currency-mismatch 0/DestinationAccount/CurrencyCode"},
		{"no price and no account", sale(onDay(saturday), at("99"), into("EUR")),
			"price-not-found 0/FundToProcess/PriceID; account-not-found 0/DestinationAccount"},
	} {
		b := newBank()
		b.price(98, "AFA", "1", "TRY", day.Last.String())
		o := request(1, tt.sale)
		changes := b.settle(friday, o)
		if tt.want == "" {
			require.Equal(t, "recorded", result(o), tt.name)
			continue
		}
		require.Equal(t, "failed; "+tt.want, result(o), tt.name)
		requireNothingChanged(t, changes)
	}
}

func TestARecordedArrayIsAllOrNothing(t *testing.T) {
	t.Parallel()
	b := newBank()
	o := request(1, sale(onDay(saturday)), sale(onDay(saturday), at("99")), sale(onDay(saturday), into("EUR")))
	changes := b.settle(friday, o)
	requireResult(t, "failed; price-not-found 1/FundToProcess/PriceID; "+
		"account-not-found 2/DestinationAccount; currency-mismatch 2/DestinationAccount/CurrencyCode", o)
	requireNothingChanged(t, changes)
}

func TestARecordedSaleIsSettledOnItsDayAtThePriceOfItsDay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ day, settledOn, units, proceeds string }{
		{saturday, saturday, "900", "150.00"},
		{saturday, sunday, "900", "150.00"}, // the service was down
		{sunday, "2026-11-25", "900", "175.00"},
	} {
		b := newBank()
		b.price(4, "AFA", "1.75", "TRY", sunday)
		recorded := request(1, sale(onDay(tt.day), expecting("1"))) // Amount is not checked on the day
		b.settle(friday, recorded)
		o := due(recorded)
		changes := b.settle(tt.settledOn, o)
		requireResult(t, "completed", o)
		require.Equal(t, tt.units, b.units("AFA"))
		require.Equal(t, tt.proceeds, b.balance("TRY"))
		require.Empty(t, changes.Sales)
		require.Equal(t, operation.Completed, changes.Settled[0].State)
		require.Equal(t, o.Envelope, changes.Settled[0].Envelope)
		require.Equal(t, now, changes.Settled[0].SettledAt)
		require.Equal(t, tt.proceeds, changes.Settled[0].Proceeds.String())
		require.Empty(t, b.recorded)
	}
}

func TestADueSaleIsSettledOnce(t *testing.T) {
	t.Parallel()
	b := newBank()
	recorded := request(1, sale(onDay(saturday)))
	b.settle(friday, recorded)
	first, second := due(recorded), due(recorded)
	b.settle(saturday, first, second) // twice in a batch
	requireResult(t, "completed", first)
	requireResult(t, "none", second)
	third := due(recorded)
	changes := b.settle(saturday, third) // another replica has it, or had
	requireResult(t, "none", third)
	requireNothingChanged(t, changes)
	require.Equal(t, "900", b.units("AFA"))
	require.Equal(t, "150.00", b.balance("TRY"))
}

func TestADueSaleWaitsWhenTheClockSteppedBack(t *testing.T) {
	t.Parallel()
	b := newBank()
	b.price(4, "AFA", "1.5", "TRY", sunday)
	recorded := request(1, sale(onDay(sunday)))
	b.settle(friday, recorded)
	o := due(recorded)
	changes := b.settle(saturday, o)
	requireResult(t, "none", o)
	requireNothingChanged(t, changes)
	require.Len(t, b.recorded, 1)
	b.settle(sunday, o)
	requireResult(t, "completed", o)
}

func TestADueSaleThatIsRefusedEndsAsFailed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		then func(*bank)
		want string
	}{
		{"the holding is gone", func(b *bank) { delete(b.holdings, holdingOf("AFA")) }, "holding-not-found 0/FundToProcess"},
		{"it has fewer units", func(b *bank) { b.hold("99.999999", "AFA") }, "holding-insufficient 0/FundAmount"},
		{"the account is gone", func(b *bank) { delete(b.accounts, accountIn("TRY")) }, "account-not-found 0/DestinationAccount"},
		{"the price is in another currency by now", func(b *bank) { b.price(4, "AFA", "1", "USD", saturday) },
			"currency-mismatch 0/DestinationAccount/CurrencyCode"},
		{"neither holding nor account", func(b *bank) { clear(b.holdings); clear(b.accounts) },
			"holding-not-found 0/FundToProcess; account-not-found 0/DestinationAccount"},
	} {
		b := newBank()
		recorded := named(1, "c-1", sale(onDay(saturday)))
		b.settle(friday, recorded)
		tt.then(b)
		o := due(recorded)
		changes := b.settle(saturday, o)
		require.Equal(t, "failed; "+tt.want, result(o), tt.name)
		outcome, err := o.Outcome()
		require.NoError(t, err)
		require.Equal(t, fund.Changes{Settled: []fund.SaleEntry{
			{Envelope: o.Envelope, Terms: o.Sales[0].Terms(), State: operation.Failed, Refusal: outcome.Faults[0].Code, SettledAt: now},
		}, Ended: []fund.Ended{{
			OperationID: o.ID, Subscription: o.Subscription, CallerID: "c-1", State: operation.Failed, Faults: outcome.Faults, At: now,
		}}}, changes, tt.name)
		require.Equal(t, o.ID, outcome.ID)
		require.Equal(t, outcome, b.known[keyOf(o)].Outcome, tt.name)
	}
}

func TestADueArraySharesOneFate(t *testing.T) {
	t.Parallel()
	b := newBank()
	recorded := request(1, sale(onDay(saturday), selling("600")), sale(onDay(saturday), selling("600")), sale(onDay(saturday), selling("400")))
	b.settle(friday, recorded)
	o, neighbour := due(recorded), request(2, sale(at("3")))
	changes := b.settle(saturday, o, neighbour)
	requireResult(t, "failed; holding-insufficient 1/FundAmount", o)
	requireResult(t, "completed", neighbour)
	require.Equal(t, []fund.SaleEntry{
		{Envelope: o.Envelope, Index: 0, Terms: o.Sales[0].Terms(), State: operation.Failed, SettledAt: now},
		{Envelope: o.Envelope, Index: 1, Terms: o.Sales[1].Terms(), State: operation.Failed, Refusal: "holding-insufficient", SettledAt: now},
		{Envelope: o.Envelope, Index: 2, Terms: o.Sales[2].Terms(), State: operation.Failed, SettledAt: now},
	}, changes.Settled)
	for _, s := range changes.Settled {
		require.Empty(t, s.Postings())
	}
	require.Equal(t, "900", b.units("AFA"))
}

func TestARepeatIsAnsweredWithTheStateAsItIsNow(t *testing.T) {
	t.Parallel()
	b := newBank()
	content := sale(onDay(saturday))
	first := named(1, "c-1", content)
	b.settle(friday, first)

	again := named(2, "c-1", content)
	requireNothingChanged(t, b.settle(friday, again))
	requireResult(t, "recorded; again", again)

	o := due(first)
	b.settle(saturday, o)
	requireResult(t, "completed", o)

	// Its day has gone by; asked about, not asked for.
	late := named(3, "c-1", content)
	requireNothingChanged(t, b.settle(sunday, late))
	requireResult(t, "completed; again", late)
	require.Equal(t, "900", b.units("AFA"))
}

func TestARepeatAndTheSettlingOfItsOperationMayMeetInOneBatch(t *testing.T) {
	t.Parallel()
	b := newBank()
	content := sale(onDay(saturday))
	first := named(1, "c-1", content)
	b.settle(friday, first)
	before, o, after := named(2, "c-1", content), due(first), named(3, "c-1", content)
	b.settle(saturday, before, o, after)
	requireResult(t, "recorded; again", before)
	requireResult(t, "completed", o)
	requireResult(t, "completed; again", after)
}

func TestARefusalIsRepeatedTooAndHasNoEffectLater(t *testing.T) {
	t.Parallel()
	b := newBank()
	first := named(1, "c-1", sale(selling("2000")))
	requireNothingChanged(t, b.settle(friday, first))
	requireResult(t, "failed; holding-insufficient 0/FundAmount", first)
	b.hold("5000", "AFA") // it would be enough now
	again := named(2, "c-1", sale(selling("2000")))
	requireNothingChanged(t, b.settle(friday, again))
	requireResult(t, "failed; again; holding-insufficient 0/FundAmount", again)
}

func TestTheSameCallerIDTwiceInABatch(t *testing.T) {
	t.Parallel()
	b := newBank()
	first, same, other, without := named(1, "c-1", sale()), named(2, "c-1", sale()), named(3, "c-1", sale(selling("1"))), request(4, sale())
	changes := b.settle(friday, first, same, other, without)
	requireResult(t, "completed", first)
	requireResult(t, "completed; again", same)
	requireResult(t, "conflict; caller-id-reused /Header/CallerId", other)
	requireResult(t, "completed", without)
	require.Len(t, changes.Sales, 2)
	require.Equal(t, "800", b.units("AFA"))
	require.Len(t, b.known, 1)
	require.Equal(t, operation.ID{1}, b.known[keyOf(first)].Outcome.ID)
}

func TestAnotherSubscriptionHasCallerIDsOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBank()
	ours, theirs := named(1, "c-1", sale()), named(2, "c-1", sale(selling("1")))
	theirs.Subscription = "branch"
	b.settle(friday, ours, theirs)
	requireResult(t, "completed", ours)
	requireResult(t, "completed", theirs)
}

func TestWithoutACallerIDEachRequestIsANewSale(t *testing.T) {
	t.Parallel()
	b := newBank()
	b.settle(friday, request(1, sale()))
	b.settle(friday, request(2, sale()))
	require.Equal(t, "800", b.units("AFA"))
	require.Empty(t, b.known)
}

// A request that arrives before midnight and is settled after it keeps its day.
func TestTheDayOfARequestIsTheDayOnWhichItArrived(t *testing.T) {
	t.Parallel()
	b := newBank()
	without, dated, mixed, tomorrow, other := request(1, sale()), request(2, sale(onDay(friday))),
		request(3, sale(), sale(onDay(friday))), request(4, sale(onDay(saturday), at("3"))), request(5, sale(at("3")))
	for _, o := range []*fund.Operation{without, dated, mixed, tomorrow, other} {
		arrive(on(friday), o)
	}
	late := request(6, sale(at("3")))
	changes := b.settle(saturday, without, dated, mixed, tomorrow, other, late)
	for _, o := range []*fund.Operation{without, dated, mixed, late} {
		requireResult(t, "completed", o)
	}
	requireResult(t, "recorded", tomorrow)
	requireResult(t, "failed; price-not-current 0/FundToProcess/PriceID", other)
	require.Equal(t, int64(1), changes.Sales[0].PriceID, "the price of Friday")
	require.Equal(t, "500", b.units("AFA"))
}

// Some sales of an array name the day on which it arrives, and others do not.
func TestADayIsOneContentHoweverEachSaleNamesIt(t *testing.T) {
	t.Parallel()
	b := newBank()
	arrives := func(second byte, sales ...fund.Sale) *fund.Operation {
		o := named(second, "c-1", sales...)
		binary.BigEndian.PutUint64(o.ID[:], uint64(now.UnixMilli())<<16)
		o.ID[15] = second
		return o
	}
	none, dated := sale(), sale(onDay(friday))
	b.settle(friday, arrive(on(friday), arrives(1, none, dated)))
	for i, sales := range [][]fund.Sale{{none, dated}, {dated, none}, {none, none}, {dated, dated}} {
		again := arrive(on(saturday), arrives(byte(2+i), sales...))
		b.settle(saturday, again)
		requireResult(t, "completed; again", again)
	}
	other := arrive(on(saturday), arrives(9, none, sale(onDay(saturday))))
	b.settle(saturday, other)
	_, err := other.Outcome()
	require.Equal(t, fault.Conflict, fault.KindOf(err))
}

func TestADayThatIsNotPossibleLeavesNoTrace(t *testing.T) {
	t.Parallel()
	b := newBank()
	for _, o := range []*fund.Operation{
		named(1, "c-1", sale(onDay(friday))),
		named(2, "c-2", sale(), sale(onDay(friday))),
		request(3, sale(onDay("2027-11-23"))), // too far
		named(4, "c-4", sale(onDay(saturday)), sale(at("3"), onDay(sunday))),
	} {
		changes := b.settle(saturday, o)
		requireNothingChanged(t, changes)
		_, err := o.Outcome()
		require.Error(t, err)
	}
	require.Empty(t, b.known)
	o := named(1, "c-1", sale(onDay(friday)))
	b.settle(saturday, o)
	requireResult(t, "invalid; date-in-the-past 0/SelectedTransactionDate", o)
	o = named(2, "c-2", sale(), sale(onDay(friday)))
	b.settle(saturday, o)
	requireResult(t, "invalid; date-in-the-past 1/SelectedTransactionDate", o)
}

// A 400 says that nothing happened under this CallerId, which would not be true.
func TestA422ComesBeforeTheDay(t *testing.T) {
	t.Parallel()
	b := newBank()
	b.settle(friday, named(1, "c-1", sale()))
	o := named(2, "c-1", sale(onDay(friday)))
	b.settle(saturday, o)
	requireResult(t, "conflict; caller-id-reused /Header/CallerId", o)
	repeat := named(3, "c-1", sale())
	b.settle(saturday, repeat)
	requireResult(t, "completed; again", repeat)
}

// What is added to a position does not depend on what was loaded.
func TestDifferences(t *testing.T) {
	t.Parallel()
	b := newBank()
	for range 2 {
		book := b.load([]*fund.Operation{request(1, sale(), sale())}, on(friday))
		book.Settle([]*fund.Operation{request(1, sale(), sale())}, now, on(friday))
		changes := book.Changes()
		holdings, accounts := book.Differences(&changes)
		require.Len(t, holdings, 1)
		require.Equal(t, changes.Holdings[0].Key, holdings[0].Key)
		require.Equal(t, fund.Units(-200_000_000), holdings[0].Units)
		require.Len(t, accounts, 1)
		require.Equal(t, changes.Accounts[0].Key, accounts[0].Key)
		require.EqualValues(t, 25_000, accounts[0].Balance.Minor())
		b.settle(friday, request(2, sale()))
	}
}

func TestWhetherEveryOperationOfABatchIsNewAndCompleted(t *testing.T) {
	t.Parallel()
	recorded := named(9, "c-9", sale(onDay(friday)))
	for _, tt := range []struct {
		name  string
		batch []*fund.Operation
		want  bool
	}{
		{"new ones", []*fund.Operation{named(1, "c-1", sale()), request(2, sale(), sale())}, true},
		{"a refused one first", []*fund.Operation{request(1, sale(at("99"))), request(2, sale())}, false},
		{"a refused one last", []*fund.Operation{request(1, sale()), request(2, sale(at("99")))}, false},
		{"one for a later day", []*fund.Operation{request(1, sale()), request(2, sale(onDay(saturday)))}, false},
		{"one of yesterday", []*fund.Operation{request(1, sale()), request(2, sale(onDay("2026-11-19")))}, false},
		{"a repeat", []*fund.Operation{named(1, "c-1", sale()), named(2, "c-1", sale())}, false},
		{"another content", []*fund.Operation{named(1, "c-1", sale()), named(2, "c-1", sale(selling("1")))}, false},
		{"a due one", []*fund.Operation{request(1, sale()), due(recorded)}, false},
	} {
		b := newBank()
		b.settle("2026-11-19", recorded)
		book := b.load(tt.batch, on(friday))
		require.False(t, book.CompletedAll(), "nothing is settled yet")
		book.Settle(tt.batch, now, on(friday))
		require.Equal(t, tt.want, book.CompletedAll(), tt.name)
	}
}

func TestABatchDecidedAgainComesOutTheSame(t *testing.T) {
	t.Parallel()
	b := newBank()
	b.price(1, "AFA", "1.25", "TRY", friday)
	recorded := request(9, sale(onDay(friday), selling("900")))
	b.settle("2026-11-19", recorded)
	batch := []*fund.Operation{named(1, "c-1", sale()), due(recorded), named(2, "c-1", sale(selling("2"))), request(3, sale())}
	var changes []fund.Changes
	for range 3 { // as storage does when the transaction lost a race
		book := b.load(batch, on(friday))
		book.Settle(batch, now, on(friday))
		changes = append(changes, book.Changes())
		requireResult(t, "completed", batch[0])
		requireResult(t, "completed", batch[1])
		requireResult(t, "conflict; caller-id-reused /Header/CallerId", batch[2])
		requireResult(t, "failed; holding-insufficient 0/FundAmount", batch[3])
	}
	require.Equal(t, changes[0], changes[1])
	require.Equal(t, changes[0], changes[2])

	// Another replica was faster: it settled the due sale and took the CallerId.
	b.settle(friday, due(recorded), named(5, "c-1", sale(selling("2"))))
	b.settle(friday, batch...)
	requireResult(t, "conflict; caller-id-reused /Header/CallerId", batch[0])
	requireResult(t, "none", batch[1])
	requireResult(t, "completed; again", batch[2])
}
