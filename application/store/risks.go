package store

import (
	"context"
	"fmt"
	"time"

	"bankingapi/domain/fault"
)

// Durability returns sentences about what may lose data. The error says that an acknowledged
// operation may be lost, unless allowUnsafe is set, or that Risks failed.
func (s *Store) Durability(ctx context.Context, allowUnsafe bool) (warnings []string, err error) {
	risks, err := s.Risks(ctx)
	if err != nil {
		return nil, err
	}
	return judge(risks, allowUnsafe)
}

func judge(risks []Risk, allowUnsafe bool) (warnings []string, err error) {
	for _, r := range risks {
		if r.Unsafe && !allowUnsafe {
			return nil, fault.New(fault.Unavailable, r.Detail+" To run the service all the same, set storage.allow_unsafe.")
		}
		warnings = append(warnings, r.Detail)
	}
	return warnings, nil
}

// maxSkew is the maximum error of the clock of the service.
const maxSkew = time.Minute

// CheckClock compares the clock of the service with those that the storage knows. The error
// says that the service must not settle. Another time zone begins the days of the book, or the
// clock is a minute ahead of the storage's. A storage without a clock has the newest sale as
// its witness: the clock was set back, or was ahead before. With allowUnsafe a wrong clock is
// only a warning, as one that is behind always is.
func (s *Store) CheckClock(ctx context.Context, now func() time.Time, zone *time.Location, allowUnsafe bool) (warnings []string, err error) {
	at := now()
	theirs, newest, err := s.Clock(ctx, zone.String())
	if err != nil {
		return nil, err
	}
	hasClock := !theirs.IsZero()
	var risks []Risk
	if ahead := at.Sub(theirs); hasClock && ahead > maxSkew {
		risks = append(risks, Risk{Unsafe: true, Detail: fmt.Sprintf("The clock of this machine is %s ahead of the clock of the database: "+
			"sales would be settled before their day. Synchronize the clock of this machine.", ahead.Round(time.Second))})
	}
	if behind := theirs.Sub(now()); behind > maxSkew {
		risks = append(risks, Risk{Detail: fmt.Sprintf("The clock of this machine is %s behind the clock of the database: "+
			"sales may get the wrong day. Synchronize the clock of this machine.", behind.Round(time.Second))})
	}
	if behind := newest.Sub(now()); behind > maxSkew {
		risks = append(risks, Risk{Unsafe: !hasClock, Detail: fmt.Sprintf("The newest sale was received at %s, %s after the time of this machine: "+
			"its clock was set back, or was ahead before. Synchronize the clock.", newest.UTC().Format(time.RFC3339), behind.Round(time.Second))})
	}
	return judge(risks, allowUnsafe)
}
