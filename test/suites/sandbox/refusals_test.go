package sandbox_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
)

// value is a member of a sale, by its path in the record, and its JSON value.
type value struct{ path, json string }

// refusals are the rows of the table of the page: for each code the values that get it
// at once, and those that get it on a later day.
func refusals(t *testing.T) map[string][2][]value {
	t.Helper()
	found := map[string][2][]value{}
	for _, row := range regexp.MustCompile("(?m)^\\| \\[`([a-z-]+)`\\]\\([^)]+\\) \\| (.+) \\| (.+) \\|$").FindAllStringSubmatch(sandboxPage(t), -1) {
		var cells [2][]value
		for i, cell := range row[2:] {
			for _, v := range regexp.MustCompile("`([A-Za-z.]+)` ([A-Z0-9]+)").FindAllStringSubmatch(cell, -1) {
				if _, err := strconv.Atoi(v[2]); err != nil {
					v[2] = strconv.Quote(v[2])
				}
				cells[i] = append(cells[i], value{v[1], v[2]})
			}
		}
		found[row[1]] = cells
	}
	for _, code := range fault.Codes() {
		// The page has these two below the table, because they depend on the day.
		if code.Remedy == fault.NewOperation && code.Name != fault.DayClosed && code.Name != fault.AfterCutOff {
			require.Contains(t, found, code.Name, "sandbox.md.tmpl: every refusal has a row in the table of minute 40")
		}
	}
	return found
}

// TestRefusals tries every row of the table in the documentation: each sale is
// refused with its code, at once or on its day.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for code, cells := range refusals(t) {
		require.NotEqual(t, [2][]value{}, cells, code)
		for i, values := range cells {
			if values == nil {
				continue
			}
			t.Run(fmt.Sprint(code, " ", i), func(t *testing.T) {
				t.Parallel()
				p := newPartner(t)
				sale := saleWith(t, values)
				if i == 1 {
					sale = on(p.day(1), sale)
					first := p.sell("a", sale)
					require.Equal(t, 1, first.state(), first.body)
					require.Equal(t, 1, p.moveClock(`{"advance":"24h"}`).Settled.Failed)
				}
				got := p.sell("a", sale)
				require.Equal(t, http.StatusOK, got.status, got.body)
				require.Equal(t, 8, got.state())
				require.Equal(t, []string{code}, got.codes(), got.body)
			})
		}
	}
}

// lostCursor returns the cursor of an outcome that a reset has removed.
func (p partner) lostCursor() string {
	p.Helper()
	first := p.sell("a", on(p.day(1), demoSale))
	require.Equal(p, 1, first.state(), first.body)
	p.moveClock(`{"advance":"24h"}`)
	var page struct{ Next string }
	read := p.send(http.MethodGet, "/outcomes", "")
	require.NoError(p, json.Unmarshal([]byte(read.body), &page), read.body)
	require.Equal(p, http.StatusOK, p.send(http.MethodPost, "/_sandbox/reset", "").status)
	return page.Next
}
