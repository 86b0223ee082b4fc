package service_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

func TestMain(m *testing.M) { os.Exit(service.Main(m)) }

func TestAServiceIsStartedAndStopped(t *testing.T) {
	t.Parallel()
	b := service.NewBank(t, testdb.EngineSQLite)
	p := b.Serve(t, "--demo")
	require.True(t, p.IsReady())
	require.Len(t, b.Export(t, "holdings"), 3)
	b.Verify(t)
	p.Stop(t)
	require.False(t, p.IsReady())
}
