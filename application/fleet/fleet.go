// Package fleet says what is wrong with a service: with each of its replicas, and with its
// book. The bar and the page Today of the console show it, and a command prints it.
//
// A service may have several replicas behind a balancer, and a person reaches only one of them.
// So each replica keeps a row with what it knows of itself, and every replica reads all rows. A
// replica that stopped without saying so has an old row. The clock of the storage dates the
// rows, because the clock of a replica may be what is wrong.
package fleet

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/summary"
	"bankingapi/domain/operation"
)

// Trouble is something that is wrong. It is one line of the bar.
type Trouble struct {
	// Kind is the name of the line: a check of readiness, or one of the kinds below.
	Kind string
	// Text says what is wrong. Effect says what callers notice, if the service is not ready.
	Text, Effect string
	// Next is what an operator does. Partners is what to tell partners meanwhile: it is empty if
	// they notice nothing.
	Next, Partners string
	// Bad means that callers notice it, or that the book may be wrong.
	Bad bool
	// Quiet troubles can wait for days. They are on the pages that they concern, not in the bar.
	Quiet bool
	// Since is the zero time if the clock of the replica is wrong.
	Since time.Time
	// Where names the replicas that have it. It is empty for a trouble of the book, and if there
	// is only one replica.
	Where string
}

// The kinds of troubles that are not checks of readiness.
const (
	Errors      = "errors"
	Defect      = "defect"
	Unknown     = "unknown outcomes"
	Flood       = "flood"
	UnknownKeys = "unknown keys"
	Refusals    = "refusals"
	Certificate = "certificate"
	DueSales    = "due sales"
	Prices      = "prices"
	Keys        = "keys"
	Book        = "book"
	Missing     = "replicas"
	Silent      = "checks"
)

// Database is the check of readiness that asks whether the storage can be used.
const Database = "database"

// IsUnready reports whether the trouble makes a replica not ready.
func (t Trouble) IsUnready() bool { return t.Effect != "" }

// isOfClock reports whether the clock of the replica is wrong.
func (t Trouble) isOfClock() bool { return t.Kind == clock }

// shape returns the text without the numbers, which may change while a trouble lasts.
func (t Trouble) shape() string { return t.Kind + shapeOf(t.Text) }

func shapeOf(text string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' || r == ',' || r == '.' {
			return -1
		}
		return r
	}, text)
}

// Replica is one process of the service.
type Replica struct {
	ID            operation.ID // of the process: a restarted one has another ID
	Name, Version string
	Began         time.Time
	Seen          time.Time     // when it kept its row last, by the clock of the storage
	Age           time.Duration // how long ago that was, by the same clock
	// Silence is the Age from which the replica counts as missing. A replica whose writes take
	// long grants itself more.
	Silence  time.Duration
	Troubles []Trouble
}

// IsMissing reports whether the replica stopped without saying so, or cannot reach the storage.
func (r Replica) IsMissing() bool { return r.Age > r.Silence }

// Replicas keeps one row for each replica.
type Replicas interface {
	// Keep stores the row of a replica, seen now by the clock of the storage. It deletes the
	// other rows of the same Name that are older than replaced, because the replica was started
	// again, and rows that are older than Forget. A row need not survive a crash that follows.
	Keep(ctx context.Context, r Replica, replaced time.Duration) error
	// All returns all rows in the order of their names.
	All(ctx context.Context) ([]Replica, error)
	// Remove deletes the row of a replica that stops.
	Remove(ctx context.Context, id operation.ID) error
}

// Forget is the age from which a row is deleted.
const Forget = time.Hour

// Status is what is wrong with a service, worst first, and its replicas.
type Status struct {
	Replicas []Replica
	Troubles []Trouble
}

// IsGood reports whether nothing is wrong that needs an operator now.
func (s Status) IsGood() bool {
	return !slices.ContainsFunc(s.Troubles, func(t Trouble) bool { return !t.Quiet })
}

// Reports reports whether a replica reports.
func (s Status) Reports() bool {
	return slices.ContainsFunc(s.Replicas, func(r Replica) bool { return !r.IsMissing() })
}

// WithoutDatabase returns the status of a service whose database cannot be used. Then no replica can
// report, and their silence says nothing of them: the line of the database replaces theirs.
func (s Status) WithoutDatabase(problem string) Status {
	others := slices.DeleteFunc(slices.Clone(s.Troubles), func(t Trouble) bool { return t.Kind == Missing })
	s.Troubles = append(ofChecks([]summary.Check{{Name: Database, Problem: problem}}), others...)
	return s
}

// Look reads the rows of all replicas and the book. It is for a command, which is no replica.
func Look(ctx context.Context, replicas Replicas, read func(context.Context) (State, error)) (Status, error) {
	rows, err := replicas.All(ctx)
	if err != nil {
		return Status{}, err
	}
	state, err := read(ctx)
	if err != nil {
		return Status{}, err
	}
	return Status{Replicas: rows, Troubles: merge(rows, state.troubles())}, nil
}

// merge returns the troubles of the replicas and of the book, one line for each, worst first.
func merge(replicas []Replica, book []Trouble) []Trouble {
	var all []Trouble
	names := make(map[string][]string) // of the replicas that have a trouble, by its shape
	alive := 0
	for _, r := range replicas {
		if r.IsMissing() {
			continue
		}
		alive++
		for _, t := range r.Troubles {
			key := t.shape()
			names[key] = append(names[key], r.Name)
			same := slices.IndexFunc(all, func(known Trouble) bool { return known.shape() == key })
			switch {
			case same < 0:
				all = append(all, t)
			case t.Since.IsZero(): // its clock is wrong
			case all[same].Since.IsZero(), t.Since.Before(all[same].Since):
				all[same].Since = t.Since
			}
		}
	}
	for i := range all {
		having := names[all[i].shape()]
		switch {
		case len(replicas) == 1:
		case len(having) == alive && alive > 1:
			all[i].Where = "on all " + plural(alive, "replica") + " that report"
		default:
			all[i].Where = "on " + strings.Join(having, ", ")
		}
	}
	all = append(all, missing(replicas)...)
	all = append(all, book...)
	slices.SortStableFunc(all, func(a, b Trouble) int { return rank(a) - rank(b) })
	return all
}

// rank orders troubles: not ready, noticed by callers, others, and those that can wait.
func rank(t Trouble) int {
	switch {
	case t.IsUnready():
		return 0
	case t.Bad:
		return 1
	case t.Quiet:
		return 3
	}
	return 2
}

// missing returns the line of the replicas that do not report.
func missing(replicas []Replica) []Trouble {
	var names []string
	var last Replica // the one that stopped last
	t := Trouble{Kind: Missing}
	for _, r := range replicas {
		if !r.IsMissing() {
			continue
		}
		names = append(names, r.Name)
		if t.Since.IsZero() || r.Seen.Before(t.Since) {
			t.Since = r.Seen
		}
		if r.Seen.After(last.Seen) {
			last = r
		}
	}
	if len(names) == 0 {
		return nil
	}
	t.Text = plural(len(names), "replica") + " stopped reporting: " + some(names) + "."
	t.Next = "See whether the process runs and reaches the database, and read the last lines of its log. If it was removed on purpose, its line ends after an hour."
	if len(names) == len(replicas) {
		t.Bad = true
		t.Since = last.Seen
		t.Text = "No replica reports. The last was " + last.Name + "."
		t.Effect = unanswered
		t.Partners = partnersUnanswered
	}
	return []Trouble{t}
}

// maxNamed is how many names a line has.
const maxNamed = 5

// some joins the first names, and says how many there are more.
func some(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:maxNamed], ", ") + " and " + strconv.Itoa(len(names)-maxNamed) + " more"
}

// plural returns a text like "1 sale" or "1,200 sales".
func plural[N int | int64](n N, word string) string {
	text := number(n)
	if text != "1" {
		word += "s"
	}
	return text + " " + word
}

// number puts commas between thousands.
func number[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
