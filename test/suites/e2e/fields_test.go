package e2e_test

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"bankingapi/test/kit/golden"
	"bankingapi/test/kit/testdb"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// TestFields puts other values into a valid request, one at a time, and
// compares what is answered: every rule of every field, from both sides.
//
//	/Parameters/0/UserId    {"a":1}    => 400 wrong-type
//
// The value - takes the member away; the functions in double braces are those
// of package scenario. The answer is the status and Data.State, and each code with its
// pointer, if that is another one. "(not in the document)" says that the
// OpenAPI document, which must allow what is taken, cannot express the rule.
func TestFields(t *testing.T) {
	t.Parallel()
	h := newHouse(t, newBank(t, testdb.EngineSQLite))
	for file, valid := range map[string]struct{ path, body string }{
		"push.txt": {addPush, `{"Header":{},"Parameters":[` + validPush + `]}`},
		"sale.txt": {buyFund, `{"Header":{},"Parameters":[` + validSale + `]}`},
	} {
		t.Run(file, func(t *testing.T) {
			h.lines(t, file, valid.path, valid.body)
		})
	}
	h.Verify(t)
}

// lines sends the body, with another value, for each line of a file.
func (h *house) lines(t *testing.T, name, path, body string) {
	t.Helper()
	file := "testdata/fields/" + name
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var all strings.Builder
	for line := range strings.Lines(string(content)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			all.WriteString(line + "\n")
			continue
		}
		asked := strings.TrimRight(line, " ")
		if at := strings.LastIndex(line, " => "); at >= 0 {
			asked = strings.TrimRight(line[:at], " ")
		}
		pointer, value, found := strings.Cut(asked, " ")
		require.True(t, found, line)
		sent := replace(t, body, pointer, h.scenario().Expand(t, strings.TrimSpace(value)))
		all.WriteString(asked + strings.Repeat(" ", max(0, 60-utf8.RuneCountInString(asked))) + " => " + h.verdict(t, path, sent, pointer) + "\n")
	}
	if *golden.Update {
		golden.Write(t, file, all.String())
		return
	}
	require.Empty(t, cmp.Diff(string(content), all.String()), "make generate accepts it")
}

// verdict returns a short description of the response to a body.
func (h *house) verdict(t *testing.T, path, body, pointer string) string {
	t.Helper()
	got := h.post(t, path, h.keys["full"], body)
	var said struct {
		Data   struct{ State int }
		Errors []struct{ Pointer, Code string }
	}
	require.NoError(t, json.Unmarshal([]byte(got.body), &said), got.body)
	words := strconv.Itoa(got.status) + " State " + strconv.Itoa(said.Data.State)
	for i, e := range said.Errors {
		if i > 0 {
			words += ","
		}
		words += " " + e.Code
		if e.Pointer != pointer {
			words += " " + strconv.Quote(e.Pointer)
		}
	}
	if got.status == 400 && theDocument(t).accepts(path, []byte(body)) == nil {
		words += " (not in the document)"
	}
	return words
}

// replace sets a value at an RFC 6901 pointer in a JSON text. The value -
// removes the member.
func replace(t *testing.T, text, pointer, value string) string {
	t.Helper()
	if pointer == "" {
		return value
	}
	name, rest, isDeeper := strings.Cut(pointer[1:], "/")
	if isDeeper {
		rest = "/" + rest
	}
	inner := func(old json.RawMessage) (json.RawMessage, error) {
		if rest == "" && value == "-" {
			return nil, errGone
		}
		return json.RawMessage(replace(t, string(old), rest, value)), nil
	}
	if strings.HasPrefix(text, "[") {
		var items []json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(text), &items))
		at, err := strconv.Atoi(name)
		require.NoError(t, err)
		items[at], err = inner(items[at])
		require.NoError(t, err)
		return join("[", items, "]")
	}
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &members), text)
	changed, err := inner(members[name])
	if delete(members, name); err == nil {
		members[name] = changed
	}
	var all []json.RawMessage
	for name, value := range members {
		all = append(all, json.RawMessage(strconv.Quote(name)+":"+string(value)))
	}
	return join("{", all, "}")
}

var errGone = errors.New("the member is removed")

// join keeps the bytes of the parts, which encoding would change.
func join(open string, parts []json.RawMessage, end string) string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = string(part)
	}
	return open + strings.Join(texts, ",") + end
}
