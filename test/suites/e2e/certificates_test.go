package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bankingapi/adapters/clock"
	"bankingapi/test/kit/testdb"

	"github.com/stretchr/testify/require"
)

// TestClientCertificates checks who may connect: only clients of the authority, and a
// key that belongs to a certificate only with it. The authority is replaced while the
// service runs.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	b.Migrate(t)
	first, second := newIssuer(t), newIssuer(t)
	file := filepath.Join(b.Folder, "clients.pem")
	trust := func(i *issuer) {
		t.Helper()
		content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.der})
		require.NoError(t, os.WriteFile(file, content, 0o600))
	}
	trust(first)
	s := b.with("tls.client_ca", file).serve(t, "--demo")
	certificate := func(i *issuer, serial int64) tls.Certificate {
		t.Helper()
		chain, key := i.issue(t, serial)
		pair, err := tls.X509KeyPair(chain, key)
		require.NoError(t, err)
		return pair
	}
	connect := func(all ...tls.Certificate) *http.Client {
		return s.connect(t, func(transport *http.Transport) {
			transport.DisableKeepAlives = true
			transport.TLSClientConfig.Certificates = all
		})
	}
	mine, other, foreign := certificate(first, 1), certificate(first, 2), certificate(second, 3)
	status := func(client *http.Client) int {
		t.Helper()
		got, err := s.tryPost(client, addPush, s.key, push("certificate"))
		require.NoError(t, err)
		return got.status
	}
	_, err := s.tryPost(connect(), addPush, s.key, push("certificate"))
	requireNoHandshake(t, err, "certificate required")
	_, err = s.tryPost(connect(foreign), addPush, s.key, push("certificate"))
	requireNoHandshake(t, err, "unknown certificate authority")
	require.Equal(t, http.StatusOK, status(connect(mine)))
	require.Equal(t, http.StatusOK, status(connect(other)), "the key belongs to no certificate yet")

	digest := sha256.Sum256(mine.Leaf.Raw)
	printed := strings.ReplaceAll(strings.ToUpper(fmt.Sprintf("% x", digest)), " ", ":") // as openssl does
	b.Must(t, "subscriptions", "change", "demo", "--client-certificate", printed)
	require.Contains(t, b.Must(t, "subscriptions", "list"), fmt.Sprintf("%x", digest))
	eventually(t, patience, "the key needs its certificate", func() bool { return status(connect(other)) == http.StatusUnauthorized })
	require.Equal(t, http.StatusOK, status(connect(mine)))
	s.Await(t, s.Err, `"status":401.*"subscription":"demo"`)

	trust(second)
	eventually(t, patience, "the new authority counts", func() bool {
		_, err := s.tryPost(connect(mine), addPush, s.key, push("certificate"))
		return err != nil
	})
	require.Equal(t, http.StatusUnauthorized, status(connect(foreign)))
	b.Must(t, "subscriptions", "change", "demo", "--client-certificate", "")
	eventually(t, patience, "the key needs no certificate", func() bool { return status(connect(foreign)) == http.StatusOK })
}

// TestCertificatesAreReplaced starts the service with the files of an operator and replaces them.
// A file that cannot be used changes nothing, and is logged.
func TestCertificatesAreReplaced(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	issuer, crt, key := newIssuer(t), filepath.Join(b.Folder, "bank.crt"), filepath.Join(b.Folder, "bank.key")
	write := func(serial int64) {
		certificate, private := issuer.issue(t, serial)
		require.NoError(t, os.WriteFile(crt, certificate, 0o600))
		require.NoError(t, os.WriteFile(key, private, 0o600))
	}
	write(1)
	s := b.with("tls.mode", "files").with("tls.cert_file", crt).with("tls.key_file", key).serve(t, "--demo")
	client := s.connect(t, func(transport *http.Transport) { transport.DisableKeepAlives = true })
	served := func() int64 {
		response, err := client.Get(s.URL + "/docs")
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	require.EqualValues(t, 1, served())
	write(2)
	eventually(t, patience, "the new certificate is served", func() bool { return served() == 2 })
	s.Await(t, s.Err, "the changed certificate files are used")
	require.NoError(t, os.WriteFile(crt, []byte("half a file"), 0o600))
	eventually(t, patience, "the log says it", func() bool {
		require.EqualValues(t, 2, served())
		return strings.Contains(s.Err.String(), "a changed certificate cannot be used")
	})
}

// requireNoHandshake requires the error of a client without a certificate that the server
// accepts. With TLS 1.3 the handshake ends for the client before the server checks the
// certificate, so the client sends its request at once. The server sends an alert and
// closes the connection with unread bytes, which resets it. So the client sees the alert
// or, in about one of fifty connections, the reset before it: while it writes, or before
// HTTP/2 has used the connection.
func requireNoHandshake(t *testing.T, err error, alert string) {
	t.Helper()
	require.Error(t, err, "the handshake fails")
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		require.Regexp(t, "remote error: tls: "+alert+"$|http2: client conn could not be established$", err.Error())
	}
}

// issuer is a certificate authority.
type issuer struct {
	certificate *x509.Certificate
	der         []byte
	key         *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1000), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: clock.Now().Add(-time.Hour), NotAfter: clock.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &issuer{certificate, der, key}
}

// issue returns a certificate chain for 127.0.0.1 and its key, both in PEM.
func (i *issuer) issue(t *testing.T, serial int64) (chain, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: clock.Now().Add(-time.Hour), NotAfter: clock.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.certificate, private.Public(), i.key)
	require.NoError(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	for _, each := range [][]byte{der, i.der} {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: each})...)
	}
	return chain, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}
