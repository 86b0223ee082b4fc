package simulation

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"bankingapi/application/addpush"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/test/fake"
)

// replica is one process of the service, from start to end. Its memory is lost
// when it ends.
type replica struct {
	world  *world
	name   string
	offset time.Duration // the error of its clock

	buyer    *buyfund.Buyer
	adder    *addpush.Adder
	sales    queue
	pushes   queue
	settler  []*settler
	draining bool
	closed   chan error    // gets the result of both Closes after a stop
	died     chan struct{} // closed when it crashes
	dead     bool
}

// queue is the view that the world has of one group commit.
type queue struct {
	replica *replica
	name    string
	waiting []*arrival // without an answer, oldest first

	// mu is for the transactions, two of which may begin or end beside each other. The world
	// needs no lock, because it looks while all of them wait.
	mu      sync.Mutex
	running []*transaction // in the order of their start: many due operations may run beside others
	ended   []*transaction
	batch   commit.Batch // the last one
}

// arrival is one item in a queue: an attempt, or a batch of a settler.
type arrival struct {
	attempt *attempt
	settler *settler
	step    int               // the step of the settler when it was added
	listed  []*fund.Operation // by the settler
}

func (a *arrival) answered() bool {
	if a.settler != nil {
		return a.settler.steps != a.step
	}
	return a.attempt.done
}

// owner is whose order of arrival the queue keeps: a subscription, or the bank that settles.
func (a *arrival) owner() string {
	if a.settler != nil {
		return ""
	}
	return a.attempt.request.subscription.Name
}

// transaction is one call of a port, as the world sees it.
type transaction struct {
	queue    *queue   // nil for Due
	settler  *settler // for Due
	ctx      context.Context
	when     circumstances
	moment   fake.Moment
	parked   bool
	verdict  chan error
	due      []*fund.Operation // the operations that the use case passed
	held     []operation.ID    // those of due that another transaction holds
	poisoned bool
	// committed is whether it took effect, whatever the caller is told.
	committed bool
	late      bool // its deadline had passed when it ended
	err       error
	panicked  bool
}

type transactionKey struct{}

// open starts a replica on the store of the world.
func (w *world) open(name string) *replica {
	r := &replica{world: w, name: name, died: make(chan struct{}), closed: make(chan error, 1)}
	r.sales.replica, r.sales.name = r, name+" sales"
	r.pushes.replica, r.pushes.name = r, name+" pushes"
	strike := w.mutant.strike(strikeParked)
	sale := buyfund.Options{
		ParametersLimit: w.records,
		Commit:          w.limits,
		Observer:        r.sales.observer(),
		Rules:           w.calendar(),
		Now:             r.now,
		NewID:           w.newID,
	}
	if w.mutant.Options != nil {
		w.mutant.Options(&sale)
	}
	var err error
	if r.buyer, err = buyfund.New(&watchedBooks{&r.sales, w.mutant.books(w.store.Books(strike))}, sale); err != nil {
		panic(err)
	}
	if r.adder, err = addpush.New(&watchedInboxes{&r.pushes, w.mutant.inboxes(w.store.Inboxes(strike))}, addpush.Options{
		ParametersLimit: w.records,
		Commit:          w.limits,
		Observer:        r.pushes.observer(),
		Now:             r.now,
		NewID:           w.newID,
	}); err != nil {
		panic(err)
	}
	return r
}

func (r *replica) queues() [2]*queue { return [...]*queue{&r.sales, &r.pushes} }

func (r *replica) now() time.Time {
	r.world.turn.Load()
	return r.world.now().Add(r.offset).UTC().Truncate(time.Microsecond)
}

func (l *queue) observer() commit.Observer {
	return commit.Observer{Now: l.replica.now, Batch: func(b commit.Batch) {
		l.replica.world.turn.Load()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.batch = b
	}}
}

// begin starts a transaction. at is the time that the use case has just read.
func (l *queue) begin(ctx context.Context, at time.Time) *transaction {
	tx := &transaction{queue: l, verdict: make(chan error)}
	tx.when = circumstances{at: at, today: l.replica.world.bank.dayOf(at)}
	tx.ctx = context.WithValue(ctx, transactionKey{}, tx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = append(l.running, tx)
	return tx
}

func (tx *transaction) end(err error) {
	tx.queue.replica.world.turn.Load()
	tx.err, tx.late = err, tx.ctx.Err() != nil
	tx.queue.mu.Lock()
	defer tx.queue.mu.Unlock()
	tx.queue.running = slices.DeleteFunc(tx.queue.running, func(r *transaction) bool { return r == tx })
	tx.queue.ended = append(tx.queue.ended, tx)
}

// read notes what the transaction reads, each time it runs.
func (tx *transaction) read() {
	w := tx.queue.replica.world
	tx.when.prices = len(w.bank.prices)
	if tx.poisoned && w.poison == panicking {
		panic(errPoison)
	}
}

var (
	errPoison      = errors.New("this cannot be written")
	errGlitch      = errors.New("something in this batch cannot be written")
	errUnavailable = fault.New(fault.Unavailable, "the storage is unreachable")
	errUnknown     = fault.New(fault.Indeterminate, "the connection was lost")
)

// strikeParked blocks a transaction until the world decides how it continues.
func strikeParked(ctx context.Context, m fake.Moment) error {
	tx, ok := ctx.Value(transactionKey{}).(*transaction)
	if !ok {
		panic("a transaction that the world does not know")
	}
	if m == fake.Committed {
		tx.committed = true
	}
	r := tx.replica()
	r.world.turn.Load()
	if r.dead {
		return died(m)
	}
	tx.moment, tx.parked = m, true
	defer func() {
		r.world.turn.Load()
		tx.parked = false
	}()
	select {
	case err := <-tx.verdict:
		return err
	case <-ctx.Done():
		if m == fake.Committed {
			return ctx.Err() // as a driver may return it, without saying whether it took effect
		}
		return nil // the store checks ctx itself
	case <-r.died:
		return died(m)
	}
}

// died is what nobody hears any more.
func died(m fake.Moment) error {
	if m == fake.Committed {
		return errUnknown
	}
	return errUnavailable
}

func (tx *transaction) replica() *replica {
	if tx.queue == nil {
		return tx.settler.replica
	}
	return tx.queue.replica
}

// watchedBooks reports the calls of a port to the world.
type watchedBooks struct {
	queue *queue
	next  buyfund.Books
}

func (b *watchedBooks) Update(ctx context.Context, touched fund.LockSet, settle func(*fund.Book)) error {
	b.queue.replica.world.turn.Load()
	if b.queue.replica.dead {
		return errUnavailable
	}
	at := b.queue.replica.now()
	large := mayBeLarge(touched.Due)
	if large {
		b.queue.replica.world.letTheOtherGoFirst()
	}
	tx := b.queue.begin(ctx, at)
	w := b.queue.replica.world
	tx.due = touched.Due
	touched.Due = w.leaveHeld(tx)
	tx.poisoned = w.poison != noPoison && slices.ContainsFunc(touched.Holdings, func(k fund.HoldingKey) bool {
		return k.Fund == w.funds[poisonedFund]
	})
	return tx.run(func() error {
		if large {
			defer w.letTheOtherEndFirst(ctx)
		}
		return b.next.Update(tx.ctx, touched, func(book *fund.Book) {
			tx.read()
			if tx.when.at.UnixMicro()%4 == 0 {
				settle(fund.NewBook(0)) // an optimistic commit may call it with a wrong book first
			}
			settle(book)
		})
	})
}

// mayBeLarge reports whether another batch may begin, or time out, at the same instant as a batch
// with these due operations: see commit.Queue. The batches of a run are so small that an item is
// large if it has more than 8 sales.
func mayBeLarge(due []*fund.Operation) bool {
	sales := 0
	for _, o := range due {
		sales += len(o.Sales)
	}
	return sales > 8
}

// letTheOtherGoFirst makes the order of two batches that begin at the same instant depend on the
// seed only. No event happens within a nanosecond.
func (w *world) letTheOtherGoFirst() {
	w.polite.Add(1)
	time.Sleep(time.Nanosecond)
	w.turn.Load() // the world has gone on meanwhile
	w.polite.Add(-1)
}

// letTheOtherEndFirst does the same for two batches that time out at the same instant.
func (w *world) letTheOtherEndFirst(ctx context.Context) {
	if ctx.Err() != nil {
		w.letTheOtherGoFirst()
	}
}

// run notes the end of a transaction, including a panic.
func (tx *transaction) run(update func() error) (err error) {
	tx.panicked = true
	defer func() { tx.end(err) }()
	err = update()
	tx.panicked = false
	return err
}

// Due lists for the settler of the context.
func (b *watchedBooks) Due(ctx context.Context, of buyfund.Due, after *fund.Operation, limit int) ([]*fund.Operation, error) {
	s := ctx.Value(settlerKey{}).(*settler)
	var due []*fund.Operation
	err := s.reads(func(ctx context.Context) (err error) {
		due, err = b.next.Due(ctx, of, after, limit)
		return err
	})
	s.list = due
	return due, err
}

// reads runs a transaction that only reads, when the world lets it.
func (s *settler) reads(do func(context.Context) error) error {
	s.replica.world.turn.Load()
	s.steps++
	if s.replica.dead {
		return errUnavailable
	}
	tx := &transaction{settler: s, verdict: make(chan error)}
	tx.ctx = context.WithValue(s.ctx, transactionKey{}, tx)
	s.listing = tx
	err := do(tx.ctx)
	s.listing = nil
	if err != nil {
		s.failures++
	}
	return err
}

func (b *watchedBooks) Snapshot(ctx context.Context, touched fund.LockSet) (*fund.Book, error) {
	return b.next.Snapshot(ctx, touched)
}

// DueFunds lists for the settler of the context, before its first Due.
func (b *watchedBooks) DueFunds(ctx context.Context, until day.Day, count bool) (funds []buyfund.DueFund, err error) {
	err = ctx.Value(settlerKey{}).(*settler).reads(func(ctx context.Context) error {
		funds, err = b.next.DueFunds(ctx, until, count)
		return err
	})
	return funds, err
}

type watchedInboxes struct {
	queue *queue
	next  addpush.Inboxes
}

func (b *watchedInboxes) Update(ctx context.Context, callers []idempotency.Key, accept func(*push.Inbox)) error {
	b.queue.replica.world.turn.Load()
	if b.queue.replica.dead {
		return errUnavailable
	}
	tx := b.queue.begin(ctx, b.queue.replica.now())
	poison := (&message{user: poisonedUser}).fields().UserID
	return tx.run(func() error {
		return b.next.Update(tx.ctx, callers, func(inbox *push.Inbox) {
			accept(inbox)
			tx.poisoned = b.queue.replica.world.poison != noPoison && slices.ContainsFunc(inbox.ToStore(), func(n push.Stored) bool {
				return n.Notification.Values().UserID == poison
			})
			tx.read()
		})
	})
}

// settler runs one round of settlement.
type settler struct {
	replica *replica
	ctx     context.Context
	cancel  context.CancelFunc
	open    chan struct{} // lets it pass its gate
	steps   int           // incremented whenever it blocks or ends
	atGate  bool
	listing *transaction // running
	list    []*fund.Operation

	expected []operation.ID // due operations at its start
	excused  []operation.ID // those of expected that it could not settle
	failures int            // injected by the world
	counted  buyfund.Settlement
	done     bool
	result   buyfund.Settlement
	err      error
}

type settlerKey struct{}

// gate is the context of a settler. A queue calls its Err in the goroutine of
// the settler before it accepts an item, so the world can block the settler
// there.
type gate struct {
	context.Context
	settler *settler
}

func (g *gate) Err() error {
	s := g.settler
	s.replica.world.turn.Load()
	s.steps++
	s.atGate = true
	select {
	case <-s.open:
	case <-s.replica.died:
	}
	s.atGate = false
	return g.Context.Err()
}

// settle starts a round.
func (r *replica) settle() *settler {
	s := &settler{replica: r, open: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.WithValue(context.Background(), settlerKey{}, s))
	r.settler = append(r.settler, s)
	go func() {
		defer s.cancel()
		s.result, s.err = r.buyer.SettleDue(&gate{s.ctx, s})
		r.world.turn.Load()
		s.steps++
		s.done = true
	}()
	return s
}

// kill ends the replica like a power cut: waiting callers get no answer.
func (r *replica) kill() {
	r.dead = true
	close(r.died)
	for _, s := range r.settler {
		s.cancel()
	}
}

// drain stops the replica as an operator does.
func (r *replica) drain() {
	r.draining = true
	for _, s := range r.settler {
		s.cancel()
	}
	go func() {
		sales := make(chan error)
		go func() { sales <- r.buyer.Close(context.Background()) }()
		pushes := r.adder.Close(context.Background())
		r.closed <- errors.Join(<-sales, pushes)
	}()
}
