package prove_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
)

// checkLedger compares every request with the rows of the store and runs
// verify. Nothing acknowledged may be lost, nothing may be stored twice or in
// part, and a request answered as without effect must have no rows.
func checkLedger(t testing.TB, b *service.Bank, h *history) {
	t.Helper()
	b.Verify(t)
	checkSales(t, b, h)
	checkPushes(t, b, h)
}

func checkSales(t testing.TB, b *service.Bank, h *history) {
	t.Helper()
	rows := map[string][]service.Row{} // by ChannelRequestId
	for _, r := range b.Export(t, "sales") {
		id := r["ChannelRequestId"]
		rows[id] = append(rows[id], r)
	}
	sold := map[string]string{} // by CallerId: the request that sold
	positions := map[int]*position{}
	dues := map[int]int{} // units of due sales by group
	for _, e := range h.events {
		s, ok := e.input.(*sale)
		if !ok {
			continue
		}
		found, got := rows[e.id], e.output.(result)
		slices.SortFunc(found, func(a, b service.Row) int { return cmp.Compare(a["Position"], b["Position"]) })
		delete(rows, e.id)
		what := fmt.Sprintf("%s (%s): %d rows of %d", e.id, describe(e.input, e.output), len(found), len(s.parts))
		switch {
		case got.verdict == unknown:
			require.Contains(t, []int{0, len(s.parts)}, len(found), "partial: %s", what)
		case (got.verdict == completed || got.verdict == recorded) && !got.replayed:
			require.Len(t, found, len(s.parts), "acknowledged, but lost or doubled: %s", what)
		default:
			require.Empty(t, found, "answered as without effect, but has rows: %s", what)
		}
		if len(found) == 0 {
			continue
		}
		if s.caller >= 0 {
			key := s.callerID()
			require.Empty(t, sold[key], "sold twice under one CallerId: %s", what)
			sold[key] = e.id
		}
		group := positions[s.group]
		if group == nil {
			group = &position{}
			positions[s.group] = group
		}
		require.True(t, isWhole(found), what)
		for i, r := range found {
			p := s.parts[i]
			require.Equal(t, strconv.Itoa(i), r["Position"], what)
			require.Equal(t, strconv.Itoa(customer(s.group, p.of)), r["CustomerNo"], what)
			require.Equal(t, strconv.Itoa(p.units), r["FundAmount"], what)
			if s.due {
				if r["State"] == "2" && r["ReversedAt"] == "" {
					dues[s.group] += p.units
				}
				continue
			}
			if s.later {
				require.Equal(t, "1", r["State"], what)
				continue
			}
			require.Equal(t, "2", r["State"], what)
			group.units[p.of] += p.units
			group.balance += p.units * perUnit
		}
	}
	require.Empty(t, rows, "sales without a request")

	units, balances := map[string]int{}, map[string]int{}
	for g, sold := range positions {
		for c, n := range sold.units {
			units[strconv.Itoa(customer(g, c))] = n
		}
		balances[strconv.Itoa(customer(g, 0))] = sold.balance
	}
	for g, n := range dues {
		key := strconv.Itoa(customer(g, dueCustomer))
		units[key], balances[key] = n, n*perUnit
	}
	for _, r := range b.Export(t, "holdings") {
		require.Equal(t, strconv.Itoa(opening-units[r["CustomerNo"]]), r["Units"], "the holding of %s", r["CustomerNo"])
	}
	for _, r := range b.Export(t, "accounts") {
		n := balances[r["CustomerNo"]]
		require.Equal(t, fmt.Sprintf("%d.%02d", n/100, n%100), r["Balance"], "the account of %s", r["CustomerNo"])
	}
}

func checkPushes(t testing.TB, b *service.Bank, h *history) {
	t.Helper()
	rows := map[string]int{}
	for _, r := range b.Export(t, "notifications") {
		if r["UserId"] == largeUser {
			continue
		}
		rows[r["UserId"]+" "+r["PushId"]]++
	}
	asked := map[string]bool{}
	acknowledged := map[string]bool{}
	for _, e := range h.events {
		p, ok := e.input.(*pushes)
		if !ok {
			continue
		}
		got := e.output.(result)
		there := 0
		for _, r := range p.records {
			key := user(p.group) + " " + pushID(r)
			asked[key] = true
			there += rows[key]
			if got.verdict == completed {
				acknowledged[key] = true
			}
		}
		if got.verdict == completed {
			require.GreaterOrEqual(t, there, 1)
		}
	}
	for key := range acknowledged {
		require.Equal(t, 1, rows[key], "acknowledged, but lost or doubled: %s", key)
	}
	for key, n := range rows {
		require.Equal(t, 1, n, "doubled: %s", key)
		require.True(t, asked[key], "no request for %s", key)
	}
}
