package write

import (
	"context"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/trail"
	"bankingapi/domain/audit"
)

// acts is backoffice.Audit.
type acts struct{ trail.Writer }

func (a acts) Record(ctx context.Context, act audit.Act) error {
	ctx = audit.With(ctx, act)
	return a.Transact(ctx, func(session batch.Session) error { return session.Commit(ctx, a.ActWrites(ctx, nil)...) })
}
