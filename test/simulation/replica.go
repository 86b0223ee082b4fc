package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	"bankingapi/application/addpush"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/test/fake"
)

// replica is one process of the service, from its start to its end. What it
// has in memory ends with it.
type replica struct {
	world  *world
	name   string
	offset time.Duration // how wrong its clock is

	buyer    *buyfund.Buyer
	adder    *addpush.Adder
	sales    lane
	pushes   lane
	settler  []*settler
	draining bool
	closed   chan error    // has the result of both Closes, once it drains
	died     chan struct{} // closed by a crash
	dead     bool
}

// lane is what the world sees of one group commit.
type lane struct {
	replica *replica
	name    string
	waiting []*arrival   // oldest first, until they are answered
	current *transaction // on its way
	ended   []*transaction
	batch   commit.Batch // the last one
}

// arrival is one item in a lane: an attempt, or a settler's batch.
type arrival struct {
	attempt *attempt
	settler *settler
	step    int               // of the settler, when it went in
	listed  []*fund.Operation // by the settler
}

func (a *arrival) answered() bool {
	if a.settler != nil {
		return a.settler.steps != a.step
	}
	return a.attempt.done
}

// transaction is one call of a port, seen from outside.
type transaction struct {
	lane     *lane    // nil for a listing
	settler  *settler // of a listing
	ctx      context.Context
	when     circumstances
	moment   fake.Moment
	parked   bool
	verdict  chan error
	due      []*fund.Operation // as the use case named them
	held     []operation.ID    // of them, those that somebody else holds
	poisoned bool
	// committed is the truth, whatever the caller is told.
	committed bool
	late      bool // it had no time left at its end
	err       error
	panicked  bool
}

type transactionKey struct{}

// open starts a replica over the world's store.
func (w *world) open(name string) *replica {
	r := &replica{world: w, name: name, died: make(chan struct{}), closed: make(chan error, 1)}
	r.sales = lane{replica: r, name: name + " sales"}
	r.pushes = lane{replica: r, name: name + " pushes"}
	strike := w.plant.strike(strikeParked)
	sale := buyfund.Options{
		ParametersLimit: w.records,
		Commit:          w.limits,
		Observer:        r.sales.observer(),
		Zone:            w.zone,
		Now:             r.now,
		NewID:           w.newID,
	}
	if w.plant.Options != nil {
		w.plant.Options(&sale)
	}
	r.buyer = buyfund.New(&watchedBooks{&r.sales, w.plant.books(w.store.Books(strike))}, sale)
	r.adder = addpush.New(&watchedInboxes{&r.pushes, w.plant.inboxes(w.store.Inboxes(strike))}, addpush.Options{
		ParametersLimit: w.records,
		Commit:          w.limits,
		Observer:        r.pushes.observer(),
		Now:             r.now,
		NewID:           w.newID,
	})
	return r
}

func (r *replica) lanes() [2]*lane { return [...]*lane{&r.sales, &r.pushes} }

func (r *replica) now() time.Time {
	r.world.turn.Load()
	return r.world.now().Add(r.offset).UTC().Truncate(time.Microsecond)
}

func (l *lane) observer() commit.Observer {
	return commit.Observer{Now: l.replica.now, Batch: func(b commit.Batch) {
		l.replica.world.turn.Load()
		l.batch = b
	}}
}

// begin is the start of a transaction; its clock is read as the use case has
// just read it.
func (l *lane) begin(ctx context.Context) *transaction {
	at := l.replica.now()
	tx := &transaction{lane: l, verdict: make(chan error)}
	tx.when = circumstances{at: at, today: l.replica.world.bank.dayOf(at)}
	tx.ctx = context.WithValue(ctx, transactionKey{}, tx)
	l.current = tx
	return tx
}

func (tx *transaction) end(err error) {
	tx.lane.replica.world.turn.Load()
	tx.err, tx.late = err, tx.ctx.Err() != nil
	tx.lane.current = nil
	tx.lane.ended = append(tx.lane.ended, tx)
}

// read notes what the transaction sees, at each of its runs.
func (tx *transaction) read() {
	w := tx.lane.replica.world
	tx.when.prices = len(w.bank.prices)
	if tx.poisoned && w.poison == panicking {
		panic(errPoison)
	}
}

var (
	errPoison      = errors.New("this cannot be written")
	errGlitch      = errors.New("something in this batch cannot be written")
	errUnavailable = fault.New(fault.Unavailable, "the storage is gone")
	errUnknown     = fault.New(fault.Indeterminate, "the connection was lost")
)

// strikeParked stops a transaction until the world says how it goes on.
func strikeParked(ctx context.Context, m fake.Moment) error {
	tx, ok := ctx.Value(transactionKey{}).(*transaction)
	if !ok {
		panic("a transaction that the world does not see")
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
			return ctx.Err() // as a driver may say it: without a word about the effect
		}
		return nil // the store looks at ctx itself
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
	if tx.lane == nil {
		return tx.settler.replica
	}
	return tx.lane.replica
}

// watchedBooks shows the world what passes through the port.
type watchedBooks struct {
	lane *lane
	next buyfund.Books
}

func (b *watchedBooks) Update(ctx context.Context, touched fund.Touched, settle func(*fund.Book)) error {
	b.lane.replica.world.turn.Load()
	if b.lane.replica.dead {
		return errUnavailable
	}
	tx := b.lane.begin(ctx)
	w := b.lane.replica.world
	tx.due = touched.Due
	touched.Due = w.leaveHeld(tx)
	tx.poisoned = w.poison != noPoison && slices.ContainsFunc(touched.Holdings, func(k fund.HoldingKey) bool {
		return k.Fund == w.funds[poisonedFund]
	})
	return tx.run(func() error {
		return b.next.Update(tx.ctx, touched, func(book *fund.Book) {
			tx.read()
			if tx.when.at.UnixMicro()%4 == 0 {
				settle(fund.NewBook(0)) // a store may presume first, and be wrong
			}
			settle(book)
		})
	})
}

// run notes the end of a transaction, however it ends.
func (tx *transaction) run(update func() error) (err error) {
	tx.panicked = true
	defer func() { tx.end(err) }()
	err = update()
	tx.panicked = false
	return err
}

// Due lists for a settler; it passes its gate as a context.
func (b *watchedBooks) Due(ctx context.Context, on day.Day, after *fund.Operation, limit int) ([]*fund.Operation, error) {
	s := ctx.(*gate).settler
	s.replica.world.turn.Load()
	s.steps++
	if s.replica.dead {
		return nil, errUnavailable
	}
	tx := &transaction{settler: s, verdict: make(chan error)}
	tx.ctx = context.WithValue(s.ctx, transactionKey{}, tx)
	s.listing = tx
	due, err := b.next.Due(tx.ctx, on, after, limit)
	s.listing = nil
	s.list = due
	if err != nil {
		s.failures++
	}
	return due, err
}

type watchedInboxes struct {
	lane *lane
	next addpush.Inboxes
}

func (b *watchedInboxes) Update(ctx context.Context, callers []operation.Key, accept func(*push.Inbox)) error {
	b.lane.replica.world.turn.Load()
	if b.lane.replica.dead {
		return errUnavailable
	}
	tx := b.lane.begin(ctx)
	poison := (&message{user: poisonedUser}).fields().UserID
	return tx.run(func() error {
		return b.next.Update(tx.ctx, callers, func(inbox *push.Inbox) {
			accept(inbox)
			tx.poisoned = b.lane.replica.world.poison != noPoison && slices.ContainsFunc(inbox.Stored(), func(n push.Stored) bool {
				return n.Notification.Record().UserID == poison
			})
			tx.read()
		})
	})
}

// settler is one round of settlement.
type settler struct {
	replica *replica
	ctx     context.Context
	cancel  context.CancelFunc
	open    chan struct{} // lets it pass its gate
	steps   int           // grows whenever it stops somewhere or ends
	atGate  bool
	listing *transaction // on its way
	list    []*fund.Operation

	expected []operation.ID // what was due when it began
	excused  []operation.ID // of expected, those that it could not settle
	failures int            // that the world saw
	counted  buyfund.Settlement
	done     bool
	result   buyfund.Settlement
	err      error
}

// gate is the settler's context. A lane asks for its error before it takes an
// item, in the settler's goroutine: that is where the world can stop it.
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
	s.ctx, s.cancel = context.WithCancel(context.Background())
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

// kill ends the replica as a power cut does: whoever waits hears nothing.
func (r *replica) kill() {
	r.dead = true
	close(r.died)
	for _, s := range r.settler {
		s.cancel()
	}
}

// drain ends it as an operator does.
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
