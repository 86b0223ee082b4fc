package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// QuotesPath is where callers learn what a sale would do now (the contract, section 11). Like
// OutcomesPath it is no operation of the API.
const QuotesPath = "/quotes"

// Quoter quotes fund sales without carrying them out.
type Quoter interface {
	// Quote returns a quote for each record. The kind of the error becomes the HTTP status.
	Quote(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []fund.SaleFields) ([]fund.Quote, error)
	// QuoteFaults returns the rules that the fields break, as Quote would report them.
	QuoteFaults(header operation.Header, parameters []fund.SaleFields) []fault.Fault
	// QuoteBusy returns an error of kind fault.Busy if Quote would refuse every request of the
	// caller now. It is called before the body is decoded.
	QuoteBusy(caller *subscription.Subscription) error
}

// quotes serves QuotesPath with the checks, the limits and the body of BuyFundFromCustomer.
type quotes struct {
	endpoint *endpoint[fund.SaleFields]
	quoter   Quoter
}

func newQuotes(a *api, quoter Quoter) quotes {
	e := Operation[fund.SaleFields]{
		Name:     operation.BuyFundFromCustomer.String(), // for the grant
		Members:  saleMembers,
		Faults:   quoter.QuoteFaults,
		Busy:     quoter.QuoteBusy,
		Customer: customerOf,
	}.on(a)
	e.ignoresCallerID = true
	return quotes{e, quoter}
}

func (q quotes) serve(x *exchange, r *http.Request) *problem {
	refused := q.endpoint.accept(x, r, q.answer)
	if refused != nil {
		refused.stateless = true // a quote is no operation
	}
	return refused
}

func (q quotes) answer(x *exchange, r *http.Request, caller *subscription.Subscription, sent *request[fund.SaleFields]) *problem {
	ctx := r.Context()
	if q.endpoint.api.WriteTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.endpoint.timeLeft(x))
		defer cancel()
	}
	x.Records = len(sent.parameters)
	quoted, err := q.quoter.Quote(ctx, caller, sent.header, sent.parameters)
	if err != nil && r.Context().Err() != nil {
		x.abandon(err)
	}
	if err != nil {
		return problemOf(err)
	}
	x.send(http.StatusOK, jsonType, appendQuotes(nil, quoted))
	return nil
}

func appendQuotes(b []byte, quoted []fund.Quote) []byte {
	b = append(b, `{"Quotes":[`...)
	for i := range quoted {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuote(b, &quoted[i])
	}
	return append(b, "]}"...)
}

// appendQuote writes numbers with all their digits.
func appendQuote(b []byte, q *fund.Quote) []byte {
	b = strconv.AppendInt(append(b, `{"State":`...), int64(q.State), 10)
	if q.Price.ID != 0 {
		b = strconv.AppendInt(append(b, `,"PriceID":`...), q.Price.ID, 10)
		b = append(append(b, `,"Price":`...), q.Price.PerUnit.String()...)
		b = appendText(b, `,"CurrencyCode":`, q.Price.Currency.Code())
	}
	if !q.Proceeds.Currency().IsNone() {
		b = append(b, `,"Proceeds":`...)
		b = append(b, decimal.FormatFixed(q.Proceeds.Minor(), q.Proceeds.Currency().Decimals())...)
	}
	if q.Estimate {
		b = append(b, `,"Estimate":true`...)
	}
	if len(q.Faults) > 0 {
		b = appendFaults(append(b, `,"errors":`...), q.Faults)
	}
	return append(b, '}')
}
