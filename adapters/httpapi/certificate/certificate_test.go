package certificate_test

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/certificate"
)

var start = time.Date(2026, time.November, 20, 9, 0, 0, 0, time.UTC)

// files returns files in a folder of the test's own, and the time they see.
func files(t *testing.T) (certificate.Files, *time.Time) {
	t.Helper()
	now := start
	folder := filepath.Join(t.TempDir(), "made", "here")
	return certificate.Files{
		CertFile: filepath.Join(folder, "tls.crt"), KeyFile: filepath.Join(folder, "tls.key"),
		Now: func() time.Time { return now },
	}, &now
}

func content(t *testing.T, f certificate.Files) string {
	t.Helper()
	cert, err := os.ReadFile(f.CertFile)
	require.NoError(t, err)
	key, err := os.ReadFile(f.KeyFile)
	require.NoError(t, err)
	return string(cert) + string(key)
}

func TestASelfSignedCertificateIsReplacedWhenItExpires(t *testing.T) {
	t.Parallel()
	f, now := files(t)
	require.NoError(t, f.EnsureSelfSigned())
	first := content(t, f)
	pair, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
	require.NoError(t, err)
	expires := pair.Leaf.NotAfter
	require.Equal(t, start.Add(397*24*time.Hour), expires)

	*now = expires.Add(-time.Second)
	require.NoError(t, f.EnsureSelfSigned())
	require.Equal(t, first, content(t, f), "still valid")

	*now = expires
	require.NoError(t, f.EnsureSelfSigned())
	require.NotEqual(t, first, content(t, f), "an expired one is not kept, not even for a day")
	pair, err = tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
	require.NoError(t, err)
	require.True(t, pair.Leaf.NotAfter.After(*now))
}

func TestADamagedPairIsAnError(t *testing.T) {
	t.Parallel()
	f, _ := files(t)
	require.NoError(t, f.EnsureSelfSigned())
	require.NoError(t, os.WriteFile(f.KeyFile, []byte("no key"), 0o600))
	before := content(t, f)
	require.ErrorContains(t, f.EnsureSelfSigned(), "remove both files")
	require.Equal(t, before, content(t, f), "nothing of an operator's is overwritten")
}

func TestLoadNeedsBothFiles(t *testing.T) {
	t.Parallel()
	f, _ := files(t)
	_, err := f.Load(new(tls.Config))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestChangedFilesAreUsedWithinASecond(t *testing.T) {
	t.Parallel()
	f, now := files(t)
	require.NoError(t, f.EnsureSelfSigned())
	var reports []error
	f.Report = func(err error) { reports = append(reports, err) }
	current, err := f.Load(new(tls.Config))
	require.NoError(t, err)
	shown := func() *tls.Certificate {
		t.Helper()
		c, err := current.Config(nil)
		require.NoError(t, err)
		return &c.Certificates[0]
	}
	first := shown()

	require.NoError(t, os.Remove(f.KeyFile))
	*now = now.Add(999 * time.Millisecond)
	require.Same(t, first, shown())
	require.Empty(t, reports, "not checked yet")

	*now = now.Add(time.Millisecond)
	require.Same(t, first, shown(), "the previous pair stays in use")
	require.Len(t, reports, 1)
	require.True(t, errors.Is(reports[0], os.ErrNotExist))
	*now = now.Add(time.Minute)
	require.Same(t, first, shown())
	require.Len(t, reports, 1, "reported once")

	require.NoError(t, os.Remove(f.CertFile))
	require.NoError(t, f.EnsureSelfSigned())
	*now = now.Add(time.Second)
	second := shown()
	require.NotEqual(t, first.Certificate, second.Certificate)
	*now = now.Add(-time.Hour) // a clock that steps back does not stop the checks
	require.Same(t, second, shown())
}

// TestReloadReadsTheFilesNow also checks that the authorities of clients change
// with the certificate, or not at all.
func TestReloadReadsTheFilesNow(t *testing.T) {
	t.Parallel()
	f, _ := files(t)
	require.NoError(t, f.EnsureSelfSigned())
	f.ClientCA = filepath.Join(t.TempDir(), "clients.pem")
	_, err := f.Load(new(tls.Config))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(f.ClientCA, []byte("no certificate"), 0o600))
	_, err = f.Load(new(tls.Config))
	require.ErrorContains(t, err, "has no certificate in PEM format")

	own, err := os.ReadFile(f.CertFile)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(f.ClientCA, own, 0o600))
	current, err := f.Load(&tls.Config{MinVersion: tls.VersionTLS12})
	require.NoError(t, err)
	require.Equal(t, start.Add(397*24*time.Hour), current.End())
	before, err := current.Config(nil)
	require.NoError(t, err)
	require.Equal(t, tls.RequireAndVerifyClientCert, before.ClientAuth)
	require.EqualValues(t, tls.VersionTLS12, before.MinVersion)

	require.NoError(t, os.WriteFile(f.ClientCA, []byte("damaged"), 0o600))
	require.ErrorContains(t, current.Reload(), "has no certificate in PEM format")
	after, err := current.Config(nil)
	require.NoError(t, err)
	require.Same(t, before, after, "the previous files stay in use")

	require.NoError(t, os.WriteFile(f.ClientCA, append(own, own...), 0o600))
	require.NoError(t, current.Reload())
	after, err = current.Config(nil)
	require.NoError(t, err)
	require.NotSame(t, before, after)
}
