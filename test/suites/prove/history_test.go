package prove_test

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// verdict is the outcome of a request as its caller knows it.
type verdict uint8

const (
	// unknown: there was no answer, or the answer says so.
	unknown verdict = iota
	// noEffect: the answer says that nothing happened.
	noEffect
	completed
	recorded
	refused
	// conflict: the CallerId was used before with other content.
	conflict
)

var verdicts = [...]string{"unknown", "no effect", "completed", "recorded", "refused", "conflict"}

// result is a verdict, and whether it repeats the answer to an earlier request.
type result struct {
	verdict
	replayed bool
}

// position is the result of reading the rows of a group.
type position struct {
	units   [customersOfGroup]int
	balance int
}

// stored is the result of reading the notifications of a user: the numbers of
// the records in ascending order.
type stored []int

// look reads the position of a group from the store.
type look struct{ group int }

// list reads the notifications of a group from the store.
type list struct{ group int }

// event is one request or read, with its result.
type event struct {
	client    int
	id        string // the ChannelRequestId of a request
	input     any    // *sale, *pushes, look, list
	output    any    // result, position, stored
	call, end time.Duration
}

// history is everything that callers sent and received. It is safe for
// concurrent use.
type history struct {
	began time.Time

	mu     sync.Mutex
	events []event
	// strange lists answers that no fault explains.
	strange []string
}

func newHistory() *history { return &history{began: time.Now()} }

func (h *history) now() time.Duration { return time.Since(h.began) }

func (h *history) add(e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

func (h *history) note(format string, values ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.strange) < 3 {
		h.strange = append(h.strange, fmt.Sprintf(format, values...))
	}
}

// until returns the history up to a moment between since and to. Requests that had
// no answer since then are unknown.
func (h *history) until(since, to time.Duration) *history {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := &history{began: h.began}
	for _, e := range h.events {
		if e.call > to {
			continue
		}
		if _, ok := e.output.(result); ok && e.end > since {
			e.output = result{}
		}
		before.events = append(before.events, e)
	}
	return before
}

// open returns the pushes that are not known to be stored.
func (h *history) open(all []*pushes) []*pushes {
	h.mu.Lock()
	defer h.mu.Unlock()
	stored := map[*pushes]bool{}
	for _, e := range h.events {
		if p, ok := e.input.(*pushes); ok && e.output.(result).verdict == completed {
			stored[p] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(p *pushes) bool { return stored[p] })
}

// count returns the number of requests for each verdict.
func (h *history) count() map[verdict]int {
	counts := map[verdict]int{}
	for _, e := range h.events {
		if r, ok := e.output.(result); ok {
			counts[r.verdict]++
		}
	}
	return counts
}

func (h *history) String() string {
	var texts []string
	counts := h.count()
	for v, name := range verdicts {
		if n := counts[verdict(v)]; n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", n, name))
		}
	}
	return strings.Join(texts, ", ")
}

// checkTime limits the search for an order. Histories are small enough that it
// ends much earlier.
const checkTime = 5 * time.Minute

// isLinearizable reports whether the model of a bank gives the same answers for
// some order of all events. In this order each event takes place between its
// call and its end. If no such order exists, show writes a page that shows
// where the search fails.
func (h *history) isLinearizable(t testing.TB) (yes bool, show func()) {
	t.Helper()
	verdict, info := porcupine.CheckOperationsVerbose(bankModel, h.operations(), checkTime)
	require.NotEqual(t, porcupine.Unknown, verdict, "the history is too long to check")
	return verdict == porcupine.Ok, func() {
		page := filepath.Join(t.ArtifactDir(), "history.html")
		require.NoError(t, porcupine.VisualizePath(bankModel, info, page))
		t.Logf("no order of the requests explains the answers: %s (kept with go test -artifacts)", page)
	}
}

// operations returns the history for porcupine. It leaves out requests that
// certainly had no effect: if one had an effect, the other answers contradict
// the model. A request with an unknown outcome may take effect at any time
// until the end.
//
// The search tries each unknown request at every place, so there must be few.
// Several attempts at the same request have one effect, so their unknown ones
// are combined into one. It starts with the first call. It ends when an answer
// says that an earlier attempt succeeded. It is left out if another attempt is
// known to have succeeded.
func (h *history) operations() []porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	open, ends, done := map[string]event{}, map[string]time.Duration{}, map[string]bool{}
	var all []porcupine.Operation
	add := func(e event, end time.Duration) {
		all = append(all, porcupine.Operation{ClientId: e.client, Input: e.input, Output: e.output, Call: int64(e.call), Return: int64(end)})
	}
	for _, e := range h.events {
		r, isRequest := e.output.(result)
		key, once := attempt(e.input)
		if s, ok := e.input.(*sale); ok && s.due {
			continue // it ends when it is settled, which no caller decides
		}
		switch {
		case !isRequest:
			add(e, e.end)
		case r.verdict == noEffect:
		case r.verdict != unknown:
			add(e, e.end)
			if r.verdict == conflict {
				continue
			}
			if first, ok := ends[key]; !ok || e.end < first {
				ends[key] = e.end
			}
			if s, ok := e.input.(*sale); ok && !r.replayed {
				done[callerID(s.group, s.caller)] = true
			}
		case !once:
			add(e, math.MaxInt64)
		default:
			if first, ok := open[key]; !ok || e.call < first.call {
				open[key] = e
			}
		}
	}
	for key, e := range open {
		if s, ok := e.input.(*sale); ok && done[callerID(s.group, s.caller)] {
			continue
		}
		end, ok := ends[key]
		if !ok {
			end = math.MaxInt64
		}
		add(e, max(end, e.call))
	}
	return all
}

// attempt returns a key for the effect of a request. It reports false for a
// request that may take effect more than once.
func attempt(input any) (string, bool) {
	switch in := input.(type) {
	case *sale:
		return fmt.Sprintf("sale %d %d %d", in.group, in.caller, in.content), in.caller >= 0
	case *pushes:
		return fmt.Sprintf("pushes %d %v", in.group, in.records), true
	}
	return "", false
}

// book is the state of one group of sales in the model. seen has the outcome of
// each CallerId: 0 if it was not used yet, otherwise content<<4 | verdict.
type book struct {
	position
	seen string
}

// inbox is the state of the notifications of one user in the model: a 1 for
// each stored record.
type inbox string

// bankModel is a bank that runs one request at a time.
var bankModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		parts := map[string][]porcupine.Operation{}
		for _, o := range all {
			key := partition(o.Input)
			parts[key] = append(parts[key], o)
		}
		var sorted [][]porcupine.Operation
		for _, part := range parts {
			sorted = append(sorted, part)
		}
		// Check the smallest first, because a violation is found there soonest.
		slices.SortFunc(sorted, func(a, b []porcupine.Operation) int { return cmp.Compare(len(a), len(b)) })
		return sorted
	},
	Init: func() any { return nil },
	Step: func(state, input, output any) (bool, any) {
		switch in := input.(type) {
		case *sale:
			b := asBook(state)
			got := output.(result)
			want, after := b.sell(in)
			return got.verdict == unknown || got == want, after
		case look:
			b := asBook(state)
			return output.(position) == b.position, b
		case *pushes:
			return true, asInbox(state).store(in.records) // only Completed is a known outcome here
		case list:
			i := asInbox(state)
			return slices.Equal(output.(stored), i.list()), i
		}
		panic(fmt.Sprintf("unknown input %T", input))
	},
	DescribeOperation: describe,
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

func partition(input any) string {
	switch in := input.(type) {
	case *sale:
		return fmt.Sprint("group ", in.group)
	case look:
		return fmt.Sprint("group ", in.group)
	case *pushes:
		return fmt.Sprint("user ", in.group)
	case list:
		return fmt.Sprint("user ", in.group)
	}
	panic(fmt.Sprintf("unknown input %T", input))
}

func asBook(state any) book {
	if b, ok := state.(book); ok {
		return b
	}
	return book{position: position{units: [customersOfGroup]int{opening, opening}}}
}

func asInbox(state any) inbox {
	i, _ := state.(inbox)
	return i
}

// sell decides a sale as sections 5 and 6 of the contract require, as far as
// these tests need it.
func (b book) sell(s *sale) (result, book) {
	if before := b.outcome(s.caller); before != 0 {
		if int(before>>4) != s.content {
			return result{verdict: conflict}, b
		}
		return result{verdict(before & 0xf), true}, b
	}
	after, outcome := b, completed
	switch {
	case s.later:
		outcome = recorded
	default:
		for _, p := range s.parts {
			after.units[p.of] -= p.units
			after.balance += p.units * perUnit
			if after.units[p.of] < 0 {
				after, outcome = b, refused
				break
			}
		}
	}
	if s.caller >= 0 {
		seen := []byte(after.seen)
		for len(seen) <= s.caller {
			seen = append(seen, 0)
		}
		seen[s.caller] = byte(s.content)<<4 | byte(outcome)
		after.seen = string(seen)
	}
	return result{verdict: outcome}, after
}

func (b book) outcome(caller int) byte {
	if caller < 0 || caller >= len(b.seen) {
		return 0
	}
	return b.seen[caller]
}

func (i inbox) store(records []int) inbox {
	after := []byte(i)
	for _, r := range records {
		for len(after) <= r {
			after = append(after, 0)
		}
		after[r] = 1
	}
	return inbox(after)
}

func (i inbox) list() stored {
	var all stored
	for r := range len(i) {
		if i[r] == 1 {
			all = append(all, r)
		}
	}
	return all
}

func describe(input, output any) string {
	switch in := input.(type) {
	case *sale:
		got := output.(result)
		replayed := ""
		if got.replayed {
			replayed = ", replayed"
		}
		return fmt.Sprintf("CallerId %d/%d sells %v -> %s%s", in.caller, in.content, in.parts, verdicts[got.verdict], replayed)
	case *pushes:
		return fmt.Sprintf("store %v -> %s", in.records, verdicts[output.(result).verdict])
	}
	return fmt.Sprintf("%T -> %+v", input, output)
}
