package console_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/test/fake"
	"bankingapi/test/kit/payload"
)

// maxClicks is how many clicks may lead from Today to an answer.
const maxClicks = 4

// person does what a person does in a browser, and counts it: to follow a link, to press a
// button, and to fill a form and send it are one click each.
type person struct {
	ctx    context.Context
	t      *testing.T
	clicks int
}

// mark finds an element that a person sees by its words, and marks it.
const mark = `((selector, words) => {
	document.querySelectorAll("[data-next]").forEach(e => e.removeAttribute("data-next"));
	const found = [...document.querySelectorAll(selector)].find(e => e.checkVisibility() && e.innerText.includes(words));
	found?.setAttribute("data-next", "");
	return found !== undefined;
})(%q, %q)`

// click clicks what has the words, and waits for the next page.
func (p *person) click(selector, words string) {
	p.t.Helper()
	p.clicks++
	require.True(p.t, eval[bool](p.ctx, p.t, fmt.Sprintf(mark, selector, words)), "no %s with %q on the page:\n%s", selector, words, p.page())
	submit(p.ctx, p.t, `[data-next]`)
}

func (p *person) follow(words string) { p.t.Helper(); p.click(`a`, words) }
func (p *person) press(words string)  { p.t.Helper(); p.click(`button`, words) }
func (p *person) menu(words string)   { p.t.Helper(); p.click(`nav a`, words) }

// search types a text into the field at the top, and sends it.
func (p *person) search(text string) {
	p.t.Helper()
	p.clicks++
	write(p.ctx, p.t, `input[name=q]`, text)
	submit(p.ctx, p.t, `.search button`)
}

// fill fills the field with a label, and presses the button of its form.
func (p *person) fill(label, value, button string) {
	p.t.Helper()
	require.True(p.t, eval[bool](p.ctx, p.t, fmt.Sprintf(mark, `label`, label)), label)
	choose(p.ctx, p.t, `[data-next] input`, value)
	p.press(button)
}

// page returns what the person sees.
func (p *person) page() string {
	p.t.Helper()
	return eval[string](p.ctx, p.t, `document.body.innerText`)
}

// badDay is a service that has what an operator is asked about on a bad day.
type badDay struct {
	*service
	credited, refused, later, cancelled, adjusted, erased string // operations
}

// startBadDay starts a service on the day after its requests: a sale waits for the price of today.
func startBadDay(t *testing.T) badDay {
	t.Helper()
	clock := fake.NewClock(time.Date(2026, 11, 19, 9, 0, 0, 0, time.UTC))
	s := badDay{service: start(t, nil, bootstrap.WithClock(clock.Now))}
	office, err := s.app.Backoffice(t.Context())
	require.NoError(t, err)
	by := func(reason string) context.Context {
		return audit.By(t.Context(), audit.Who{Actor: "mehmet", Reason: reason})
	}
	adjust := func(units fund.Units) string {
		key := fund.HoldingKey{CustomerNo: 1001, Fund: fund.Fund{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy"}}
		id, err := office.Corrector().AdjustHolding(by("the registry counted again"), key, units)
		require.NoError(t, err)
		return id.String()
	}
	toAnother := payload.Demo(1001, "100", "")
	toAnother.PaidTo = 1002
	s.credited = s.call(t, "BuyFundFromCustomer", payload.Request(payload.CallerID("order-1"), toAnother.String()))
	clock.Advance(time.Minute)
	s.refused = s.call(t, "BuyFundFromCustomer", sale("order-2", "950", ""))
	clock.Advance(time.Minute)
	s.adjusted = adjust(77_000_000)
	s.later = s.call(t, "BuyFundFromCustomer", sale("order-3", "10", "2026-11-20"))
	s.call(t, "BuyFundFromCustomer", sale("order-4", "20", "2026-11-23"))
	s.cancelled = s.call(t, "BuyFundFromCustomer", sale("order-5", "30", "2026-11-24"))
	cancelled, err := operation.ParseID(s.cancelled)
	require.NoError(t, err)
	require.NoError(t, office.Corrector().Cancel(by("the customer called"), cancelled))
	s.erased = s.call(t, "AddPushNotificationResponse", message("push-1", "push-1"))
	ctx := office.Acts.Begin(by("asked by the customer"), "notifications.erase", "", "")
	_, err = office.Eraser().EraseUser(ctx, "user-1", func(int64) {})
	require.NoError(t, err)
	clock.Advance(23 * time.Hour)
	return s
}

type question struct {
	asks string
	does func(*person)
	sees []string // in the answer
}

// The questions of a bad day, from Today on.
func questions(s badDay) []question {
	return []question{
		{"what became of the request with this CallerId", func(p *person) { p.search("order-1") }, []string{"2 Completed", "125.00 TRY", "Settled and committed"}},
		{"what became of the request with this Operation-Id", func(p *person) { p.search(s.credited) }, []string{"2 Completed", "125.00 TRY"}},
		{"what became of the request that was rejected", func(p *person) { p.search("rejected-1") }, []string{"400", "out-of-range"}},
		{"why was this sale refused, and what did the customer hold then", func(p *person) {
			p.search("order-2")
			require.Contains(p.t, p.page(), "holding-insufficient")
			p.follow("What the customer had then")
		}, []string{"before " + time.Date(2026, 11, 19, 9, 1, 0, 0, time.UTC).In(zone).Format("2 Jan 2006 15:04:05"), "AFA Demo Portfoy\t900.000000"}},
		{"when and at what price will this sale be settled, and what will it give", func(p *person) { p.search("order-4") },
			[]string{"Recorded for Mon 23 Nov 2026", "from 00:00 on", "the price of Mon 23 Nov 2026", "about 25.00 TRY at the newest price, 1.25"}},
		{"which sales wait for which price", func(p *person) {
			p.menu("Prices")
			require.Regexp(p.t, `AFA\s+Demo Portfoy\s+Fri 20 Nov 2026\s+1\b`, strings.NewReplacer("FUND", "").Replace(p.page()))
			p.click(`main td a`, "1")
		}, []string{"waits", s.later[:18]}},
		{"whose account was credited with the money", func(p *person) {
			p.search("order-1")
			require.Contains(p.t, p.page(), "went to an account of another customer")
			p.press("Show numbers and texts")
		}, []string{"1-1002-1 TRY of another customer"}},
		{"from whom has this account the money", func(p *person) {
			p.search("1-1002-1")
			p.follow(s.credited[:18])
		}, []string{s.credited, "CallerId", "order-1"}},
		{"who adjusted this holding, and why", func(p *person) {
			p.search("1001")
			p.follow(s.adjusted[:18])
		}, []string{"Adjustment", "mehmet", "the registry counted again"}},
		{"who cancelled this sale, and why", func(p *person) { p.search(s.cancelled) }, []string{"Cancelled by mehmet", "reason: the customer called"}},
		{"who erased this message, and why", func(p *person) {
			p.search("push-1")
			require.Contains(p.t, p.page(), "asked by the customer")
			p.follow("who erased it")
		}, []string{"mehmet", "notifications.erase", "asked by the customer"}},
		{"what are the sums of yesterday", func(p *person) { p.fill("Day", "2026-11-19", "Show its close") }, []string{"of Thu 19 Nov 2026", "AFA", "125.00 TRY"}},
		{"is the book correct", func(p *person) {
			p.menu("Proof")
			p.press("Check the book now")
			require.Eventually(p.t, func() bool { return !strings.Contains(p.page(), "rows checked") }, stepLimit, 50*time.Millisecond)
		}, []string{"the book is correct", "customers and bank must be zero together"}},
	}
}

// Each question is answered in a few clicks from Today, at a desk and on a phone.
func TestTheQuestionsOfABadDay(t *testing.T) {
	s := startBadDay(t)
	require.Equal(t, 400, s.send("rejected-1", "0", "rejected-1"))
	ctx := browse(t, 1280, 900)
	open(ctx, t, s.currentLink())
	for _, width := range []int64{1280, 360} {
		require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 900)))
		for _, q := range questions(s) {
			t.Run(fmt.Sprintf("%s at %d", q.asks, width), func(t *testing.T) {
				open(ctx, t, s.home+"/console/")
				p := &person{ctx: ctx, t: t}
				q.does(p)
				page := p.page()
				for _, text := range q.sees {
					require.Contains(t, page, text)
				}
				require.LessOrEqual(t, p.clicks, maxClicks)
				t.Logf("%d clicks", p.clicks)
				if strings.Contains(page, "Mask numbers and texts") {
					p.press("Mask numbers and texts")
				}
			})
		}
	}
}

// Which replica is sick, and why, is said by every page of the others.
func TestWhichReplicaIsSick(t *testing.T) {
	s := onPostgres(t)
	_, port := s.besideAWrongClock(t)

	ctx := browse(t, 1280, 900)
	open(ctx, t, s.currentLink())
	for _, width := range []int64{1280, 360} {
		require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 900)))
		p := &person{ctx: ctx, t: t}
		require.Eventually(t, func() bool {
			open(ctx, t, s.home+"/console/")
			return strings.Contains(p.page(), ":"+port+". Not ready")
		}, time.Minute, 100*time.Millisecond)
		require.Regexp(t, `clock on [^ ]*:`+port+`\. Not ready.*The clock`, p.page(), "the answer is on Today: no click")
		require.Contains(t, p.page(), "Do Set the clock of this machine")
		require.Regexp(t, `(?s)Replicas.*:`+port+`\s.*not ready`, p.page())
	}
}
