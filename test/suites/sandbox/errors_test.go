package sandbox_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
)

// TestErrorPagesProvokeWhatTheySay sends the requests of every error page, as they
// stand, to a sandbox and compares the last answer with the printed one.
func TestErrorPagesProvokeWhatTheySay(t *testing.T) {
	t.Parallel()
	blocks := regexp.MustCompile("(?s)```http\n(.*?)\n```")
	dates := regexp.MustCompile(`\d{4}-\d\d-\d\d`)
	begin := regexp.MustCompile(`(?m)^(GET|POST|PUT) (/\S+) HTTP/1\.1\n`)
	settings := settingsIn(t.TempDir())
	settings.HTTP.Docs = true
	documented := partnerOf(t, settings)
	for _, code := range fault.Codes() {
		t.Run(code.Name, func(t *testing.T) {
			t.Parallel()
			page, p := documented.send(http.MethodGet, "/docs/errors/"+code.Name+".md", ""), newPartner(t)
			require.Equal(t, http.StatusOK, page.status)
			printed := blocks.FindAllStringSubmatch(page.body, -1)
			require.Len(t, printed, 2, "a request and its answer")
			requests := printed[0][1]
			var got answer
			starts := begin.FindAllStringSubmatchIndex(requests, -1)
			require.NotEmpty(t, starts)
			for i, at := range starts {
				end := len(requests)
				if i+1 < len(starts) {
					end = starts[i+1][0]
				}
				head, body, _ := strings.Cut(requests[at[1]:end], "\n\n")
				headers := []string{"Ocp-Apim-Subscription-Key", ""}
				for line := range strings.Lines(head) {
					name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
					headers = append(headers, name, strings.Replace(value, "your key", p.bank.Key, 1))
				}
				if body = strings.TrimSpace(body); body == "(5 MiB)" { // nobody wants to read it
					body = strings.Repeat(" ", 5<<20)
				}
				path := requests[at[4]:at[5]]
				if code.Name == fault.CursorLost { // a cursor belongs to its subscription
					path = "/outcomes?after=" + p.lostCursor()
				}
				got = p.send(requests[at[2]:at[3]], path, body, headers...)
			}
			status, want, _ := strings.Cut(printed[1][1], "\n\n")
			require.Contains(t, status, http.StatusText(got.status), got.body)
			read := func(text string) (a struct {
				Status, StatusCode     int
				Title, Detail, Message string
				Errors                 []fault.Fault
				Data                   *struct{ State int }
			}) {
				text = dates.ReplaceAllString(text, "a day")                                  // such as the next open one
				text = strings.ReplaceAll(text, "time zone UTC", "time zone Europe/Istanbul") // the examples are in UTC
				require.NoError(t, json.Unmarshal([]byte(text), &a), text)
				return a
			}
			require.Equal(t, code.Name, read(want).Errors[0].Code)
			require.Equal(t, read(want), read(got.body))
		})
	}
}
