package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"bankingapi/test/kit/golden"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestRequestsAreWhatTheContractShows(t *testing.T) {
	t.Parallel()
	known := slices.Collect(bookCustomers(1))
	noon := func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }
	for _, w := range allWorks {
		q := requests{work: w, ids: ids{now: noon, connection: 3}, host: "127.0.0.1:8443", key: strings.Repeat("0", 32), random: rand.New(rand.NewPCG(1, 2))}
		text := string(q.next()) + "\n"
		second := q.next()
		text += string(second)
		if w.Records == 1 {
			golden.Equal(t, w.Name+".http", text)
		}
		parsed, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(second)))
		require.NoError(t, err)
		var content struct {
			Parameters []struct {
				CustomerNo int
				PushID     string `json:"PushId"`
			}
		}
		require.NoError(t, json.NewDecoder(parsed.Body).Decode(&content))
		require.Len(t, content.Parameters, w.Records)
		unlike := map[string]bool{}
		for _, record := range content.Parameters {
			unlike[record.PushID] = true
			require.True(t, w.Sellers == nobody || slices.Contains(known, record.CustomerNo), "a customer of the book")
		}
		require.Len(t, unlike, w.Records, "records of their own")
	}
}

func TestIDsAreUniqueVersion7(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for connection := range uint64(4) {
		s := ids{now: time.Now, connection: connection}
		for range 1000 {
			id, err := uuid.Parse(s.id())
			require.NoError(t, err)
			require.Equal(t, uuid.Version(7), id.Version())
			require.Equal(t, uuid.RFC4122, id.Variant())
			seen[id.String()] = true
		}
	}
	require.Len(t, seen, 4000)
}

func TestBookFilesAreComplete(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string]int{"prices": funds, "holdings": 2 * customers, "accounts": 2 * customers} {
		var b bytes.Buffer
		require.NoError(t, writeBook(&b, name, 2))
		lines := strings.SplitAfter(b.String(), "\n")
		require.Len(t, lines, rows+2, "a header and a line each")
		golden.Equal(t, name+".csv", strings.Join(lines[:6], ""))
	}
}
