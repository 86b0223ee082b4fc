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

// The book that both sides sell from: every customer holds one of twenty funds
// and has one account. sql/postgres.sql loads the same rows for the other side.
// The numbers have gaps, where a big book has its other customers: the sales of
// a run then meet the whole width of its indexes.
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

// A work is one kind of request and what the other side does to the same effect.
type work struct {
	name    string
	title   string
	path    string
	export  string // the export that shows its rows
	records int    // rows that one request stores
	compose func(r *rand.Rand, ids *idSource, c *composer) (next func())
	goals   map[goalKey]float64
}

// A goalKey says where a goal holds; the goal is the least ratio of records per
// second to the other side's.
type goalKey struct {
	engine      string
	connections int
}

var allWorks = []work{
	{
		name: "sale", title: "sale, random among 10,000 customers",
		path: "/BankingApiV01/BuyFundFromCustomer", export: "sales", records: 1,
		compose: composeSale(false),
		goals:   map[goalKey]float64{{"postgres", 64}: 3, {"postgres", 256}: 4, {"sqlite", 64}: 2, {"sqlite", 256}: 2.5},
	},
	{
		name: "sale-hot", title: "sale, all to one account, half on 10 customers",
		path: "/BankingApiV01/BuyFundFromCustomer", export: "sales", records: 1,
		compose: composeSale(true),
		goals:   map[goalKey]float64{{"postgres", 64}: 6, {"postgres", 256}: 8},
	},
	{
		name: "push", title: "push, one record a request",
		path: "/BankingApiV01/AddPushNotificationResponse", export: "notifications", records: 1,
		compose: composePush(1, false),
		goals:   map[goalKey]float64{{"postgres", 64}: 1, {"postgres", 256}: 1.3, {"sqlite", 64}: 2, {"sqlite", 256}: 2.5},
	},
	{
		name: "push-caller", title: "push, one record a request, CallerId each",
		path: "/BankingApiV01/AddPushNotificationResponse", export: "notifications", records: 1,
		compose: composePush(1, true),
	},
	{
		name: "push100", title: "push, 100 records a request",
		path: "/BankingApiV01/AddPushNotificationResponse", export: "notifications", records: 100,
		compose: composePush(100, false),
		goals:   map[goalKey]float64{{"postgres", 64}: 0.5},
	},
}

// latencyGoal is the most that one connection's median sale may take, against
// the other side's one client on Postgres.
const latencyGoal = 1.3

// tlsGoal is the least share of its own plain rate that the service must reach
// over TLS, bookGoal with a big book.
const (
	tlsGoal  = 0.8
	bookGoal = 0.85
)

func workNames() []string {
	var names []string
	for _, w := range allWorks {
		names = append(names, w.name)
	}
	return names
}

func findWork(name string) (work, error) {
	for _, w := range allWorks {
		if w.name == name {
			return w, nil
		}
	}
	return work{}, fmt.Errorf("unknown work %q", name)
}

// request makes the requests of one connection. The bytes that next returns
// are valid until it is called again.
type request struct {
	bytes []byte
	fill  func()
}

func (w work) request(host, key string, r *rand.Rand, ids *idSource) *request {
	var c composer
	fill := w.compose(r, ids, &c)
	return &request{bytes: c.seal(w.path, host, key), fill: fill}
}

func (r *request) next() []byte {
	r.fill()
	return r.bytes
}

// A composer builds one request whose varying parts have a fixed width: the
// next request is then a few copies into the same bytes, with no allocation and
// the same Content-Length.
type composer struct {
	body   []byte
	fields []*field
}

// A field is a varying part. It has its bytes once the composer is sealed.
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

// seal puts the head before the body and hands every field its place.
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

// pickCustomer says who sells and whose account is paid: the seller's own, or
// when hot all the same one, half of them selling from the same ten holdings.
func pickCustomer(r *rand.Rand, hot bool) (seller, paid int) {
	seller = customerNo(r.IntN(customers))
	if !hot {
		return seller, seller
	}
	if r.IntN(2) == 0 {
		seller = customerNo(r.IntN(hotCustomers))
	}
	return seller, customerNo(0)
}

func composeSale(hot bool) func(*rand.Rand, *idSource, *composer) func() {
	return func(r *rand.Rand, ids *idSource, c *composer) func() {
		c.text(`{"Header":{"AppKey":"","Channel":"MOBILE","TellerName":"","CallerId":"`)
		callerID := c.field(36)
		c.text(`"},"Parameters":[{"CustomerNo":`)
		customer := c.field(8)
		c.text(`,"TransactionType":2,"FundAmount":`)
		whole := c.field(1)
		c.text(`.`)
		decimals := c.field(6)
		c.text(`,"DestinationAccount":{"BranchCode":` + strconv.Itoa(branch) + `,"CustomerNo":`)
		account := c.field(8)
		c.text(`,"AccountSuffix":` + strconv.Itoa(suffix) + `,"CurrencyCode":"` + currency + `"},"FundToProcess":{"IMKBCode":"F`)
		fund := c.field(2)
		c.text(`","HolderCorporationName":"` + holder + `","PriceID":`)
		price := c.field(3)
		c.text(`},"Amount":0,"SelectedTransactionDate":""}]}`)

		return func() {
			n, paid := pickCustomer(r, hot)
			ids.next(callerID.bytes)
			customer.digits(n)
			account.digits(paid)
			whole.digits(1 + r.IntN(4))
			decimals.digits(r.IntN(1_000_000))
			fund.digits(n % funds)
			price.digits(firstPrice + n%funds)
		}
	}
}

func composePush(records int, withCallerID bool) func(*rand.Rand, *idSource, *composer) func() {
	return func(r *rand.Rand, ids *idSource, c *composer) func() {
		var callerID *field
		users, pushIDs := make([]*field, records), make([]*field, records)
		c.text(`{"Header":{"Channel":"PUSH"`)
		if withCallerID {
			c.text(`,"CallerId":"`)
			callerID = c.field(36)
			c.text(`"`)
		}
		c.text(`},"Parameters":[`)
		for i := range records {
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
			if withCallerID {
				ids.next(callerID.bytes)
			}
			for i := range records {
				users[i].digits(customerNo(r.IntN(customers)))
				ids.next(pushIDs[i].bytes)
			}
		}
	}
}

// An idSource makes ids in the text form of UUID version 7: 48 bits of
// milliseconds, then the connection and a count in place of the random bits, so
// that no two are equal and indexes see what real ids would show them.
type idSource struct {
	now        func() time.Time
	connection uint64
	count      uint64
}

// next writes the 36 characters of the next id.
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
