package simulation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/addpush"
	"bankingapi/application/buyfund"
	"bankingapi/application/outcomes"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/test/fake"
)

// mistakes lists typical mistakes of such a service. Every run gets a new mutant,
// because some of them have state.
var mistakes = map[string]func() *Mutant{
	"a posting is lost": rows(func(r *altered) {
		r.postings = func(all []fund.Posting) []fund.Posting { return without(all, 5) }
	}),
	"a posting is written twice": rows(func(r *altered) {
		r.postings = func(all []fund.Posting) []fund.Posting { return twice(all, 5) }
	}),
	"a posting is off by one": rows(func(r *altered) {
		r.postings = func(all []fund.Posting) []fund.Posting {
			if len(all) > 5 {
				all[5].Quantity++
			}
			return all
		}
	}),
	"a sale of an array is lost": rows(func(r *altered) {
		r.sales = func(all []fund.SaleEntry) []fund.SaleEntry {
			return without(all, slices.IndexFunc(all, func(e fund.SaleEntry) bool { return e.Index == 1 }))
		}
	}),
	"a message is lost": rows(func(r *altered) {
		r.notifications = func(all []push.Entry) []push.Entry { return without(all, 3) }
	}),
	"a message is stored twice": rows(func(r *altered) {
		r.notifications = func(all []push.Entry) []push.Entry { return twice(all, 3) }
	}),

	"a sale is carried out twice": settling(func(n int, settle func(*fund.Book)) func(*fund.Book) {
		return func(b *fund.Book) {
			settle(b)
			if n%10 == 0 {
				settle(b)
			}
		}
	}),
	"a retried transaction decides with its old book": settling(func(_ int, settle func(*fund.Book)) func(*fund.Book) {
		var old *fund.Book
		return func(b *fund.Book) {
			if old == nil {
				old = b
			}
			settle(old)
		}
	}),
	"a credit is added to an old balance": inBooks(func(next buyfund.Books) *changed {
		old := map[fund.AccountKey]money.Amount{}
		return &changed{next: next, around: func(_ fund.LockSet, settle func(*fund.Book)) func(*fund.Book) {
			return func(b *fund.Book) {
				for key, balance := range old {
					b.LoadAccount(fund.Account{Key: key, Balance: balance})
				}
				settle(b)
				for _, a := range b.Changes().Accounts {
					old[a.Key] = a.Balance // even if the transaction fails later
				}
			}
		}}
	}),
	"units are sold twice from an old holding": inBooks(func(next buyfund.Books) *changed {
		old := map[fund.HoldingKey]fund.Units{}
		return &changed{next: next, around: func(touched fund.LockSet, settle func(*fund.Book)) func(*fund.Book) {
			return func(b *fund.Book) {
				for _, key := range touched.Holdings {
					if units, ok := old[key]; ok {
						b.LoadHolding(fund.Holding{Key: key, Units: units})
					}
				}
				settle(b)
				for _, h := range b.Changes().Holdings {
					old[h.Key] = h.Units
				}
			}
		}}
	}),
	"a price stays cached after it was used": inBooks(func(next buyfund.Books) *changed {
		used := map[fund.Fund]fund.Price{}
		return &changed{next: next, around: func(touched fund.LockSet, settle func(*fund.Book)) func(*fund.Book) {
			return func(b *fund.Book) {
				for _, of := range touched.PriceDays {
					if p, ok := used[of.Fund]; ok {
						b.LoadCurrentPrice(of, p)
					}
				}
				settle(b)
				for _, s := range b.Changes().Sales {
					if s.State == operation.Completed {
						of := s.Terms.Holding.Fund
						used[of] = fund.Price{ID: s.PriceID, Fund: of, PerUnit: s.PerUnit, Currency: s.Proceeds.Currency()}
					}
				}
			}
		}}
	}),
	"a due sale gets the price of today": inBooks(func(next buyfund.Books) *changed {
		return &changed{next: next, touch: func(t *fund.LockSet) {
			t.PriceDays = slices.Clone(t.PriceDays)
			for i := range t.PriceDays {
				t.PriceDays[i].Day = slices.MaxFunc(t.PriceDays, func(a, b fund.PriceDay) int { return a.Day.Compare(b.Day) }).Day
			}
		}}
	}),
	"the CallerId of a sale is not stored": inBooks(func(next buyfund.Books) *changed {
		n := 0
		return &changed{next: next, touch: func(t *fund.LockSet) {
			if n++; n%20 == 0 {
				t.Callers = nil
			}
		}}
	}),
	"the CallerId of a message is not stored": func() *Mutant {
		return &Mutant{Inboxes: func(next addpush.Inboxes) addpush.Inboxes { return &forgetful{next: next} }}
	},
	"a settled sale is still recorded for its CallerId": inBooks(func(next buyfund.Books) *changed {
		return &changed{next: next, touch: func(t *fund.LockSet) {
			if len(t.Due) > 0 {
				t.Callers = nil
			}
		}}
	}),
	"a due sale is claimed although it is settled": inBooks(func(next buyfund.Books) *changed {
		return &changed{next: next, around: func(t fund.LockSet, settle func(*fund.Book)) func(*fund.Book) {
			return func(b *fund.Book) {
				for _, o := range t.Due {
					b.LoadClaim(o.ID)
				}
				settle(b)
			}
		}}
	}),
	"the first due sale is never listed": inBooks(func(next buyfund.Books) *changed {
		return &changed{next: next, list: func(due []*fund.Operation) []*fund.Operation { return due[min(1, len(due)):] }}
	}),
	"due arrays are never claimed": inBooks(func(next buyfund.Books) *changed {
		return &changed{next: next, touch: func(t *fund.LockSet) {
			t.Due = slices.DeleteFunc(slices.Clone(t.Due), func(o *fund.Operation) bool { return len(o.Sales) > 1 })
		}}
	}),

	"a commit is reported as rolled back": striking(func(m fake.Moment, err error) error {
		if m == fake.Committed && err != nil {
			return fault.Wrap(fault.Unavailable, err, "rolled back")
		}
		return err
	}),
	"a rollback is reported as committed": func() *Mutant {
		p := inBooks(func(next buyfund.Books) *changed {
			return &changed{next: next, end: func(err error) error {
				if errors.Is(err, errSilent) {
					return nil
				}
				return err
			}}
		})()
		p.Strike = striking(func(m fake.Moment, err error) error {
			if m == fake.Commit && fault.KindOf(err) == fault.Unavailable {
				return fault.Wrap(fault.Unavailable, errors.Join(err, errSilent), "rolled back")
			}
			return err
		})().Strike
		return p
	},
	"an unknown outcome is reported as committed": inBooks(func(next buyfund.Books) *changed {
		return &changed{next: next, end: func(err error) error {
			if fault.KindOf(err) == fault.Indeterminate {
				return nil
			}
			return err
		}}
	}),

	"an outcome is lost": telling(func(t *told) {
		t.alter = func(all []fund.Ended) []fund.Ended {
			return slices.DeleteFunc(all, func(e fund.Ended) bool { return e.Number == 3 })
		}
	}),
	"an outcome appears before a cursor that was handed out": telling(func(t *told) {
		late := true
		t.alter = func(all []fund.Ended) []fund.Ended {
			return slices.DeleteFunc(all, func(e fund.Ended) bool {
				late = late && e.Number < 4
				return late && e.Number == 3
			})
		}
	}),
	"an outcome is told twice":                      telling(func(t *told) { t.back = 1 }),
	"a partner is told the outcomes of another one": telling(func(t *told) { t.all = true }),
	"an outcome says what was answered first": telling(func(t *told) {
		t.alter = func(all []fund.Ended) []fund.Ended {
			for i := range all {
				all[i].State = operation.Recorded
			}
			return all
		}
	}),

	"the calendar is not asked": options(func(o *buyfund.Options) { o.Rules = buyfund.FixedRules(fund.Rules{Zone: o.Rules.Zone()}, nil, o.Now) }),
	"a recorded sale is refused on a closed day": inBooks(func(next buyfund.Books) *changed {
		return &changed{next: next, touch: func(t *fund.LockSet) {
			for _, o := range t.Due {
				if o.Sales[0].Terms().SelectedDay.Weekday() == time.Sunday {
					o.Closed = []fault.Fault{fund.Refusal(fault.DayClosed)}
				}
			}
		}}
	}),

	"midnight is in another zone": options(func(o *buyfund.Options) {
		o.Rules = buyfund.FixedRules(fund.Rules{Zone: time.FixedZone("", 7*60*60)}, nil, o.Now)
	}),
	"two operations get the same ID": options(func(o *buyfund.Options) {
		n, next := 0, o.NewID
		var last operation.ID
		o.NewID = func() operation.ID {
			id := next()
			if n++; n%20 == 0 {
				return last
			}
			last = id
			return id
		}
	}),
}

// within is the number of runs in which every mistake must be found.
const within = 200

func TestMutantsAreFound(t *testing.T) {
	if underRace {
		t.Skip("SKIPPED: mistakes of one goroutine are found without the race detector")
	}
	t.Parallel()
	for name, mutant := range mistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= within; seed++ {
				if r := Play(t, seed, mutant(), nil); r.Err != nil {
					what, _, _ := strings.Cut(r.Err.Error(), "\n")
					t.Logf("found: %s", what)
					return
				}
			}
			require.Fail(t, "not found")
		})
	}
}

var errSilent = errors.New("rolled back")

// rows changes the rows that the audit reads.
func rows(alter func(*altered)) func() *Mutant {
	return func() *Mutant {
		return &Mutant{Rows: func(r Rows) Rows {
			a := &altered{Rows: r}
			alter(a)
			return a
		}}
	}
}

type altered struct {
	Rows
	sales         func([]fund.SaleEntry) []fund.SaleEntry
	postings      func([]fund.Posting) []fund.Posting
	notifications func([]push.Entry) []push.Entry
}

func (a *altered) Sales() []fund.SaleEntry  { return through(a.sales, a.Rows.Sales()) }
func (a *altered) Postings() []fund.Posting { return through(a.postings, a.Rows.Postings()) }
func (a *altered) Notifications() []push.Entry {
	return through(a.notifications, a.Rows.Notifications())
}

func through[T any](alter func(T) T, value T) T {
	if alter == nil {
		return value
	}
	return alter(value)
}

func without[T any](all []T, i int) []T {
	if i < 0 || i >= len(all) {
		return all
	}
	return slices.Delete(all, i, i+1)
}

func twice[T any](all []T, i int) []T {
	if i >= len(all) {
		return all
	}
	return slices.Insert(all, i, all[i])
}

// inBooks changes the arguments and results of the port.
func inBooks(change func(buyfund.Books) *changed) func() *Mutant {
	return func() *Mutant {
		return &Mutant{Books: func(next buyfund.Books) buyfund.Books { return change(next) }}
	}
}

// settling changes the callback. n counts the transactions.
func settling(change func(n int, settle func(*fund.Book)) func(*fund.Book)) func() *Mutant {
	return inBooks(func(next buyfund.Books) *changed {
		n := 0
		return &changed{next: next, around: func(_ fund.LockSet, settle func(*fund.Book)) func(*fund.Book) {
			n++
			return change(n, settle)
		}}
	})
}

type changed struct {
	next   buyfund.Books
	touch  func(*fund.LockSet)
	around func(fund.LockSet, func(*fund.Book)) func(*fund.Book)
	list   func([]*fund.Operation) []*fund.Operation
	end    func(error) error
}

func (c *changed) Update(ctx context.Context, touched fund.LockSet, settle func(*fund.Book)) error {
	if c.touch != nil {
		c.touch(&touched)
	}
	if c.around != nil {
		settle = c.around(touched, settle)
	}
	err := c.next.Update(ctx, touched, settle)
	return through(c.end, err)
}

func (c *changed) Due(ctx context.Context, of buyfund.Due, after *fund.Operation, limit int) ([]*fund.Operation, error) {
	due, err := c.next.Due(ctx, of, after, limit)
	return through(c.list, due), err
}

func (c *changed) Snapshot(ctx context.Context, touched fund.LockSet) (*fund.Book, error) {
	return c.next.Snapshot(ctx, touched)
}

func (c *changed) DueFunds(ctx context.Context, until day.Day, count bool) ([]buyfund.DueFund, error) {
	return c.next.DueFunds(ctx, until, count)
}

// forgetful sometimes loads no known records.
type forgetful struct {
	next addpush.Inboxes
	n    int
}

func (f *forgetful) Update(ctx context.Context, callers []idempotency.Key, accept func(*push.Inbox)) error {
	if f.n++; f.n%20 == 0 {
		callers = nil
	}
	return f.next.Update(ctx, callers, accept)
}

// striking changes the result of a moment.
func striking(change func(fake.Moment, error) error) func() *Mutant {
	return func() *Mutant {
		return &Mutant{Strike: func(strike fake.Strike) fake.Strike {
			return func(ctx context.Context, m fake.Moment) error { return change(m, strike(ctx, m)) }
		}}
	}
}

// telling changes what partners are told.
func telling(change func(*told)) func() *Mutant {
	return func() *Mutant {
		return &Mutant{Source: func(next outcomes.Source) outcomes.Source {
			t := &told{Source: next}
			change(t)
			return t
		}}
	}
}

type told struct {
	outcomes.Source
	alter func([]fund.Ended) []fund.Ended
	back  int64
	all   bool // whatever the subscription is
}

func (t *told) Outcomes(ctx context.Context, subscription string, after int64, limit int) ([]fund.Ended, error) {
	if t.all {
		subscription = ""
	}
	found, err := t.Source.Outcomes(ctx, subscription, max(0, after-t.back), limit)
	return through(t.alter, found), err
}

func options(change func(*buyfund.Options)) func() *Mutant {
	return func() *Mutant { return &Mutant{Options: change} }
}
