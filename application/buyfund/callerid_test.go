package buyfund_test

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/buyfund"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// These tests hold section 6 of the contract: an operation happens once.

func TestTheSameCallerIDHasOneEffect(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	requireOutcome(t, completed, b.mustBuy("caller", sale("1")))
	requireOutcome(t, replayed(completed), b.mustBuy("caller", sale("1")))
	requireOutcome(t, replayed(completed), b.mustBuy("caller", sale("1")))
	b.sold(1)
	require.Len(t, b.store.Sales(), 1)
	requireOutcome(t, completed, b.mustBuy("Caller", sale("1")), "letter case counts")
	requireOutcome(t, completed, b.mustBuy("caller ", sale("1")), "a space counts")
	b.sold(3)
}

func TestAnotherContentIsAConflict(t *testing.T) {
	t.Parallel()
	content := []fund.SaleFields{sale("1", func(f *fund.SaleFields) { f.Amount = number("1.25") }), sale("1")}
	header := operation.Header{AppKey: "app", Channel: "channel", TellerName: "teller", CallerID: "caller"}
	change := func(change func(*fund.SaleFields)) func(*operation.Header, *[]fund.SaleFields) {
		return func(_ *operation.Header, p *[]fund.SaleFields) { change(&(*p)[1]) }
	}
	for name, other := range map[string]func(*operation.Header, *[]fund.SaleFields){
		"CustomerNo":    change(func(f *fund.SaleFields) { f.CustomerNo = decimal.Int(1002) }),
		"FundAmount":    change(func(f *fund.SaleFields) { f.FundAmount = number("1.000001") }),
		"BranchCode":    change(func(f *fund.SaleFields) { f.DestinationAccount.BranchCode = decimal.Int(2) }),
		"account owner": change(func(f *fund.SaleFields) { f.DestinationAccount.CustomerNo = decimal.Int(2) }),
		"AccountSuffix": change(func(f *fund.SaleFields) { f.DestinationAccount.AccountSuffix = decimal.Int(2) }),
		"CurrencyCode":  change(func(f *fund.SaleFields) { f.DestinationAccount.CurrencyCode = "USD" }),
		"IMKBCode":      change(func(f *fund.SaleFields) { f.FundToProcess.IMKBCode = "GLDX" }),
		"holder":        change(func(f *fund.SaleFields) { f.FundToProcess.HolderCorporationName = "holder" }),
		"PriceID":       change(func(f *fund.SaleFields) { f.FundToProcess.PriceID = decimal.Int(2) }),
		"Amount":        change(func(f *fund.SaleFields) { f.Amount = number("1.25") }),
		"the day":       change(on(today(1))),
		"fewer records": func(_ *operation.Header, p *[]fund.SaleFields) { *p = (*p)[:1] },
		"more records":  func(_ *operation.Header, p *[]fund.SaleFields) { *p = append(*p, sale("1")) },
		"another order": func(_ *operation.Header, p *[]fund.SaleFields) { (*p)[0], (*p)[1] = (*p)[1], (*p)[0] },
		"AppKey":        func(h *operation.Header, _ *[]fund.SaleFields) { h.AppKey = "other" },
		"Channel":       func(h *operation.Header, _ *[]fund.SaleFields) { h.Channel = "" },
		"TellerName":    func(h *operation.Header, _ *[]fund.SaleFields) { h.TellerName = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openBank(t, with{})
			copied := func() []fund.SaleFields {
				var all []fund.SaleFields
				for _, f := range content {
					account, of := *f.DestinationAccount, *f.FundToProcess
					f.DestinationAccount, f.FundToProcess = &account, &of
					all = append(all, f)
				}
				return all
			}
			outcome, err := b.Buy(t.Context(), ours, header, copied())
			require.NoError(t, err)
			requireOutcome(t, completed, outcome)

			h, p := header, copied()
			other(&h, &p)
			first := outcome.ID
			outcome, err = b.Buy(t.Context(), ours, h, p)
			fails(t, fault.Conflict, err, "caller-id-reused /Header/CallerId")
			require.Equal(t, operation.Outcome{ID: first}, outcome)
			b.sold(2)

			// The conflict changed nothing about the first one.
			outcome, err = b.Buy(t.Context(), ours, header, copied())
			require.NoError(t, err)
			requireOutcome(t, replayed(completed), outcome)
		})
	}
}

func TestWhatDoesNotCountAsContent(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	header := operation.Header{CallerID: "caller", ChannelSessionID: "one", ChannelRequestID: "two"}
	outcome, err := b.Buy(t.Context(), ours, header, []fund.SaleFields{sale("10")})
	require.NoError(t, err)
	requireOutcome(t, completed, outcome)

	header.ChannelSessionID, header.ChannelRequestID = "three", ""
	spelled := sale("1.0e1", func(f *fund.SaleFields) {
		f.TransactionType, f.CustomerNo, f.Amount = number("2.0"), number("10010e-1"), number("0")
	})
	outcome, err = b.Buy(t.Context(), ours, header, []fund.SaleFields{spelled})
	require.NoError(t, err)
	requireOutcome(t, replayed(completed), outcome)
	b.sold(10)
}

func TestTheCallerIDIsOfOneSubscription(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	requireOutcome(t, completed, b.mustBuy("caller", sale("1")))
	outcome, err := b.Buy(t.Context(), theirs, operation.Header{CallerID: "caller"}, []fund.SaleFields{sale("2")})
	require.NoError(t, err)
	requireOutcome(t, completed, outcome)
	b.sold(3)
}

func TestARefusalIsRepeatedWithItsReasons(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	first := b.mustBuy("caller", sale("1"), sale("1000"), sale("1", atPrice(2)))
	refused(t, first, "holding-insufficient /Parameters/1/FundAmount", "price-not-found /Parameters/2/FundToProcess/PriceID")

	// Also when it would go well by now: the operation happened, and failed.
	b.store.PutHoldings(fund.Holding{Key: holding(1001, gold), Units: 9000_000_000})
	requireOutcome(t, replayed(first), b.mustBuy("caller", sale("1"), sale("1000"), sale("1", atPrice(2))))
	require.Empty(t, b.store.Sales())
}

func TestARepeatIsAnsweredAfterItsDay(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	requireOutcome(t, completed, b.mustBuy("today", sale("1", on(today(0)))))
	requireOutcome(t, recorded, b.mustBuy("tomorrow", sale("1", on(today(1)))))
	failed := b.mustBuy("refused", sale("5000", on(today(0))))
	b.clock.Set(midnight(400))
	requireOutcome(t, replayed(completed), b.mustBuy("today", sale("1", on(today(0)))))
	requireOutcome(t, replayed(recorded), b.mustBuy("tomorrow", sale("1", on(today(1)))))
	requireOutcome(t, replayed(failed), b.mustBuy("refused", sale("5000", on(today(0)))))
	b.sold(1)
}

// timedIDs are IDs of the time of the clock, as the program makes them.
func timedIDs(b **bank) func(o *buyfund.Options) {
	var count atomic.Uint64
	return func(o *buyfund.Options) {
		o.NewID = func() (id operation.ID) {
			binary.BigEndian.PutUint64(id[:8], uint64((*b).clock.Now().UnixMilli())<<16)
			binary.BigEndian.PutUint64(id[8:], count.Add(1))
			return id
		}
	}
}

// A sale without a day and a sale for the day on which it arrived are one content.
func TestTheDayIsContentAsItWasUnderstood(t *testing.T) {
	t.Parallel()
	without, explicit := sale("1"), sale("1", on(today(0)))
	tomorrow, yesterday := sale("1", on(today(1))), sale("1", on(today(-1)))
	for _, first := range []fund.SaleFields{without, explicit} {
		for _, later := range []int{0, 1, 2, 400} {
			var b *bank
			b = openBank(t, with{options: timedIDs(&b)})
			b.clock.Set(midnight(1).Add(-time.Microsecond)) // the last of the bank's day, in UTC the same day
			requireOutcome(t, completed, b.mustBuy("caller", first))
			b.clock.Set(midnight(later + 1).Add(-time.Hour))
			for _, repeat := range []fund.SaleFields{without, explicit} {
				requireOutcome(t, replayed(completed), b.mustBuy("caller", repeat))
			}
			for _, other := range []fund.SaleFields{tomorrow, yesterday, sale("2"), sale("2", on(today(0)))} {
				_, err := b.buy("caller", other)
				fails(t, fault.Conflict, err, "caller-id-reused /Header/CallerId")
			}
			b.sold(1)
		}
	}
	var b *bank
	b = openBank(t, with{options: timedIDs(&b)})
	requireOutcome(t, completed, b.mustBuy("several", without, explicit))
	requireOutcome(t, replayed(completed), b.mustBuy("several", without, explicit))
	requireOutcome(t, recorded, b.mustBuy("recorded", tomorrow))
	for _, repeat := range []fund.SaleFields{without, explicit} {
		_, err := b.buy("recorded", repeat)
		fails(t, fault.Conflict, err, "caller-id-reused /Header/CallerId")
	}
	b.clock.Set(midnight(1))
	requireOutcome(t, replayed(recorded), b.mustBuy("recorded", tomorrow))
	b.sold(2)
}

// A request that is checked while midnight passes has one day: that of its sale and of its repeats.
func TestMidnightWhileARequestIsChecked(t *testing.T) {
	t.Parallel()
	var b *bank
	b = openBank(t, with{options: func(o *buyfund.Options) {
		timedIDs(&b)(o)
		o.Now = func() time.Time {
			now := b.clock.Now()
			if now.Before(midnight(1)) {
				b.clock.Set(midnight(1))
			}
			return now
		}
	}})
	b.clock.Set(midnight(1).Add(-time.Microsecond))
	requireOutcome(t, completed, b.mustBuy("caller", sale("1")))
	arrived := day.Of(b.store.Sales()[0].ReceivedAt, istanbul)
	for _, repeat := range []fund.SaleFields{sale("1"), sale("1", on(arrived))} {
		requireOutcome(t, replayed(completed), b.mustBuy("caller", repeat))
	}
	for _, other := range []int{-1, 1} {
		_, err := b.buy("caller", sale("1", on(arrived.Plus(other))))
		fails(t, fault.Conflict, err, "caller-id-reused /Header/CallerId")
	}
	b.sold(1)
}

func TestTheOrderOfTheChecks(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	requireOutcome(t, completed, b.mustBuy("caller", sale("1")))
	strict := &subscription.Subscription{Name: ours.Name, Channel: "channel"}
	wrong := operation.Header{CallerID: "caller", Channel: "other"}
	past, other := sale("2", on(today(-1))), sale("2")

	// 400 before 422 before 403. An answer 400 says that nothing happened under
	// this CallerId, so the day alone is checked when that is known.
	_, err := b.Buy(t.Context(), strict, wrong, []fund.SaleFields{sale("0", on(today(-1)))})
	fails(t, fault.Invalid, err, "out-of-range /Parameters/0/FundAmount", "date-in-the-past /Parameters/0/SelectedTransactionDate")
	_, err = b.Buy(t.Context(), strict, wrong, []fund.SaleFields{past})
	fails(t, fault.Conflict, err, "caller-id-reused /Header/CallerId")
	_, err = b.Buy(t.Context(), strict, wrong, []fund.SaleFields{other})
	fails(t, fault.Conflict, err, "caller-id-reused /Header/CallerId")
	wrong.CallerID = "new"
	_, err = b.Buy(t.Context(), strict, wrong, []fund.SaleFields{past})
	fails(t, fault.Forbidden, err, "contradicts-subscription /Header/Channel")
	_, err = b.buy("caller", past)
	fails(t, fault.Conflict, err, "caller-id-reused /Header/CallerId")
	_, err = b.buy("caller", other)
	fails(t, fault.Conflict, err, "caller-id-reused /Header/CallerId")
	b.sold(1)
}

func TestWhatWasNotAcceptedLeavesTheCallerIDFree(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	_, err := b.buy("caller", sale("1", on(today(-1))))
	fails(t, fault.Invalid, err, "date-in-the-past /Parameters/0/SelectedTransactionDate")
	_, err = b.buy("caller", sale("1", on(today(367))))
	fails(t, fault.Invalid, err, "date-too-far /Parameters/0/SelectedTransactionDate")
	requireOutcome(t, completed, b.mustBuy("caller", sale("3")))
	b.sold(3)
}

func TestTheSameCallerIDTwiceInOneBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate()
		b := openBank(t, with{strike: gate.strike})
		expect := func(want operation.Outcome, callerID string, s fund.SaleFields) func() {
			return func() { requireOutcome(t, want, b.mustBuy(callerID, s)) }
		}
		failed := operation.Outcome{State: operation.Failed, Faults: []fault.Fault{{
			Pointer: "/Parameters/0/FundAmount", Code: "holding-insufficient", Detail: "The holding does not have enough units.",
		}}}
		b.together(gate, func() {},
			expect(completed, "a", sale("1")),
			expect(replayed(completed), "a", sale("1")),
			func() {
				_, err := b.buy("a", sale("2"))
				fails(t, fault.Conflict, err, "caller-id-reused /Header/CallerId")
			},
			expect(recorded, "b", sale("1", on(today(1)))),
			expect(replayed(recorded), "b", sale("1", on(today(1)))),
			expect(failed, "c", sale("1000")),
			expect(replayed(failed), "c", sale("1000")),
			expect(replayed(completed), "a", sale("1")),
			func() {
				outcome, err := b.Buy(t.Context(), theirs, operation.Header{CallerID: "a"}, []fund.SaleFields{sale("4")})
				require.NoError(t, err)
				requireOutcome(t, completed, outcome)
			})
		b.sold(5)
	})
}

type answer struct {
	state    operation.State
	replayed bool
}

func TestTwentyAtTheSameMoment(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 3, 100} { // of one batch, and of many
		for _, replicas := range []int{1, 3} {
			t.Run(fmt.Sprintf("batch %d, replicas %d", batch, replicas), func(t *testing.T) {
				t.Parallel()
				b := openBank(t, with{})
				var buyers []*buyfund.Buyer
				for range replicas {
					buyers = append(buyers, b.replica(with{options: func(o *buyfund.Options) { o.Commit.Batch = batch }}))
				}
				var mu sync.Mutex
				answers := map[answer]int{}
				var done sync.WaitGroup
				for i := range 20 {
					done.Go(func() {
						outcome, err := buyers[i%replicas].Buy(t.Context(), ours, operation.Header{CallerID: "caller"}, []fund.SaleFields{sale("1")})
						mu.Lock()
						defer mu.Unlock()
						if err != nil {
							t.Error(err)
						}
						answers[answer{outcome.State, outcome.Replayed}]++
					})
				}
				done.Wait()
				require.Equal(t, map[answer]int{{operation.Completed, false}: 1, {operation.Completed, true}: 19}, answers)
				b.sold(1)
				require.Len(t, b.store.Sales(), 1)
			})
		}
	}
}

func TestACallerIDMayBeRequired(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	strict := &subscription.Subscription{Name: "strict", RequireCallerID: true, Channel: "channel"}
	_, err := b.Buy(t.Context(), strict, operation.Header{Channel: "other"}, []fund.SaleFields{sale("0", on(today(-1)))})
	fails(t, fault.Invalid, err, "required /Header/CallerId", "out-of-range /Parameters/0/FundAmount",
		"date-in-the-past /Parameters/0/SelectedTransactionDate")
	b.sold(0)
	outcome, err := b.Buy(t.Context(), strict, operation.Header{CallerID: "caller"}, []fund.SaleFields{sale("1")})
	require.NoError(t, err)
	requireOutcome(t, completed, outcome)
}
