package storage

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"bankingapi/domain/fault"
)

const (
	// maxAttempts bounds how often a transaction that lost a race is run.
	maxAttempts = 12
	// firstPause doubles with every attempt, up to lastPause; each pause is a
	// random part of that, so that those who met once do not meet again.
	firstPause = 2 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// transact runs work in a transaction of its own, again while it loses races.
// work ends with Commit. The error has its kind, as the ports promise.
func (s *Store) transact(ctx context.Context, work func(Session) error) error {
	return s.again(ctx, func() error { return s.attempt(ctx, work) })
}

// again runs a whole transaction, again while it loses races.
func (s *Store) again(ctx context.Context, transaction func() error) error {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		err := transaction()
		if err == nil {
			return nil
		}
		failure := s.classify(err)
		if failure != LostRace || attempt >= s.attempts || !rest(ctx, pause) {
			return withKind(failure, err)
		}
		pause = min(2*pause, lastPause)
	}
}

func (s *Store) attempt(ctx context.Context, work func(Session) error) error {
	if err := s.RequireSchema(ctx); err != nil {
		return err
	}
	session, err := s.engine.Begin(ctx)
	if err != nil {
		return err
	}
	defer session.Rollback()
	return work(session)
}

// rest waits for a random part of pause; false when ctx ended before.
func rest(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(rand.N(pause) + 1) //nolint:gosec // jitter is no secret
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// withKind puts an engine's error into the words of the ports.
func withKind(failure Failure, err error) error {
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return known
	}
	switch failure {
	case LostRace, Unreachable:
		return fault.Wrap(fault.Unavailable, err, "The storage cannot be reached.")
	case Interrupted:
		return fault.Wrap(fault.Indeterminate, err, "The connection to the storage was lost during the commit.")
	default:
		return fault.Wrap(fault.Internal, err, "storage")
	}
}

// translate is withKind for an error that came from outside a transaction.
func (s *Store) translate(err error) error {
	if err == nil {
		return nil
	}
	return withKind(s.classify(err), err)
}

// classify is the engine's, and knows what package sql says of a database that
// its owner has closed, for which there is no value to compare with.
func (s *Store) classify(err error) Failure {
	if err.Error() == "sql: database is closed" {
		return Unreachable
	}
	return s.engine.Classify(err)
}
