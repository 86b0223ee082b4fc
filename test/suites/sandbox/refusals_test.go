package sandbox_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// request is a request with an error.
type request struct {
	method, path, body string
	header             []string
	// before is sent first.
	before string
	// hour is the time to which the clock is moved before.
	hour string
}

// catalogue has requests for the errors that the request on their page does not
// get in a sandbox: it is shortened there, needs a day of this year or another
// caller, or the service must fail.
func catalogue() map[string]request {
	sale := func(old, changed string) request {
		return request{method: http.MethodPost, path: sellPath, body: strings.Replace(`{"Header":{},"Parameters":[`+demoSale+`]}`, old, changed, 1)}
	}
	withHeader := func(r request, header ...string) request { r.header = header; return r }
	ordered := func(name string) request { return withHeader(sale("", ""), "Sandbox-Fault", name) }
	reused := sale(`"Header":{}`, `"Header":{"CallerId":"x"}`)
	reused.before = strings.Replace(reused.body, "12.5", "13", 1)
	late := sale("", "")
	late.hour = "23:59:00"
	return map[string]request{
		fault.DayClosed:    sale(demoSale, on("HOLIDAY", demoSale)),
		fault.AfterCutOff:  late,
		fault.TooMany:      sale(demoSale, strings.Repeat(demoSale+",", 1000)+demoSale),
		fault.DatesDiffer:  sale(demoSale, demoSale+","+on("TOMORROW", demoSale)),
		fault.BodyTooLarge: {method: http.MethodPost, path: sellPath, body: strings.Repeat(" ", 5<<20)},

		fault.OperationNotGranted:     withHeader(sale("", ""), "Ocp-Apim-Subscription-Key", "KEY-push-only"),
		fault.ContradictsSubscription: withHeader(sale(`"Header":{}`, `"Header":{"Channel":"WEB"}`), "Ocp-Apim-Subscription-Key", "KEY-mobile"),
		fault.CallerIDReused:          reused,

		fault.RateLimitExceeded:  ordered("rate-limited"),
		fault.InternalError:      ordered("internal"),
		fault.Overloaded:         ordered("overloaded"),
		fault.ShuttingDown:       ordered("shutting-down"),
		fault.StorageUnavailable: ordered("unavailable-before"),
		fault.OutcomeUnknown:     ordered("unavailable-after"),
	}
}

// onPage returns the request on the page of a code.
func onPage(t *testing.T, code string) request {
	t.Helper()
	example, err := os.ReadFile("../../../adapters/httpapi/docs/examples/" + code + ".http")
	require.NoError(t, err, "make generate records it")
	shown, _, _ := strings.Cut(string(example), "\n\n\n")
	head, body, _ := strings.Cut(shown, "\n\n")
	lines := strings.Split(head, "\n")
	line := strings.Fields(lines[0])
	header := []string{"Ocp-Apim-Subscription-Key", ""}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		header = append(header, name, strings.Replace(value, "your key", "KEY", 1))
	}
	return request{method: line[0], path: line[1], header: header, body: body}
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

// TestTheWholeCatalogue gets every error code from a sandbox. TestRefusals does
// it for the refusals of the table.
func TestTheWholeCatalogue(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	requests := catalogue()
	inTable := refusals(t)
	for _, code := range fault.Codes() {
		if _, ok := inTable[code.Name]; ok {
			continue
		}
		r, special := requests[code.Name]
		if !special {
			r = onPage(t, code.Name)
		}
		for i := range r.header {
			r.header[i] = strings.Replace(r.header[i], "KEY", p.bank.Key, 1)
		}
		p := p
		if r.hour != "" {
			p = newPartner(t)
			p.moveClock(`{"now":"` + p.day(0) + "T" + r.hour + `+03:00"}`)
		}
		if code.Name == fault.CursorLost {
			p = newPartner(t)
			r.path = "/outcomes?after=" + p.lostCursor()
			r.header = nil
		}
		if r.before != "" {
			p.send(r.method, r.path, r.before)
		}
		got := p.send(r.method, r.path, strings.NewReplacer("TOMORROW", p.day(1), "HOLIDAY", p.day(200)).Replace(r.body), r.header...)
		if !slices.Contains(got.codes(), code.Name) {
			t.Errorf("the request on the page of %s (examples in adapters/httpapi/docs/examples_test.go) does not get this code in a sandbox: %s\n"+
				"Add one that does to catalogue in this file or, for a refusal, to the table of the page Your first hour.", code.Name, got.body)
		}
	}
}
