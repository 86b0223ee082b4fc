package prove_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
	"bankingapi/test/fake"
	"bankingapi/test/kit/service"
)

// Histories have due sales beside new ones: a service in the test process, whose clock
// is two days behind, records them for yesterday. The replicas settle them at once,
// unless that service is faster and cancels them. A reader reads the outcomes meanwhile,
// as a partner does, and has some of the completed sales reversed.

// dueCustomer is the customer of a group whose sales are due, and the account that
// receives the proceeds. The model of a group does not know it.
const dueCustomer = customersOfGroup

// duesOfGroup is the number of due operations of a group in a history.
const duesOfGroup = 12

// backdate opens the service that records due sales.
func (d *deployment) backdate(t *testing.T) {
	t.Helper()
	now := time.Now()
	past := &timed{clock: fake.NewClock(now.Add(-48 * time.Hour)), bank: d.bank.Replica(t), key: d.key}
	past.bank.Folder = d.bank.Folder // on SQLite the key of the trail is there
	d.past, d.yesterday = openAnother(t, past), dayBefore(t, now)
}

// makeDue records sales of a group that are due, until ctx ends. Their units are too
// few for all of them.
func (l *load) makeDue(ctx context.Context, group *groupOfCallers, r *rand.Rand) {
	for n := 0; n < duesOfGroup && ctx.Err() == nil; n++ {
		s := &sale{group: group.number, caller: duesOfGroup*group.number + n, later: true, due: true}
		for range 1 + r.IntN(3) {
			s.parts = append(s.parts, part{dueCustomer, 1 + r.IntN(opening/duesOfGroup)})
		}
		if id, ok := l.record(s); ok && r.IntN(3) == 0 {
			l.d.cancel(ctx, id)
		}
		rest(ctx, time.Duration(r.Int64N(int64(l.pause)*4)))
	}
}

// record sends a due sale once. A fault may leave its outcome unknown.
func (l *load) record(s *sale) (operationID string, ok bool) {
	e := event{input: s, id: fmt.Sprint("due-", s.caller), call: l.seen.now()}
	a := l.d.past.post(s.body(e.id, l.d.yesterday))
	got, fine := judge(a, nil)
	if !fine {
		l.seen.note("due: status %d: %s", a.status, a.body)
	}
	e.end, e.output = l.seen.now(), got
	l.seen.add(e)
	return a.operationID, got.verdict == recorded
}

// cancel cancels a recorded operation, unless it is settled meanwhile.
func (d *deployment) cancel(ctx context.Context, operationID string) {
	id, err := operation.ParseID(operationID)
	office, missing := d.past.Backoffice(ctx)
	if errors.Join(err, missing) == nil {
		_ = office.Corrector().Cancel(audit.By(ctx, audit.Who{Actor: "prove"}), id)
	}
}

// outcome is how an operation ended, as the service tells it.
type outcome struct {
	OperationID string `json:"OperationId"`
	CallerID    string `json:"CallerId"`
	State       int
	Reversed    bool
}

// reader reads outcomes, always after its last cursor. If that is lost, it begins again.
type reader struct {
	d    *deployment
	next string
	seen []outcome

	failsOver  bool // the database may fail over and lose commits: then a lost cursor is no error
	beganAgain int  // how often the cursor was lost

	stop    context.CancelFunc
	done    sync.WaitGroup
	strange error // an answer that no fault explains
}

// readOutcomes reads outcomes from random replicas until finish.
func (d *deployment) readOutcomes(t testing.TB, r *rand.Rand) *reader {
	t.Helper()
	return d.startReader(t, r, &reader{d: d})
}

// readOutcomesOverFailOvers is readOutcomes for a database that may fail over and lose commits
// that no caller was answered.
func (d *deployment) readOutcomesOverFailOvers(t testing.TB, r *rand.Rand) *reader {
	t.Helper()
	return d.startReader(t, r, &reader{d: d, failsOver: true})
}

func (d *deployment) startReader(t testing.TB, r *rand.Rand, o *reader) *reader {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	o.stop = stop
	random := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
	o.done.Go(func() {
		for ctx.Err() == nil && o.strange == nil {
			n := o.read(ctx, d.any(random), 1+random.IntN(5))
			if n == 0 {
				rest(ctx, 10*time.Millisecond)
			}
			for _, e := range o.seen[len(o.seen)-n:] {
				if e.State == 2 && !e.Reversed && random.IntN(8) == 0 {
					_ = d.bank.Command("sales", "reverse", e.OperationID, "--reason", "prove").Run() // a fault may stop it
				}
			}
		}
	})
	t.Cleanup(func() { stop(); o.done.Wait() })
	return o
}

// read reads one page from a replica, which may be down.
func (o *reader) read(ctx context.Context, from *replica, limit int) int {
	url := fmt.Sprintf("%s/outcomes?after=%s&limit=%d&wait=100ms", from.url(), o.next, limit)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		o.strange = err
		return 0
	}
	request.Header.Set("Ocp-Apim-Subscription-Key", o.d.key)
	response, err := o.d.client.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	var page struct {
		Outcomes []outcome
		Next     string
	}
	switch {
	case err != nil, response.StatusCode == http.StatusServiceUnavailable:
		return 0
	case o.failsOver && response.StatusCode == http.StatusGone && strings.Contains(string(body), `"code":"cursor-lost"`):
		o.next, o.seen = "", nil
		o.beganAgain++
		return 0
	case response.StatusCode != http.StatusOK:
		err = fmt.Errorf("outcomes: status %d: %s", response.StatusCode, body)
	default:
		err = json.Unmarshal(body, &page)
	}
	if err != nil {
		o.strange = err
		return 0
	}
	o.next, o.seen = page.Next, append(o.seen, page.Outcomes...)
	return len(page.Outcomes)
}

// finish waits until nothing is due and reads to the end. The outcomes must be those of
// the rows, each once, and every replica must tell them in the same order to a reader
// who begins now. It returns their number.
func (o *reader) finish(t testing.TB) int {
	t.Helper()
	o.stop()
	o.done.Wait()
	o.d.awaitSettled(t)
	want := map[string]string{} // the states by operation
	for _, row := range o.d.bank.Export(t, "sales") {
		if row["SelectedTransactionDate"] == o.d.yesterday {
			want[row["OperationId"]] = row["State"]
		}
		if row["ReversedAt"] != "" {
			want[row["OperationId"]+" reversed"] = row["State"]
		}
	}
	for _, one := range o.d.replicas {
		again := &reader{d: o.d}
		for _, reader := range []*reader{o, again} {
			eventually(t, service.Patience, "all outcomes are told", func() bool {
				for reader.read(t.Context(), one, 1000) > 0 {
					continue
				}
				return reader.strange != nil || len(reader.seen) >= len(want)
			})
			require.NoError(t, reader.strange)
		}
		require.Equal(t, again.seen, o.seen, "no outcome appears before a cursor that was handed out")
	}
	told := map[string]string{}
	for _, e := range o.seen {
		key := e.OperationID
		if e.Reversed {
			require.Equal(t, "2", told[key], "a reversal follows the completion")
			key += " reversed"
		}
		require.NotContains(t, told, key, "an outcome is told once")
		told[key] = strconv.Itoa(e.State)
	}
	require.Equal(t, want, told)
	return len(told)
}

// awaitSettled waits until nothing is due.
func (d *deployment) awaitSettled(t testing.TB) {
	t.Helper()
	eventually(t, service.Patience, "nothing is due", func() bool {
		var due int
		require.NoError(t, d.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM sales WHERE state = 1 AND selected_date < '"+d.laterDay+"'").Scan(&due))
		return due == 0
	})
}

// verifyBeside runs verify again and again beside the services, until the function that
// it returns is called. That function returns how often verify found nothing.
func (d *deployment) verifyBeside(t testing.TB) (finish func() int) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	runs, accusation := 0, ""
	var done sync.WaitGroup
	done.Go(func() {
		for ; ctx.Err() == nil && accusation == ""; runs++ {
			command := d.bank.Command("verify")
			if out, err := command.CombinedOutput(); err != nil {
				accusation = string(out)
			}
			rest(ctx, time.Second)
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
	return func() int {
		stop()
		done.Wait()
		require.Empty(t, accusation, "verify accuses an honest book")
		return runs
	}
}

// isWhole reports whether the rows of a due operation have one state.
func isWhole(rows []service.Row) bool {
	return !slices.ContainsFunc(rows, func(r service.Row) bool { return r["State"] != rows[0]["State"] })
}
