package store

import (
	"context"
	"time"

	"bankingapi/domain/day"
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

// Due counts the sales that are due at that time, and returns how long the oldest of
// them has been due.
func (s *Store) Due(ctx context.Context, now time.Time, zone *time.Location) (sales int64, lag time.Duration, err error) {
	sales, oldest, err := s.CountDue(ctx, day.Of(now, zone))
	if err == nil && sales > 0 {
		lag = now.Sub(oldest.Start(zone))
	}
	return sales, lag, err
}

// indexEvery is how often rows that were written are prepared for lookups.
const indexEvery = time.Second

// KeepIndexed calls Index until ctx ends. report receives its errors: lookups are
// slower then.
func (s *Store) KeepIndexed(ctx context.Context, report func(error)) {
	if s.Index == nil {
		return
	}
	ticker := time.NewTicker(indexEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := s.Index(ctx); err != nil && ctx.Err() == nil {
			report(err)
		}
	}
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
