package console_test

import (
	"context"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"bankingapi/application/fleet"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/parts"
	"bankingapi/test/kit/testdb"
)

// freePort is a port that nothing used a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// shared is a service on a database that another replica may use.
type shared struct {
	*service
	settings func(*bootstrap.Settings) // sets that database
}

func onPostgres(t *testing.T) shared {
	t.Helper()
	dsn := testdb.Postgres(t)
	settings := func(s *bootstrap.Settings) {
		s.Storage.Driver, s.Storage.DSN, s.Storage.Migrate = bootstrap.Postgres, bootstrap.Secret(dsn), true
		s.Trail.Enabled = false
	}
	return shared{start(t, settings), settings}
}

// besideAWrongClock opens another replica, whose clock is five minutes ahead. It returns it and the
// port in its name.
func (s shared) besideAWrongClock(t *testing.T) (wrong *bootstrap.App, port string) {
	t.Helper()
	port = freePort(t)
	settings := bootstrap.DefaultSettings()
	s.settings(&settings)
	settings.TLS.Mode, settings.HTTP.Address, settings.Ops.Address = bootstrap.TLSOff, "127.0.0.1:"+port, ""
	settings.Rules.TimeZone, settings.HTTP.Docs = zone.String(), false
	ahead := func() time.Time { return time.Now().UTC().Add(5 * time.Minute).Truncate(time.Microsecond) }
	wrong, err := bootstrap.Open(t.Context(), settings, parts.All(), bootstrap.WithLogger(zap.NewNop()), bootstrap.WithClock(ahead))
	require.NoError(t, err)
	t.Cleanup(func() { _ = wrong.Close(context.Background()) })
	return wrong, port
}

// A replica with a wrong clock is on the pages of the other one, to which the balancer leads.
func TestEveryReplicaSpeaksForAll(t *testing.T) {
	t.Parallel()
	s := onPostgres(t)
	v := s.entered(t)
	require.NotContains(t, v.get(""), "<b>clock</b>")

	wrong, port := s.besideAWrongClock(t)
	line := regexp.MustCompile(`<b>clock</b> on [^<]*:` + port + `\. Not ready[^<]*The clock`)
	var page string
	require.Eventually(t, func() bool {
		page = v.get("sales")
		return line.MatchString(page)
	}, time.Minute, 100*time.Millisecond)
	require.Contains(t, page, "<b>Do</b> Set the clock of this machine: turn on its time service (NTP). Then the replica goes on by itself. If its time is right already, do what the text says.")
	require.Contains(t, page, "<title>(")
	require.Regexp(t, `data-name="Name"><span>[^<]*:`+port+`</span></th>`, v.get(""))
	require.Eventually(t, func() bool { // a command says the same
		status, err := s.app.Status(t.Context())
		require.NoError(t, err)
		return slices.ContainsFunc(status.Troubles, func(t fleet.Trouble) bool { return t.Kind == "clock" && strings.Contains(t.Where, port) })
	}, time.Minute, 100*time.Millisecond)

	require.NoError(t, wrong.Close(t.Context()))
	require.Eventually(t, func() bool { return !strings.Contains(v.get(""), ":"+port) }, time.Minute, 100*time.Millisecond, "a replica that stops in order leaves no line")
	code, _, _ := v.do(http.MethodGet, "/console/", nil)
	require.Equal(t, http.StatusOK, code)
}
