package backoffice

import (
	_ "embed" // report.txt
	"errors"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"
)

// Report is the document of one run of Verify for an auditor: which book, when, what was
// checked, and the result.
type Report struct {
	// Book names the book, without secrets. Schema is the version of its schema.
	Book   string
	Schema int64
	// Program is the version and commit of the program. By says who ran Verify, and where.
	Program, By string
	// Started is when Verify began. The book was read as it was at that time. Ended is when
	// Verify had checked everything.
	Started, Ended time.Time
	Proof          Proof
	// Findings are the first findings. Proof counts all findings.
	Findings []Finding
}

// MaxFindings is the maximum number of findings in a report, which counts the others.
const MaxFindings = 1000

//go:embed report.txt
var reportText string

// Text returns the report as plain text. Its findings name customers and accounts.
func (r *Report) Text() string {
	hasTrail := r.Proof.Batches+r.Proof.Unsealed > 0
	tell := template.Must(template.New("").Funcs(template.FuncMap{
		"instant": func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") },
		"more":    func() int64 { return r.Proof.Findings - int64(len(r.Findings)) },
		"rules": func() []Rule {
			return slices.DeleteFunc(Rules(), func(of Rule) bool { return !hasTrail && slices.Contains(trailRules, of) })
		},
	}).Parse(reportText))
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	if err := errors.Join(tell.Execute(w, r), w.Flush()); err != nil {
		return "The report cannot be written: " + err.Error() + "\n"
	}
	return text.String()
}
