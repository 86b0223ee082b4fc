package client

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	longestRetryAfter = time.Minute // the longest Retry-After that Outcomes waits for
	maxFactor         = 100         // limits the backoff to 100 times its first value
)

// pause waits after an attempt, from 1 on: the time that the service asked for plus a random part
// of the backoff. The random part keeps callers from retrying at the same moment after an outage. It
// returns an error immediately if the context would end first.
func (c *Client) pause(ctx context.Context, attempt int, retryAfter time.Duration) error {
	longest := c.options.Backoff * time.Duration(min(maxFactor, 1<<min(attempt-1, 10)))
	d := retryAfter + rand.N(longest) + 1 //nolint:gosec // jitter is no secret
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return context.DeadlineExceeded
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// retryAfter reads Retry-After in both of its forms: seconds, and a date, which
// is compared with the Date of the same answer.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	then, _ := http.ParseTime(text) // text that is not a date counts as long ago
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0
	}
	return max(0, then.Sub(now))
}
