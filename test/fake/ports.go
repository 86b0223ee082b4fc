package fake

import (
	"context"
	"time"

	"bankingapi/application/store"
	"bankingapi/domain/day"
)

// Ports returns the store as a storage adapter. strike may be nil. now is the
// time of imports. Close does nothing: the data live as long as the Store.
func (s *Store) Ports(strike Strike, now func() time.Time) *store.Store {
	ports := store.Unsupported()
	ports.Name = "memory"
	ports.Books, ports.Inboxes = s.Books(strike), s.Inboxes(strike)
	ports.Subscriptions, ports.Usage = s.Subscriptions(strike), s.Subscriptions(strike)
	ports.Backoffice, ports.CountDue = s.Backoffice(strike, now), s.countDue
	return ports
}

// Open is a storage driver for bootstrap.WithDriver. Its data are in the Store.
func (s *Store) Open(_ context.Context, o store.Options) (*store.Store, error) {
	return s.Ports(nil, o.Now), nil
}

func (s *Store) countDue(_ context.Context, on day.Day) (sales int64, oldest day.Day, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.recorded {
		for _, sale := range s.sales[id] {
			selected := sale.Terms.SelectedDay
			if selected.After(on) {
				continue
			}
			if sales++; oldest.IsNone() || selected.Before(oldest) {
				oldest = selected
			}
		}
	}
	return sales, oldest, nil
}
