package fault

import (
	"iter"
	"strings"
)

// Closest returns the known name that a mistyped word most likely means: the
// one with the fewest edits, ignoring letter case. It reports false if every
// known name is more than limit edits away.
func Closest(word string, known iter.Seq[string], limit int) (string, bool) {
	best := ""
	fewest := limit + 1
	word = strings.ToLower(word)
	for name := range known {
		n := edits(word, strings.ToLower(name))
		if n < fewest {
			best = name
			fewest = n
		}
	}
	return best, fewest <= limit
}

// edits is the Levenshtein distance of two short texts, in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
