package console

import (
	"net/http"

	"bankingapi/application/fleet"
)

// bar is what is wrong with all replicas and the book, from memory. A page asks once.
type bar struct {
	fleet *fleet.Watch
	read  *fleet.Status
}

// Service returns the replicas and their troubles.
func (b *bar) Service() fleet.Status {
	if b.read == nil {
		now := b.fleet.Status()
		b.read = &now
	}
	return *b.read
}

// Troubles returns the lines of the bar: what cannot wait.
func (b *bar) Troubles() []fleet.Trouble { return b.lines(false) }

// Waiting returns the troubles that can wait for days: keys and certificates that end. They are
// on the pages that they concern.
func (b *bar) Waiting() []fleet.Trouble { return b.lines(true) }

func (b *bar) lines(quiet bool) (lines []fleet.Trouble) {
	for _, t := range b.Service().Troubles {
		if t.Quiet == quiet {
			lines = append(lines, t)
		}
	}
	return lines
}

// Alarm counts the red lines of the bar, for the title and the icon of the page.
func (b *bar) Alarm() (bad int) {
	for _, t := range b.Troubles() {
		if t.Bad {
			bad++
		}
	}
	return bad
}

// showHealth sends the bar to the script of the pages.
func showHealth(q *request) (any, error) {
	return response(func(w http.ResponseWriter) error {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = q.console.templates["error"].ExecuteTemplate(w, "health", viewOf(q, nil)) // it fails only if the client disconnected
		return nil
	}), nil
}
