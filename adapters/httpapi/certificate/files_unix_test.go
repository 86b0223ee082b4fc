//go:build unix

package certificate_test

import (
	"crypto/tls"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// To read a pipe waits for somebody who writes: the service would neither start nor stop.
func TestAFileOfTLSIsNoPipe(t *testing.T) {
	t.Parallel()
	f, _ := files(t)
	require.NoError(t, f.EnsureSelfSigned())
	current, err := f.Load(new(tls.Config))
	require.NoError(t, err)
	require.NoError(t, os.Remove(f.KeyFile))
	require.NoError(t, unix.Mkfifo(f.KeyFile, 0o600))
	_, err = f.Load(new(tls.Config))
	require.ErrorContains(t, err, f.KeyFile+" is not a file")
	require.ErrorContains(t, current.Reload(), f.KeyFile+" is not a file")
	require.Contains(t, current.Warnings()[0], "the previous ones stay in use")
	require.ErrorContains(t, f.EnsureSelfSigned(), f.KeyFile+" is not a file")

	f.ClientCA = f.KeyFile
	require.ErrorContains(t, f.CheckAuthorities(), f.ClientCA+" is not a file")
}
