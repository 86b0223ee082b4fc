// Package certificate provides the server's TLS certificate: from files, which
// it reads again when they change, or self-signed for development (the
// contract, section 8).
package certificate

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
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Files are the PEM files of a certificate chain and its private key.
type Files struct {
	CertFile, KeyFile string
	// Now returns the current time. Required.
	Now func() time.Time
	// Report receives an error once for each pair of changed files that cannot
	// be used. The previous pair stays in use. It may be nil.
	Report func(error)
}

// Load reads the files and returns a function for tls.Config.GetCertificate.
// The function reads the files again within a second after they change.
func (f Files) Load() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	c, err := f.load()
	if err != nil {
		return nil, err
	}
	return c.get, nil
}

// checkEvery is how often handshakes check whether the files changed. This
// needs no watcher, and it notices when Kubernetes swaps a link.
const checkEvery = time.Second

// certificates is the pair in use.
type certificates struct {
	Files
	current atomic.Pointer[tls.Certificate]

	checking sync.Mutex // guards the fields below; a handshake that finds it locked uses the current pair
	checked  time.Time
	used     stamp
	refused  *stamp // of files that were reported
}

// stamp identifies one state of the two files: when they were written, and their
// sizes, because two writes may fall into one tick of the clock.
type stamp [2]struct {
	written time.Time
	size    int64
}

func stampOf(certFile, keyFile string) (s stamp, err error) {
	for i, name := range []string{certFile, keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return stamp{}, err
		}
		s[i].written, s[i].size = info.ModTime(), info.Size()
	}
	return s, nil
}

func (f Files) load() (*certificates, error) {
	c := &certificates{Files: f, checked: f.Now()}
	var err error
	if c.used, err = stampOf(f.CertFile, f.KeyFile); err != nil {
		return nil, fmt.Errorf("find the TLS certificate and key: %w", err)
	}
	pair, err := c.read()
	if err != nil {
		return nil, err
	}
	c.current.Store(pair)
	return c, nil
}

func (c *certificates) read() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the TLS certificate %s and key %s: %w", c.CertFile, c.KeyFile, err)
	}
	return &pair, nil
}

func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.checking.TryLock() {
		c.check()
		c.checking.Unlock()
	}
	return c.current.Load(), nil
}

// check starts to use changed files. If the two files do not match, they are
// being written. It then checks again every second until they do.
func (c *certificates) check() {
	now := c.Now()
	if elapsed := now.Sub(c.checked); 0 <= elapsed && elapsed < checkEvery {
		return
	}
	c.checked = now
	found, err := stampOf(c.CertFile, c.KeyFile)
	if err == nil && found == c.used {
		return
	}
	var pair *tls.Certificate
	if err == nil {
		pair, err = c.read()
	}
	if err != nil {
		if c.Report != nil && (c.refused == nil || found != *c.refused) {
			c.Report(fmt.Errorf("the previous certificate stays in use: %w", err))
		}
		c.refused = &found
		return
	}
	c.current.Store(pair)
	c.used, c.refused = found, nil
}

// selfSignedFor is how long a self-signed certificate is valid. Clients accept
// no longer time.
const selfSignedFor = 397 * 24 * time.Hour

// EnsureSelfSigned creates a self-signed pair for localhost if the files do not
// exist or if the certificate has expired.
func (f Files) EnsureSelfSigned() error {
	now := f.Now()
	pair, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read the self-signed certificate %s and its key %s (remove both files to get a new pair): %w", f.CertFile, f.KeyFile, err)
	case now.Before(pair.Leaf.NotAfter):
		return nil
	}
	certificate, key, err := selfSigned(now)
	if err == nil {
		err = writeWhole(f.KeyFile, key)
	}
	if err == nil {
		err = writeWhole(f.CertFile, certificate)
	}
	if err != nil {
		return fmt.Errorf("create a self-signed certificate: %w", err)
	}
	return nil
}

func selfSigned(now time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "localhost", Organization: []string{"bankingapi, self-signed"}},
		NotBefore:             now.Add(-time.Hour), // clocks of clients may be behind
		NotAfter:              now.Add(selfSignedFor),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), nil
}

// writeWhole writes a file that only its owner may read. The file appears
// complete or not at all.
func writeWhole(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}
