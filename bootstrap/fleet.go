package bootstrap

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"time"

	"go.uber.org/fx"

	"bankingapi/adapters/opsapi"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/fleet"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/fault"
)

const (
	// replicaEvery is how often a replica keeps its row on a server of several replicas. The others
	// notice within three seconds that it was killed. fileEvery is for a file: it has one service,
	// of which only commands ask, and each write costs the disk a flush.
	replicaEvery, fileEvery = 500 * time.Millisecond, time.Second
)

func newActivity(c clocks) *fleet.Activity { return fleet.NewActivity(c.now()) }

// fleetParts are the parts that the watch of the replicas uses.
type fleetParts struct {
	fx.In
	Settings    validSettings
	Book        bookSource
	Clocks      clocks
	Log         serviceLog
	Release     release
	Store       *store.Store
	Readiness   *opsapi.Readiness
	Activity    *fleet.Activity
	Certificate *apiCertificate
	State       bookState
}

// newFleet makes the watch of this replica and of all others. When the service stops, its row
// ends.
func newFleet(lc fx.Lifecycle, p fleetParts) *fleet.Watch {
	every := replicaEvery
	if p.Store.HasDataFile {
		every = fileEvery
	}
	watch := fleet.NewWatch(fleet.Options{
		ID: p.Clocks.newID(), Name: replicaName(p.Settings.HTTP.Address), Version: p.Release.version, Replicas: p.Store.Replicas, Every: every,
		Checks: p.Readiness.Results, CertificateEnd: p.Certificate.end, Activity: p.Activity, State: p.State.read,
		Machine: p.Clocks.now, Failed: p.Log.warn("the service could not be looked at"),
	})
	lc.Append(fx.StopHook(watch.Stop))
	if !p.Book.isCommand() {
		remove := func(ctx context.Context) error { return watch.Remove(unguarded(context.WithoutCancel(ctx))) }
		lc.Append(fx.StopHook(p.Log.lastly("the row of this replica could not be deleted", remove)))
	}
	return watch
}

// replicaName returns the host and the port of the API, or the number of the process if the
// port is not fixed. A replica that is started again has the same name.
func replicaName(address string) string {
	host, _ := os.Hostname() // empty if the system has none
	_, port, _ := net.SplitHostPort(address)
	if port == "" || port == "0" {
		port = strconv.Itoa(os.Getpid())
	}
	return host + ":" + port
}

// bookState has the parts that know the state of the book.
type bookState struct {
	fx.In
	Clocks  clocks
	Office  *backoffice.Office
	Manager *subscriptions.Manager
	Buyer   *buyfund.Buyer
}

// read reads what concerns all replicas.
func (s bookState) read(ctx context.Context) (fleet.State, error) {
	due, failedDue := s.Buyer.CountDue(ctx)
	partners, failedPartners := s.Manager.List(ctx)
	checked, failedChecked := s.Office.LastVerified(ctx)
	return fleet.State{Due: due, Subscriptions: partners, Checked: checked, Now: s.Clocks.now(), Bank: s.Clocks.bank(), Zone: s.Office.Zone()},
		errors.Join(failedDue, failedPartners, failedChecked)
}

// Status returns what is wrong with all replicas of the service and with its book, as the bar of
// the console shows it. It reads the storage. A command uses it: it is no replica. If no replica
// reports, it also says whether the storage can be used from here.
func (a *App) Status(ctx context.Context) (fleet.Status, error) {
	status, err := a.look(ctx)
	if ctx.Err() != nil || status.Reports() {
		return status, err
	}
	problem := err
	if err == nil || !isSilence(err) {
		problem = a.parts.Store.Ping(ctx)
	}
	if problem == nil {
		return status, err
	}
	return status.WithoutDatabase(fault.Explain(problem).Error()), nil
}

// ForgetReplicas deletes the rows of all replicas. A backup has the rows of those that ran when it was
// made: where it is restored, they would be missing for an hour.
func (a *App) ForgetReplicas(ctx context.Context) error {
	rows, err := a.parts.Store.Replicas.All(ctx)
	for _, r := range rows {
		err = errors.Join(err, a.parts.Store.Replicas.Remove(unguarded(ctx), r.ID))
	}
	return err
}

func (a *App) look(ctx context.Context) (fleet.Status, error) {
	p := a.parts
	err := p.Store.Schema.Require(ctx)
	if err != nil {
		return fleet.Status{}, err
	}
	state := bookState{Clocks: p.Clocks, Office: p.Office, Manager: p.Manager, Buyer: p.Buyer}
	return fleet.Look(ctx, p.Store.Replicas, state.read)
}
