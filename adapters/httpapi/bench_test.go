package httpapi

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"bankingapi/adapters/httpapi/strictjson"
	"bankingapi/application/summary"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

// push600 is a push of usual size: 600 bytes.
const push600 = `{"Header":{"AppKey":"mobile-app-key","Channel":"MOBILE","TellerName":"svc.push","CallerId":"3f0c2c52-6d2c-4d5e-9d6e-0f5a0b3f7a11","ChannelSessionId":"s-81723","ChannelRequestId":"r-99187"},` +
	`"Parameters":[{"ExternalApplicationCode":"INTERNETBANK","ExternalTranCode":"EFT-IN","UserId":"user-000123456","PushId":"fcm:0:1699999999999999%abc","PushInteractionId":4711,"Platform":65,` +
	`"Subject":"Hesabınıza para geldi","Content":"Hesabınıza 1.250,00 TL tutarında EFT geldi.","DeepLinkUrl":"bank://accounts/1?tab=moves","SendStatus":1,"SendDate":"2026-11-20","TranData":[{"Code":"AMOUNT","Name":"1250.00"}]}]}`

const saleUsual = `{"Header":{"AppKey":"mobile-app-key","Channel":"MOBILE","TellerName":"svc.fund","CallerId":"3f0c2c52-6d2c-4d5e-9d6e-0f5a0b3f7a11"},` +
	`"Parameters":[{"CustomerNo":1001,"TransactionType":2,"FundAmount":12.345678,"DestinationAccount":{"BranchCode":1,"CustomerNo":1001,"AccountSuffix":1,"CurrencyCode":"TRY"},` +
	`"FundToProcess":{"IMKBCode":"AFA","HolderCorporationName":"Demo Portfoy","PriceID":1},"Amount":15.43,"SelectedTransactionDate":""}]}`

func decodeOnce[Record any](b *testing.B, records []strictjson.Member[Record], body string) {
	members := requestMembers(records, 1000)
	q := new(request[Record])
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		q.Body.WriteString(body)
		q.decode(members)
		if len(q.Faults()) > 0 {
			b.Fatal(q.Faults())
		}
		q.reset()
	}
}

func BenchmarkDecodePush(b *testing.B) { decodeOnce(b, pushMembers, push600) }

func BenchmarkDecodeSale(b *testing.B) { decodeOnce(b, saleMembers, saleUsual) }

type taker struct{}

func (taker) Find(context.Context, string) (*subscription.Subscription, error) {
	return &someone, nil
}

func (taker) Name(string) string { return "" }

func (taker) Add(context.Context, *subscription.Subscription, operation.Header, []push.Fields) (operation.Outcome, error) {
	return operation.Outcome{ID: operation.ID{1}, State: operation.Completed}, nil
}

func (taker) Buy(context.Context, *subscription.Subscription, operation.Header, []fund.SaleFields) (operation.Outcome, error) {
	return operation.Outcome{ID: operation.ID{1}, State: operation.Completed}, nil
}

func (taker) Busy(*subscription.Subscription) error { return nil }

type pushTaker struct{ taker }

func (pushTaker) Faults(operation.Header, []push.Fields) []fault.Fault { return nil }

type saleTaker struct{ taker }

func (saleTaker) Faults(operation.Header, []fund.SaleFields) []fault.Fault { return nil }

var someone = subscription.Subscription{Name: "acme", State: subscription.Active, Operations: operation.AllNames()}

// sink is a ResponseWriter as cheap as it can be.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }

// newTaking returns the API on use cases that do nothing.
func newTaking(o Options) http.Handler {
	h, err := New([]Descriptor{AddPush(pushTaker{}), BuyFund(saleTaker{})}, taker{}, o)
	if err != nil {
		panic(err)
	}
	return h
}

// exchangeOnce returns a function that sends the body through the whole API.
func exchangeOnce(o operation.Name, body string) func() {
	h := newTaking(Options{
		BodyLimit: 1 << 20, ParametersLimit: 1000, WriteTimeout: 10 * time.Second, Now: time.Now,
		Observe: func(context.Context, *summary.Exchange) {},
	})
	r := httptest.NewRequest(http.MethodPost, Path(o.String()), nil)
	r.Header.Set("Ocp-Apim-Subscription-Key", "0123456789abcdef0123456789abcdef")
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = int64(len(body))
	w := &sink{make(http.Header)}
	var content bytes.Reader
	raw := []byte(body)
	r.Body = io.NopCloser(&content)
	return func() {
		clear(w.header)
		content.Reset(raw)
		h.ServeHTTP(w, r)
	}
}

func exchanges(b *testing.B, o operation.Name, body string) {
	once := exchangeOnce(o, body)
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
}

func BenchmarkExchangePush(b *testing.B) {
	exchanges(b, operation.AddPushNotificationResponse, push600)
}

func BenchmarkExchangeSale(b *testing.B) { exchanges(b, operation.BuyFundFromCustomer, saleUsual) }
