package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi"
	"bankingapi/application/addpush"
	"bankingapi/application/buyfund"
	"bankingapi/application/summary"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
	"bankingapi/test/kit/memory"
)

// trouble is what happens to the first transaction of a bank.
type trouble int32

const (
	none          trouble = iota
	unavailable           // nothing of it happens
	indeterminate         // committed, but the caller gets an error
)

// bank is the whole service: the API, both use cases, and a store in memory
// that tests can read.
type bank struct {
	store   *fake.Store
	trouble atomic.Int32

	mutex     sync.Mutex
	exchanges []summary.Exchange
}

// channel is defined for the caller.
const channel = "web"

func newBank(t *testing.T, first trouble) (*bank, http.Handler) {
	t.Helper()
	kit := memory.New(today)
	b := &bank{store: kit.Store}
	b.trouble.Store(int32(first))
	lira, _ := money.ParseCurrency("TRY")
	yen, _ := money.ParseCurrency("JPY")
	for i, price := range []fund.UnitPrice{123_456_789, 50_000} { // 1.23456789 and 0.0005
		of := fund.Fund{IMKBCode: []string{"AFA", "AFB"}[i], HolderCorporationName: "Demo"}
		b.store.PutPrices(fund.Price{ID: int64(i + 1), Fund: of, PerUnit: price, Currency: lira, ValidFrom: day.Of(today, time.UTC)})
		b.store.PutHoldings(fund.Holding{Key: fund.HoldingKey{CustomerNo: 1001, Fund: of}, Units: 1000_000_000})
	}
	for _, currency := range []money.Currency{lira, yen} {
		b.store.PutAccounts(fund.Account{
			Key:     fund.AccountKey{CustomerNo: 1001, BranchCode: 1, AccountSuffix: 1, Currency: currency},
			Balance: money.New(500, currency),
		})
	}
	adder := kit.Adder(t, b.store.Inboxes(b.strike), func(o *addpush.Options) { o.ParametersLimit = limit })
	buyer := kit.Buyer(t, b.store.Books(b.strike), func(o *buyfund.Options) {
		o.ParametersLimit = limit
		o.Rules = buyfund.FixedRules(fund.Rules{Zone: time.FixedZone("bank", 3*60*60)}, nil, o.Now)
	})
	callers := callers{key: caller(func(s *subscription.Subscription) { s.Channel = channel })}
	handler, err := httpapi.New([]httpapi.Descriptor{httpapi.AddPush(adder), httpapi.BuyFund(buyer)}, callers, httpapi.Options{
		BodyLimit: bodyLimit, ParametersLimit: limit, ErrorPages: "/docs/errors/", Now: kit.Clock.Now,
		Observe: func(_ context.Context, x *summary.Exchange) {
			b.mutex.Lock()
			defer b.mutex.Unlock()
			b.exchanges = append(b.exchanges, *x)
		},
	})
	require.NoError(t, err)
	return b, handler
}

func (b *bank) strike(_ context.Context, m fake.Moment) error {
	switch {
	case m == fake.Begin && b.trouble.CompareAndSwap(int32(unavailable), int32(none)):
		return fault.New(fault.Unavailable, "")
	case m == fake.Committed && b.trouble.CompareAndSwap(int32(indeterminate), int32(none)):
		return fault.New(fault.Indeterminate, "")
	}
	return nil
}

// answered are the exchanges that came to an answer.
func (b *bank) answered() (answered []summary.Exchange) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, x := range b.exchanges {
		if x.Status != httpapi.StatusClientGone {
			answered = append(answered, x)
		}
	}
	return answered
}

// books is all that is in the store.
type books struct {
	notifications []push.Entry
	sales         []fund.SaleEntry
	postings      []fund.Posting
	holdings      []fund.Holding
	accounts      []fund.Account
}

func (b *bank) books() books {
	return books{b.store.Notifications(), b.store.Sales(), b.store.Postings(), b.store.Holdings(), b.store.Accounts()}
}

// sent is a request that was accepted, as another reader of JSON has it.
type sent[Record any] struct {
	Header     operation.Header
	Parameters []Record
}

type sentPush struct {
	ExternalApplicationCode, ExternalTranCode, UserID, PushID string
	PushInteractionID                                         *json.Number
	Platform, SendStatus                                      json.Number
	Subject, Content, DeepLinkURL, SendDate                   string
	TranData                                                  []push.TranDataItem
}

type sentSale struct {
	CustomerNo, FundAmount json.Number
	DestinationAccount     struct {
		BranchCode, CustomerNo, AccountSuffix json.Number
		CurrencyCode                          string
	}
	FundToProcess struct {
		IMKBCode, HolderCorporationName string
		PriceID                         json.Number
	}
	Amount                  json.Number
	SelectedTransactionDate string
}

func read[Record any](t *testing.T, body []byte) sent[Record] {
	t.Helper()
	var s sent[Record]
	require.NoError(t, json.Unmarshal(body, &s))
	s.Header.Channel = channel
	return s
}

// scaled is the number times 10^scale by way of rational numbers.
func scaled(t *testing.T, number json.Number, scale int) int64 {
	t.Helper()
	digits, _, _ := strings.Cut(strings.ToLower(number.String()), "e")
	if strings.Trim(digits, "-0.") == "" { // 0, with whatever exponent, or absent
		return 0
	}
	value, ok := new(big.Rat).SetString(number.String())
	require.True(t, ok)
	value.Mul(value, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
	require.True(t, value.IsInt() && value.Num().IsInt64())
	return value.Num().Int64()
}

func dayOf(t *testing.T, text string) (d day.Day) {
	t.Helper()
	if text != "" {
		var err error
		d, err = day.Parse(text)
		require.NoError(t, err)
	}
	return d
}

// requirePushed: the records of the body are in the store, each once.
func requirePushed(t *testing.T, body []byte, now books) {
	t.Helper()
	request := read[sentPush](t, body)
	var want []push.Entry
	for i, p := range request.Parameters {
		r := push.Values{
			ExternalApplicationCode: p.ExternalApplicationCode, ExternalTranCode: p.ExternalTranCode, UserID: p.UserID, PushID: p.PushID,
			HasPushInteractionID: p.PushInteractionID != nil,
			Platform:             push.Platform(scaled(t, p.Platform, 0)),
			Subject:              p.Subject, Content: p.Content, DeepLinkURL: p.DeepLinkURL,
			Sent: scaled(t, p.SendStatus, 0) == 1, SendDate: dayOf(t, p.SendDate),
		}
		if r.HasPushInteractionID {
			r.PushInteractionID = scaled(t, *p.PushInteractionID, 0)
		}
		if len(p.TranData) > 0 {
			r.TranData = p.TranData
		}
		isNew := true
		for _, before := range want {
			isNew = isNew && !reflect.DeepEqual(before.Values, r)
		}
		if isNew {
			want = append(want, push.Entry{Index: i, Envelope: operation.Envelope{Subscription: "acme", Header: request.Header, ReceivedAt: today}, Values: r})
		}
	}
	notifications := slices.Clone(now.notifications)
	for i := range notifications {
		notifications[i].ID, notifications[i].Identity = operation.ID{}, push.Identity{} // the store gives them
		if r := &notifications[i].Values; len(r.TranData) == 0 {
			r.TranData = nil
		}
	}
	require.Equal(t, want, notifications)
}

// requireSold: the sales of the body are in the store, once, in that state,
// and units and money moved as they say, or not yet.
func requireSold(t *testing.T, body []byte, state operation.State, before, now books) {
	t.Helper()
	request := read[sentSale](t, body)
	var want []fund.SaleEntry
	var postings []fund.Posting
	for i, s := range request.Parameters {
		currency, _ := money.ParseCurrency(s.DestinationAccount.CurrencyCode)
		e := fund.SaleEntry{Index: i, Envelope: operation.Envelope{Subscription: "acme", Header: request.Header, ReceivedAt: today}, State: state, Terms: fund.Terms{
			Holding: fund.HoldingKey{
				CustomerNo: scaled(t, s.CustomerNo, 0),
				Fund:       fund.Fund{IMKBCode: s.FundToProcess.IMKBCode, HolderCorporationName: s.FundToProcess.HolderCorporationName},
			},
			Units: fund.Units(scaled(t, s.FundAmount, 6)),
			Account: fund.AccountKey{
				CustomerNo:    scaled(t, s.DestinationAccount.CustomerNo, 0),
				BranchCode:    scaled(t, s.DestinationAccount.BranchCode, 0),
				AccountSuffix: scaled(t, s.DestinationAccount.AccountSuffix, 0),
				Currency:      currency,
			},
			PriceID:      scaled(t, s.FundToProcess.PriceID, 0),
			ControlTotal: scaled(t, s.Amount, currency.Decimals()),
			SelectedDay:  dayOf(t, s.SelectedTransactionDate),
		}}
		if state == operation.Completed {
			e.PriceID, e.PerUnit, e.SettledAt = e.Terms.PriceID, map[int64]fund.UnitPrice{1: 123_456_789, 2: 50_000}[e.Terms.PriceID], today
			// Half away from zero: floor((2 x units x price + 10^12) / (2 x 10^12)), for liras.
			product := new(big.Int).Mul(big.NewInt(int64(e.Terms.Units)), big.NewInt(int64(e.PerUnit)))
			product.Add(product.Lsh(product, 1), big.NewInt(1e12))
			e.Proceeds = money.New(product.Div(product, big.NewInt(2e12)).Int64(), currency)
			postings = append(postings,
				fund.Posting{Kind: fund.SalePosting, Index: i, Holding: e.Terms.Holding, Quantity: -int64(e.Terms.Units)},
				fund.Posting{Kind: fund.SalePosting, Index: i, Account: e.Terms.Account, Quantity: e.Proceeds.Minor()})
		}
		want = append(want, e)
	}
	sales, posted := slices.Clone(now.sales), slices.Clone(now.postings)
	for i := range sales {
		sales[i].ID = operation.ID{}
	}
	for i := range posted {
		posted[i].OperationID = operation.ID{}
	}
	require.Equal(t, want, sales)
	require.Equal(t, postings, posted)
	holdings, accounts := slices.Clone(before.holdings), slices.Clone(before.accounts)
	for i := range holdings {
		for _, p := range postings {
			if p.Holding == holdings[i].Key {
				holdings[i].Units += fund.Units(p.Quantity)
			}
		}
		require.GreaterOrEqual(t, holdings[i].Units, fund.Units(0))
	}
	for i := range accounts {
		a := &accounts[i]
		for _, p := range postings {
			if p.Account == a.Key {
				a.Balance = money.New(a.Balance.Minor()+p.Quantity, a.Key.Currency)
			}
		}
	}
	require.Equal(t, holdings, now.holdings)
	require.Equal(t, accounts, now.accounts)
}

// recorded reads an answer to its end.
func recorded(t *testing.T, answer *http.Response) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	_, err := w.Body.ReadFrom(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return w
}

// stateIn checks what holds for every answer of the API, and returns its
// Data.State, 0 where it has none.
func stateIn(t *testing.T, w *httptest.ResponseRecorder) (state operation.State) {
	t.Helper()
	require.Regexp(t, `^[A-Za-z0-9._:-]{1,128}$`, w.Header().Get("X-Request-Id"))
	if w.Code != http.StatusOK {
		p := problemIn(t, w)
		require.Equal(t, w.Code == http.StatusServiceUnavailable, w.Header().Get("Retry-After") != "")
		if p.Data != nil {
			require.Equal(t, int(operation.Failed), p.Data.State)
			state = operation.Failed
		}
		permanent := slices.ContainsFunc(p.Errors, func(f fault.Fault) bool {
			return f.Code+f.Pointer != "too-many/Parameters" && f.Detail != "The body does not end where HTTP says it ends."
		})
		require.Equal(t, w.Code == http.StatusBadRequest && permanent, p.Data != nil, "State 8 is about the operation, which an earlier request may have carried out")
		return state
	}
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	var answer struct {
		Data          struct{ State operation.State }
		Error         failure
		Title, Detail string
		Errors        []fault.Fault
	}
	decoder := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&answer), "%s", w.Body)
	require.False(t, decoder.More())
	if state = answer.Data.State; state == operation.Failed {
		require.NotEmpty(t, answer.Errors)
		require.Equal(t, failure{int64(fault.NumberOf(answer.Errors[0].Code)), answer.Detail}, answer.Error)
		return state
	}
	require.Contains(t, []operation.State{operation.Recorded, operation.Completed}, state)
	require.Equal(t, fmt.Sprintf(`{"Data":{"State":%d}}`, state), w.Body.String())
	return state
}

// requireNoValue: no sentence of the answer has a value of the request.
func requireNoValue(t *testing.T, w *httptest.ResponseRecorder, body []byte) {
	t.Helper()
	var p problem
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
	for _, value := range longValues(body) {
		require.NotContains(t, p.Title+p.Detail+p.Message, value)
		for _, f := range p.Errors {
			require.NotContains(t, f.Code+f.Detail, value)
		}
	}
}
