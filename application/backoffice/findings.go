package backoffice

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"bankingapi/domain/operation"
)

// FindingGroup has the findings of one rule, with what an operator does next.
type FindingGroup struct {
	Rule
	Findings []Finding
	// First and Last are the earliest and the latest time in the IDs of the operations that the
	// findings name. They are zero if the findings name none.
	First, Last time.Time
	Next        string
}

// idsInText matches the IDs of operations in the text of a finding.
var idsInText = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)

// Operations returns the IDs of the operations that the finding names, each once.
func (f Finding) Operations() (ids []operation.ID) {
	for _, text := range idsInText.FindAllString(f.Text, -1) {
		id, err := operation.ParseID(text)
		if err != nil || slices.Contains(ids, id) {
			continue
		}
		ids = append(ids, id)
	}
	return ids
}

// GroupFindings groups findings by their rule, in the order of Rules.
func GroupFindings(findings []Finding) (groups []FindingGroup) {
	for _, rule := range Rules() {
		group := FindingGroup{Rule: rule, Next: nextOfRule(rule.Name)}
		for _, f := range findings {
			if f.Rule == rule.Name {
				group.add(f)
			}
		}
		if len(group.Findings) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

func (g *FindingGroup) add(f Finding) {
	g.Findings = append(g.Findings, f)
	for _, id := range f.Operations() {
		at := id.Time()
		if g.First.IsZero() || at.Before(g.First) {
			g.First = at
		}
		if at.After(g.Last) {
			g.Last = at
		}
	}
}

// nextOfRule returns what an operator does about findings of a rule. None of them may be
// corrected before its cause is known: a correction is a posting too.
func nextOfRule(name string) string {
	const keep = "Correct nothing before the cause is known. "
	switch {
	case strings.HasPrefix(name, "trail-"):
		return keep + "Rows or the log were changed outside of the service. Find who could write to the database at that time, and compare with a backup and with checkpoints that are kept elsewhere: bankingapi verify --against FILE."
	case name == rulesOfAct.Name:
		return keep + "The rules were changed without an act. Set them with bankingapi rules change, and find who changed the row."
	case strings.HasPrefix(name, "holding-"), strings.HasPrefix(name, "account-"), name == zeroSum.Name:
		return keep + "Compare the position with the core bank: bankingapi reconcile. Restore the row from a backup, or adjust the position once the cause is known."
	}
	return keep + "Look at the operation, and compare its rows with a backup. Send the report of bankingapi verify --report FILE to the makers of the program if nobody changed them."
}
