package commit_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bankingapi/application/commit"
	"bankingapi/domain/fault"
)

// step is one thing that happens to a queue.
type step struct {
	Do     string // arrive, leave, release, succeed, break, close
	Weight int    // of who arrives; no weight counts as one
	Trait  string // of who arrives: what it makes of a batch that would be stored
	Who    int    // leaves, counted by arrival; or which of two running batches does it
}

// moment is what can be seen of a queue after one step.
type moment struct {
	Calls   [][]int        // of run
	Answers map[int]string // to callers, counted by arrival
}

// TestQueueFollowsTheModel plays one script on a queue and on a model of it that
// knows no goroutines, and expects the same to be seen after every step.
func TestQueueFollowsTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limits := limits
		limits.Batch = rapid.IntRange(1, 8).Draw(rt, "batch")
		limits.Queue = rapid.IntRange(0, 8).Draw(rt, "queue")
		limits.Grace = rapid.SampledFrom([]time.Duration{0, time.Millisecond}).Draw(rt, "grace")
		script := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			return step{
				Do:     rapid.SampledFrom([]string{"arrive", "arrive", "arrive", "arrive", "leave", "release", "release", "succeed", "succeed", "break", "close"}).Draw(rt, "do"),
				Weight: rapid.IntRange(-1, 10).Draw(rt, "weight"),
				Trait:  rapid.SampledFrom([]string{"stored", "stored", "stored", "poison", "panics"}).Draw(rt, "trait"),
				Who:    rapid.IntRange(0, 30).Draw(rt, "who"),
			}
		}), 0, 40).Draw(rt, "script")
		for range len(script) + 1 { // let everything finish
			script = append(script, step{Do: "succeed"})
		}
		if diff := gocmp.Diff(foresee(limits, script), play(t, limits, script)); diff != "" {
			rt.Fatalf("the queue differs from the model (- model, + queue):\n%s", diff)
		}
	})
}

// foresee is the model.
func foresee(limits commit.Limits, script []step) (seen []moment) {
	type arrival struct {
		step
		id int
	}
	type running struct {
		items    []arrival
		released bool
		single   bool // of weight 1, after another one
	}
	var queue []arrival
	var batches []running // at most two, the older one first
	arrivals, closed, last := 0, false, 0
	for _, s := range script {
		m := moment{Answers: map[int]string{}}
		end := func(answer func(arrival) string) {
			i := s.Who % len(batches)
			for _, a := range batches[i].items {
				m.Answers[a.id] = answer(a)
			}
			batches = slices.Delete(batches, i, i+1)
		}
		switch {
		case s.Do == "arrive":
			if closed || len(batches) > 0 && len(queue) >= limits.Queue {
				m.Answers[arrivals] = "busy"
			} else {
				s.Weight = max(1, s.Weight)
				queue = append(queue, arrival{s, arrivals})
			}
			arrivals++
		case s.Do == "leave":
			if i := slices.IndexFunc(queue, func(a arrival) bool { return a.id == s.Who }); i >= 0 {
				queue = slices.Delete(queue, i, i+1)
				m.Answers[s.Who] = "unavailable"
			}
		case s.Do == "close":
			closed = true
		case len(batches) == 0:
		case s.Do == "release":
			batch := &batches[s.Who%len(batches)]
			batch.released = !batch.single
		case s.Do == "succeed":
			items := batches[s.Who%len(batches)].items
			if len(items) > 1 && slices.ContainsFunc(items, func(a arrival) bool { return a.Trait != "stored" }) {
				for _, a := range items {
					m.Calls = append(m.Calls, []int{a.id})
				}
			}
			end(func(a arrival) string { return a.Trait })
		case s.Do == "break":
			end(func(arrival) string { return "unavailable" })
		}
		if len(queue) > 0 && (len(batches) == 0 || len(batches) == 1 && batches[0].released && len(queue) >= len(batches[0].items)) {
			weight, ids, batch := 0, []int{}, running{}
			for len(queue) > 0 && (weight == 0 || weight+queue[0].Weight <= limits.Batch) {
				weight += queue[0].Weight
				ids = append(ids, queue[0].id)
				batch.items, queue = append(batch.items, queue[0]), queue[1:]
			}
			batch.single = weight == 1 && last <= 1
			last = weight
			batches = append(batches, batch)
			m.Calls = append(m.Calls, ids)
		}
		seen = append(seen, m)
	}
	return seen
}

// play runs script on a real queue.
func play(t *testing.T, limits commit.Limits, script []step) (seen []moment) {
	synctest.Test(t, func(t *testing.T) {
		var now moment
		type run struct {
			next func()
			gate chan error
		}
		var running []*run          // the older one first
		again := make(map[int]bool) // the items of failed batches; they pass the gate
		queue := commit.New(limits, weigh, nil, func(ctx context.Context, batch []*item) (err error) {
			ids := []int{}
			for _, it := range batch {
				ids = append(ids, it.id)
				err = cmp.Or(err, it.poison)
			}
			now.Calls = append(now.Calls, ids)
			if !again[batch[0].id] {
				c := &run{commit.Next(ctx), make(chan error)}
				running = append(running, c)
				gone := <-c.gate
				running = slices.DeleteFunc(running, func(other *run) bool { return other == c })
				if gone != nil {
					return gone
				}
			}
			i := slices.IndexFunc(batch, func(it *item) bool { return it.panics != nil })
			if len(batch) > 1 && (err != nil || i >= 0) {
				for _, it := range batch {
					again[it.id] = true
				}
			}
			if i >= 0 {
				panic(batch[i].panics)
			}
			return err
		}, commit.Observer{})

		var callers []*caller
		for _, s := range script {
			now = moment{Answers: map[int]string{}}
			before := make([]bool, len(callers)+1)
			for i, c := range callers {
				before[i] = c.done()
			}
			switch s.Do {
			case "arrive":
				it := &item{id: len(callers), weight: s.Weight}
				switch s.Trait {
				case "poison":
					it.poison = errPoison
				case "panics":
					it.panics = "panics"
				}
				callers = append(callers, call(queue, it))
			case "leave":
				if s.Who < len(callers) {
					callers[s.Who].cancel(nil)
				}
			case "release":
				if len(running) > 0 {
					if next := running[s.Who%len(running)].next; next != nil {
						next()
					}
				}
			case "succeed":
				if len(running) > 0 {
					running[s.Who%len(running)].gate <- nil
				}
			case "break":
				if len(running) > 0 {
					running[s.Who%len(running)].gate <- errGone
				}
			case "close":
				go func() { _ = queue.Close(context.Background()) }()
			}
			synctest.Wait()
			for i, c := range callers {
				if c.done() && !before[i] {
					now.Answers[i] = answer(c)
				}
			}
			seen = append(seen, now)
		}
		if err := queue.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return seen
}

func answer(c *caller) string {
	switch {
	case c.panicked != nil:
		return c.panicked.(*commit.Panic).Value.(string)
	case c.err == nil:
		return "stored"
	case errors.Is(c.err, errPoison):
		return "poison"
	default:
		return fault.KindOf(c.err).String()
	}
}
