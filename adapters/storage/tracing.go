package storage

import (
	"context"
	"strings"
	"time"

	"gorm.io/gorm/logger"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
)

// tracing makes a span of every round trip to the database, and of each of its statements. It
// reports slow statements.
type tracing struct {
	batch.Dialect
	trace func(context.Context, string) (context.Context, func(error)) // may be nil
	slow  func(statements string, took time.Duration)                  // may be nil
}

// slowAfter is the duration from which a statement is slow.
const slowAfter = time.Second

// slowStatements is a logger for gorm. It reports slow statements without values.
type slowStatements struct {
	logger.Interface
	slow func(statements string, took time.Duration)
}

func (l slowStatements) Trace(_ context.Context, begin time.Time, statement func() (string, int64), _ error) {
	if took := time.Since(begin); took >= slowAfter {
		text, _ := statement()
		l.slow(text, took)
	}
}

// ParamsFilter removes the values.
func (slowStatements) ParamsFilter(_ context.Context, sql string, _ ...any) (string, []any) {
	return sql, nil
}

func (t tracing) Begin(ctx context.Context) (batch.Session, error) {
	session, err := t.Dialect.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return tracedSession{session, t}, nil
}

type tracedSession struct {
	batch.Session
	tracing
}

func (s tracedSession) Exchange(ctx context.Context, requests ...batch.Request) error {
	return s.traced(ctx, "exchange", requests, s.Session.Exchange)
}

func (s tracedSession) Commit(ctx context.Context, requests ...batch.Request) error {
	return s.traced(ctx, "commit", requests, s.Session.Commit)
}

// traced also makes a span of each statement. The statements are sent together, so their spans
// have the same time.
func (s tracedSession) traced(ctx context.Context, name string, requests []batch.Request, send func(context.Context, ...batch.Request) error) error {
	if s.slow != nil {
		defer s.reportSlow(time.Now(), requests) //nolint:forbidigo // measures a duration
	}
	if s.trace == nil {
		return send(ctx, requests...)
	}
	ctx, end := s.trace(ctx, name)
	ends := make([]func(error), len(requests))
	for i := range requests {
		_, ends[i] = s.trace(ctx, requests[i].Name)
	}
	err := send(ctx, requests...)
	for _, endSpan := range ends {
		endSpan(err)
	}
	end(err)
	return err
}

func (s tracedSession) reportSlow(began time.Time, requests []batch.Request) {
	if took := time.Since(began); took >= slowAfter {
		s.slow(strings.Join(tables.Convert(requests, func(r batch.Request) string { return r.Name }), ", "), took)
	}
}
