package store

import (
	"context"
	"time"

	"bankingapi/domain/fault"
)

// Durability returns sentences about what may lose data. The error says that an
// acknowledged operation may be lost, unless that is allowed, or that the storage
// cannot be asked. The Store must be complete.
func (s *Store) Durability(ctx context.Context, allowUnsafe bool) (warnings []string, err error) {
	risks, err := s.Risks(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range risks {
		if r.Unsafe && !allowUnsafe {
			return nil, fault.New(fault.Unavailable, r.Detail+" To run the service all the same, set storage.allow_unsafe.")
		}
		warnings = append(warnings, r.Detail)
	}
	return warnings, nil
}

// risksEvery is how often a storage that cannot be asked is asked again.
const risksEvery = 5 * time.Second

// TellRisks tells each risk once the storage answers, or returns when ctx ends.
func (s *Store) TellRisks(ctx context.Context, tell func(Risk)) {
	for {
		asked, cancel := context.WithTimeout(ctx, risksEvery)
		risks, err := s.Risks(asked)
		cancel()
		if err == nil {
			for _, r := range risks {
				tell(r)
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(risksEvery):
		}
	}
}
