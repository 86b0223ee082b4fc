package console

import (
	"net/http"

	"bankingapi/application/fleet"
)

// Service returns what is wrong with all replicas and the book, from memory. A page asks once.
func (q *request) Service() fleet.Status {
	if q.service == nil {
		now := q.o.Fleet.Status()
		q.service = &now
	}
	return *q.service
}

// Troubles returns the lines of the bar: what cannot wait.
func (q *request) Troubles() (lines []fleet.Trouble) {
	for _, t := range q.Service().Troubles {
		if !t.Quiet {
			lines = append(lines, t)
		}
	}
	return lines
}

// Waiting returns the troubles that can wait for days: keys and certificates that end. They are
// on the pages that they concern.
func (q *request) Waiting() (lines []fleet.Trouble) {
	for _, t := range q.Service().Troubles {
		if t.Quiet {
			lines = append(lines, t)
		}
	}
	return lines
}

// Alarm counts the red lines of the bar, for the title and the icon of the page.
func (q *request) Alarm() (bad int) {
	for _, t := range q.Troubles() {
		if t.Bad {
			bad++
		}
	}
	return bad
}

// isUnready reports whether this replica is not ready.
func (q *request) isUnready() bool {
	for _, t := range q.Troubles() {
		if t.IsUnready() {
			return true
		}
	}
	return false
}

// showHealth sends the bar to the script of the pages.
func showHealth(q *request) (any, error) {
	return response(func(w http.ResponseWriter) error {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = q.console.templates["error"].ExecuteTemplate(w, "health", view{q, nil}) // it fails only if the client disconnected
		return nil
	}), nil
}
