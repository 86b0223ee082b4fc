//go:build unix

package prove_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
)

// TestADatabaseThatMayLoseData runs servers that may lose acknowledged data.
// The log, /readyz?verbose and config --check warn about it. Without fsync the
// service is not ready, unless the settings allow it.
func TestADatabaseThatMayLoseData(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server  []string // settings
		allowed bool
		ready   bool
		risks   []string
	}{
		"fsync is off":                   {[]string{"fsync=off"}, false, false, []string{"fsync = off", "checksums"}},
		"fsync is off, and allowed":      {[]string{"fsync=off"}, true, true, []string{"fsync = off", "checksums"}},
		"pages may be half written":      {[]string{"fsync=on", "full_page_writes=off"}, false, true, []string{"full_page_writes = off", "checksums"}},
		"commits do not wait":            {[]string{"fsync=on", "synchronous_standby_names=nowhere", "synchronous_commit=local"}, false, true, []string{"synchronous_commit = local", "none is connected"}},
		"default settings, no checksums": {[]string{"fsync=on"}, false, true, []string{"checksums"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, c.server...)
			b := s.bank(t).Migrate(t).Set("storage.allow_unsafe", map[bool]string{false: "false", true: "true"}[c.allowed]).
				Set("http.address", service.FreeAddress(t)).Set("ops.address", service.FreeAddress(t)).Set("tls.mode", "off")
			p := b.Serve(t)
			status, text := p.Get(t, "/readyz?verbose")
			require.Equal(t, c.ready, status == http.StatusOK, text)
			check := b.Run(t, "config", "--check")
			require.Zero(t, check.Status, check.Err)
			for i, risk := range c.risks {
				p.Await(t, p.Err, "may lose data.*"+risk)
				require.Contains(t, check.Err, "Warning: ")
				require.Contains(t, check.Err, risk)
				if c.ready {
					require.Regexp(t, `\[!\]durability warning: .*`+risk, text)
				} else if i == 0 {
					require.Regexp(t, `\[-\]durability failed: .*`+risk+`.*storage\.allow_unsafe`, text)
				}
			}
		})
	}
}
