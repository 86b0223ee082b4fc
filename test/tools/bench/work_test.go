package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
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

func fixedRequest(w work) *request {
	noon := func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }
	return w.request("127.0.0.1:8443", strings.Repeat("0", 32), rand.New(rand.NewPCG(1, 2)), &idSource{now: noon, connection: 3})
}

func TestRequestsAreWhatTheContractShows(t *testing.T) {
	t.Parallel()
	known := slices.Collect(bookCustomers(1))
	for _, w := range allWorks {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := fixedRequest(w)
			first := bytes.Clone(r.next())
			second := bytes.Clone(r.next())
			if w.records == 1 {
				golden.Equal(t, w.name+".http", string(first)+"\n"+string(second))
			}
			require.Len(t, second, len(first[:len(second)]), "a fixed length")

			parsed, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(second)))
			require.NoError(t, err)
			body, err := io.ReadAll(parsed.Body)
			require.NoError(t, err)
			require.True(t, bytes.HasSuffix(second, body), "Content-Length covers the body")
			var content struct {
				Parameters []struct {
					CustomerNo int
					PushID     string `json:"PushId"`
				}
			}
			require.NoError(t, json.Unmarshal(body, &content))
			require.Len(t, content.Parameters, w.records)
			unlike := map[string]bool{}
			for _, record := range content.Parameters {
				unlike[record.PushID] = true
				if w.pick != nil {
					require.True(t, slices.Contains(known, record.CustomerNo), "a customer of the book")
				}
			}
			require.Len(t, unlike, w.records, "records of their own")
		})
	}
}

func TestNextRequestAllocatesNothing(t *testing.T) {
	for _, w := range allWorks {
		r := fixedRequest(w)
		require.Zero(t, testing.AllocsPerRun(100, func() { r.next() }), w.name)
	}
}

func TestIDsAreUniqueVersion7(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for connection := range uint64(4) {
		s := idSource{now: time.Now, connection: connection}
		for range 1000 {
			var text [36]byte
			s.next(text[:])
			id, err := uuid.Parse(string(text[:]))
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
