package postgres

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// hosts dials one of several hosts, which are tried in their order. After a failover the first
// one may be a machine that does not answer: each new connection would wait for it.
type hosts struct {
	dial   pgconn.DialFunc
	silent sync.Map // when an address did not answer, by address
}

const (
	// silentFor is for how long a host that did not answer is dialed for no longer than briefly.
	silentFor = time.Minute
	briefly   = time.Second / 4
	// maxSilence is how long a connection waits for a machine that acknowledges no packet, as
	// after a failover. Linux would wait for a quarter of an hour, and so would a chore.
	maxSilence = 30 * time.Second
)

// dialOne is a pgconn.DialFunc.
func (h *hosts) dialOne(ctx context.Context, network, address string) (net.Conn, error) {
	began := time.Now() //nolint:forbidigo // measures a duration
	last, _ := h.silent.Load(address)
	since, isSilent := last.(time.Time)
	if isSilent = isSilent && began.Sub(since) < silentFor; isSilent {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, briefly)
		defer stop()
	}
	conn, err := h.dial(ctx, network, address)
	if err == nil {
		h.silent.Delete(address)
	} else if !isSilent && time.Since(began) >= briefly { // nobody refused it
		h.silent.Store(address, began)
	}
	return conn, err
}
