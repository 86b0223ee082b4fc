package subscriptions

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"bankingapi/domain/subscription"
)

// use is when a subscription was used last, in microseconds of Unix time. It is
// written by every request, and to the storage once a minute.
type use struct {
	primary, secondary, withoutCallerID atomic.Int64
}

// uses are the uses since the last flush, by name.
type uses struct{ byName sync.Map }

func (u *uses) of(name string) *use {
	if known, ok := u.byName.Load(name); ok {
		return known.(*use)
	}
	known, _ := u.byName.LoadOrStore(name, new(use))
	return known.(*use)
}

func (u *uses) key(name string, slot subscription.Slot, now time.Time) {
	used := u.of(name)
	if slot == subscription.Primary {
		used.primary.Store(now.UnixMicro())
	} else {
		used.secondary.Store(now.UnixMicro())
	}
}

// take returns the uses since the last call.
func (u *uses) take() (all []Use) {
	u.byName.Range(func(name, value any) bool {
		used := value.(*use)
		each := Use{
			Name: name.(string), Primary: instant(used.primary.Swap(0)), Secondary: instant(used.secondary.Swap(0)),
			WithoutCallerID: instant(used.withoutCallerID.Swap(0)),
		}
		if each != (Use{Name: each.Name}) {
			all = append(all, each)
		}
		return true
	})
	return all
}

func instant(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// WithoutCallerID notes that a subscription has sent a BuyFundFromCustomer
// without a CallerId.
func (d *Directory) WithoutCallerID(name string) {
	d.uses.of(name).withoutCallerID.Store(d.now().UnixMicro())
}

// KeepUsage writes when subscriptions were used, in that interval and once more
// when ctx ends. Errors go to report; the times of that interval are lost then.
func (d *Directory) KeepUsage(ctx context.Context, usage Usage, interval time.Duration, report func(error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	flush := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxRead)
		defer cancel()
		if all := d.uses.take(); len(all) > 0 {
			if err := usage.Used(ctx, all); err != nil {
				report(err)
			}
		}
	}
	for {
		select {
		case <-ctx.Done():
			flush()
			return
		case <-ticker.C:
			flush()
		}
	}
}
