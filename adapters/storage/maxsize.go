package storage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bankingapi/domain/fault"
)

// measureEvery is how old the size of the tables may be when a transaction begins.
const measureEvery = time.Second

// sizeLimit refuses transactions that write while the tables are larger than Options.MaxSize. It
// is safe for concurrent use.
type sizeLimit struct {
	max      int64 // bytes
	engine   Engine
	tables   []string
	mayWrite func(ctx context.Context) error // is called first; may be nil

	mutex  sync.Mutex
	fitted time.Time // when the size was last measured and fitted
}

// mayExceed is the key of a context whose transactions a sizeLimit does not refuse: they make the
// tables smaller.
type mayExceed struct{}

// check implements MayWrite of batch.Hooks.
func (l *sizeLimit) check(ctx context.Context) error {
	if l.mayWrite != nil {
		err := l.mayWrite(ctx)
		if err != nil {
			return err
		}
	}
	if ctx.Value(mayExceed{}) != nil {
		return nil
	}
	now := time.Now() //nolint:forbidigo // measures a duration
	l.mutex.Lock()
	isKnown := now.Sub(l.fitted) < measureEvery
	l.mutex.Unlock()
	if isKnown {
		return nil
	}
	size, err := l.engine.Size(ctx, l.tables)
	if err != nil {
		return err
	}
	if size > l.max {
		return fault.New(fault.Unavailable, fmt.Sprintf("The database has reached its maximum size of %d MiB.", l.max>>20))
	}
	l.mutex.Lock()
	l.fitted = now
	l.mutex.Unlock()
	return nil
}
