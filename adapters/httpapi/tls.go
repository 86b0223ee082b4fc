package httpapi

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

// TLSMode says how requests are kept private (the contract, section 8).
type TLSMode string

// The modes.
const (
	// TLSFiles uses a certificate and key from files, and reads them again
	// when they change.
	TLSFiles TLSMode = "files"
	// TLSSelfSigned makes the files first when there are none: for development.
	TLSSelfSigned TLSMode = "self-signed"
	// TLSOff is plain HTTP, on a loopback address only.
	TLSOff TLSMode = "off"
	// TLSProxy is plain HTTP on any address: a proxy in front ends TLS.
	TLSProxy TLSMode = "proxy"
)

// TLSOptions say how a Server keeps requests private.
type TLSOptions struct {
	Mode TLSMode
	// CertFile and KeyFile are PEM files, for TLSFiles and TLSSelfSigned.
	CertFile, KeyFile string
	// Now is the current time. Required with these two.
	Now func() time.Time
	// Report is told once of each pair of changed files that cannot be used:
	// the pair before it stays in use. It may be nil.
	Report func(error)
}

// config is nil for the modes without TLS.
func (o TLSOptions) config() (*tls.Config, error) {
	switch o.Mode {
	case TLSOff, TLSProxy:
		return nil, nil
	case TLSSelfSigned:
		if err := ensureSelfSigned(o.CertFile, o.KeyFile, o.Now()); err != nil {
			return nil, err
		}
	case TLSFiles:
	default:
		return nil, fmt.Errorf("there is no TLS mode %q: it is %s, %s, %s or %s", o.Mode, TLSFiles, TLSSelfSigned, TLSOff, TLSProxy)
	}
	c, err := loadCertificates(o)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: c.get,
		// Of TLS 1.2 only what TLS 1.3 has too: forward secrecy and AEAD.
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
	}, nil
}

// lookEvery is how often handshakes look whether the files changed. Looking
// needs no watcher, and sees Kubernetes swap a link.
const lookEvery = time.Second

// certificates is the pair in use.
type certificates struct {
	TLSOptions
	current atomic.Pointer[tls.Certificate]

	looking sync.Mutex // guards what follows; who finds it taken goes on with the pair in use
	looked  time.Time
	used    stamp
	refused *stamp // of files that were reported
}

// stamp tells one state of the two files from another.
type stamp [2]fs.FileInfo

func stampOf(certFile, keyFile string) (s stamp, err error) {
	for i, name := range []string{certFile, keyFile} {
		if s[i], err = os.Stat(name); err != nil {
			return stamp{}, err
		}
	}
	return s, nil
}

func (s stamp) equal(other stamp) bool {
	for i := range s {
		a, b := s[i], other[i]
		if a == nil || b == nil {
			if a != b {
				return false
			}
			continue
		}
		if !a.ModTime().Equal(b.ModTime()) || a.Size() != b.Size() || !os.SameFile(a, b) {
			return false
		}
	}
	return true
}

func loadCertificates(o TLSOptions) (*certificates, error) {
	c := &certificates{TLSOptions: o, looked: o.Now()}
	var err error
	if c.used, err = stampOf(o.CertFile, o.KeyFile); err != nil {
		return nil, fmt.Errorf("find the TLS certificate and key: %w", err)
	}
	pair, err := c.load()
	if err != nil {
		return nil, err
	}
	c.current.Store(pair)
	return c, nil
}

func (c *certificates) load() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the TLS certificate %s and key %s: %w", c.CertFile, c.KeyFile, err)
	}
	return &pair, nil
}

func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.looking.TryLock() {
		c.look()
		c.looking.Unlock()
	}
	return c.current.Load(), nil
}

// look takes over changed files. Files that do not fit together are being
// written: it looks again a second later, and as long as they do not.
func (c *certificates) look() {
	now := c.Now()
	if elapsed := now.Sub(c.looked); 0 <= elapsed && elapsed < lookEvery {
		return
	}
	c.looked = now
	found, err := stampOf(c.CertFile, c.KeyFile)
	if err == nil && found.equal(c.used) {
		return
	}
	var pair *tls.Certificate
	if err == nil {
		pair, err = c.load()
	}
	if err != nil {
		if c.Report != nil && (c.refused == nil || !found.equal(*c.refused)) {
			c.Report(fmt.Errorf("the certificate before stays in use: %w", err))
		}
		c.refused = &found
		return
	}
	c.current.Store(pair)
	c.used, c.refused = found, nil
}

// selfSignedFor is how long a self-signed certificate is good: not longer than
// clients take it.
const selfSignedFor = 397 * 24 * time.Hour

// ensureSelfSigned makes the pair when there is none, or when it has expired.
func ensureSelfSigned(certFile, keyFile string, now time.Time) error {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read the self-signed certificate %s and its key %s (remove both, and a new pair is made): %w", certFile, keyFile, err)
	case now.Before(pair.Leaf.NotAfter):
		return nil
	}
	certificate, key, err := selfSigned(now)
	if err == nil {
		err = writeWhole(keyFile, key)
	}
	if err == nil {
		err = writeWhole(certFile, certificate)
	}
	if err != nil {
		return fmt.Errorf("make a self-signed certificate: %w", err)
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

// writeWhole puts a file in place that only its owner may read, whole or not
// at all.
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
