package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
	"bankingapi/test/kit/testdb"
)

// TestTerminateUnderLoad checks that SIGTERM loses no acknowledged request, and
// that every request with an effect was acknowledged.
func TestTerminateUnderLoad(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s := b.serve(t, "--demo")
		l := work(t, s, 16, 0)
		l.reach(t, 200)
		require.NoError(t, s.Signal(syscall.SIGTERM))
		require.Zero(t, s.Ended(t), s.Err)
		l.done.Wait()
		require.ElementsMatch(t, l.acknowledged, b.stored(t))
		require.NotContains(t, s.Err.String(), `"level":"error"`)
		b.Verify(t)
	})
}

// TestSecondSignal checks that a second signal ends the service at once.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	s := newBank(t, testdb.EngineSQLite).with("shutdown.delay", "1h").serve(t)
	require.NoError(t, s.Signal(syscall.SIGTERM))
	eventually(t, patience, "the service stops being ready", func() bool { return !s.IsReady() })
	status, ready := s.Get(t, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, ready, "[-]shutdown failed: The service is stopping.")
	status, _ = s.Get(t, "/livez")
	require.Equal(t, http.StatusOK, status, "the liveness check still succeeds")
	require.Equal(t, http.StatusUnauthorized, s.post(t, addPush, "nobody", "{}").status, "the API still answers")
	require.NoError(t, s.Signal(syscall.SIGTERM))
	require.Equal(t, -1, s.Ended(t), "the signal ended it")
}

// TestRollingReplacement: two replicas behind a balancer are replaced one after
// the other, and no request fails.
func TestRollingReplacement(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EnginePostgres).with("storage.migrate", "true")
	b.Set("shutdown.delay", "5s") // longer than the balancer needs to notice
	first := b.serve(t, "--demo")
	balancer := &balancer{replicas: []*running{first, b.replica(t).serve(t)}}

	l := &load{end: make(chan struct{})}
	for caller := range 8 {
		l.done.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-l.end:
					return
				default:
				}
				each := request(fmt.Sprintf("load-%d-%d", caller, n), caller, n)
				s := balancer.choose(n)
				got, err := s.tryPost(s.client, each.path, first.key, each.body)
				l.note(each, got, err)
			}
		})
	}
	for range 2 {
		l.reach(t, 50)
		old := balancer.choose(0)
		require.NoError(t, old.Signal(syscall.SIGTERM))
		eventually(t, patience, "the service stops being ready", func() bool { return !old.IsReady() })
		balancer.remove(old)
		balancer.add(b.replica(t).serve(t))
		require.Zero(t, old.Ended(t), old.Err)
	}
	l.reach(t, 50)
	l.stop()
	require.Empty(t, l.failures)
	require.Empty(t, l.unknown)
	require.Empty(t, l.refused)
	require.ElementsMatch(t, l.acknowledged, b.stored(t))
	b.Verify(t)
}

// balancer sends each request to one of its replicas.
type balancer struct {
	mu       sync.Mutex
	replicas []*running
}

func (r *balancer) choose(n int) *running {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replicas[n%len(r.replicas)]
}

func (r *balancer) remove(old *running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replicas = slices.DeleteFunc(r.replicas, func(s *running) bool { return s == old })
}

func (r *balancer) add(s *running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replicas = append(r.replicas, s)
}

// TestKilled checks that after a power cut every acknowledged request is
// stored, and that the others can be repeated without a second effect.
func TestKilled(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		var all []string
		var unknown []sent
		s := b.serve(t, "--demo")
		const rounds = 5
		for range rounds {
			l := work(t, s, 8, 0)
			l.reach(t, 40)
			s.Kill(t)
			l.done.Wait()
			require.Empty(t, l.refused)
			all, unknown = append(all, l.acknowledged...), append(unknown, l.unknown...)
			s = b.serve(t, "--demo")
			require.Subset(t, b.stored(t), all)
			b.Verify(t)
		}
		for _, each := range unknown {
			require.Equal(t, completed, s.post(t, each.path, s.key, each.body).body)
			all = append(all, each.id)
		}
		require.ElementsMatch(t, all, b.stored(t), "each request has one effect")
		b.Verify(t)
	})
}

// TestCertificatesAreReplaced replaces the certificate and then the key under
// load, and also swaps a link as Kubernetes does. No handshake fails.
func TestCertificatesAreReplaced(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	issuer := newIssuer(t)
	write := func(folder string, serial int64) {
		certificate, key := issuer.issue(t, serial)
		folder = filepath.Join(b.Folder, folder)
		require.NoError(t, os.MkdirAll(folder, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600))
	}
	write("one", 1)
	link := filepath.Join(b.Folder, "current")
	require.NoError(t, os.Symlink("one", link))
	b.with("tls.mode", "files").with("tls.cert_file", filepath.Join(link, "tls.crt")).with("tls.key_file", filepath.Join(link, "tls.key"))
	s := b.serve(t, "--demo")

	var served atomic.Int64 // the serial number of the latest handshake
	var handshakes atomic.Int64
	end := make(chan struct{})
	var callers sync.WaitGroup
	for caller := range 4 {
		client := s.connect(t, func(transport *http.Transport) {
			transport.DisableKeepAlives = true
			transport.TLSClientConfig.VerifyConnection = func(state tls.ConnectionState) error {
				served.Store(state.PeerCertificates[0].SerialNumber.Int64())
				handshakes.Add(1)
				return nil
			}
			if caller%2 == 0 {
				overHTTP1(transport)
			} else {
				transport.TLSClientConfig.MaxVersion = tls.VersionTLS12
			}
		})
		callers.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				if got, err := s.tryPost(client, addPush, s.key, push("tls")); err != nil || got.body != completed {
					t.Errorf("%s %v", got.body, err)
					return
				}
			}
		})
	}
	reach := func(serial int64) {
		t.Helper()
		eventually(t, patience, "the certificate is served", func() bool { return served.Load() == serial })
		after := handshakes.Load() + 20
		eventually(t, patience, "handshakes go on", func() bool { return handshakes.Load() >= after })
	}
	reach(1)
	write("one", 2)
	reach(2)
	write("two", 3)
	require.NoError(t, os.Symlink("two", link+".new"))
	require.NoError(t, os.Rename(link+".new", link))
	reach(3)
	require.NoError(t, os.WriteFile(filepath.Join(b.Folder, "two", "tls.crt"), []byte("half a file"), 0o600))
	s.Await(t, s.Err, `a changed certificate cannot be used`)
	reach(3)
	close(end)
	callers.Wait()
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

// TestForwardDatedSales checks that sales are recorded and settled once on
// their day, by a command or by one of two processes. The test changes to a
// time zone in which the day has begun.
func TestForwardDatedSales(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		name, zone := farWest(clock.Now())
		tomorrow := clock.Now().In(zone).AddDate(0, 0, 1).Format(time.DateOnly)
		b.rule(t, "--time-zone", name)
		b.Set("settlement.enabled", "false")
		s := b.serve(t, "--demo")
		good, bad := sale("good", 1001, "10", tomorrow), sale("bad", 1002, "5000", tomorrow)
		for _, body := range []string{good, bad} {
			require.Equal(t, recorded, s.post(t, buyFund, s.key, body).body)
			again := s.post(t, buyFund, s.key, body)
			require.Equal(t, recorded, again.body)
			require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
		}
		for _, r := range b.Export(t, "sales") {
			require.Equal(t, []string{"1", tomorrow, "", "", ""},
				[]string{r["State"], r["SelectedTransactionDate"], r["Proceeds"], r["SettledPriceID"], r["SettledAt"]})
		}
		require.Equal(t, "0 completed, 0 failed\n", b.Must(t, "settle"), "it is not their day")
		require.Equal(t, "1000", b.holding(t, 1001))
		b.Verify(t)

		b.Load(t, "prices", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom", "9,AFA,Demo Portfoy,1.5,TRY,"+tomorrow)
		later := b.moved(t, "Etc/GMT-14")
		settled := later.Run(t, "settle")
		require.Equal(t, "1 completed, 1 failed\n", settled.Out)
		require.Equal(t, 3, settled.Status, "some failed")
		require.Contains(t, settled.Err, "the bank refuses 1 operation\n", "all sales of an operation fail together")
		require.Equal(t, "0 completed, 0 failed\n", later.Must(t, "settle"), "once")
		for _, r := range b.Export(t, "sales") {
			if r["CallerId"] == "good" {
				require.Equal(t, []string{"2", "15.00", "9", ""}, []string{r["State"], r["Proceeds"], r["SettledPriceID"], r["Refusal"]})
			} else {
				require.Equal(t, []string{"8", "", "", "holding-insufficient"}, []string{r["State"], r["Proceeds"], r["SettledPriceID"], r["Refusal"]})
			}
		}
		require.Equal(t, "990", b.holding(t, 1001))
		b.moved(t, name)
		require.Equal(t, completed, s.post(t, buyFund, s.key, good).body, "the CallerId answers what became of it")
		refused := s.post(t, buyFund, s.key, bad)
		require.Equal(t, http.StatusOK, refused.status)
		require.Contains(t, refused.body, `"code":"holding-insufficient"`)
		b.Verify(t)

		const many = 60
		for n := range many {
			require.Equal(t, recorded, s.post(t, buyFund, s.key, sale("many-"+number(n), 1001, "1", tomorrow)).body)
		}
		other := b.moved(t, "Etc/GMT-14").with("settlement.enabled", "true")
		first := later.with("settlement.enabled", "true").serve(t)
		other.serve(t)
		eventually(t, patience, "all are settled", func() bool { return len(b.Export(t, "sales", "--state", "recorded")) == 0 })
		require.Len(t, b.Export(t, "sales", "--state", "completed"), many+1)
		require.Equal(t, "930", b.holding(t, 1001))
		require.Equal(t, completed, first.post(t, buyFund, s.key, sale("many-1", 1001, "1", tomorrow)).body, "also where the day has passed")
		b.moved(t, name)
		b.Verify(t)
	})
}

// farWest is a time zone so far in the west that in Etc/GMT-14 it is tomorrow,
// and in which it is not about to be midnight.
func farWest(now time.Time) (string, *time.Location) {
	name := "Etc/GMT+12"
	zone, err := time.LoadLocation(name)
	if err == nil && now.In(zone).Hour() == 23 {
		name = "Etc/GMT+11"
		zone, err = time.LoadLocation(name)
	}
	if err != nil {
		panic(err)
	}
	return name, zone
}
