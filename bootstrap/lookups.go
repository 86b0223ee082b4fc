package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// Operation is everything that is kept of an operation.
type Operation = backoffice.Operation

// FindOperation finds an operation by its ID, refused ones too, or an import or
// correction.
func (a *App) FindOperation(ctx context.Context, id string) (Operation, error) {
	if err := a.usable(ctx); err != nil {
		return Operation{}, err
	}
	parsed, err := operation.ParseID(id)
	if err != nil {
		return Operation{}, fmt.Errorf("%q is no ID of an operation", id)
	}
	found, err := a.Backoffice().Operation(ctx, parsed)
	return found, notFound(err, "operation "+id)
}

// FindOperationsOf finds the operations that a subscription sent with a CallerId:
// at most one of each kind.
func (a *App) FindOperationsOf(ctx context.Context, subscription, callerID string) (all []Operation, err error) {
	if err := a.usable(ctx); err != nil {
		return nil, err
	}
	for _, name := range operation.Names {
		found, err := a.Backoffice().OperationOf(ctx, idempotency.Key{CallerID: callerID, Subscription: subscription, Operation: name})
		switch {
		case err == nil:
			all = append(all, found)
		case !errors.Is(err, backoffice.ErrNotFound):
			return nil, explain(err)
		}
	}
	if len(all) == 0 {
		return nil, notFound(backoffice.ErrNotFound, "an operation with this CallerId of this subscription")
	}
	return all, nil
}

// FindOperationsOfRequest finds the operations of an X-Request-Id.
func (a *App) FindOperationsOfRequest(ctx context.Context, requestID string) ([]Operation, error) {
	if err := a.usable(ctx); err != nil {
		return nil, err
	}
	all, err := a.Backoffice().OperationsOfRequest(ctx, requestID)
	return all, notFound(err, "an operation with this X-Request-Id")
}

// FindNotifications finds the notifications with a PushId.
func (a *App) FindNotifications(ctx context.Context, pushID string) (all []push.Entry, err error) {
	if err := a.usable(ctx); err != nil {
		return nil, err
	}
	for n, err := range a.Backoffice().History.Notifications(ctx, backoffice.Filter{PushID: pushID}) {
		if err != nil {
			return nil, explain(err)
		}
		all = append(all, n)
	}
	if len(all) == 0 {
		return nil, notFound(backoffice.ErrNotFound, "a notification with this PushId")
	}
	return all, nil
}

func notFound(err error, what string) error {
	if errors.Is(err, backoffice.ErrNotFound) {
		return fmt.Errorf("not found: %s", what)
	}
	return explain(err)
}

// FindCustomer finds what a customer has or, if until is not the zero time, had
// before until, and the statement: the postings with the quantity after each.
func (a *App) FindCustomer(ctx context.Context, customer int64, until time.Time) (backoffice.Customer, iter.Seq2[backoffice.Line, error], error) {
	if err := a.usable(ctx); err != nil {
		return backoffice.Customer{}, nil, err
	}
	finder := a.Backoffice().Finder
	found, err := finder.Customer(ctx, customer, until)
	return found, finder.Statement(ctx, customer, until), explain(err)
}

// DescribePosting names the holding or account of a posting, and formats
// quantities of it.
func DescribePosting(p *fund.Posting) (position string, format func(int64) string) {
	if p.IsMoney() {
		return fmt.Sprintf("account %d-%d-%d %s", p.Account.BranchCode, p.Account.CustomerNo, p.Account.AccountSuffix, p.Account.Currency.Code()),
			func(n int64) string { return money.New(n, p.Account.Currency).String() }
	}
	return p.Holding.IMKBCode + " " + p.Holding.HolderCorporationName, func(n int64) string { return fund.Units(n).String() }
}

// Backup writes a consistent copy of the data to a new file, while the service
// runs. Not every storage can do this.
func (a *App) Backup(ctx context.Context, file string) error {
	if err := a.usable(ctx); err != nil {
		return err
	}
	if a.store.Backup == nil {
		return errors.New("this storage is backed up with its own tools: for Postgres use pg_dump, or a base backup with WAL archiving")
	}
	return a.store.Backup(ctx, file)
}
