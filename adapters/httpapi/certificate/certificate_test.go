package certificate_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
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
	var used []time.Time
	f.Used = func(until time.Time) { used = append(used, until) }
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
	require.Same(t, first, shown())
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
	require.Equal(t, []time.Time{second.Leaf.NotAfter}, used, "a person who has renewed it sees that it is used")
	*now = now.Add(-time.Hour) // a clock that steps back does not stop the checks
	require.NoError(t, os.Remove(f.CertFile))
	require.NoError(t, f.EnsureSelfSigned())
	require.NotEqual(t, second.Certificate, shown().Certificate)
}

// While a certificate is over, clients stay away: no handshake tells that it was replaced.
func TestAReplacedCertificateIsNoticedWithoutAHandshake(t *testing.T) {
	t.Parallel()
	f, now := files(t)
	require.NoError(t, f.EnsureSelfSigned())
	current, err := f.Load(new(tls.Config))
	require.NoError(t, err)
	*now = current.End()
	require.Len(t, current.Warnings(), 1)
	require.NoError(t, f.EnsureSelfSigned())
	*now = now.Add(time.Second)
	require.Empty(t, current.Warnings())
	require.True(t, current.End().After(*now))
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

// authority returns a certificate in PEM format that is valid from start for that long.
func authority(t *testing.T, from time.Time, valid time.Duration) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: from.Add(valid), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// The callers of an authority that is left out would be locked out, and nobody would know why.
func TestADamagedAuthorityIsAnError(t *testing.T) {
	t.Parallel()
	f, now := files(t)
	require.NoError(t, f.EnsureSelfSigned())
	f.ClientCA = filepath.Join(filepath.Dir(f.CertFile), "ca.pem")
	one, two := authority(t, start, 48*time.Hour), authority(t, start, 48*time.Hour)
	write := func(content string) { require.NoError(t, os.WriteFile(f.ClientCA, []byte(content), 0o600)) }
	damaged := map[string]string{
		"a letter is missing":   one + two[:60] + two[61:],
		"a letter is another":   one + two[:60] + "!" + two[61:],
		"an end is missing":     one + two[:len(two)-20],
		"a begin is missing":    one + two[len("-----BEGIN CERTIFICATE-----\n"):],
		"cut in the middle":     one[:100] + "\n" + two,
		"another type":          one + "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"no certificate":        "nothing\n",
		"empty":                 "",
		"bytes of another kind": one + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	}
	for name, content := range damaged {
		write(content)
		_, err := f.Load(new(tls.Config))
		require.ErrorContains(t, err, "ca.pem", name)
	}
	write("# both authorities\n" + one + "\n" + two)
	current, err := f.Load(new(tls.Config))
	require.NoError(t, err)
	require.Empty(t, current.Warnings())
	before := current.End()
	for name, content := range damaged {
		write(content)
		require.Error(t, current.Reload(), name)
		require.Len(t, current.Warnings(), 1, name)
		require.Contains(t, current.Warnings()[0], "ca.pem", name)
	}
	write(authority(t, start.Add(-48*time.Hour), 24*time.Hour))
	require.ErrorContains(t, current.Reload(), "is over or not valid yet")
	write(two)
	require.NoError(t, current.Reload())
	require.Empty(t, current.Warnings())
	require.Equal(t, before, current.End())
	*now = current.End()
	require.Contains(t, current.Warnings()[0], "is over since")
}

// Somebody has copied the file of last year.
func TestAValidCertificateIsNotReplacedByOneThatIsOver(t *testing.T) {
	t.Parallel()
	f, now := files(t)
	*now = start.Add(-500 * 24 * time.Hour)
	require.NoError(t, f.EnsureSelfSigned())
	oldCert, err := os.ReadFile(f.CertFile)
	require.NoError(t, err)
	oldKey, err := os.ReadFile(f.KeyFile)
	require.NoError(t, err)
	*now = start
	require.NoError(t, f.EnsureSelfSigned())
	current, err := f.Load(new(tls.Config))
	require.NoError(t, err)
	end := current.End()
	require.NoError(t, os.WriteFile(f.CertFile, oldCert, 0o600))
	require.NoError(t, os.WriteFile(f.KeyFile, oldKey, 0o600))
	require.ErrorContains(t, current.Reload(), "the one in use is valid until")
	require.Equal(t, end, current.End())
	require.Contains(t, current.Warnings()[0], "tls.crt: it is valid from ")
	*now = end // now neither is valid: what the files say counts
	require.NoError(t, current.Reload())
}

// The certificate may be for next month, or the clock is behind.
func TestACertificateThatIsNotValidYetIsAWarning(t *testing.T) {
	t.Parallel()
	f, now := files(t)
	require.NoError(t, f.EnsureSelfSigned())
	*now = start.Add(-48 * time.Hour)
	current, err := f.Load(new(tls.Config))
	require.NoError(t, err)
	require.Len(t, current.Warnings(), 1)
	require.Contains(t, current.Warnings()[0], "is not valid before 2026-11-20T08:00:00Z: callers refuse it")
	*now = start
	require.Empty(t, current.Warnings())
}
