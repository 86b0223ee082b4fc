package main

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"time"
)

// Both sides sell from this book: every customer has a holding of one of twenty
// funds and one account. sql/tables.sql loads the same rows for the other
// side. The customer numbers have gaps, in which a big book has its other
// customers. So the sales of a run use the whole range of its indexes.
const (
	customers     = 10_000
	firstCustomer = 10_000_001
	numberStep    = 101
	hotCustomers  = 10
	funds         = 20
	firstPrice    = 101
	holder        = "EXAMPLE PORTFOY YONETIMI A.S."
)

func customerNo(i int) int { return firstCustomer + numberStep*i }

// A work is one kind of request, with the equivalent work of the other side.
type work struct {
	Name    string
	Title   string
	Records int           // rows that one request stores, if it completes
	Sellers sellers       // of a sale
	Mixed   bool          // some sales are refused, repeated or for a later day
	Refused int           // percent of sales of a fund that the customer does not have
	Callers bool          // each push has a CallerId
	Waits   time.Duration // reads outcomes, and waits so long for one
	Rate    int           // requests a second; 0: a connection sends the next one when it has an answer
	Script  string        // of pgbench
}

// A plain insert of a push by pgbench has no CallerId to keep, which makes it the harder
// opponent. Mixed sales stand beside clean ones: the ratio shows what the mix costs.
var (
	plainSale = work{Name: "sale", Title: "sale, random among 10,000 customers", Records: 1, Sellers: anySeller, Script: "sale"}
	plainPush = work{Name: "push", Title: "push, one record a request", Records: 1, Script: "push"}
	allWorks  = []work{
		plainSale,
		{Name: "sale-hot", Title: "sale, all to one account, half on 10 customers", Records: 1, Sellers: hotSellers, Script: "sale"},
		{Name: "sale-mixed", Title: "sale, 5 % refused, 2 % repeated, 1 % for a later day", Records: 1, Sellers: anySeller, Mixed: true, Script: "sale"},
		plainPush,
		{Name: "push-caller", Title: "push, one record a request, CallerId each", Records: 1, Callers: true, Script: "push"},
		{Name: "push100", Title: "push, 100 records a request", Records: 100, Script: "push100"},
	}
)

// at is the work at a rate.
func (w work) at(rate int) work {
	w.Rate = rate
	return w
}

// export is the export that shows the rows of the work.
func (w work) export() string {
	if w.Sellers == nobody {
		return "notifications"
	}
	return "sales"
}

// sellers says whose holdings are sold.
type sellers int

const (
	nobody        sellers = iota // it is a push
	anySeller                    // each is as likely as any other, and is paid
	hotSellers                   // half of the sales are of ten customers, and all pay into the same account
	skewedSellers                // as anySeller, but one customer sells more often than all others, a second one more often than the rest, and so on
)

// pick chooses a seller, and the customer who is paid.
func (s sellers) pick(r *rand.Rand) (seller, paid int) {
	seller = customerNo(r.IntN(customers))
	switch s {
	case hotSellers:
		if r.IntN(2) == 0 {
			seller = customerNo(r.IntN(hotCustomers))
		}
		return seller, customerNo(0)
	case skewedSellers:
		seller = customerNo(int(rand.NewZipf(r, 2, 1, customers-1).Uint64()))
	case nobody, anySeller:
	}
	return seller, seller
}

// requests writes the requests of one connection.
type requests struct {
	work
	ids
	host, key string
	random    *rand.Rand
	body      []byte
	request   []byte
}

// next returns the next request, which is valid until the next call. Mixed sales are like real
// traffic: of 100 sales, 2 repeat the request before, 5 are of a fund that the customer does
// not have, and 1 is for a later day.
func (q *requests) next() []byte {
	if q.Waits > 0 {
		return fmt.Appendf(nil, "GET /outcomes?wait=%s HTTP/1.1\r\nHost: %s\r\nOcp-Apim-Subscription-Key: %s\r\n\r\n", q.Waits, q.host, q.key)
	}
	kind := 100
	if q.Mixed {
		kind = q.random.IntN(100)
	}
	if kind < 2 && len(q.request) > 0 {
		return q.request
	}
	path := "AddPushNotificationResponse"
	if q.Sellers != nobody {
		path = "BuyFundFromCustomer"
		q.sales(kind)
	} else {
		q.pushes()
	}
	q.request = fmt.Appendf(q.request[:0], "POST /BankingApiV01/%s HTTP/1.1\r\nHost: %s\r\nOcp-Apim-Subscription-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		path, q.host, q.key, len(q.body))
	q.request = append(q.request, q.body...)
	return q.request
}

func (q *requests) sales(kind int) {
	q.body = fmt.Appendf(q.body[:0], `{"Header":{"AppKey":"","Channel":"MOBILE","TellerName":"","CallerId":"%s"},"Parameters":[`, q.id())
	for range q.Records {
		seller, paid := q.Sellers.pick(q.random)
		whole := 1 + q.random.IntN(4)
		decimals := q.random.IntN(1_000_000)
		fund := seller % funds
		day := ""
		switch {
		case kind < 7 || q.Refused > 0 && q.random.IntN(100) < q.Refused:
			fund = (seller + 1) % funds
		case kind == 7:
			day = q.now().AddDate(0, 0, 30).Format(time.DateOnly)
		}
		q.body = fmt.Appendf(q.body, `{"CustomerNo":%d,"TransactionType":2,"FundAmount":%d.%06d,"DestinationAccount":{"BranchCode":101,"CustomerNo":%d,"AccountSuffix":351,"CurrencyCode":"TRY"},`+
			`"FundToProcess":{"IMKBCode":"F%02d","HolderCorporationName":"%s","PriceID":%d},"Amount":0,"SelectedTransactionDate":"%s"},`,
			seller, whole, decimals, paid, fund, holder, firstPrice+fund, day)
	}
	q.body = append(q.body[:len(q.body)-1], "]}"...)
}

func (q *requests) pushes() {
	caller := ""
	if q.Callers {
		caller = `,"CallerId":"` + q.id() + `"`
	}
	q.body = fmt.Appendf(q.body[:0], `{"Header":{"Channel":"PUSH"%s},"Parameters":[`, caller)
	for range q.Records {
		q.body = fmt.Appendf(q.body, `{"ExternalApplicationCode":"MOBILBANK","ExternalTranCode":"FUNDSALE","UserId":"user-%d","PushId":"%s","PushInteractionId":42,"Platform":73,`+
			`"Subject":"Fon satış talimatınız gerçekleşti","Content":"Sayın müşterimiz, fon satış talimatınız bugün gerçekleşmiştir. Satış tutarı hesabınıza aktarılmıştır. Ayrıntılar için uygulamamızı ziyaret edebilirsiniz.",`+
			`"DeepLinkUrl":"examplebank://funds/sales/latest","SendStatus":1,"SendDate":"2026-11-20","TranData":[{"Code":"FUND","Name":"F07"},{"Code":"LANG","Name":"TR"}]},`,
			customerNo(q.random.IntN(customers)), q.id())
	}
	q.body = append(q.body[:len(q.body)-1], "]}"...)
}

// ids generates UUIDs of version 7: 48 bits of milliseconds, then the connection and a
// counter instead of the random bits. So indexes behave as with real ones.
type ids struct {
	now        func() time.Time
	connection uint64
	count      uint64
}

func (s *ids) id() string {
	s.count++
	ms := s.now().UnixMilli()
	return fmt.Sprintf("%08x-%04x-7000-%04x-%012x", ms>>16, ms&0xffff, 0x8000|s.connection>>8, s.connection&0xff<<40|s.count)
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
			fmt.Fprintf(w, "%d,F%02d,%s,12.%d,TRY,2020-01-02\n", firstPrice+fund, fund, holder, 34567891+fund*1000003)
		}
	case "holdings":
		fmt.Fprintln(w, "CustomerNo,IMKBCode,HolderCorporationName,Units")
		for n := range bookCustomers(perGap) {
			fmt.Fprintf(w, "%d,F%02d,%s,100000000\n", n, n%funds, holder)
		}
	case "accounts":
		fmt.Fprintln(w, "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance")
		for n := range bookCustomers(perGap) {
			fmt.Fprintf(w, "101,%d,351,TRY,0.00\n", n)
		}
	}
	return w.Flush()
}

// bookCustomers are the numbers of all customers of a book.
func bookCustomers(perGap int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := range customers * perGap {
			if !yield(customerNo(n/perGap) + n%perGap) {
				return
			}
		}
	}
}
