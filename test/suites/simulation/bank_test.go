package simulation

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/operation"
)

// bank is a naive implementation of sections 4 to 6 of the contract. It decides
// operations one after the other and returns answers in the same form as
// attempt.answer.
type bank struct {
	zone   *time.Location
	units  map[position]int64 // millionths
	money  map[int]int64      // minor units, by account number
	prices []price            // in order of arrival
	known  map[identity]*known
	sold   map[operation.ID]*sold
	order  []operation.ID // of sold, sorted
	// recorded are the operations of sold that wait for their day.
	recorded map[operation.ID]*sold
	// delivered are the notifications by subscription and content.
	delivered map[string]bool
	inbox     []delivery
	// ended are the outcomes that were not known when the request was answered.
	ended map[operation.ID]ended
	// currencies of the accounts, by number.
	currencies []string

	holidays map[string]bool
	weekend  bool   // closed on Saturdays and Sundays
	cutOff   string // HH:MM, or empty
}

// ended is how and when a recorded operation ended.
type ended struct {
	answer string
	at     time.Time
}

type position struct {
	customer int64
	fund     int
}

type price struct {
	id       int64
	fund     int
	perUnit  int64 // 10^-8
	currency string
	decimals int
	from     string
}

// known is the stored state of a CallerId.
type known struct {
	content, answer string
	unheard         bool // no caller knows the outcome
}

// sold is an operation with rows.
type sold struct {
	*attempt
	day  string
	rows []row
}

// row is the expected row of one sale.
type row struct {
	state    operation.State
	price    int64
	perUnit  int64
	proceeds int64
	refusal  string
	settled  time.Time
}

// delivery is the expected row of a notification.
type delivery struct {
	*attempt
	position int
}

// refused returns the reason for refusing record i.
func refused(i int, code, pointer string) string {
	return code + " /Parameters/" + strconv.Itoa(i) + pointer
}

// dayOf returns the day of an instant in the zone of the bank.
func (b *bank) dayOf(t time.Time) string { return t.In(b.zone).Format(time.DateOnly) }

// midnight returns when a day of the bank begins.
func (b *bank) midnight(day string) time.Time {
	t, err := time.ParseInLocation(time.DateOnly, day, b.zone)
	if err != nil {
		panic(err)
	}
	const step = 30 * time.Minute // a clock change may skip or repeat 00:00
	for b.dayOf(t) < day {
		t = t.Add(step)
	}
	for b.dayOf(t.Add(-step)) == day {
		t = t.Add(-step)
	}
	return t
}

func plusDays(day string, n int) string {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	return t.AddDate(0, 0, n).Format(time.DateOnly)
}

// wrongDays returns the errors for days that cannot be selected today.
func wrongDays(sales []sale, today string) string {
	var reasons []string
	or := func(day string) string {
		if day == "" {
			return today
		}
		return day
	}
	for i, s := range sales {
		var code string
		switch on := or(s.day); {
		case on < today:
			code = "date-in-the-past"
		case on > plusDays(today, 366):
			code = "date-too-far"
		case on != or(sales[0].day):
			code = "dates-differ"
		default:
			continue
		}
		reasons = append(reasons, refused(i, code, "/SelectedTransactionDate"))
	}
	return strings.Join(reasons, ", ")
}

// closed returns the reason why the bank takes no sale for that day at that time.
func (b *bank) closed(on string, arrived time.Time) string {
	t, err := time.Parse(time.DateOnly, on)
	if err != nil {
		panic(err)
	}
	switch isWeekend := t.Weekday() == time.Saturday || t.Weekday() == time.Sunday; {
	case b.holidays[on], b.weekend && isWeekend:
		return "day-closed"
	case b.cutOff != "" && on == b.dayOf(arrived) && b.hasShown(b.cutOff, arrived):
		return "after-cut-off"
	}
	return ""
}

// hasShown reports whether the clock of the bank has shown the local time on the day of at. When it was
// set back, it has shown later times than it shows now.
func (b *bank) hasShown(clock string, at time.Time) bool {
	const longest = 3 * time.Hour // that a clock is set back, and the repeated time after it
	_, now := at.In(b.zone).Zone()
	_, before := at.Add(-longest).In(b.zone).Zone()
	if before <= now {
		return at.In(b.zone).Format("15:04") >= clock
	}
	for then := at; at.Sub(then) <= longest && b.dayOf(then) == b.dayOf(at); then = then.Add(-time.Minute) {
		if then.In(b.zone).Format("15:04") >= clock {
			return true
		}
	}
	return false
}

// circumstances are the state of the world that a transaction sees.
type circumstances struct {
	at     time.Time // by the clock of its replica
	today  string
	prices int // the number of prices of the bank when the transaction read them
}

// again returns the answer to a repeat. ok is false for a new operation.
func (b *bank) again(r *request) (answer string, ok bool) {
	k := b.known[r.identity()]
	switch {
	case r.callerID == "" || k == nil:
		return "", false
	case k.content != r.content:
		return "conflict: caller-id-reused /Header/CallerId", true
	}
	return k.answer + ", again", true
}

func (b *bank) remember(r *request, answer string) {
	if r.callerID != "" {
		b.known[r.identity()] = &known{content: r.content, answer: answer}
	}
}

// buy decides a BuyFundFromCustomer request.
func (b *bank) buy(a *attempt, c circumstances) string {
	r := a.request
	today := b.dayOf(a.arrived) // even if midnight passed while it was queued
	wrong := wrongDays(r.sales, today)
	if answer, ok := b.again(r); ok {
		return answer
	}
	if r.forbidden {
		return contradiction
	}
	isJustPast := a.arrived.Sub(b.midnight(today)) < 90*time.Second && wrongDays(r.sales, plusDays(today, -1)) == ""
	if wrong != "" && r.callerID != "" && isJustPast { // an attempt that arrived before midnight may be in progress
		return "indeterminate"
	}
	if wrong != "" {
		return "invalid: " + wrong
	}
	var answer string
	if on := r.sales[0].day; on > today {
		answer = b.record(a, c, b.closed(on, a.arrived))
	} else {
		answer = b.sell(&sold{attempt: a, day: today}, c, false, b.closed(today, a.arrived))
	}
	b.remember(r, answer)
	return answer
}

func (b *bank) keep(s *sold) {
	if b.sold[s.id] == nil {
		i, _ := slices.BinarySearchFunc(b.order, s.id, compareIDs)
		b.order = slices.Insert(b.order, i, s.id)
	}
	b.sold[s.id] = s
}

func compareIDs(a, b operation.ID) int { return slices.Compare(a[:], b[:]) }

// record stores the sales for their day.
func (b *bank) record(a *attempt, c circumstances, closed string) string {
	var reasons []string
	for i, s := range a.request.sales {
		if closed != "" {
			reasons = append(reasons, refused(i, closed, "/SelectedTransactionDate"))
		}
		p := b.price(s.price, s.fund, c.prices)
		if p == nil {
			reasons = append(reasons, refused(i, "price-not-found", "/FundToProcess/PriceID"))
		}
		if _, ok := b.money[s.account]; !ok {
			reasons = append(reasons, refused(i, "account-not-found", "/DestinationAccount"))
		}
		if p != nil && p.currency != b.currencies[s.account] {
			reasons = append(reasons, refused(i, "currency-mismatch", "/DestinationAccount/CurrencyCode"))
		}
	}
	if reasons != nil {
		return "failed: " + strings.Join(reasons, ", ")
	}
	s := &sold{attempt: a, day: a.request.sales[0].day, rows: make([]row, len(a.request.sales))}
	for i := range s.rows {
		s.rows[i].state = operation.Recorded
	}
	b.keep(s)
	b.recorded[s.id] = s
	return "recorded"
}

// settle settles an operation whose day has come. An empty answer means that
// there was nothing to settle.
func (b *bank) settle(id operation.ID, c circumstances) string {
	s := b.recorded[id]
	if s == nil || s.day > c.today || !b.isPriced(s, c.prices) {
		return ""
	}
	delete(b.recorded, id)
	answer := b.sell(s, c, true, "") // the calendar counted when it was recorded
	b.ended[id] = ended{answer, c.at}
	if s.request.callerID != "" {
		b.known[s.request.identity()].answer = answer
	}
	return answer
}

// isPriced reports whether each fund of the operation has a price of its day.
func (b *bank) isPriced(o *sold, among int) bool {
	for _, s := range o.request.sales {
		current := b.current(s.fund, o.day, among)
		if current == nil || current.from != o.day {
			return false
		}
	}
	return true
}

// sell settles all sales of the operation, or none.
func (b *bank) sell(o *sold, c circumstances, due bool, closed string) string {
	type step struct {
		from position
		to   int
		row  row
		n    int64
	}
	var done []step
	var reasons []string
	codes := make([]string, len(o.request.sales))
	for i, s := range o.request.sales {
		var mine []string
		refuse := func(code, pointer string) {
			mine = append(mine, refused(i, code, pointer))
			if codes[i] == "" {
				codes[i] = code
			}
		}
		if closed != "" {
			refuse(closed, "/SelectedTransactionDate")
		}
		from := position{s.customer, s.fund}
		if have, ok := b.units[from]; !ok {
			refuse("holding-not-found", "/FundToProcess")
		} else if have < s.units {
			refuse("holding-insufficient", "/FundAmount")
		}

		current := b.current(s.fund, o.day, c.prices)
		p, agreed := current, current != nil
		if !due {
			p = b.price(s.price, s.fund, c.prices)
			agreed = p != nil && current != nil && p.id == current.id
			if p != nil && !agreed {
				refuse("price-not-current", "/FundToProcess/PriceID")
			}
		}
		if p == nil {
			refuse("price-not-found", "/FundToProcess/PriceID")
		}
		have, ok := b.money[s.account]
		if !ok {
			refuse("account-not-found", "/DestinationAccount")
		}
		if p != nil && p.currency != b.currencies[s.account] {
			refuse("currency-mismatch", "/DestinationAccount/CurrencyCode")
			agreed = false
		}
		if agreed {
			worth := proceeds(s.units, p.perUnit, p.decimals)
			switch {
			case !worth.IsInt64():
				refuse("proceeds-out-of-range", "/FundAmount")
			default:
				if worth.Sign() == 0 {
					refuse("proceeds-zero", "/FundAmount")
				}
				if s.total != 0 && s.total != worth.Int64() && !due {
					refuse("amount-mismatch", "/Amount")
				}
				if ok && !new(big.Int).Add(worth, big.NewInt(have)).IsInt64() {
					refuse("balance-out-of-range", "/DestinationAccount")
				}
			}
			if mine == nil {
				n := worth.Int64()
				b.units[from] -= s.units
				b.money[s.account] += n
				done = append(done, step{from, s.account, row{operation.Completed, p.id, p.perUnit, n, "", c.at}, s.units})
			}
		}
		reasons = append(reasons, mine...)
	}
	o.rows = nil
	if reasons == nil {
		for _, s := range done {
			o.rows = append(o.rows, s.row)
		}
		b.keep(o)
		return "completed"
	}
	for _, s := range done {
		b.units[s.from] += s.n
		b.money[s.to] -= s.row.proceeds
	}
	if due {
		for _, code := range codes {
			o.rows = append(o.rows, row{state: operation.Failed, refusal: code, settled: c.at})
		}
		b.keep(o)
	}
	return "failed: " + strings.Join(reasons, ", ")
}

// price returns the price with that number if it is a price of that fund.
func (b *bank) price(id int64, of int, among int) *price {
	for i := range b.prices[:among] {
		if p := &b.prices[i]; p.id == id && p.fund == of {
			return p
		}
	}
	return nil
}

// current returns the newest price that is valid from that day or earlier.
func (b *bank) current(of int, on string, among int) *price {
	var newest *price
	for i := range b.prices[:among] {
		p := &b.prices[i]
		if p.fund == of && p.from <= on && (newest == nil || p.from > newest.from || p.from == newest.from && p.id > newest.id) {
			newest = p
		}
	}
	return newest
}

// proceeds returns units x price, rounded half up, in minor units.
func proceeds(units, perUnit int64, decimals int) *big.Int {
	worth := new(big.Int).Mul(big.NewInt(units), big.NewInt(perUnit))
	divisor := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(6+8-decimals)), nil)
	worth.Add(worth, new(big.Int).Rsh(divisor, 1))
	return worth.Quo(worth, divisor)
}

// contradiction is the answer to an AppKey that is not the one of the subscription.
const contradiction = "forbidden: contradicts-subscription /Header/AppKey"

// add decides an AddPushNotificationResponse request.
func (b *bank) add(a *attempt) string {
	if answer, ok := b.again(a.request); ok {
		return answer
	}
	if a.request.forbidden {
		return contradiction
	}
	for i, m := range a.request.messages {
		content := fmt.Sprint(a.request.subscription.Name, m)
		if !b.delivered[content] {
			b.delivered[content] = true
			b.inbox = append(b.inbox, delivery{a, i})
		}
	}
	b.remember(a.request, "completed")
	return "completed"
}

// fingerprint returns a key for its arguments.
func fingerprint(parts ...any) string { return fmt.Sprintf("%q", parts) }

// parsed returns the day of a text, or the zero day for an empty text.
func parsed(text string) day.Day {
	if text == "" {
		return day.Day{}
	}
	d, err := day.Parse(text)
	if err != nil {
		panic(err)
	}
	return d
}
