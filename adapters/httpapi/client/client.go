// Package client calls the banking API from Go. Amounts are exact, and a lost
// answer never turns one sale into two.
//
// An operation gets its CallerId when it is made, not when it is sent. The client sends the
// same bytes until an answer is certain. A program that may stop in between stores the CallerId
// with its own order before the first call, and sends the same operation again after a restart.
//
// The package needs only the standard library and the value types of the domain.
package client

import (
	"bytes"
	"cmp"
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
	"unicode"

	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Options changes how a Client sends requests. The zero value is usable.
type Options struct {
	// HTTP sends the requests. Set it for a proxy or tracing. By default the client has its own
	// transport, which keeps up to 100 idle connections. Redirects are never followed, because
	// they may turn a POST into a GET.
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
	// Timeout is the maximum time of one attempt. The default is 15 seconds.
	Timeout time.Duration
	// Backoff is the longest wait before the second attempt. It doubles with each further
	// attempt, up to 100 times its value. Each wait is a random part of it, plus the wait of
	// Retry-After. A call ends at once if Retry-After asks for more than Patience leaves. The
	// default is 100ms.
	Backoff time.Duration
	// WantReceipt asks for a receipt with every answer.
	WantReceipt bool
}

// Client calls one service with one subscription key. It is safe for
// concurrent use. Use one Client for all calls, so that connections are reused.
type Client struct {
	base    string
	key     string
	options Options
}

// New returns a client of the service at baseURL, for example "https://bank.example". baseURL
// may have a path before the path of the operation, and may end with /BankingApiV01. It must be
// https, because the key travels in every request. Plain http is accepted for loopback
// addresses only.
func New(baseURL, key string, o Options) (*Client, error) {
	address, err := url.Parse(baseURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("parse base URL: %w", withoutAddress(err))
	case address.Hostname() == "" || strings.ContainsAny(baseURL, "?#"):
		return nil, errors.New("base URL must look like https://host or https://host/path")
	case address.Scheme != "https" && (address.Scheme != "http" || !isLoopback(address.Hostname())):
		return nil, errors.New("base URL must be https: with http the subscription key could be read on the way")
	case key == "":
		return nil, errors.New("subscription key is empty")
	case strings.ContainsFunc(key, unicode.IsControl): // a request with such a key cannot be sent
		return nil, errors.New("subscription key has a line end or another control character")
	}
	const prefix = "/BankingApiV01"
	o.Patience = cmp.Or(max(0, o.Patience), 2*time.Minute)
	o.Timeout = cmp.Or(max(0, o.Timeout), 15*time.Second)
	o.Backoff = cmp.Or(max(0, o.Backoff), 100*time.Millisecond)
	sender := http.Client{Transport: newTransport(o.TLS)}
	if o.HTTP != nil {
		sender = *o.HTTP
	}
	o.HTTP = &sender
	sender.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	base := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(baseURL, "/"), prefix), "/") + prefix + "/"
	return &Client{base, key, o}, nil
}

// withoutAddress returns the cause of an error of url.Parse, whose text has the address, perhaps
// with a password.
func withoutAddress(err error) error {
	if parse, ok := errors.AsType[*url.Error](err); ok {
		return parse.Err
	}
	return err
}

// Format prints the address of the service with every verb, and never the key or a password.
func (c Client) Format(f fmt.State, _ rune) {
	shown := "a service"
	if address, err := url.Parse(c.base); err == nil {
		shown = address.Redacted()
	}
	_, _ = io.WriteString(f, "client of "+shown)
}

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
		IdleConnTimeout:     30 * time.Second, // less than the 75s after which the service closes an idle connection
	}
}

// Answer is the result of an operation that the bank carried out or recorded.
type Answer struct {
	State       operation.State // operation.Completed, or operation.Recorded for a sale on a later day
	Replayed    bool            // an earlier request already had the effect
	OperationID string          // the bank's id of the operation; it may be empty
	RequestID   string          // the X-Request-Id of the answer, for questions to the bank
	// Receipt is the bank's signed receipt if WantReceipt is set and the bank has one.
	// Keep it: the bank's public key checks it.
	Receipt string
}

// BuyFund sells fund holdings of customers. A nil error means that all sales are completed, or
// recorded for a later day. Otherwise the error is an *Error, unless the operation has no
// CallerId: then nothing was sent. If its Unknown is true, call BuyFund again with the same operation.
func (c *Client) BuyFund(ctx context.Context, o *BuyFund) (Answer, error) {
	if o.Header.CallerID == "" {
		return Answer{}, errors.New("the operation has no CallerId: make it with NewBuyFund, so that it can be repeated safely")
	}
	return c.do(ctx, operation.BuyFundFromCustomer, o.Header, o, &o.calls, o.isResumed())
}

// AddPush stores push notifications. A nil error means that all of them are
// stored. Otherwise the error is an *Error. A call may always be repeated: a
// notification that is stored already is not stored again.
func (c *Client) AddPush(ctx context.Context, o *AddPush) (Answer, error) {
	return c.do(ctx, operation.AddPushNotificationResponse, o.Header, o, &o.calls, false)
}

// parameters are the records of an operation.
type parameters interface {
	// faults returns the faults of the first record that has any.
	faults() []fault.Fault
	records() any
}

// do calls the service, and keeps in calls whether the operation may have had an effect. resumed
// reports whether another process may have sent the operation.
func (c *Client) do(ctx context.Context, name operation.Name, header operation.Header, p parameters, calls *calls, resumed bool) (Answer, error) {
	unknown := calls.begin() || resumed
	answer, failure := c.repeat(ctx, name, header, p, unknown)
	if failure == nil {
		return answer, nil
	}
	failure.CallerID = header.CallerID
	if !failure.Unknown {
		calls.forget()
	}
	return Answer{}, failure
}

// repeat sends one operation until its outcome is certain, or until no time is left. unknown
// reports whether an earlier attempt may have had an effect.
func (c *Client) repeat(ctx context.Context, name operation.Name, header operation.Header, p parameters, unknown bool) (Answer, *Error) {
	faults := p.faults()
	if len(faults) == 0 {
		faults = header.Faults() // JSON would replace bytes that are not UTF-8
	}
	if len(faults) > 0 {
		return Answer{}, &Error{Faults: faults, Unknown: unknown}
	}
	body, err := encode(header, p.records())
	if err != nil {
		return Answer{}, &Error{Cause: err, Unknown: unknown}
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Patience)
	defer cancel()
	for attempt := 1; ; attempt++ {
		answer, failure := c.attempt(ctx, name, body)
		if failure == nil {
			return answer, nil
		}
		unknown = !failure.certain && (unknown || failure.Unknown)
		failure.Unknown = unknown
		if !failure.retry || attempt == c.options.Attempts {
			return Answer{}, failure
		}
		if err := c.pause(ctx, attempt, failure.retryAfter); err != nil {
			failure.Cause = errors.Join(failure.Cause, err)
			return Answer{}, failure
		}
	}
}

// maxAnswer is larger than any answer of the service.
const maxAnswer = 16 << 20

func (c *Client) attempt(ctx context.Context, name operation.Name, body []byte) (Answer, *Error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, &Error{Cause: err}
	}
	response, content, err := c.send(ctx, http.MethodPost, c.base+name.String(), body, c.options.Timeout) //nolint:bodyclose // send has read and closed it
	if err != nil {
		// If no connection was made, the service cannot have done anything.
		dial, ok := errors.AsType[*net.OpError](err)
		notSent := ok && (dial.Op == "dial" || dial.Op == "proxyconnect")
		hopeless := isUntrusted(err) || isUnknownHost(err)
		return Answer{}, &Error{Status: response.StatusCode, Unknown: !notSent && !hopeless, Cause: err, retry: !hopeless && ctx.Err() == nil}
	}
	return read(response, content)
}

// isUntrusted reports whether the certificate of the service is not trusted. A repeat does not
// change that.
func isUntrusted(err error) bool {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return untrusted
}

// isUnknownHost reports whether the name of the service does not exist.
func isUnknownHost(err error) bool {
	lookup, ok := errors.AsType[*net.DNSError](err)
	return ok && lookup.IsNotFound
}

// send sends one request and reads its whole answer. After an error the response may be empty.
func (c *Client) send(ctx context.Context, method, address string, body []byte, timeout time.Duration) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return new(http.Response), nil, err
	}
	request.Header.Set("Ocp-Apim-Subscription-Key", c.key)
	request.Header.Set("Accept", "application/json, application/problem+json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if body != nil && c.options.WantReceipt {
		request.Header.Set("Want-Receipt", "1")
	}
	response, err := c.options.HTTP.Do(request)
	if err != nil {
		return new(http.Response), nil, err
	}
	defer response.Body.Close()
	// A connection is reusable only if the response is read to the end.
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response, content, err
}
