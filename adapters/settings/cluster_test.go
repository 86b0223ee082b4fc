package settings

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// Kubernetes sets these for the Services bankingapi and bankingapi-ops.
func TestVariablesOfTheClusterArePassedOver(t *testing.T) {
	t.Parallel()
	loaded, err := load(Sources{Environment: []string{
		"BANKINGAPI_SERVICE_HOST=10.96.12.7",
		"BANKINGAPI_SERVICE_PORT=8443",
		"BANKINGAPI_SERVICE_PORT_HTTPS=8443",
		"BANKINGAPI_SERVICE_PORT_OPS_METRICS=9090",
		"BANKINGAPI_PORT=tcp://10.96.12.7:8443",
		"BANKINGAPI_PORT_8443_TCP=tcp://10.96.12.7:8443",
		"BANKINGAPI_PORT_8443_TCP_PROTO=tcp",
		"BANKINGAPI_PORT_8443_TCP_PORT=8443",
		"BANKINGAPI_PORT_8443_TCP_ADDR=10.96.12.7",
		"BANKINGAPI_PORT_53_UDP=udp://[fd00::7]:53",
		"BANKINGAPI_PORT_53_UDP_PROTO=udp",
		"BANKINGAPI_PORT_53_UDP_ADDR=fd00::7",
		"BANKINGAPI_OPS_SERVICE_HOST=fd00::8",
		"BANKINGAPI_OPS_SERVICE_PORT=9090",
		"BANKINGAPI_OPS_PORT=tcp://[fd00::8]:9090",
		"BANKINGAPI_OPS_PORT_9090_TCP_PORT=9090",
	}})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(Default(), loaded.Settings))
}

func TestVariablesThatOnlyLookLikeThoseOfTheClusterAreRefused(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{
		"BANKINGAPI_PORT=8443",
		"BANKINGAPI_PORT=",
		"BANKINGAPI_PORT=:8443",
		"BANKINGAPI_PORT=http://10.96.12.7:8443",
		"BANKINGAPI_PORT=tcp://10.96.12.7",
		"BANKINGAPI_PORT=tcp://bank.example:8443",
		"BANKINGAPI_PORT_8443_TCP=tcp://10.96.12.7:8444",
		"BANKINGAPI_PORT_8443_TCP=udp://10.96.12.7:8443",
		"BANKINGAPI_PORT_8443_TCP_PROTO=udp",
		"BANKINGAPI_PORT_8443_TCP_PORT=8444",
		"BANKINGAPI_PORT_8443_TCP_ADDR=bank.example",
		"BANKINGAPI_PORT_8443_TCP_HOST=10.96.12.7",
		"BANKINGAPI_PORT_HTTPS=tcp://10.96.12.7:8443",
		"BANKINGAPI_SERVICE_HOST=bank.example",
		"BANKINGAPI_SERVICE_HOST=",
		"BANKINGAPI_SERVICE_PORT=https",
		"BANKINGAPI_SERVICE_PORT=70000",
		"BANKINGAPI_SERVICE_NAME=bankingapi",
		"BANKINGAPI_HTTP__PORT=tcp://10.96.12.7:8443",
		"BANKINGAPI_HTTP__SERVICE_HOST=10.96.12.7",
		"BANKINGAPI_STORAGE_DSN=data/bank.db",
	} {
		_, err := load(Sources{Environment: []string{variable}})
		require.ErrorContains(t, err, "unknown variable", variable)
	}
}
