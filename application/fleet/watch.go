package fleet

import (
	"context"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bankingapi/application/summary"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Options are what a replica tells of itself. All fields without another word are required.
type Options struct {
	ID            operation.ID
	Name, Version string
	Replicas      Replicas
	// Every is how often the replica keeps its row.
	Every time.Duration
	// Checks are the conditions for the replica to be ready. CertificateEnd is the zero time
	// without a certificate.
	Checks         func() []summary.Check
	CertificateEnd func() time.Time
	Activity       *Activity
	// State reads what concerns the whole service.
	State func(context.Context) (State, error)
	// Machine is the real time.
	Machine func() time.Time
	// Failed receives a panic of a check. It may be nil.
	Failed func(error)
}

// Watch looks at this replica and at all others. Reading it needs no storage: everything is read
// in the background, at most as often as somebody asks. It is safe for concurrent use.
type Watch struct {
	o     Options
	began time.Time
	// hasRow is set when the first row of this process may be stored, isKept when it is. keeping is
	// how long the last write of the row took.
	hasRow, isKept atomic.Bool
	keeping        atomic.Int64

	mu        sync.Mutex
	running   sync.WaitGroup
	isStopped bool
	checks    kept[[]summary.Check]
	book      kept[State]
	replicas  kept[[]Replica]
	// late is by how much the row of this replica was late at lateAt.
	late   time.Duration
	lateAt time.Time
	// since is when each trouble of this replica was first seen. While the replica is not ready, a
	// trouble that is not seen may continue: its check may have no result.
	since, sinceOfBook map[string]time.Time
}

// kept is the last value that was read.
type kept[T any] struct {
	value T
	began time.Time     // of the last run
	took  time.Duration // how long it took
	done  chan struct{} // closed when the run ends; nil if no run is active
}

const (
	// checkAge, bookAge and replicaAge are the maximum ages of what was read. The book may be
	// readShare times as old as its reading took, because millions of sales may wait.
	checkAge, bookAge, replicaAge = time.Second, 2 * time.Second, 250 * time.Millisecond
	readShare                     = 20
	// A reader waits checkWait for new results. A run longer than checkSilence is a trouble.
	checkWait, checkSilence = 200 * time.Millisecond, time.Second
	// A replica counts as missing if it has not kept its row for Every and grace. With what a page
	// needs to read it, an operator sees within three seconds that a replica was killed.
	grace = 1500 * time.Millisecond
	// recovery is how long replicas may take to write again after the storage was slow.
	recovery = 5 * time.Second
	// patience is the maximum time of a read or a write.
	patience = 2 * time.Second
)

// NewWatch returns the watch of a replica.
func NewWatch(o Options) *Watch {
	return &Watch{o: o, began: o.Machine()}
}

// Keep keeps the row of this replica. The service calls it once in each Every. The first row
// replaces those of the same name at once: a name has the port, so the process before has ended.
// If it has not, it keeps its row again.
func (w *Watch) Keep(ctx context.Context) error {
	r := w.own()
	var replaced time.Duration
	if w.isKept.Load() {
		replaced = r.Silence
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := w.o.Machine()
	w.hasRow.Store(true)
	err := w.o.Replicas.Keep(ctx, r, replaced)
	took := w.o.Machine().Sub(began)
	w.keeping.Store(int64(min(max(0, took), patience))) // the clock may have been set
	if err != nil {
		return err
	}
	w.isKept.Store(true)
	return nil
}

// Remove deletes the row of this replica, if it has tried to keep one: it stops. An error is of a
// row that was kept.
func (w *Watch) Remove(ctx context.Context) error {
	if !w.hasRow.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := w.o.Replicas.Remove(ctx, w.o.ID)
	if !w.isKept.Load() {
		return nil
	}
	return err
}

// Wait waits until nothing is read in the background. Nobody may call Status meanwhile.
func (w *Watch) Wait() { w.running.Wait() }

// Stop waits until nothing is read in the background. From then on, Status returns what was read
// last: a page may still be made when the service stops.
func (w *Watch) Stop() {
	w.mu.Lock()
	w.isStopped = true
	w.mu.Unlock()
	w.running.Wait()
}

// own returns this replica and its troubles.
func (w *Watch) own() Replica {
	now := w.o.Machine()
	checks, isSilent := w.results()
	all := ofChecks(checks)
	if isSilent && len(all) == 0 {
		all = append(all, Trouble{
			Kind: Silent, Text: "The checks of the service do not end. Its database may hang.",
			Effect: unavailable, Next: nextOfCheck[Silent], Partners: partnersRepeat, Bad: true,
		})
	}
	all = append(all, ofCertificate(checks, w.o.CertificateEnd(), now)...)
	all = append(all, ofTraffic(w.o.Activity, now)...)
	w.date(all, now, &w.since)
	if slices.ContainsFunc(all, Trouble.isOfClock) {
		for i := range all {
			all[i].Since = time.Time{} // it may be days away from the time of the others
		}
	}
	// A row becomes as old as two writes: it has the time at which its own began, and stays until
	// the next one has ended.
	silence := w.o.Every + grace + 2*time.Duration(w.keeping.Load())
	return Replica{ID: w.o.ID, Name: w.o.Name, Version: w.o.Version, Began: w.began, Silence: silence, Troubles: all}
}

// date sets since when each trouble is seen, unless it is known. All that make the replica not
// ready share one time.
func (w *Watch) date(all []Trouble, now time.Time, seen *map[string]time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	since := make(map[string]time.Time)
	if slices.ContainsFunc(all, Trouble.IsUnready) {
		maps.Copy(since, *seen)
	}
	for i := range all {
		key := all[i].shape()
		if all[i].IsUnready() {
			key = unavailable
		}
		first := (*seen)[key]
		if first.IsZero() {
			first = now
		}
		since[key] = first
		if all[i].Since.IsZero() {
			all[i].Since = first
		}
	}
	*seen = since
}

// Status returns what is wrong with all replicas and the book, from memory. What this replica
// knows of itself is newer than its row.
func (w *Watch) Status() Status {
	own := w.own()
	w.mu.Lock()
	refresh(w, &w.replicas, replicaAge, w.o.Replicas.All)
	refresh(w, &w.book, max(bookAge, readShare*w.book.took), w.o.State)
	reading := [...]chan struct{}{w.replicas.done, w.book.done}
	w.mu.Unlock()
	waitFor(reading[:])
	w.mu.Lock()
	rows := slices.Clone(w.replicas.value)
	state := w.book.value
	w.mu.Unlock()
	own.Seen = w.o.Machine()
	rows = w.patient(rows)
	rows = slices.DeleteFunc(rows, func(r Replica) bool { return r.ID == w.o.ID })
	rows = append([]Replica{own}, rows...)
	var book []Trouble
	if !state.Now.IsZero() { // it was read
		book = state.troubles()
		w.date(book, w.o.Machine(), &w.sinceOfBook)
	}
	return Status{Replicas: rows, Troubles: merge(rows, book)}
}

// patient waits for the other replicas as long as for this one, and for the time by which the row
// of this replica is late: then the storage is slow, and says nothing about them.
func (w *Watch) patient(rows []Replica) []Replica {
	at := slices.IndexFunc(rows, func(r Replica) bool { return r.ID == w.o.ID })
	if at < 0 {
		return rows
	}
	own := rows[at]
	late := w.lateness(own.Age - w.o.Every)
	for i := range rows {
		rows[i].Silence = max(rows[i].Silence, own.Silence) + late
	}
	return rows
}

// lateness returns by how much the row of this replica is late, or was until a moment ago: when the
// storage answers again, one replica is a little faster than the other.
func (w *Watch) lateness(now time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	machine := w.o.Machine()
	isOver := machine.Sub(w.lateAt).Abs() > recovery
	if now >= w.late || isOver {
		w.late = max(0, now)
		w.lateAt = machine
	}
	return w.late
}

// waitFor waits at most checkWait for reads. A nil channel is no read.
func waitFor(reads []chan struct{}) {
	timeout := time.After(checkWait)
	for _, done := range reads {
		if done == nil {
			continue
		}
		select {
		case <-done:
		case <-timeout:
			return
		}
	}
}

// results returns the last results of the checks. isSilent is true if a run does not end.
func (w *Watch) results() (checks []summary.Check, isSilent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	refresh(w, &w.checks, checkAge, func(context.Context) ([]summary.Check, error) { return w.o.Checks(), nil })
	if done := w.checks.done; done != nil {
		w.mu.Unlock()
		select {
		case <-done:
		case <-time.After(checkWait):
		}
		w.mu.Lock()
	}
	return w.checks.value, w.checks.done != nil && w.o.Machine().Sub(w.checks.began) >= checkSilence
}

// refresh reads an old value again in the background. The caller must hold the lock.
func refresh[T any](w *Watch, k *kept[T], age time.Duration, read func(context.Context) (T, error)) {
	now := w.o.Machine
	if w.isStopped || k.done != nil || now().Sub(k.began).Abs() < age {
		return
	}
	k.began = now()
	k.done = make(chan struct{})
	w.running.Go(func() {
		began := time.Now() //nolint:forbidigo // measures a duration: the clock of the machine may be wrong
		value, err := call(w, read)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			k.value = value
		}
		k.took = time.Since(began)
		close(k.done)
		k.done = nil
	})
}

// call calls a function that may panic. An error is not reported: the checks say what is wrong.
func call[T any](w *Watch, do func(context.Context) (T, error)) (value T, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		err = fault.PanicError(cause, debug.Stack())
		if w.o.Failed != nil {
			w.o.Failed(err)
		}
	}()
	return do(ctx)
}

// Every is how often the service calls Keep.
func (w *Watch) Every() time.Duration { return w.o.Every }
