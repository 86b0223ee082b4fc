package backoffice

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what an auditor files of one run of Verify: which book, when, what
// was checked, and the result.
type Report struct {
	// Book names the book, without secrets. Schema is the version of its schema.
	Book   string
	Schema int64
	// Program is the version and commit of the program. By says who ran it, and where.
	Program, By string
	// Started is when Verify began: the book was read as it was then. Ended is
	// when it had checked everything.
	Started, Ended time.Time
	Proof          Proof
	// Findings are the first findings; Proof counts all of them.
	Findings []Finding
}

// MaxFindings is how many findings a report lists. It counts the others.
const MaxFindings = 1000

// Found adds a finding to the list.
func (r *Report) Found(f Finding) {
	if len(r.Findings) < MaxFindings {
		r.Findings = append(r.Findings, f)
	}
}

// Text is the report as plain text. Its findings name customers and accounts.
func (r *Report) Text() string {
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	table := func(rows func(cell func(...string))) {
		w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		rows(func(cells ...string) { fmt.Fprintln(w, "  "+strings.Join(cells, "\t")) })
		_ = w.Flush() // into memory
	}
	p := &r.Proof
	instant := func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") }

	line("Verification of a book\n")
	table(func(cell func(...string)) {
		cell("Result", r.result())
		cell("Book", r.Book)
		cell("Read as it was at", instant(r.Started))
		cell("Checked until", instant(r.Ended))
		cell("Run by", r.By)
		cell("Program", r.Program)
		cell("Schema version", count(r.Schema))
	})
	line("\nRows checked\n")
	table(func(cell func(...string)) {
		cell("Holdings", count(p.Holdings))
		cell("Accounts", count(p.Accounts))
		cell("Sales", count(p.Sales))
		cell("Postings", count(p.Postings))
		if p.hasTrail() {
			cell("Batches of the trail", count(p.Batches))
			cell("Batches not in a checkpoint yet", count(p.Unsealed))
		}
	})
	line("\nTrail\n")
	table(func(cell func(...string)) {
		if p.Trail.Reason != "" {
			cell("Not compared", p.Trail.Reason)
			return
		}
		cell("Public key", p.Trail.PublicKey)
		cell("Newest checkpoint", cmp.Or(p.Trail.Newest, "none"))
		for _, file := range p.Trail.Extends {
			cell("Compared with", file)
		}
		for _, warning := range p.Trail.Warnings {
			cell("Warning", warning)
		}
	})
	sums := func(title, of string, all []Total) {
		line("\n%s. Customers and bank are zero together.\n", title)
		table(func(cell func(...string)) {
			cell(of, "CUSTOMERS", "BANK")
			for _, t := range all {
				cell(t.Of, t.Customers, t.Bank)
			}
		})
	}
	sums("Units by fund", "FUND", p.Units)
	sums("Money by currency", "CURRENCY", p.Money)

	line("\nRules checked\n")
	table(func(cell func(...string)) {
		for _, rule := range Rules() {
			if p.hasTrail() || !slices.Contains(trailRules, rule) {
				cell(rule.Name, rule.Proves)
			}
		}
	})
	if p.Findings > 0 {
		line("\nFindings\n")
		table(func(cell func(...string)) {
			for _, f := range r.Findings {
				cell(f.Rule, f.Text)
			}
		})
		if more := p.Findings - int64(len(r.Findings)); more > 0 {
			line("\nAnd %d more.", more)
		}
	}
	return text.String()
}

func (r *Report) result() string {
	switch p := &r.Proof; {
	case p.Findings == 1:
		return "NOT CORRECT: 1 finding"
	case p.Findings > 1:
		return fmt.Sprintf("NOT CORRECT: %d findings", p.Findings)
	case p.Holdings+p.Accounts+p.Sales+p.Postings == 0:
		return "Empty: there was nothing to check"
	}
	return "Correct: no rule has a finding"
}

func (p *Proof) hasTrail() bool { return p.Batches+p.Unsealed > 0 }

func count(n int64) string { return strconv.FormatInt(n, 10) }
