// Package certificate reads the server's TLS certificate, and the authorities of its
// clients, from files, again when they change. For development it makes a self-signed
// certificate (the contract, section 8).
package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bankingapi/application/owner"
)

// Files are PEM files.
type Files struct {
	CertFile, KeyFile string // a certificate chain and its private key
	// ClientCA has the authorities whose certificates clients must present. If it is
	// empty, clients need none.
	ClientCA string
	Now      func() time.Time // required
	// Report receives an error once for each change of the files that cannot be used. It
	// may be nil.
	Report func(error)
	// Used receives the end of the certificate when changed files come into use. It may be nil.
	Used func(until time.Time)
}

// Current is what the files say. It is safe for concurrent use.
type Current struct {
	Files
	base   *tls.Config
	config atomic.Pointer[tls.Config]
	// problem says why changed files are not used. It is empty if they are.
	problem atomic.Value
	// authorities are those of the files in use.
	authorities atomic.Pointer[[]*x509.Certificate]

	reading sync.Mutex // guards the fields below; who finds it locked uses the current files
	checked time.Time
	used    string // a hash of the files
	refused string // what was reported: a hash, or why the files cannot be read
}

// Load reads the files. base has the rest of the configuration.
func (f Files) Load(base *tls.Config) (*Current, error) {
	c := &Current{Files: f, base: base, checked: f.Now()}
	return c, c.Reload()
}

// CheckAuthorities reads the authorities of clients only, and returns what is wrong with them.
func (f Files) CheckAuthorities() error {
	if f.ClientCA == "" {
		return nil
	}
	content, err := readFile(authoritiesFile, f.ClientCA)
	if err != nil {
		return err
	}
	_, err = f.authoritiesIn(content)
	return err
}

func (f Files) authoritiesIn(content []byte) ([]*x509.Certificate, error) {
	authorities, err := parseAuthorities(content)
	if err != nil {
		return nil, fmt.Errorf("use %s: %s %w", authoritiesFile, f.ClientCA, err)
	}
	return authorities, nil
}

// Reload reads the files now. After an error the previous files stay in use.
func (c *Current) Reload() error {
	c.reading.Lock()
	defer c.reading.Unlock()
	_, err := c.look()
	return err
}

// Warnings says that changed files are not used and why, and that the certificate in use is over or
// not valid yet.
func (c *Current) Warnings() (sentences []string) {
	c.refresh()
	problem, _ := c.problem.Load().(string)
	if problem != "" {
		sentences = append(sentences, problem)
	}
	config := c.config.Load()
	if config != nil {
		leaf := config.Certificates[0].Leaf
		now := c.Now()
		switch {
		case !now.Before(leaf.NotAfter):
			sentences = append(sentences, fmt.Sprintf("The TLS certificate %s is over since %s: callers refuse it.", c.CertFile, leaf.NotAfter.UTC().Format(time.RFC3339)))
		case now.Before(leaf.NotBefore):
			sentences = append(sentences, fmt.Sprintf("The TLS certificate %s is not valid before %s: callers refuse it.", c.CertFile, leaf.NotBefore.UTC().Format(time.RFC3339)))
		}
	}
	return sentences
}

// look reads the files and keeps why they cannot be used.
func (c *Current) look() (found string, err error) {
	found, err = c.read()
	if err != nil {
		if c.config.Load() != nil {
			c.problem.Store("Changed files of TLS are not used, and the previous ones stay in use: " + err.Error() + ".")
		}
		return found, err
	}
	c.problem.Store("")
	return found, nil
}

// End returns when the certificate expires.
func (c *Current) End() time.Time {
	c.refresh()
	return c.config.Load().Certificates[0].Leaf.NotAfter
}

// Config is tls.Config.GetConfigForClient. It uses changed files within a second.
func (c *Current) Config(*tls.ClientHelloInfo) (*tls.Config, error) {
	c.refresh()
	return c.config.Load(), nil
}

// Admits reports whether the client of a connection would be accepted if it connected now. A
// connection may be open for days. Meanwhile its authority can be taken out of the file, and its
// certificate can end.
func (c *Current) Admits(state *tls.ConnectionState) bool {
	if c.ClientCA == "" {
		return true
	}
	if state == nil || len(state.PeerCertificates) == 0 {
		return false
	}
	c.refresh()
	authorities := *c.authorities.Load()
	isAdmitted := func(chain []*x509.Certificate) bool {
		return slices.ContainsFunc(authorities, chain[len(chain)-1].Equal) && !slices.ContainsFunc(chain, c.isOver)
	}
	if slices.ContainsFunc(state.VerifiedChains, isAdmitted) {
		return true
	}
	// The authority may have a new certificate for the same key.
	given := x509.NewCertPool()
	for _, intermediate := range state.PeerCertificates[1:] {
		given.AddCert(intermediate)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: c.config.Load().ClientCAs, Intermediates: given, CurrentTime: c.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err == nil
}

func (c *Current) isOver(certificate *x509.Certificate) bool { return !c.counts(certificate) }

// checkEvery is how often the files are read, by handshakes, by requests with a client certificate,
// and by who asks for the state: no client may come as long as the certificate is over. This needs
// no watcher, and it notices when Kubernetes swaps a link.
const checkEvery = time.Second

// refresh reads the files again if the last time was a while ago.
func (c *Current) refresh() {
	if !c.reading.TryLock() {
		return
	}
	defer c.reading.Unlock()
	now := c.Now()
	elapsed := now.Sub(c.checked)
	if elapsed >= 0 && elapsed < checkEvery {
		return
	}
	c.checked = now
	found, err := c.look()
	switch {
	case err == nil:
		c.refused = ""
	case found != c.refused && c.Report != nil:
		c.refused = found
		c.Report(fmt.Errorf("the previous files stay in use: %w", err))
	}
}

// What the files have, for errors.
const (
	certificateFile = "the TLS certificate"
	keyFile         = "the key of the TLS certificate"
	authoritiesFile = "the authorities of clients"
)

// readFile reads a file, and returns nothing if it has no name. To read a pipe would wait for its
// writer: the service would neither start nor stop, and would not be ready.
func readFile(what, name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %s is not a file", what, name)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return content, nil
}

// read starts to use changed files, and returns what it found. If a certificate and
// a key do not match, they are being written.
func (c *Current) read() (found string, err error) {
	chain, err := readFile(certificateFile, c.CertFile)
	if err != nil {
		return err.Error(), err
	}
	key, err := readFile(keyFile, c.KeyFile)
	if err != nil {
		return err.Error(), err
	}
	clients, err := readFile(authoritiesFile, c.ClientCA)
	if err != nil {
		return err.Error(), err
	}
	found = fmt.Sprintf("%x", sha256.Sum256(slices.Concat(chain, key, clients)))
	if found == c.used {
		return found, nil
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return found, fmt.Errorf("use the TLS certificate %s and key %s: %w", c.CertFile, c.KeyFile, err)
	}
	if err := c.isNotWorse(pair.Leaf); err != nil {
		return found, err
	}
	config := c.base.Clone()
	config.Time = c.Now
	config.Certificates = []tls.Certificate{pair}
	var authorities []*x509.Certificate
	if c.ClientCA != "" {
		authorities, err = c.authoritiesIn(clients)
		if err != nil {
			return found, err
		}
		inUse := c.authorities.Load()
		if inUse != nil && c.anyCounts(*inUse) && !c.anyCounts(authorities) {
			return found, fmt.Errorf("use %s: each certificate in %s is over or not valid yet, and one in use is valid", authoritiesFile, c.ClientCA)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config.ClientCAs = x509.NewCertPool()
		for _, authority := range authorities {
			config.ClientCAs.AddCert(authority)
		}
	}
	isFirst := c.config.Swap(config) == nil
	c.authorities.Store(&authorities)
	c.used = found
	if !isFirst && c.Used != nil {
		c.Used(pair.Leaf.NotAfter)
	}
	return found, nil
}

// counts reports whether a certificate is valid now.
func (c *Current) counts(certificate *x509.Certificate) bool {
	now := c.Now()
	return !now.Before(certificate.NotBefore) && now.Before(certificate.NotAfter)
}

func (c *Current) anyCounts(certificates []*x509.Certificate) bool {
	return slices.ContainsFunc(certificates, c.counts)
}

// isNotWorse returns an error for a certificate that is over or not valid yet, if the one in use
// is valid: somebody has copied the wrong file.
func (c *Current) isNotWorse(leaf *x509.Certificate) error {
	config := c.config.Load()
	if config == nil || c.counts(leaf) || !c.counts(config.Certificates[0].Leaf) {
		return nil
	}
	return fmt.Errorf("use the TLS certificate %s: it is valid from %s to %s only, and the one in use is valid until %s", c.CertFile,
		leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339), config.Certificates[0].Leaf.NotAfter.UTC().Format(time.RFC3339))
}

// parseAuthorities reads every certificate of a PEM file. A certificate that is left out would
// lock out the callers of its authority, so a damaged one is an error that names its line.
func parseAuthorities(content []byte) (authorities []*x509.Certificate, err error) {
	const begin = "-----BEGIN "
	line := 1
	for rest := content; ; {
		start := bytes.Index(rest, []byte(begin))
		if start < 0 {
			break
		}
		line += bytes.Count(rest[:start], []byte("\n"))
		text := rest[start:]
		next := bytes.Index(text[len(begin):], []byte(begin))
		if next >= 0 {
			text = text[:len(begin)+next]
		}
		rest = rest[start+len(text):]
		block, after := pem.Decode(text)
		switch {
		case block == nil || bytes.Contains(after, []byte("-----")):
			return nil, fmt.Errorf("has a damaged certificate on line %d", line)
		case block.Type != "CERTIFICATE":
			return nil, fmt.Errorf("must only have certificates, and has something else on line %d", line)
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("has a damaged certificate on line %d: %w", line, err)
		}
		authorities = append(authorities, authority)
		line += bytes.Count(text, []byte("\n"))
	}
	if len(authorities) == 0 || bytes.Count(content, []byte("-----BEGIN")) != bytes.Count(content, []byte("-----END")) {
		return nil, errors.New("has no certificate in PEM format, or only parts of one")
	}
	return authorities, nil
}

// selfSignedFor is the longest time that clients accept.
const selfSignedFor = 397 * 24 * time.Hour

// EnsureSelfSigned creates a pair for localhost if there is none or if it has expired.
func (f Files) EnsureSelfSigned() error {
	now := f.Now()
	pair, err := f.readPair()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read the self-signed certificate %s and its key %s (remove both files to get a new pair): %w", f.CertFile, f.KeyFile, err)
	case now.Before(pair.Leaf.NotAfter):
		return nil
	}
	if err := f.makeSelfSigned(now); err != nil {
		return fmt.Errorf("create a self-signed certificate: %w", err)
	}
	return nil
}

func (f Files) readPair() (pair tls.Certificate, err error) {
	cert, err := readFile(certificateFile, f.CertFile)
	if err != nil {
		return pair, err
	}
	key, err := readFile(keyFile, f.KeyFile)
	if err != nil {
		return pair, err
	}
	return tls.X509KeyPair(cert, key)
}

func (f Files) makeSelfSigned(now time.Time) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
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
		return err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	return errors.Join(writeWhole(f.KeyFile, "PRIVATE KEY", pkcs8), writeWhole(f.CertFile, "CERTIFICATE", der))
}

// writeWhole writes a PEM file for its owner. It appears complete or not at all.
func writeWhole(name, kind string, der []byte) error {
	if err := owner.MakeFolder(filepath.Dir(name)); err != nil {
		return err
	}
	file, err := owner.Create(name+".new", os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	if err := errors.Join(err, owner.Keep(file, name), file.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
