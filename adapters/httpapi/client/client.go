// Package client calls the banking API from Go. Amounts are exact, and a lost
// answer never turns one sale into two.
//
// An operation gets its CallerId when it is made, not when it is sent. The
// client sends the same bytes with the same CallerId until the service gives
// an answer that settles the matter. A program that may stop in between stores
// the operation's CallerId with its own order before the first call. It then
// sends the same operation again after a restart.
//
// The package needs nothing but the standard library and the value types of
// the domain.
package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// Options changes how a Client sends requests. The zero value is usable.
type Options struct {
	// HTTP sends the requests. By default the client has a transport of its
	// own, which keeps up to 100 idle connections to the service. Set it for a
	// proxy or tracing. Redirects are never followed, because they may turn a POST
	// into a GET.
	HTTP *http.Client
	// TLS configures the client's own transport, for a client certificate or a
	// private certificate authority. It is not used if HTTP is set.
	TLS *tls.Config
	// Patience is the maximum time of one call with all its attempts. The default
	// is 2 minutes. A context that ends earlier ends the call earlier.
	Patience time.Duration
	// Attempts is the maximum number of times an operation is sent in one
	// call. 0 means as often as Patience allows.
	Attempts int
	// Timeout is the maximum time of one attempt. The default is 15 seconds,
	// which is longer than the service takes by default.
	Timeout time.Duration
	// Backoff is the longest wait before the second attempt. It doubles with
	// each further attempt, up to 100 times its value. Each wait is a random
	// part of it, added to what Retry-After asks for, at most a minute. The
	// default is 100ms.
	Backoff time.Duration
	// WantReceipt asks for a receipt with every answer.
	WantReceipt bool
}

// Client calls one service with one subscription key. It is safe for
// concurrent use. Use one Client for all calls, so that connections are reused.
type Client struct {
	base string
	key  string
	http *http.Client
	Options
}

// New returns a client of the service at baseURL, for example
// "https://bank.example". baseURL may have a path, which is put before the path
// of the operation. It may end with the prefix /BankingApiV01 of the operations. It must be https, because the key travels in every request;
// plain http is accepted for loopback addresses only.
func New(baseURL, key string, o Options) (*Client, error) {
	base, err := url.Parse(baseURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("parse base URL: %w", err)
	case base.Host == "" || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("base URL must look like https://host or https://host/path")
	case base.Scheme != "https" && (base.Scheme != "http" || !isLoopback(base.Hostname())):
		return nil, errors.New("base URL must be https: with http the subscription key could be read on the way")
	case key == "":
		return nil, errors.New("subscription key is empty")
	}
	const prefix = "/BankingApiV01"
	c := &Client{base: strings.TrimSuffix(strings.TrimSuffix(baseURL, "/"), prefix) + prefix + "/", key: key, Options: o}
	if c.Patience <= 0 {
		c.Patience = 2 * time.Minute
	}
	if c.Timeout <= 0 {
		c.Timeout = 15 * time.Second
	}
	if c.Backoff <= 0 {
		c.Backoff = 100 * time.Millisecond
	}
	sender := http.Client{Transport: newTransport(o.TLS)}
	if o.HTTP != nil {
		sender = *o.HTTP
	}
	sender.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &sender
	return c, nil
}

// Format prints the address of the service with every verb, and never the key.
func (c Client) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "client of "+c.base) }

func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

func newTransport(config *tls.Config) *http.Transport {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     config.Clone(),
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 100,
		IdleConnTimeout:     30 * time.Second, // the service closes idle connections after 60s by default
	}
}

// Answer is the result of an operation that the bank carried out or recorded.
type Answer struct {
	// State is operation.Completed, or operation.Recorded for a sale on a
	// later day.
	State operation.State
	// Replayed reports that an earlier request had the effect already.
	Replayed bool
	// OperationID is the bank's id of the operation. It is empty if the service
	// did not send one.
	OperationID string
	// RequestID is the X-Request-Id of the answer. Quote it in questions to
	// the bank.
	RequestID string
	// Receipt is the bank's signed receipt. It is empty unless WantReceipt is set,
	// or if the bank has none. Keep it: the bank's public key checks it.
	Receipt string
}

// BuyFund sells fund holdings of customers. A nil error means that all sales
// are completed, or recorded for a later day. Otherwise the error is an *Error.
// If its Unknown is true, call BuyFund again with the same operation.
func (c *Client) BuyFund(ctx context.Context, o *BuyFund) (Answer, error) {
	if o.Header.CallerID == "" {
		return Answer{}, errors.New("the operation has no CallerId: make it with NewBuyFund, so that it can be repeated safely")
	}
	return c.do(ctx, operation.BuyFundFromCustomer, o.Header, o.records(), o.resumed)
}

// AddPush stores push notifications. A nil error means that all of them are
// stored. Otherwise the error is an *Error. A call may always be repeated: a
// notification that is stored already is not stored again.
func (c *Client) AddPush(ctx context.Context, o *AddPush) (Answer, error) {
	for i := range o.Notifications {
		if _, faults := push.FromRecord(*o.Notifications[i].Record()); len(faults) > 0 {
			return Answer{}, &Error{Faults: operation.UnderParameter(i, faults), CallerID: o.Header.CallerID}
		}
	}
	return c.do(ctx, operation.AddPushNotificationResponse, o.Header, o.records(), false)
}

// do sends one operation until its outcome is certain, or until there is no time
// left. unknown reports whether an attempt may have had an effect before.
func (c *Client) do(ctx context.Context, name operation.Name, header operation.Header, records any, unknown bool) (Answer, error) {
	// JSON would turn bytes that are not UTF-8 into others.
	if faults := header.Faults(); len(faults) > 0 {
		return Answer{}, &Error{Faults: faults, Unknown: unknown, CallerID: header.CallerID}
	}
	body, err := encode(header, records)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	for attempt := 1; ; attempt++ {
		got := c.attempt(ctx, name, body)
		if got.err == nil {
			return got.Answer, nil
		}
		failure := got.err
		failure.CallerID = header.CallerID
		unknown = !failure.certain && (unknown || failure.Unknown)
		failure.Unknown = unknown
		if !got.retry || attempt == c.Attempts {
			return Answer{}, failure
		}
		if err := sleep(ctx, c.wait(attempt, got.retryAfter)); err != nil {
			failure.Cause = errors.Join(failure.Cause, err)
			return Answer{}, failure
		}
	}
}

// result is the result of one attempt.
type result struct {
	Answer
	err        *Error
	retry      bool
	retryAfter time.Duration
}

// maxAnswer is larger than any answer of the service.
const maxAnswer = 16 << 20

func (c *Client) attempt(ctx context.Context, name operation.Name, body []byte) result {
	if err := ctx.Err(); err != nil {
		return result{err: &Error{Cause: err}}
	}
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	request, err := newRequest(bounded, c.base+name.String(), c.key, body)
	if err != nil {
		return result{err: &Error{Cause: err}}
	}
	if c.WantReceipt {
		request.Header.Set("Want-Receipt", "1")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return lost(ctx, 0, err)
	}
	// Reading to the end is what makes the connection reusable.
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	_ = response.Body.Close()
	if err != nil {
		return lost(ctx, response.StatusCode, err)
	}
	return read(response, content)
}

// lost is the result of an attempt that has no whole answer. If no connection
// was made, the service cannot have done anything.
func lost(ctx context.Context, status int, err error) result {
	var dial *net.OpError
	notSent := errors.As(err, &dial) && dial.Op == "dial"
	var certificate *tls.CertificateVerificationError
	untrusted := errors.As(err, &certificate)
	return result{
		err:   &Error{Status: status, Unknown: !notSent && !untrusted, Cause: err},
		retry: !untrusted && ctx.Err() == nil,
	}
}
