package console

import (
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"bankingapi/application/bookfile"
	"bankingapi/application/fleet"
	"bankingapi/application/summary"
)

// asked is a request of a session.
func (c *Console) asked(t *testing.T, s *session, form url.Values) *request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/console/", nil)
	r.PostForm = form
	return &request{Options: &c.o, viewer: c.viewer(s), Page: &page{Title: "File"}, console: c, r: r, ctx: t.Context()}
}

// What takes long runs alone, and leaves a place for the pages.
func TestLongWorkLeavesAPlaceForPages(t *testing.T) {
	t.Parallel()
	o := operate(t)
	c := o.console
	load := func(of string, rows iter.Seq2[string, error]) error {
		return c.inTurn(t.Context(), func() error {
			answer, err := download(c.asked(t, &session{ID: of}, nil), "file", []bookfile.Column[string]{{Name: "Text", Value: func(s *string) bookfile.Value { return bookfile.Text(*s) }}}, rows)
			require.NoError(t, err)
			return answer.(response)(httptest.NewRecorder())
		})
	}
	check := func() error {
		_, err := startProof(c.asked(t, &session{Name: "ayse"}, nil))
		return err
	}
	whileItRuns := func(do func()) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			status, body := o.get("sales")
			require.Equal(t, http.StatusOK, status, body)
			do()
			yield("row", nil)
		}
	}
	require.NoError(t, load("ayse", whileItRuns(func() {
		require.ErrorIs(t, load("mehmet", whileItRuns(func() {})), errLong)
		require.ErrorIs(t, check(), errLong)
	})))
	require.NoError(t, load("mehmet", whileItRuns(func() {})))
	require.NoError(t, check())
	c.proof.stop()
	require.NoError(t, load("mehmet", rowsOf([]string{"row"})))
}

// A check may be started while another person stops the one before.
func TestChecksThatStartAndStopAtOnce(t *testing.T) {
	t.Parallel()
	c := operate(t).console
	var both sync.WaitGroup
	for _, action := range []string{"start", "stop"} {
		both.Go(func() {
			for range 200 {
				_, err := startProof(c.asked(t, &session{Name: "ayse"}, url.Values{"action": {action}}))
				assert.True(t, err == nil || errors.Is(err, errLong), err)
			}
		})
	}
	both.Wait()
}

// A check of the book runs alone. One that waits for its turn can be stopped, even by
// the pages for which it waits.
func TestACheckThatWaitsCanBeStopped(t *testing.T) {
	t.Parallel()
	c := operate(t).console
	for range cap(c.reading) {
		c.reading <- struct{}{}
	}
	proof := func(action string) error {
		_, err := startProof(c.asked(t, &session{Name: "ayse"}, url.Values{"action": {action}}))
		return err
	}
	require.NoError(t, proof("start"))
	require.True(t, c.proof.now().Running())
	require.ErrorIs(t, proof("start"), errLong)
	require.NoError(t, proof("stop"))
	require.True(t, c.proof.now().Stopped)
	for range cap(c.reading) {
		<-c.reading
	}
}

// While the API is busy, pages take a tenth of the time of two connections,
// however many are loaded. Otherwise nobody waits.
func TestPagesLeaveTimeToTheAPI(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := Open(Options{Machine: time.Now, Bank: time.Now, Zone: utc, Activity: fleet.NewActivity(time.Now())})
		const takes = 20 * time.Millisecond
		load := func(pages int, takes time.Duration) time.Duration {
			begun := time.Now()
			for range pages {
				require.NoError(t, c.inTurn(t.Context(), func() error {
					time.Sleep(takes)
					return nil
				}))
			}
			return time.Since(begun)
		}
		requests := func(n int) {
			for range n {
				c.o.Activity.Request(&summary.Exchange{Operation: "BuyFundFromCustomer", Start: time.Now(), Status: 200})
			}
		}
		const busy = 100 // requests a second
		requests(busy - 1)
		require.Equal(t, 10*takes, load(10, takes))

		requests(1)
		require.InDelta(t, 10*takes/2*(1+restFactor), load(10, takes), float64(takes*(1+restFactor)))

		time.Sleep(maxRest)
		require.Zero(t, load(2, 0), "two pages at once need not wait")

		time.Sleep(2 * time.Second)
		require.Equal(t, 10*takes, load(10, takes), "the API is idle again")
	})
}

// unread is a browser that does not read a page until reads is closed.
type unread struct {
	http.ResponseWriter
	sent, reads chan struct{}
}

func (u unread) Write(p []byte) (int, error) {
	u.sent <- struct{}{}
	<-u.reads
	return u.ResponseWriter.Write(p)
}

// A browser on a bad line takes no place from others.
func TestAPageThatIsReadSlowlyHasNoPlace(t *testing.T) {
	t.Parallel()
	o := operate(t)
	c := o.console
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/sales", nil)
	cookie := httptest.NewRecorder()
	c.sessions.save(cookie, r, c.sessions.begin(r, "ayse"))
	r.AddCookie(cookie.Result().Cookies()[0])
	sent, reads := make(chan struct{}), make(chan struct{})
	var slow sync.WaitGroup
	for range cap(c.reading) {
		slow.Go(func() { c.ServeHTTP(unread{httptest.NewRecorder(), sent, reads}, r.Clone(t.Context())) })
		<-sent
	}
	status, body := o.get("sales")
	assert.Equal(t, http.StatusOK, status, body)
	close(reads)
	slow.Wait()
}
