package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/testdb"
)

// TestWithoutTLS on a loopback address, or behind a proxy that ends it.
func TestWithoutTLS(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"off", "proxy"} {
		b := newBank(t, testdb.EngineSQLite).with("tls.mode", mode)
		p := b.Serve(t, "--demo")
		key := p.Await(t, p.Out, `(?m)^Subscription key (\S+)$`)
		require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, p.URL)
		s := &running{Process: p}
		s.client = s.connect(t, nil)
		require.Equal(t, completed, s.post(t, addPush, key, push("p")).body)
		require.NotContains(t, p.Await(t, p.Out, `(?m)^(curl .*BuyFund.*)$`), "--cacert")
	}
}
