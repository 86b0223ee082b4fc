package compat_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
)

// Every version goes on with what an earlier one has written. If the fixtures of this version are
// not written yet, the test writes them elsewhere, so that writing and reading them is tested too.
func TestAReleasedVersionLivesOn(t *testing.T) {
	t.Parallel()
	versions, err := filepath.Glob("testdata/*")
	require.NoError(t, err)
	current := version(t)
	if !slices.Contains(versions, filepath.Join("testdata", current)) {
		require.NotContains(t, tags(t), "v"+current, "a released version has fixtures")
		unwritten := filepath.Join(t.TempDir(), current)
		writeVersion(t, unwritten)
		versions = append(versions, unwritten)
	}
	for _, folder := range versions {
		t.Run(filepath.Base(folder)+" settings", func(t *testing.T) {
			t.Parallel()
			file, err := filepath.Abs(filepath.Join(folder, "settings.yaml"))
			require.NoError(t, err)
			program(t).Must(t, "config", "--config", file)
		})
		files, err := filepath.Glob(filepath.Join(folder, "*", "fixture.json"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		if filepath.Dir(folder) == "testdata" {
			require.Len(t, files, 2, "the fixtures of %s lack an engine: run make fixtures where pg_dump and a Postgres are", filepath.Base(folder))
		}
		for _, file := range files {
			engine := filepath.Base(filepath.Dir(file))
			t.Run(filepath.Base(folder)+" "+engine, func(t *testing.T) {
				t.Parallel()
				b, f := open(t, folder, engine)
				receiptsHold(t, f)
				bookGoesOn(t, b, f)
			})
		}
	}
}

// bookGoesOn verifies a book against the checkpoint of then, exports the same rows, repeats every
// request, and sells.
func bookGoesOn(t *testing.T, b *service.Bank, f fixture) {
	t.Helper()
	b.Migrate(t)
	b.Must(t, "verify", "--against", put(t, f.Checkpoint))
	for _, kind := range kinds {
		requireRows(t, kind, f.Exports[kind], export(t, b, kind))
	}
	p := b.Serve(t)
	for _, e := range f.Exchanges {
		repeat := send(t, p, f.Key, e)
		require.Equal(t, e.Status, repeat.Status, "%s\n%s", e.Body, repeat.Answer)
		require.Equal(t, e.OperationID, repeat.OperationID, e.Body)
		if e.Status == http.StatusOK {
			require.JSONEq(t, e.Answer, repeat.Answer, e.Body)
		} else {
			requireMembers(t, e.Answer, repeat.Answer)
		}
	}
	requireMembers(t, f.Outcomes, get(t, p, f.Key, "/outcomes"))
	require.JSONEq(t, `{"Outcomes":[],"Next":"`+f.Cursor+`"}`, get(t, p, f.Key, "/outcomes?after="+f.Cursor))
	pushed := send(t, p, f.Key, exchange{Path: push, Body: `{"Header":{"CallerId":"new"},"Parameters":[` +
		`{"ExternalApplicationCode":"APP","UserId":"new","PushId":"new","Platform":65,"SendStatus":1}]}`})
	require.JSONEq(t, `{"Data":{"State":2}}`, pushed.Answer)
	quoted := send(t, p, f.Key, exchange{Path: "/quotes", Body: f.Exchanges[0].Body})
	require.Equal(t, http.StatusOK, quoted.Status, quoted.Answer)
	p.Stop(t)
	b.Must(t, "verify", "--against", put(t, f.Checkpoint))
}

// receiptsHold checks the receipts and the proof that were handed out, without the book.
func receiptsHold(t *testing.T, f fixture) {
	t.Helper()
	anywhere := program(t)
	receipts := 0
	for _, e := range f.Exchanges {
		if e.Receipt != "" {
			require.Contains(t, anywhere.Must(t, "trail", "check", put(t, e.Receipt), "--key", f.PublicKey), e.OperationID)
			receipts++
		}
	}
	require.Greater(t, receipts, 5)
	anywhere.Must(t, "trail", "check", put(t, f.Proof), "--key", f.PublicKey)
}

// put writes a text to a file and returns its name.
func put(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// requireRows requires that the rows begin with those of before. A row may have more columns. The
// audit of now has more rows, because commands of the test are acts.
func requireRows(t *testing.T, kind string, before, now []json.RawMessage) {
	t.Helper()
	require.NotEmpty(t, before, kind)
	require.GreaterOrEqual(t, len(now), len(before), kind)
	if kind != "audit" {
		require.Len(t, now, len(before), kind)
	}
	for i := range before {
		requireMembers(t, string(before[i]), string(now[i]))
	}
}

// requireMembers requires that every member of a JSON object has the value of before. There may be
// more.
func requireMembers(t *testing.T, before, now string) {
	t.Helper()
	var old, current map[string]any
	require.NoError(t, json.Unmarshal([]byte(before), &old))
	require.NoError(t, json.Unmarshal([]byte(now), &current))
	for name, value := range old {
		require.Equal(t, value, current[name], "%s of\n%s\n%s", name, before, now)
	}
}
