package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strconv"
	"time"
)

// Both sides sell from this book: every customer has a holding of one of twenty
// funds and one account. sql/postgres.sql loads the same rows for the other
// side. The customer numbers have gaps, in which a big book has its other
// customers. So the sales of a run use the whole range of its indexes.
const (
	customers     = 10_000
	firstCustomer = 10_000_001 // eight digits, so that requests have a fixed length
	numberStep    = 101
	hotCustomers  = 10
	funds         = 20
	firstPrice    = 101
	holder        = "EXAMPLE PORTFOY YONETIMI A.S."
	branch        = 101
	suffix        = 351
	currency      = "TRY"
)

func customerNo(i int) int { return firstCustomer + numberStep*i }

// A work is one kind of request, with the equivalent work of the other side.
type work struct {
	name    string
	title   string
	records int                                 // rows that one request stores, if it completes
	pick    func(*rand.Rand) (seller, paid int) // of a sale; nil: it is a push
	mixed   bool                                // some sales are refused, repeated or for a later day
	refused int                                 // percent of sales of a fund that the customer does not have
	callers bool                                // each push has a CallerId
	rate    int                                 // requests a second; 0: a connection sends the next one when it has an answer
}

var (
	plainSale = work{name: "sale", title: "sale, random among 10,000 customers", records: 1, pick: pickAny}
	plainPush = work{name: "push", title: "push, one record a request", records: 1}
)

var allWorks = []work{
	plainSale,
	{name: "sale-hot", title: "sale, all to one account, half on 10 customers", records: 1, pick: pickHot},
	{name: "sale-mixed", title: "sale, 5 % refused, 2 % repeated, 1 % for a later day", records: 1, pick: pickAny, mixed: true},
	plainPush,
	{name: "push-caller", title: "push, one record a request, CallerId each", records: 1, callers: true},
	{name: "push100", title: "push, 100 records a request", records: 100},
}

// export is the export that shows the rows of the work.
func (w work) export() string {
	if w.pick == nil {
		return "notifications"
	}
	return "sales"
}

func findWork(name string) (work, error) {
	for _, w := range allWorks {
		if w.name == name {
			return w, nil
		}
	}
	return work{}, fmt.Errorf("unknown work %q", name)
}

// request returns the requests of one connection. The bytes of next are valid
// until the next call.
type request struct {
	bytes []byte
	fill  func()
}

func (w work) request(host, key string, r *rand.Rand, ids *idSource) *request {
	var c composer
	path, compose := "/BankingApiV01/AddPushNotificationResponse", w.composePush
	if w.pick != nil {
		path, compose = "/BankingApiV01/BuyFundFromCustomer", w.composeSale
	}
	fill := compose(r, ids, &c)
	return &request{bytes: c.seal(path, host, key), fill: fill}
}

func (r *request) next() []byte {
	r.fill()
	return r.bytes
}

// A composer builds requests whose variable parts have a fixed width. The next
// request then needs only a few copies into the same bytes. It has the same
// Content-Length and needs no allocation.
type composer struct {
	body   []byte
	fields []*field
}

// A field is a variable part. It has its bytes after seal.
type field struct {
	at, width int
	bytes     []byte
}

func (c *composer) text(s string) { c.body = append(c.body, s...) }

func (c *composer) field(width int) *field {
	f := &field{at: len(c.body), width: width}
	c.body = append(c.body, make([]byte, width)...)
	c.fields = append(c.fields, f)
	return f
}

// seal prepends the header and assigns the fields their bytes.
func (c *composer) seal(path, host, key string) []byte {
	head := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nOcp-Apim-Subscription-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		path, host, key, len(c.body))
	request := append(head, c.body...)
	for _, f := range c.fields {
		f.bytes = request[len(head)+f.at : len(head)+f.at+f.width]
	}
	return request
}

// digits writes n right-aligned with leading zeros.
func (f *field) digits(n int) {
	for i := len(f.bytes) - 1; i >= 0; i-- {
		f.bytes[i] = byte('0' + n%10)
		n /= 10
	}
}

// pickAny chooses any seller, who is paid.
func pickAny(r *rand.Rand) (seller, paid int) {
	seller = customerNo(r.IntN(customers))
	return seller, seller
}

// pickHot chooses half of the sellers among ten. All pay into the same account.
func pickHot(r *rand.Rand) (seller, paid int) {
	seller, _ = pickAny(r)
	if r.IntN(2) == 0 {
		seller = customerNo(r.IntN(hotCustomers))
	}
	return seller, customerNo(0)
}

// composeSale composes sales. Mixed sales are like real traffic: of 100 sales, 5 are of a fund
// that the customer does not have, 2 repeat the previous request, and 1 is for a later day.
// Work with refused sales has nothing else.
func (w work) composeSale(r *rand.Rand, ids *idSource, c *composer) (next func()) {
	c.text(`{"Header":{"AppKey":"","Channel":"MOBILE","TellerName":"","CallerId":"`)
	callerID := c.field(36)
	c.text(`"},"Parameters":[`)
	sales := make([]saleFields, w.records)
	for i := range sales {
		if i > 0 {
			c.text(`,`)
		}
		sales[i] = c.sale(w.mixed)
	}
	c.text(`]}`)
	later := ids.now().AddDate(0, 0, 30).Format(`"2006-01-02"`)
	made := false

	return func() {
		kind := 100
		if w.mixed {
			kind = r.IntN(100)
		}
		if made && kind < 2 {
			return
		}
		made = true
		ids.next(callerID.bytes)
		for _, sale := range sales {
			seller, paid := w.pick(r)
			sale.fill(r, seller, paid)
			switch {
			case kind < 7 || w.refused > 0 && r.IntN(100) < w.refused:
				sale.sell((seller + 1) % funds)
			case kind == 7:
				copy(sale.day.bytes, later)
			}
		}
	}
}

// saleFields are the variable parts of one sale.
type saleFields struct {
	customer, whole, decimals, account, fund, price, day *field
}

// sale composes one record of Parameters. Only the sales of mixed work have a day.
func (c *composer) sale(mixed bool) (f saleFields) {
	c.text(`{"CustomerNo":`)
	f.customer = c.field(8)
	c.text(`,"TransactionType":2,"FundAmount":`)
	f.whole = c.field(1)
	c.text(`.`)
	f.decimals = c.field(6)
	c.text(`,"DestinationAccount":{"BranchCode":` + strconv.Itoa(branch) + `,"CustomerNo":`)
	f.account = c.field(8)
	c.text(`,"AccountSuffix":` + strconv.Itoa(suffix) + `,"CurrencyCode":"` + currency + `"},"FundToProcess":{"IMKBCode":"F`)
	f.fund = c.field(2)
	c.text(`","HolderCorporationName":"` + holder + `","PriceID":`)
	f.price = c.field(3)
	c.text(`},"Amount":0,"SelectedTransactionDate":`)
	f.day = new(field)
	if mixed {
		f.day = c.field(len(noDay))
	} else {
		c.text(`""`)
	}
	c.text(`}`)
	return f
}

// fill writes a sale for today of the fund that the seller has.
func (f saleFields) fill(r *rand.Rand, seller, paid int) {
	f.customer.digits(seller)
	f.account.digits(paid)
	f.whole.digits(1 + r.IntN(4))
	f.decimals.digits(r.IntN(1_000_000))
	copy(f.day.bytes, noDay)
	f.sell(seller % funds)
}

// sell writes which fund is sold.
func (f saleFields) sell(fund int) {
	f.fund.digits(fund)
	f.price.digits(firstPrice + fund)
}

// noDay is an empty day with the width of a day.
const noDay = `""          `

func (w work) composePush(r *rand.Rand, ids *idSource, c *composer) (next func()) {
	var callerID *field
	users, pushIDs := make([]*field, w.records), make([]*field, w.records)
	c.text(`{"Header":{"Channel":"PUSH"`)
	if w.callers {
		c.text(`,"CallerId":"`)
		callerID = c.field(36)
		c.text(`"`)
	}
	c.text(`},"Parameters":[`)
	for i := range w.records {
		if i > 0 {
			c.text(`,`)
		}
		c.text(`{"ExternalApplicationCode":"MOBILBANK","ExternalTranCode":"FUNDSALE","UserId":"user-`)
		users[i] = c.field(8)
		c.text(`","PushId":"`)
		pushIDs[i] = c.field(36)
		c.text(`","PushInteractionId":42,"Platform":73,"Subject":"Fon satış talimatınız gerçekleşti",` +
			`"Content":"Sayın müşterimiz, fon satış talimatınız bugün gerçekleşmiştir. Satış tutarı hesabınıza aktarılmıştır. Ayrıntılar için uygulamamızı ziyaret edebilirsiniz.",` +
			`"DeepLinkUrl":"examplebank://funds/sales/latest","SendStatus":1,"SendDate":"2026-11-20",` +
			`"TranData":[{"Code":"FUND","Name":"F07"},{"Code":"LANG","Name":"TR"}]}`)
	}
	c.text(`]}`)

	return func() {
		if w.callers {
			ids.next(callerID.bytes)
		}
		for i := range w.records {
			users[i].digits(customerNo(r.IntN(customers)))
			ids.next(pushIDs[i].bytes)
		}
	}
}

// An idSource generates UUIDs of version 7 as text: 48 bits of milliseconds,
// then the connection and a counter instead of the random bits. So IDs are
// unique and indexes behave as with real ones.
type idSource struct {
	now        func() time.Time
	connection uint64
	count      uint64
}

// next writes the 36 characters of the next ID.
func (s *idSource) next(to []byte) {
	s.count++
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(s.now().UnixMilli())<<16|7<<12)
	binary.BigEndian.PutUint64(raw[8:], 2<<62|s.connection<<40|s.count)
	hex.Encode(to[0:8], raw[0:4])
	hex.Encode(to[9:13], raw[4:6])
	hex.Encode(to[14:18], raw[6:8])
	hex.Encode(to[19:23], raw[8:10])
	hex.Encode(to[24:36], raw[10:16])
	to[8], to[13], to[18], to[23] = '-', '-', '-', '-'
}

// The CSV files that the service imports, in this order.
var bookFiles = []string{"prices", "holdings", "accounts"}

// writeBook writes one of the files: as many customers in each gap between two
// customers of the bench as perGap says, the first of them included.
func writeBook(to io.Writer, name string, perGap int) error {
	w := bufio.NewWriter(to)
	switch name {
	case "prices":
		fmt.Fprintln(w, "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom")
		for fund := range funds {
			// 12.34567891 and a little more for each fund.
			fmt.Fprintf(w, "%d,F%02d,%s,12.%d,%s,2020-01-02\n", firstPrice+fund, fund, holder, 34567891+fund*1000003, currency)
		}
	case "holdings":
		fmt.Fprintln(w, "CustomerNo,IMKBCode,HolderCorporationName,Units")
		for n := range bookCustomers(perGap) {
			fmt.Fprintf(w, "%d,F%02d,%s,100000000\n", n, n%funds, holder)
		}
	case "accounts":
		fmt.Fprintln(w, "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance")
		for n := range bookCustomers(perGap) {
			fmt.Fprintf(w, "%d,%d,%d,%s,0.00\n", branch, n, suffix, currency)
		}
	}
	return w.Flush()
}

// bookCustomers are the numbers of all customers of a book.
func bookCustomers(perGap int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range customers {
			for j := range perGap {
				if !yield(customerNo(i) + j) {
					return
				}
			}
		}
	}
}
