package bootstrap

import (
	"context"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/subscription"
)

// Backoffice returns the use cases of people: lookups, corrections and verify. Package bookfile
// imports and exports files with it. It fails if the schema of the storage does not fit.
func (a *App) Backoffice(ctx context.Context) (*backoffice.Office, error) {
	return a.parts.Office, a.parts.Store.Schema.Require(ctx)
}

// Manager returns the use cases that create and change subscriptions. It fails if
// the schema of the storage does not fit.
func (a *App) Manager(ctx context.Context) (*subscriptions.Manager, error) {
	return a.parts.Manager, a.parts.Store.Schema.Require(ctx)
}

// Caller returns the active subscription of a key, or nil if no active one has it. Do not
// change the result. The error is fault.Unavailable if the storage cannot be read.
func (a *App) Caller(ctx context.Context, key string) (*subscription.Subscription, error) {
	if a.parts.Sandbox != nil { // its keys have a prefix
		return a.parts.Sandbox.Find(ctx, key)
	}
	return a.parts.Directory.Find(ctx, key)
}

// Backup writes a consistent copy of the data to a new file, while the service
// runs. Not every storage can do this.
func (a *App) Backup(ctx context.Context, file string) error {
	return a.parts.Store.Backup(ctx, file) // works also before a migration
}

// Settle settles the sales that are due now. This is one round of the settling that the service
// does in the background. If sales are due, Settle records the act before it settles them.
func (a *App) Settle(ctx context.Context) (settled buyfund.Settlement, err error) {
	err = a.parts.Store.Schema.Require(ctx)
	if err != nil {
		return settled, err
	}
	err = a.parts.Guard.run(ctx)
	if err != nil {
		return settled, err
	}
	due, err := a.parts.Buyer.CountDue(ctx)
	if err != nil {
		return settled, err
	}
	err = a.parts.Office.BeginSettling(ctx, due.ForSettling)
	if err != nil {
		return settled, err
	}
	return a.parts.Buyer.SettleDue(ctx)
}

// Trail returns the keeper of the trail. If no trail is kept, the error gives the reason.
func (a *App) Trail() (*trail.Keeper, error) { return a.parts.Trail, a.parts.Trail.Missing() }

// mostNamed bounds how many rows the details of an act name.
const mostNamed = 50

// TakeIn takes rows into the log of the trail that a wrong start left outside it: with another
// key, without its key, or with trail.enabled false. It is an act that names them. It returns the
// names of what it took, which are those of verify, also if what it took cannot be signed yet. Rows
// that were changed are not taken: verify goes on to report them.
func (a *App) TakeIn(ctx context.Context) (names []string, err error) {
	err = a.parts.Store.Schema.Require(ctx)
	if err != nil {
		return nil, err
	}
	return a.parts.Trail.TakeIn(ctx, func(taken []string) audit.Act {
		details := strings.Join(taken[:min(len(taken), mostNamed)], ", ")
		more := len(taken) - mostNamed
		if more > 0 {
			details += fmt.Sprintf(", and %d more", more)
		}
		return a.parts.Clocks.acts().New(ctx, audit.TrailAdopt, backoffice.Plural(len(taken), "row"), details)
	})
}

// Rekey begins a new log of the trail (see trail.Keeper). name is the origin of the new log.
// Stop all other replicas first: call CheckAlone before Open to find a running replica. Complete of
// the Keeper finds what another process has changed meanwhile: then call Rekey again. If a Rekey was
// killed before its log had begun, the next one goes on with its key. Rekey returns the newest
// checkpoint of the old log. It is empty if that log had none.
func (a *App) Rekey(ctx context.Context, name string) (last string, err error) {
	err = a.parts.Store.Schema.Require(ctx)
	if err != nil {
		return "", err
	}
	if !a.parts.Trail.IsWanted() {
		return "", a.parts.Trail.Missing()
	}
	ctx = unguarded(ctx) // the key may be missing, which is why the log begins anew
	interrupted, err := a.interruptedRekey(ctx)
	if err != nil {
		return "", err
	}
	if interrupted != nil {
		_, err = a.parts.Trail.Checkpoint(ctx)
		return interrupted.Details, err
	}
	last, err = a.parts.Trail.Last(ctx)
	if err != nil {
		a.parts.Log.zap.Warn("the log that ends cannot be signed", zap.Error(fault.Explain(err)))
	}
	err = a.parts.Trail.Rekey(ctx, name, func(verifyingKey string) audit.Act {
		return a.parts.Clocks.acts().New(ctx, audit.TrailRekey, verifyingKey, last)
	})
	return last, err
}

// interruptedRekey returns the act that has ended the last log for the key that is used now, if the log
// of this key has no checkpoint yet. Otherwise it returns nil.
func (a *App) interruptedRekey(ctx context.Context) (*audit.Act, error) {
	isEmpty, err := a.parts.Trail.IsEmpty(ctx)
	if err != nil || !isEmpty {
		return nil, nil //nolint:nilnil // a log that cannot be read may end, and Rekey logs the error
	}
	newest := backoffice.Query{Action: audit.TrailRekey, Limit: 1, Order: backoffice.Newest}
	for act, err := range a.parts.Office.Reader.Acts(ctx, newest) {
		if err != nil {
			return nil, err
		}
		if act.Object == a.parts.Trail.VerifyingKey() {
			return &act, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}
