package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// Quote is what a sale would do now. Nothing is promised: the next sale may see another book.
type Quote struct {
	// State is operation.Completed, operation.Recorded for a later day, or operation.Failed
	// with Faults.
	State operation.State
	// PriceID, Price and CurrencyCode are those of the current price. They are empty if the
	// fund has none. Proceeds are those at this price.
	PriceID      int64
	Price        json.Number
	CurrencyCode string
	Proceeds     json.Number
	// Estimate says that the sale is for a later day: it is settled at the price of that day.
	Estimate bool
	Faults   []fault.Fault `json:"errors"`
}

// Quotes asks what the sales would do now, as one operation. It returns one quote for each sale
// in order. A PriceID may be 0: then the current price is taken. Quotes repeats a request that
// failed, if a repeat may succeed. The error is an *Error.
func (c *Client) Quotes(ctx context.Context, header operation.Header, sales ...Sale) ([]Quote, error) {
	checked, err := checkSales(sales, fund.NewQuotedSale)
	if err != nil {
		return nil, err
	}
	header.CallerID = ""
	faults := header.Faults()
	if len(faults) > 0 {
		return nil, &Error{Faults: faults}
	}
	body, err := encode(header, saleRecords(checked))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Patience)
	defer cancel()
	for attempt := 1; ; attempt++ {
		quotes, failure := c.quotes(ctx, body)
		if failure == nil {
			return quotes, nil
		}
		if !failure.retry || attempt == c.options.Attempts {
			return nil, failure
		}
		err := c.pause(ctx, attempt, failure.retryAfter)
		if err != nil {
			failure.Cause = errors.Join(failure.Cause, err)
			return nil, failure
		}
	}
}

func (c *Client) quotes(ctx context.Context, body []byte) ([]Quote, *Error) {
	address := strings.TrimSuffix(c.base, "BankingApiV01/") + "quotes"
	response, content, err := c.send(ctx, http.MethodPost, address, body, c.options.Timeout) //nolint:bodyclose // send has read and closed it
	if err != nil {
		return nil, &Error{Status: response.StatusCode, Cause: err, retry: !isUntrusted(err) && !isUnknownHost(err) && ctx.Err() == nil}
	}
	var got struct {
		Quotes []Quote
		Error  struct{ Code int }
		Detail string        `json:"detail"`
		Errors []fault.Fault `json:"errors"`
	}
	err = json.Unmarshal(content, &got)
	if response.StatusCode == http.StatusOK && err == nil && got.Quotes != nil {
		return got.Quotes, nil
	}
	failure := &Error{
		Status: response.StatusCode, Number: got.Error.Code, Detail: got.Detail, Faults: got.Errors,
		RequestID: response.Header.Get("X-Request-Id"),
		retry:     slices.Contains(transient, response.StatusCode), retryAfter: retryAfter(response.Header),
	}
	if response.StatusCode == http.StatusOK {
		failure.retry = true
		failure.Cause = errors.New("the answer has no quotes")
	}
	return nil, failure
}
