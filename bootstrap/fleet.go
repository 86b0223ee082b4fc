package bootstrap

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/opsapi"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/fleet"
	"bankingapi/application/subscriptions"
)

const (
	// replicaEvery is how often a replica keeps its row on a server of several replicas. The others
	// notice within three seconds that it was killed. fileEvery is for a file: it has one service,
	// of which only commands ask, and each write costs the disk a flush.
	replicaEvery, fileEvery = 500 * time.Millisecond, time.Second
)

func newActivity(w *setup) *fleet.Activity { return fleet.NewActivity(w.now()) }

// newFleet makes the watch of this replica and of all others. When the service stops, its row
// ends.
func newFleet(lc fx.Lifecycle, p coreParts, readiness *opsapi.Readiness, activity *fleet.Activity) *fleet.Watch {
	w := p.Setup
	every := replicaEvery
	if p.Store.HasDataFile {
		every = fileEvery
	}
	watch := fleet.NewWatch(fleet.Options{
		ID: w.acts.NewID(), Name: w.replicaName(), Version: w.version, Replicas: p.Store.Replicas, Every: every,
		Checks: readiness.Results, Activity: activity, Machine: w.now, State: stateOf(w, p.Office, p.Manager, p.Buyer),
		CertificateEnd: func() time.Time {
			server := w.api.Load()
			if server == nil {
				return time.Time{}
			}
			return server.CertificateEnd()
		},
		Failed: func(err error) { w.log.Warn("the service could not be looked at", zap.Error(err)) },
	})
	lc.Append(fx.StopHook(watch.Stop))
	if !w.storage.MustExist {
		lc.Append(fx.StopHook(w.lastly("the row of this replica could not be deleted", func(ctx context.Context) error {
			return watch.Remove(unguarded(context.WithoutCancel(ctx)))
		})))
	}
	return watch
}

// replicaName returns the host and the port of the API, or the number of the process if the
// port is not fixed. A replica that is started again has the same name.
func (w *setup) replicaName() string {
	host, _ := os.Hostname() // empty if the system has none
	_, port, _ := net.SplitHostPort(w.settings.HTTP.Address)
	if port == "" || port == "0" {
		port = strconv.Itoa(os.Getpid())
	}
	return host + ":" + port
}

// stateOf returns how to read what concerns all replicas.
func stateOf(w *setup, office *backoffice.Office, manager *subscriptions.Manager, buyer *buyfund.Buyer) func(context.Context) (fleet.State, error) {
	return func(ctx context.Context) (fleet.State, error) {
		due, failedDue := buyer.CountDue(ctx)
		partners, failedPartners := manager.List(ctx)
		checked, failedChecked := office.LastVerified(ctx)
		return fleet.State{Due: due, Subscriptions: partners, Checked: checked, Now: w.now(), Bank: w.bank(), Zone: office.Zone()},
			errors.Join(failedDue, failedPartners, failedChecked)
	}
}

// Status returns what is wrong with all replicas of the service and with its book, as the bar of
// the console shows it. It reads the storage. A command uses it: it is no replica.
func (a *App) Status(ctx context.Context) (fleet.Status, error) {
	p := a.parts
	if err := p.Store.Schema.Require(ctx); err != nil {
		return fleet.Status{}, err
	}
	return fleet.Look(ctx, p.Store.Replicas, stateOf(a.setup, p.Office, p.Manager, p.Buyer))
}
