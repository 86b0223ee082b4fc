package store

import (
	"context"
	"fmt"
	"time"

	"bankingapi/domain/fault"
)

// Durability returns what may lose data. The error says that an acknowledged operation may be
// lost, unless allowUnsafe is set, or that Risks failed.
func (s *Store) Durability(ctx context.Context, allowUnsafe bool) (warnings []Risk, err error) {
	risks, err := s.Risks(ctx)
	if err != nil {
		return nil, err
	}
	err = judge(risks, allowUnsafe)
	if err != nil {
		return nil, err
	}
	return risks, nil
}

// judge returns an error if a risk is not allowed.
func judge(risks []Risk, allowUnsafe bool) error {
	for _, r := range risks {
		if r.Unsafe && !allowUnsafe {
			return fault.New(fault.Unavailable, r.Detail+" To run the service all the same, set storage.allow_unsafe.")
		}
	}
	return nil
}

// maxSkew is the maximum error of the clock of the service.
const maxSkew = time.Minute

// Clock is the clock of the machine of the service.
type Clock struct {
	Now func() time.Time
	// Jump returns how far somebody has set the clock ahead since the service started. It is
	// negative if it was set back.
	Jump func() time.Duration
}

// CheckClock compares the clock of the service with those that the storage knows. An error says
// that the service must not change the book, because its day may be another one than that of the
// bank. The clock differs from that of the storage by more than a minute, or it is a minute
// behind the newest operation. If the storage has no clock, the clock must not jump by more than
// a minute either. With allowUnsafe, a wrong clock is only a warning.
func (s *Store) CheckClock(ctx context.Context, clock Clock, allowUnsafe bool) (warnings []string, err error) {
	before := clock.Now()
	theirs, newest, err := s.Clock(ctx)
	if err != nil {
		return nil, err
	}
	after := clock.Now()
	var risks []Risk
	wrong := func(format string, values ...any) {
		risks = append(risks, Risk{Unsafe: true, Detail: fmt.Sprintf(format, values...)})
	}
	agrees := false // with the clock of the storage
	if !theirs.IsZero() {
		ahead := before.Sub(theirs)
		behind := theirs.Sub(after)
		switch {
		case ahead > maxSkew:
			wrong("The clock of this machine is %s ahead of the clock of the database: sales would be settled before their day."+
				" Synchronize the clocks of both machines.", ahead.Round(time.Second))
		case behind > maxSkew:
			wrong("The clock of this machine is %s behind the clock of the database: sales would get the day and the price of the past."+
				" Synchronize the clocks of both machines.", behind.Round(time.Second))
		default:
			agrees = true
		}
	} else if jump := clock.Jump(); jump.Abs() > maxSkew {
		direction := "ahead"
		if jump < 0 {
			direction = "back"
		}
		wrong("The clock of this machine was set %s %s while the service ran. Synchronize the clock."+
			" If its time is right now, restart the service.", jump.Abs().Round(time.Second), direction)
	}
	behind := newest.Sub(after)
	at := newest.UTC().Format(time.RFC3339)
	switch {
	case behind <= maxSkew:
	case agrees:
		wrong("The newest operation was received at %s, %s after the time of this machine and of the database. Another replica's clock was ahead,"+
			" or the clocks of both were set back. Compare the clocks. If the time of this machine is right, storage.allow_unsafe is needed until %s.",
			at, behind.Round(time.Second), at)
	case theirs.IsZero():
		wrong("The newest operation was received at %s, %s after the time of this machine: its clock was set back,"+
			" or was ahead when the operation was received. Synchronize the clock. If its time is right, storage.allow_unsafe is needed until %s.",
			at, behind.Round(time.Second), at)
	}
	err = judge(risks, allowUnsafe)
	if err != nil {
		return nil, err
	}
	for _, r := range risks {
		warnings = append(warnings, r.Detail)
	}
	return warnings, nil
}
