package httpapi

import (
	"context"
	"sync"
	"time"

	"bankingapi/domain/operation"
)

const (
	// receiptsKept bounds the receipts that are kept, in bytes.
	receiptsKept = 8 << 20
	// receiptAge is how long a receipt is kept, so that what changes them, such as a new
	// signing key or an erasure, has an end.
	receiptAge = 10 * time.Minute
)

// receipts keeps the receipts that were made last. A repeat costs little, and a receipt is read
// from the storage and signed. Without this a caller could use far more than its rate by asking
// for the receipt of one operation again and again. It is safe for concurrent use.
type receipts struct {
	mutex  sync.Mutex
	bytes  int
	made   map[answered]receipt
	oldest []answered // in the order in which they were made
}

// answered is an operation and the State of its answer. A sale for a later day gets another
// receipt once it has ended.
type answered struct {
	id    operation.ID
	state operation.State
}

type receipt struct {
	header string
	made   time.Time
}

// find returns the header of a receipt that is kept, or "".
func (k *receipts) find(of answered, now time.Time) string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.forget(now)
	return k.made[of].header
}

// add keeps a receipt, and forgets the oldest ones if there are too many.
func (k *receipts) add(of answered, header string, now time.Time) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if _, known := k.made[of]; known { // two requests made it at the same time
		return
	}
	if k.made == nil {
		k.made = make(map[answered]receipt)
	}
	k.made[of] = receipt{header: header, made: now}
	k.oldest = append(k.oldest, of)
	k.bytes += len(header)
	k.forget(now)
}

// forget removes the receipts that are too old or too many.
func (k *receipts) forget(now time.Time) {
	for len(k.oldest) > 0 {
		oldest := k.made[k.oldest[0]]
		if k.bytes <= receiptsKept && now.Sub(oldest.made) < receiptAge {
			return
		}
		k.bytes -= len(oldest.header)
		delete(k.made, k.oldest[0])
		k.oldest = k.oldest[1:]
	}
}

// receiptWait is how long a request waits until its receipt can be made. It takes some milliseconds
// to make one, so a partner gets those of a thousand requests that it sends at the same time.
const receiptWait = 2 * time.Second

// receiptsAtOnce is how many receipts of a subscription are made at the same time. Those of many
// connections would take all connections to the storage from others.
const receiptsAtOnce = 2

// receipt returns the header of a receipt, or "" if there is none. The operation was decided, so the
// answer does not wait long.
func (a *api) receipt(ctx context.Context, subscription string, of answered) string {
	kept := a.receipts.find(of, a.Now())
	if kept != "" {
		return kept
	}
	waiting, stop := context.WithTimeout(ctx, receiptWait)
	defer stop()
	if !a.receiptTurns.take(waiting, subscription) {
		return ""
	}
	defer a.receiptTurns.give(subscription)
	now := a.Now()
	kept = a.receipts.find(of, now)
	if kept != "" {
		return kept
	}
	header := a.Receipt(ctx, of.id)
	if header != "" {
		a.receipts.add(of, header, now)
	}
	return header
}
