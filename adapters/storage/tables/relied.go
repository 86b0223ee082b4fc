package tables

// Relied is a table with what the program relies on. Without it an answer may be
// false although no statement fails: a repeat sells again without its key, a holding
// falls below zero without its condition.
type Relied struct {
	Table string
	// Columns are those that the program knows, and Keys those of the primary key,
	// sorted.
	Columns, Keys []string
	// Checks are conditions of a row, as the server writes them.
	Checks []string
	// Rights are those that a sale, a push and a refusal need.
	Rights []string

	Copies copies
}
