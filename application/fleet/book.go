package fleet

import (
	"cmp"
	"slices"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/subscription"
)

// State is what concerns the whole service: its book and its subscriptions.
type State struct {
	Due           buyfund.Waits
	Subscriptions []*subscription.Subscription
	Checked       *audit.Act // the last check of the book, or nil
	// Now is the real time, and Bank the time of the bank. They differ in a sandbox only.
	Now, Bank time.Time
	Zone      *time.Location
}

const (
	// A due sale is late after lateAfter, and partners notice it after badAfter. The alert
	// BankingAPISettlementLate has the time of badAfter.
	lateAfter, badAfter = 5 * time.Minute, 15 * time.Minute
	// checkDays is the age from which the last check of the book is old: a weekly check is not. The
	// alert BankingAPINotVerified has the same age. expiryDays is how long before its end a key is
	// a trouble.
	checkDays, expiryDays = 8, 14
)

func (s State) troubles() []Trouble {
	all := slices.Concat(s.ofDue(), s.ofPrices(), s.ofBook(), s.ofKeys())
	return all
}

func (s State) ofDue() []Trouble {
	lag := s.Due.Lag(s.Bank)
	if lag <= lateAfter {
		return nil
	}
	return []Trouble{{
		Kind: DueSales, Bad: lag > badAfter, Since: s.Due.Since,
		Text:     plural(s.Due.ForSettling, "sale") + " should be settled and " + areOrIs(s.Due.ForSettling) + " not.",
		Next:     "Read why in the log: due sales could not be settled. If it does not say so, settlement.enabled may be false everywhere. Then run bankingapi settle, which says what it does.",
		Partners: "Recorded sales are late. They settle at the price of their day, whenever it happens.",
	}}
}

// ofPrices leads with the fund for which most sales wait. A price of today may still come: it is
// missing from the hour of settling on, but only that of an earlier day is bad.
func (s State) ofPrices() []Trouble {
	if len(s.Due.ForPrice) == 0 {
		return nil
	}
	funds := slices.Clone(s.Due.ForPrice)
	slices.SortStableFunc(funds, func(a, b buyfund.DueFund) int { return cmp.Compare(b.Sales, a.Sales) })
	first := funds[0]
	rest := -first.Sales
	joined := s.Due.PriceSales
	for _, of := range funds {
		rest += of.Sales
		joined -= of.Sales
	}
	today := day.Of(s.Bank, s.Zone)
	t := Trouble{
		Kind:     Prices,
		Text:     plural(first.Sales, "sale") + " wait" + singular(first.Sales) + " for the price of " + first.PriceDay.Fund.IMKBCode + " of " + calendar(first.PriceDay.Day) + ".",
		Next:     "Import the price with that day as ValidFrom: bankingapi import prices FILE. The page Prices shows what is missing.",
		Partners: "The sales stay recorded (State 1) and settle at the price of their day as soon as it is there.",
	}
	others := len(funds) - 1
	if others > 0 {
		t.Text += " " + plural(rest, "sale") + " wait" + singular(rest) + " for " + plural(others, "other price") + "."
	}
	if joined > 0 {
		t.Text += " " + plural(joined, "sale") + " wait" + singular(joined) + " with them: the sales of one operation settle together."
	}
	for _, of := range funds {
		t.Bad = t.Bad || of.PriceDay.Day.Before(today)
	}
	return []Trouble{t}
}

func (s State) ofBook() []Trouble {
	used := false
	old := s.Now.AddDate(0, 0, -checkDays)
	for _, of := range s.Subscriptions {
		used = used || !of.Created.IsZero() && of.Created.Before(old)
	}
	t := Trouble{Kind: Book, Next: "Start a check on the page Proof, or run bankingapi verify, best every night."}
	switch {
	case s.Checked == nil && used:
		t.Text = "No check of the book is recorded in the last 90 days."
	case s.Checked == nil:
		return nil
	case !backoffice.BookHolds(s.Checked.Details):
		t.Bad = true
		t.Since = s.Checked.At
		t.Text = "The last check of the book has findings: see Proof."
		t.Next = "Run bankingapi verify --report FILE, which names each row. Correct nothing before the cause is known."
	case s.Checked.At.Before(s.Bank.AddDate(0, 0, -checkDays)):
		t.Text = "The last check of the book is older than " + plural(checkDays, "day") + "."
	default:
		return nil
	}
	return []Trouble{t}
}

// ofKeys is one line for all keys that end. It can wait for days.
func (s State) ofKeys() []Trouble {
	var ending, ended []string
	soon := s.Now.AddDate(0, 0, expiryDays)
	for _, of := range s.Subscriptions {
		for i, key := range []subscription.KeyLife{of.PrimaryKey, of.SecondaryKey} {
			if of.State != subscription.Active || key.Expires.IsZero() || key.Expires.After(soon) {
				continue
			}
			last := day.Of(key.Expires.Add(-time.Nanosecond), s.Zone)
			text := []string{"primary", "secondary"}[i] + " of " + of.Name + " on " + calendar(last)
			if key.Expires.Before(s.Now) {
				ended = append(ended, text)
			} else {
				ending = append(ending, text)
			}
		}
	}
	t := Trouble{Kind: Keys, Quiet: true, Next: "Agree on a new key with the partner, or move its last day: bankingapi subscriptions change NAME --expires DAY."}
	if len(ended) > 0 {
		t.Text = plural(len(ended), "key") + " ended: " + some(ended) + ". "
	}
	if len(ending) > 0 {
		t.Text += plural(len(ending), "key") + " will end within 14 days: " + some(ending) + "."
	}
	if t.Text == "" {
		return nil
	}
	return []Trouble{t}
}

func areOrIs(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// singular returns the s of a verb.
func singular(n int64) string {
	if n == 1 {
		return "s"
	}
	return ""
}

func calendar(d day.Day) string { return d.Start(time.UTC).Format("Mon 2 Jan 2006") }
