package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

// request is what a caller wants. It may need several attempts.
type request struct {
	operation    operation.Name
	subscription *subscription.Subscription
	callerID     string
	appKey       string // as sent
	sales        []sale
	messages     []message
	// broken requests, and forbidden ones without a CallerId, are rejected before they reach the
	// store.
	broken, forbidden bool
	content           string // the same for requests with the same content
}

// sale is a sale as a caller requests it. Funds, prices and accounts are
// indexes into the tables of the bank.
type sale struct {
	customer int64
	fund     int
	units    int64 // millionths
	account  int
	price    int64
	total    int64 // minor units; 0 for no check
	day      string
}

// message is a push as a caller requests it.
type message struct {
	user, push, subject int
	interaction         int // -1 if absent
	extras              int
}

// identity is the scope of a CallerId.
type identity struct {
	operation    operation.Name
	subscription string
	callerID     string
}

func (r *request) identity() identity {
	return identity{r.operation, r.subscription.Name, r.callerID}
}

// seal sets the content of the request: what the caller sent.
func (r *request) seal() {
	r.content = fmt.Sprintf("%q %v %v", r.appKey, r.sales, r.messages)
}

// recordedAppKey returns the AppKey that is stored: the default of the
// subscription if the request has none.
func (r *request) recordedAppKey() string {
	if r.appKey == "" {
		return r.subscription.AppKey
	}
	return r.appKey
}

// String formats the request for the trace.
func (r *request) String() string {
	var b strings.Builder
	if r.operation == operation.BuyFundFromCustomer {
		b.WriteString("sells")
		for _, s := range r.sales {
			fmt.Fprintf(&b, " [%s of %d/f%d at p%d to a%d", decimal.Format(s.units, fund.UnitDecimals), s.customer, s.fund, s.price, s.account)
			if s.total != 0 {
				fmt.Fprintf(&b, " total %d", s.total)
			}
			if s.day != "" {
				b.WriteString(" on " + s.day)
			}
			b.WriteByte(']')
		}
	} else {
		b.WriteString("pushes")
		for _, m := range r.messages {
			fmt.Fprintf(&b, " [u%d p%d s%d i%d x%d]", m.user, m.push, m.subject, m.interaction, m.extras)
		}
	}
	if r.callerID != "" {
		b.WriteString(" as " + r.callerID)
	}
	return b.String()
}

func (r *request) header() operation.Header {
	return operation.Header{AppKey: r.appKey, CallerID: r.callerID}
}

// saleFields returns the fields of the JSON body. It writes each number in one
// of its valid forms.
func (w *world) saleFields(r *request) []fund.SaleFields {
	fields := make([]fund.SaleFields, len(r.sales))
	for i, s := range r.sales {
		account := w.accounts[s.account]
		fields[i] = fund.SaleFields{
			CustomerNo:      decimal.Int(s.customer),
			TransactionType: decimal.Int(fund.SaleTransaction),
			FundAmount:      spelled(w.rng, s.units, fund.UnitDecimals),
			DestinationAccount: &fund.AccountFields{
				BranchCode:    decimal.Int(account.BranchCode),
				CustomerNo:    decimal.Int(account.CustomerNo),
				AccountSuffix: decimal.Int(account.AccountSuffix),
				CurrencyCode:  account.Currency.Code(),
			},
			FundToProcess: &fund.FundFields{
				IMKBCode:              w.funds[s.fund].IMKBCode,
				HolderCorporationName: w.funds[s.fund].HolderCorporationName,
				PriceID:               decimal.Int(s.price),
			},
			SelectedTransactionDate: s.day,
		}
		if s.total != 0 || w.rng.IntN(2) == 0 { // an Amount of 0 means the same as none
			fields[i].Amount = spelled(w.rng, s.total, account.Currency.Decimals())
		}
	}
	return fields
}

// spelled formats value x 10^-scale in a random valid form.
func spelled(r *rand.Rand, value int64, scale int) decimal.Decimal {
	text := strconv.FormatInt(value, 10) + "e-" + strconv.Itoa(scale)
	if r.IntN(2) == 0 {
		text = decimal.FormatFixed(value, scale)
	}
	d, err := decimal.Parse(text)
	if err != nil {
		panic(err)
	}
	return d
}

func pushFields(r *request) []push.Fields {
	fields := make([]push.Fields, len(r.messages))
	for i := range r.messages {
		fields[i] = r.messages[i].fields()
		if r.broken {
			fields[i].Platform = decimal.Int(1)
		}
	}
	return fields
}

func (m *message) fields() push.Fields {
	f := push.Fields{
		ExternalApplicationCode: "app",
		UserID:                  "user-" + strconv.Itoa(m.user),
		PushID:                  "push-" + strconv.Itoa(m.push),
		Platform:                decimal.Int(int64(push.Android)),
		Subject:                 strconv.Itoa(m.subject),
		SendStatus:              decimal.Int(1),
	}
	if m.interaction >= 0 {
		f.PushInteractionID = decimal.Int(int64(m.interaction))
	}
	for n := range m.extras {
		f.TranData = append(f.TranData, push.TranDataItem{Code: strconv.Itoa(n)})
	}
	return f
}

// think returns a new request, usually a valid one.
func (w *world) think(c *caller) *request {
	c.made++
	r := &request{subscription: c.subscription}
	if w.rng.IntN(10) < 7 {
		r.callerID = c.name + "-" + strconv.Itoa(c.made)
	}
	switch w.rng.IntN(20) {
	case 0:
		r.appKey, r.forbidden = "another", c.subscription.AppKey != ""
	case 1:
		r.appKey = c.subscription.AppKey
	}
	if w.rng.IntN(4) == 0 {
		r.operation = operation.AddPushNotificationResponse
		r.messages = w.thinkOfMessages()
	} else {
		r.operation = operation.BuyFundFromCustomer
		r.sales = w.thinkOfSales()
	}
	switch {
	case w.chance(10):
		r.broken = true
		for i := range r.sales {
			r.sales[i].units = 0
		}
	case len(r.sales)+len(r.messages) > w.records:
		r.broken = true
	}
	r.seal()
	return r
}

// howMany returns the length of an array: usually 1, sometimes one more than
// allowed.
func (w *world) howMany() int {
	switch n := w.rng.IntN(100); {
	case n < 70:
		return 1
	case n < 98:
		return 1 + w.rng.IntN(w.records)
	default:
		return w.records + 1
	}
}

func (w *world) thinkOfMessages() []message {
	messages := make([]message, w.howMany())
	for i := range messages {
		m := message{user: w.rng.IntN(6), push: w.rng.IntN(40), interaction: w.rng.IntN(3) - 1}
		if w.chance(200) {
			m.subject, m.extras = w.rng.IntN(3), w.rng.IntN(3)
		}
		if w.poison != noPoison && w.chance(20) {
			m.user = poisonedUser
		}
		messages[i] = m
	}
	return messages
}

func (w *world) thinkOfSales() []sale {
	sales := make([]sale, w.howMany())
	on := w.thinkOfDay()
	for i := range sales {
		s := sale{price: 1, day: on}
		for range 4 { // usually a holding that exists
			s.customer, s.fund = w.customers[w.rng.IntN(len(w.customers))], 1+w.rng.IntN(len(w.funds)-2)
			if w.bank.units[position{s.customer, s.fund}] > 0 {
				break
			}
		}
		if w.chance(10) {
			s.fund = poisonedFund
		}
		if i > 0 && w.chance(500) {
			s.customer, s.fund = sales[0].customer, sales[0].fund // so that two sales of one request share a holding
		}
		price := w.bank.current(s.fund, w.today(), len(w.bank.prices))
		if price != nil {
			s.price = price.id
			s.account = w.accountIn(s.customer, price.currency)
		}
		s.units = w.thinkOfUnits(w.bank.units[position{s.customer, s.fund}])
		if price != nil && w.chance(100) {
			if total := proceeds(s.units, price.perUnit, price.decimals); total.IsInt64() {
				s.total = total.Int64() + int64(pick(w.rng, 0, 0, 0, 1))
			}
		}
		switch w.rng.IntN(60) { // sometimes make a mistake
		case 0:
			s.price = 1 + w.rng.Int64N(int64(len(w.bank.prices)+2))
		case 1:
			s.account = w.rng.IntN(len(w.accounts))
		case 2:
			s.fund = len(w.funds) - 1
		case 3:
			s.customer = 9999
		case 4:
			s.day = w.thinkOfDay()
		}
		sales[i] = s
	}
	return sales
}

// accountIn returns an account in the currency, preferably the customer's own.
func (w *world) accountIn(customer int64, currency string) int {
	others := -1
	for i, key := range w.accounts[:len(w.accounts)-1] {
		switch {
		case key.Currency.Code() != currency:
		case key.CustomerNo == customer:
			return i
		default:
			others = i
		}
	}
	return max(0, others)
}

// thinkOfUnits returns a number of units from very small to more than the
// holding has.
func (w *world) thinkOfUnits(have int64) int64 {
	const most = int64(fund.MaxUnits)
	if have == 0 {
		have = 100_000_000
	}
	switch n := w.rng.IntN(100); {
	case n < 88:
		return 1 + w.rng.Int64N(max(1, have/20))
	case n < 91:
		return 1 + w.rng.Int64N(20_000) // worth almost nothing
	case n < 94:
		return max(1, have/2) // two such sales use it up
	case n < 96:
		return have
	default:
		return min(have+w.rng.Int64N(3), most)
	}
}

// thinkOfDay returns a SelectedTransactionDate, which is sometimes invalid.
func (w *world) thinkOfDay() string {
	today := w.today()
	switch n := w.rng.IntN(100); {
	case n < 50:
		return ""
	case n < 60:
		return today
	case n < 75:
		return plusDays(today, 1)
	case n < 92:
		return plusDays(today, 1+w.rng.IntN(10))
	case n < 95:
		return plusDays(today, pick(w.rng, 30, 365, 366))
	case n < 97:
		return plusDays(today, 367)
	default:
		return plusDays(today, -1)
	}
}

// alter returns a request with the same CallerId and one difference.
func (w *world) alter(r *request) *request {
	if r.broken {
		return r
	}
	other := *r
	other.sales, other.messages = slices.Clone(r.sales), slices.Clone(r.messages)
	switch {
	case r.subscription.AppKey == "" && w.chance(100):
		other.appKey += "+"
	case r.operation == operation.BuyFundFromCustomer:
		s := &other.sales[w.rng.IntN(len(other.sales))]
		switch w.rng.IntN(6) {
		case 0:
			s.units = s.units%int64(fund.MaxUnits) + 1
		case 1:
			s.total++
		case 2:
			s.day = plusDays(w.today(), 2)
		case 3:
			s.price++
		case 4:
			s.account = (s.account + 1) % len(w.accounts)
		default:
			s.customer++
		}
	default:
		m := &other.messages[w.rng.IntN(len(other.messages))]
		switch w.rng.IntN(4) {
		case 0:
			m.subject += 7
		case 1:
			m.user++
		case 2:
			m.interaction = (m.interaction+2)%3 - 1
		default:
			m.extras++
		}
	}
	other.seal()
	return &other
}
