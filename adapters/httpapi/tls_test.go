package httpapi_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/certificate"
)

func roots(t *testing.T, certFile string) *x509.CertPool {
	t.Helper()
	content, err := os.ReadFile(certFile)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(content))
	return pool
}

// shown is the certificate that a new connection gets.
func shown(t *testing.T, server *httpapi.Server, config *tls.Config) *x509.Certificate {
	t.Helper()
	conn, err := tls.Dial("tcp", hostPort(server), config)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0]
}

func TestSelfSignedIsMadeOnce(t *testing.T) {
	t.Parallel()
	o := selfSigned(t)
	server := serve(t, newService(), o)
	config := &tls.Config{RootCAs: roots(t, o.TLS.Files.CertFile), ServerName: "localhost"}
	first := shown(t, server, config)
	require.Equal(t, []string{"localhost"}, first.DNSNames)
	require.True(t, first.IPAddresses[0].Equal(net.IPv4(127, 0, 0, 1)) && first.IPAddresses[1].Equal(net.IPv6loopback))
	require.Equal(t, elliptic.P256(), first.PublicKey.(*ecdsa.PublicKey).Curve)
	for _, name := range []string{"127.0.0.1", "::1"} {
		require.NoError(t, first.VerifyHostname(name))
	}
	if runtime.GOOS != "windows" {
		for _, file := range []string{o.TLS.Files.CertFile, o.TLS.Files.KeyFile} {
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), file)
		}
	}
	left, err := os.ReadDir(filepath.Dir(o.TLS.Files.CertFile))
	require.NoError(t, err)
	require.Len(t, left, 2, "nothing temporary stays behind")

	again := serve(t, newService(), o)
	require.Equal(t, first.Raw, shown(t, again, config).Raw)

	require.NoError(t, os.Remove(o.TLS.Files.CertFile))
	serve(t, newService(), o) // a start that was interrupted is made good
}

func TestFilesMustBeThereAtTheStart(t *testing.T) {
	t.Parallel()
	o := serverOptions(func(o *options) {
		o.TLS = httpapi.TLSOptions{Mode: httpapi.TLSFiles, Files: certificate.Files{CertFile: "no/such.crt", KeyFile: "no/such.key", Now: time.Now}}
	})
	require.ErrorContains(t, newServer("127.0.0.1:0", newService(), o).Start(), "no/such.crt")
}

func TestVersionsAndSuites(t *testing.T) {
	t.Parallel()
	o := selfSigned(t)
	server := serve(t, newService(), o)
	pool := roots(t, o.TLS.Files.CertFile)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		shown(t, server, &tls.Config{RootCAs: pool, ServerName: "localhost", MinVersion: version, MaxVersion: version})
	}
	for _, refused := range []*tls.Config{
		{RootCAs: pool, ServerName: "localhost", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		{RootCAs: pool, ServerName: "localhost", MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}},
	} {
		_, err := tls.Dial("tcp", hostPort(server), refused)
		require.Error(t, err)
	}
	conn, err := tls.Dial("tcp", hostPort(server), &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{"h2", "http/1.1"}})
	require.NoError(t, err)
	require.Equal(t, "h2", conn.ConnectionState().NegotiatedProtocol)
	require.NoError(t, conn.Close())
}

// pairs are two certificates with their keys, as files have them. The sizes of the
// certificates differ. Otherwise a file that is written twice within one tick of
// the file system's clock would look unchanged.
func pairs(t *testing.T) (pairs [2]struct{ cert, key []byte }) {
	t.Helper()
	for i := range pairs {
		o := selfSigned(t)
		serve(t, newService(), o)
		var err error
		pairs[i].cert, err = os.ReadFile(o.TLS.Files.CertFile)
		require.NoError(t, err)
		pairs[i].key, err = os.ReadFile(o.TLS.Files.KeyFile)
		require.NoError(t, err)
	}
	pairs[1].cert = append(pairs[1].cert, '\n')
	return pairs
}

func der(t *testing.T, content []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(content)
	require.NotNil(t, block)
	return block.Bytes
}

// filesServer serves the first pair from files, with a clock of its own.
func filesServer(t *testing.T, cert, key []byte, clock *atomic.Int64) (*httpapi.Server, string, string) {
	t.Helper()
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	require.NoError(t, os.WriteFile(certFile, cert, 0o600))
	require.NoError(t, os.WriteFile(keyFile, key, 0o600))
	return serve(t, newService(), serverOptions(func(o *options) {
		o.TLS = httpapi.TLSOptions{
			Mode: httpapi.TLSFiles,
			Files: certificate.Files{
				CertFile: certFile, KeyFile: keyFile,
				Now: func() time.Time { return today.Add(time.Duration(clock.Load())) },
			},
		}
	})), certFile, keyFile
}

// Reload does not wait for the next look at the files. It returns the error that a look
// would report.
func TestReloadReadsTheFilesAtOnce(t *testing.T) {
	t.Parallel()
	both := pairs(t)
	server, certFile, keyFile := filesServer(t, both[0].cert, both[0].key, new(atomic.Int64))
	anyone := &tls.Config{InsecureSkipVerify: true}
	require.NoError(t, os.WriteFile(certFile, both[1].cert, 0o600))
	err := server.Reload()
	require.Error(t, err, "certificate and key do not fit")
	require.NotContains(t, err.Error(), "PRIVATE KEY")
	require.Equal(t, der(t, both[0].cert), shown(t, server, anyone).Raw)
	require.NoError(t, os.WriteFile(keyFile, both[1].key, 0o600))
	require.NoError(t, server.Reload())
	require.Equal(t, der(t, both[1].cert), shown(t, server, anyone).Raw)

	require.NoError(t, serve(t, newService(), serverOptions()).Reload(), "plain HTTP has no files")
}

// A link swapped to a folder of the same sizes and times, as Kubernetes does.
func TestSwappedLinksAreTakenOver(t *testing.T) {
	t.Parallel()
	both := pairs(t)
	folder := t.TempDir()
	for i, name := range []string{"one", "two"} {
		require.NoError(t, os.Mkdir(filepath.Join(folder, name), 0o700))
		for file, content := range map[string][]byte{"tls.crt": both[i].cert, "tls.key": both[i].key} {
			path := filepath.Join(folder, name, file)
			require.NoError(t, os.WriteFile(path, content, 0o600))
			require.NoError(t, os.Chtimes(path, today, today))
		}
	}
	link := filepath.Join(folder, "current")
	if err := os.Symlink("one", link); err != nil {
		t.Skip("SKIPPED: this machine lets us make no links: " + err.Error())
	}
	var clock atomic.Int64
	server := serve(t, newService(), serverOptions(func(o *options) {
		o.TLS = httpapi.TLSOptions{
			Mode: httpapi.TLSFiles,
			Files: certificate.Files{
				CertFile: filepath.Join(link, "tls.crt"), KeyFile: filepath.Join(link, "tls.key"),
				Now: func() time.Time { return today.Add(time.Duration(clock.Load())) },
			},
		}
	}))
	anyone := &tls.Config{InsecureSkipVerify: true}
	require.Equal(t, der(t, both[0].cert), shown(t, server, anyone).Raw)
	require.NoError(t, os.Symlink("two", link+".new"))
	require.NoError(t, os.Rename(link+".new", link))
	clock.Add(int64(time.Second))
	require.Equal(t, der(t, both[1].cert), shown(t, server, anyone).Raw)
}

func TestNoHandshakeFailsWhileFilesChange(t *testing.T) {
	t.Parallel()
	both := pairs(t)
	var clock atomic.Int64
	server, certFile, keyFile := filesServer(t, both[0].cert, both[0].key, &clock)
	known := map[string]bool{string(der(t, both[0].cert)): true, string(der(t, both[1].cert)): true}
	stop := make(chan struct{})
	failures := make(chan error, 8)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				clock.Add(int64(time.Second)) // every handshake looks
				conn, err := tls.Dial("tcp", hostPort(server), &tls.Config{InsecureSkipVerify: true})
				if err == nil && !known[string(conn.ConnectionState().PeerCertificates[0].Raw)] {
					err = errors.New("an unknown certificate was shown")
				}
				if err == nil {
					err = conn.Close()
				}
				if err != nil {
					select {
					case failures <- err:
					default:
					}
					return
				}
			}
		})
	}
	for i := range 60 {
		next := both[(i+1)%2]
		// In place and piece by piece: the worst way to change them.
		require.NoError(t, os.WriteFile(certFile, next.cert[:200], 0o600))
		require.NoError(t, os.WriteFile(certFile, next.cert, 0o600))
		require.NoError(t, os.WriteFile(keyFile, next.key[:50], 0o600))
		require.NoError(t, os.WriteFile(keyFile, next.key, 0o600))
		before := clock.Load()
		until(t, func() bool { return clock.Load() > before+int64(4*time.Second) || len(failures) > 0 })
	}
	close(stop)
	wait.Wait()
	select {
	case err := <-failures:
		require.NoError(t, err)
	default:
	}
	clock.Add(int64(time.Second))
	require.Equal(t, der(t, both[0].cert), shown(t, server, &tls.Config{InsecureSkipVerify: true}).Raw)
}

// issuer is an authority of clients.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issue makes a certificate that ends after a time. A nil issuer makes an authority.
func (i *issuer) issue(t *testing.T, key *ecdsa.PrivateKey, valid time.Duration) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client"}, NotBefore: today.Add(-time.Hour), NotAfter: today.Add(valid),
	}
	parent, signer := template, key
	if i == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage, template.Subject.CommonName = true, true, x509.KeyUsageCertSign, "authority"
	} else {
		parent, signer = i.certificate, i.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return certificate
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

// A connection of a client is as good as a new one would be: it does not outlive its authority
// in the file, nor its certificate.
func TestAConnectionDoesNotOutliveItsAuthority(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, withHTTP2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %t", tls.VersionName(version), withHTTP2), func(t *testing.T) {
				t.Parallel()
				var clock atomic.Int64
				authorities, other := &issuer{key: newKey(t)}, &issuer{key: newKey(t)}
				authorities.certificate = (*issuer)(nil).issue(t, authorities.key, 48*time.Hour)
				other.certificate = (*issuer)(nil).issue(t, other.key, 48*time.Hour)
				renewed := (*issuer)(nil).issue(t, authorities.key, 96*time.Hour)
				file := filepath.Join(t.TempDir(), "clients.crt")
				trust := func(all ...*x509.Certificate) {
					var content []byte
					for _, one := range all {
						content = append(content, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.Raw})...)
					}
					require.NoError(t, os.WriteFile(file, content, 0o600))
					clock.Add(int64(2 * time.Second))
				}
				trust(authorities.certificate, other.certificate)
				o := selfSigned(t, func(o *options) {
					o.TLS.Files.ClientCA = file
					o.TLS.Files.Now = func() time.Time { return today.Add(time.Duration(clock.Load())) }
				})
				server := serve(t, newService(), o)
				clientKey := newKey(t)
				client := authorities.issue(t, clientKey, 24*time.Hour)
				transport := &http.Transport{ForceAttemptHTTP2: withHTTP2, TLSClientConfig: &tls.Config{
					InsecureSkipVerify: true, MinVersion: version, MaxVersion: version,
					Certificates: []tls.Certificate{{Certificate: [][]byte{client.Raw}, PrivateKey: clientKey}},
				}}
				defer transport.CloseIdleConnections()
				ask := func() (status int, reused bool, err error) {
					r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
						GotConn: func(got httptrace.GotConnInfo) { reused = got.Reused },
					}), http.MethodPost, server.URL()+salePath, strings.NewReader(saleBody))
					require.NoError(t, err)
					r.Header.Set("Ocp-Apim-Subscription-Key", key)
					r.Header.Set("Content-Type", "application/json")
					response, err := transport.RoundTrip(r)
					if err != nil {
						return 0, reused, err
					}
					defer response.Body.Close()
					_, err = io.Copy(io.Discard, response.Body)
					return response.StatusCode, reused, err
				}
				answers := func(want int, onOpen bool) {
					t.Helper()
					status, reused, err := ask()
					require.NoError(t, err)
					require.Equal(t, want, status)
					require.Equal(t, onOpen, reused)
				}
				answers(http.StatusOK, false)
				trust(renewed, other.certificate)
				answers(http.StatusOK, true)
				trust(other.certificate)
				answers(http.StatusUnauthorized, true)
				_, _, err := ask()
				require.Error(t, err, "the connection was closed, and no new one is accepted")

				trust(renewed)
				answers(http.StatusOK, false)
				clock.Add(int64(25 * time.Hour))
				answers(http.StatusUnauthorized, true)
			})
		}
	}
}
