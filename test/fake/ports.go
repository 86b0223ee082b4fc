package fake

import (
	"context"
	"time"

	"bankingapi/application/store"
)

// Ports returns the store as a storage adapter. strike may be nil. now is the
// time of imports. Close does nothing: the data live as long as the Store.
func (s *Store) Ports(strike Strike, now func() time.Time) *store.Store {
	ports := store.Unsupported()
	ports.Name = "memory"
	ports.Books = s.Books(strike)
	ports.Inboxes = s.Inboxes(strike)
	ports.Subscriptions = s.Subscriptions(strike)
	ports.Usage = s.Subscriptions(strike)
	ports.Requests = s.Requests(strike)
	ports.Replicas = s.Replicas(strike, time.Now)
	erasing := ports.Backoffice.Erasing
	ports.Backoffice = s.Backoffice(strike, now)
	ports.Backoffice.Erasing = erasing // this store forgets all with the process
	return ports
}

// Open is a storage driver for bootstrap.WithDriver. Its data are in the Store.
func (s *Store) Open(_ context.Context, o store.Options) (*store.Store, error) {
	return s.Ports(nil, o.Now), nil
}
