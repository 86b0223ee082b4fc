package subscriptions

import (
	"context"
	"sync"
	"time"
)

// uses are when subscriptions were used since the last flush, by name. Every request
// notes one, and they are written to the storage once a minute.
type uses struct {
	sync.Mutex
	byName map[string]*Use
}

// note lets set change the Use of a subscription.
func (u *uses) note(name string, set func(*Use)) {
	u.Lock()
	defer u.Unlock()
	use := u.byName[name]
	if use == nil {
		use = &Use{Name: name}
		u.byName[name] = use
	}
	set(use)
}

// take returns the uses since the last call.
func (u *uses) take() (all []Use) {
	u.Lock()
	defer u.Unlock()
	for _, use := range u.byName {
		all = append(all, *use)
	}
	clear(u.byName)
	return all
}

// WithoutCallerID notes that a subscription has sent a BuyFundFromCustomer
// without a CallerId.
func (d *Directory) WithoutCallerID(name string) {
	now := d.now().Truncate(time.Microsecond)
	d.uses.note(name, func(u *Use) { u.WithoutCallerID = now })
}

// KeepUsage writes when subscriptions were used since the last call, also after ctx has
// ended. If it fails, these times are lost.
func (d *Directory) KeepUsage(ctx context.Context, usage Usage) error {
	all := d.uses.take()
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxRead)
	defer cancel()
	return usage.Used(ctx, all)
}
