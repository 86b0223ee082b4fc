package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Outcome is the result of an operation after it was answered.
type Outcome struct {
	OperationID string `json:"OperationId"`
	CallerID    string `json:"CallerId"`
	Operation   string
	// State is operation.Completed, or operation.Failed with Faults.
	State  operation.State
	At     time.Time
	Faults []fault.Fault `json:"Errors"`
	// Reversed means that the bank undid the operation.
	Reversed bool
	// Cursor is where the next call begins: after this outcome if it is the last of its page,
	// otherwise at the page again. Keep it after processing the outcome. Some may come twice.
	Cursor string `json:"-"`
}

// ErrCursorLost is returned by Outcomes if the outcome of the cursor is not at its place: the bank
// has restored its book, or lost commits in a failover. Begin again with an empty cursor, and skip
// the outcomes that you have processed already: recognize them by OperationID and Reversed.
var ErrCursorLost = errors.New("outcomes: the outcome of the cursor is not at its place: begin again without a cursor")

// pollWait is how long the service holds a request until an outcome exists.
const pollWait = 20 * time.Second

// emptyPause is the minimum time between the requests for two empty pages.
const emptyPause = time.Second

// Outcomes yields the outcomes of the caller's operations in their order, and then each new
// outcome, until ctx ends. after is the cursor of the last processed outcome, or empty for the
// beginning. Outcomes repeats a failed request, without the limits Patience and Attempts. It yields
// an error only if a repeat would fail too: ErrCursorLost, or an *Error, because the service refuses
// the request (an unknown path, a wrong key, a wrong cursor), its name does not exist, or its
// certificate is not trusted.
func (c *Client) Outcomes(ctx context.Context, after string) iter.Seq2[Outcome, error] {
	return func(yield func(Outcome, error) bool) {
		for attempt := 1; ; attempt++ {
			asked := time.Now() //nolint:forbidigo // measures a duration
			page, refused, err := c.outcomes(ctx, after)
			switch {
			case ctx.Err() != nil:
				return
			case refused:
				yield(Outcome{}, err)
				return
			case err != nil:
				if c.pause(ctx, attempt, min(page.again, longestRetryAfter)) != nil {
					return
				}
				continue
			}
			attempt = 0
			// A service with many waiting callers may answer at once. Then do not ask at once again.
			if len(page.Outcomes) == 0 && time.Since(asked) < emptyPause && c.pause(ctx, 1, emptyPause) != nil {
				return
			}
			// Only the last outcome of a page has its own cursor. The cursor of an earlier
			// outcome begins the page again.
			for i, o := range page.Outcomes {
				o.Cursor = after
				if i == len(page.Outcomes)-1 {
					o.Cursor = page.Next
				}
				if !yield(o, nil) {
					return
				}
			}
			after = page.Next
		}
	}
}

type outcomesPage struct {
	Outcomes []Outcome
	Next     string
	again    time.Duration // the wait of Retry-After
}

// outcomes reads one page. refused means that a repeat would also fail.
func (c *Client) outcomes(ctx context.Context, after string) (page outcomesPage, refused bool, err error) {
	address := strings.TrimSuffix(c.base, "BankingApiV01/") + "outcomes?" + url.Values{"after": {after}, "wait": {pollWait.String()}}.Encode()
	response, content, err := c.send(ctx, http.MethodGet, address, nil, c.options.Timeout+pollWait) //nolint:bodyclose // send has read and closed it
	if err != nil {
		hopeless := isUntrusted(err) || isUnknownHost(err)
		return page, hopeless, &Error{Status: response.StatusCode, Cause: err}
	}
	if response.StatusCode == http.StatusGone {
		return page, true, ErrCursorLost
	}
	if response.StatusCode != http.StatusOK {
		page.again = retryAfter(response.Header)
		mayPass := slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooManyRequests}, response.StatusCode) || response.StatusCode >= http.StatusInternalServerError
		_, failure := read(response, content)
		failure.Unknown = false // nothing was to be done
		return page, !mayPass, fmt.Errorf("outcomes: %w", failure)
	}
	err = json.Unmarshal(content, &page)
	if err != nil {
		return page, false, err
	}
	if page.Next == "" { // an empty cursor would begin with the first outcome again
		return page, false, errors.New("outcomes: the answer has no cursor")
	}
	return page, false, nil
}
