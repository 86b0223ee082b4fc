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
	took := time.Since(begin)
	if took >= slowAfter {
		text, _ := statement()
		l.slow(text, took)
	}
}

// ParamsFilter removes the values.
func (slowStatements) ParamsFilter(_ context.Context, sql string, _ ...any) (string, []any) {
	return sql, nil
}

// around implements Around of batch.Hooks. The statements are sent together, so their spans have
// the same time.
func (t tracing) around(ctx context.Context, name string, requests []batch.Request) (context.Context, func(error)) {
	began := time.Now() //nolint:forbidigo // measures a duration
	end := func(error) {}
	if t.trace != nil {
		ctx, end = t.spans(ctx, name, requests)
	}
	return ctx, func(err error) {
		end(err)
		took := time.Since(began)
		if t.slow != nil && took >= slowAfter {
			t.slow(strings.Join(tables.Convert(requests, func(r batch.Request) string { return r.Name }), ", "), took)
		}
	}
}

// spans begins the spans of a round trip.
func (t tracing) spans(ctx context.Context, name string, requests []batch.Request) (context.Context, func(error)) {
	ctx, end := t.trace(ctx, name)
	ends := make([]func(error), len(requests))
	for i := range requests {
		_, ends[i] = t.trace(ctx, requests[i].Name)
	}
	return ctx, func(err error) {
		for _, endStatement := range ends {
			endStatement(err)
		}
		end(err)
	}
}
