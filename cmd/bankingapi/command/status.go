package command

import (
	"errors"
	"fmt"
	"slices"

	"bankingapi/application/backoffice"
	"bankingapi/application/fleet"
)

// serviceStatus is what status prints.
type serviceStatus struct {
	Good     bool
	Replicas []replicaStatus
	Troubles []trouble
}

type replicaStatus struct {
	Name, Version string
	Began, Seen   *moment
	Reports       bool // false if it ended without saying so, or cannot reach the database
}

// trouble is one line of the bar of the console.
type trouble struct {
	Level    string // not ready, bad, warning or later
	Kind     string // the name of the line
	Where    string // on which replicas; empty for the book, or if there is only one
	Text     string // what is wrong
	Since    *moment
	Effect   string // what callers notice
	Next     string // what to do
	Partners string // what to tell partners meanwhile
}

// showStatus opens the book by itself: a database that does not answer is a line, and no error.
func showStatus(c *call) error {
	err := c.openAny()
	if err != nil {
		return err
	}
	status, err := c.app.Status(c.cmd.Context())
	if err != nil {
		return err
	}
	shown := statusOf(status)
	if err := c.write("status", shown); err != nil {
		return err
	}
	if shown.Good {
		return nil
	}
	urgent := 0
	for i := range shown.Troubles {
		if shown.Troubles[i].Level != later {
			urgent++
		}
	}
	if urgent == 1 {
		return errors.New("1 line needs an operator")
	}
	return fmt.Errorf("%s need an operator", backoffice.Plural(urgent, "line"))
}

// later is the level of what can wait for days.
const later = "later"

func statusOf(s fleet.Status) serviceStatus {
	shown := serviceStatus{Good: s.IsGood(), Replicas: []replicaStatus{}, Troubles: []trouble{}}
	for _, r := range s.Replicas {
		shown.Replicas = append(shown.Replicas, replicaStatus{r.Name, r.Version, instant(r.Began), instant(r.Seen), !r.IsMissing()})
	}
	// A replica that was killed leaves a row, and a line. One that stopped in order leaves nothing.
	// While the database cannot be used, none can report.
	isSaid := slices.ContainsFunc(s.Troubles, func(t fleet.Trouble) bool { return t.Kind == fleet.Missing || t.Kind == fleet.Database })
	if !s.Reports() && !isSaid {
		shown.Good = false
		shown.Troubles = append(shown.Troubles, trouble{
			Level: "not ready", Kind: fleet.Missing, Text: "No replica of the service reports.", Effect: "Callers get no answer.",
			Next: "Start the service. If it runs, look at its log: it cannot reach this database, or uses another one.",
		})
	}
	for _, t := range s.Troubles {
		shown.Troubles = append(shown.Troubles, trouble{levelOf(t), t.Kind, t.Where, t.Text, instant(t.Since), t.Effect, t.Next, t.Partners})
	}
	return shown
}

func levelOf(t fleet.Trouble) string {
	switch {
	case t.IsUnready():
		return "not ready"
	case t.Bad:
		return "bad"
	case t.Quiet:
		return later
	}
	return "warning"
}
