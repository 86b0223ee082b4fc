package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"

	"bankingapi/adapters/httpapi/certificate"
)

// TLSMode says how requests are encrypted (the contract, section 8).
type TLSMode string

// The modes.
const (
	// TLSFiles uses a certificate and key from files, also after they change.
	TLSFiles TLSMode = "files"
	// TLSSelfSigned creates the files if they do not exist, for development.
	TLSSelfSigned TLSMode = "self-signed"
	// TLSOff is plain HTTP, on a loopback address only.
	TLSOff TLSMode = "off"
	// TLSProxy is plain HTTP on any address, because a proxy in front ends TLS.
	TLSProxy TLSMode = "proxy"
)

// TLSOptions say how a Server encrypts.
type TLSOptions struct {
	Mode TLSMode
	// Files are for TLSFiles and TLSSelfSigned.
	Files certificate.Files
}

// TLSError is the error of a certificate, a key or authorities that a Server cannot use.
type TLSError struct {
	Err error
}

// Error returns the text of the error, which names the files.
func (e *TLSError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *TLSError) Unwrap() error { return e.Err }

// Check reads the files as a Server does, and returns what they are. It makes none: the mode
// TLSSelfSigned is right if its files do not exist yet. It returns nil if there is no certificate.
func (o TLSOptions) Check() (*certificate.Current, error) {
	switch o.Mode {
	case TLSOff, TLSProxy:
		return nil, nil
	case TLSSelfSigned:
		_, err := os.Stat(o.Files.CertFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, o.Files.CheckAuthorities()
		}
	case TLSFiles:
	}
	return o.Files.Load(new(tls.Config))
}

// load returns nil for the modes without TLS.
func (o TLSOptions) load() (*certificate.Current, error) {
	switch o.Mode {
	case TLSOff, TLSProxy:
		return nil, nil
	case TLSSelfSigned:
		if err := o.Files.EnsureSelfSigned(); err != nil {
			return nil, err
		}
	case TLSFiles:
	default:
		return nil, fmt.Errorf("unknown TLS mode %q: use %s, %s, %s or %s", o.Mode, TLSFiles, TLSSelfSigned, TLSOff, TLSProxy)
	}
	return o.Files.Load(&tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		// Of TLS 1.2 only what TLS 1.3 has too: forward secrecy and AEAD.
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
	})
}

// lockedOutKey marks the context of a request on a connection whose client certificate does not
// count any more.
type lockedOutKey struct{}

// admitting is around the handler of a server whose clients need a certificate. A request on a
// connection that would not be accepted any more has no caller, and ends the connection: the
// next handshake tells the client why.
func admitting(certificates *certificate.Current, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !certificates.Admits(r.TLS) {
			w.Header().Set("Connection", "close")
			r = r.WithContext(context.WithValue(r.Context(), lockedOutKey{}, true))
		}
		handler.ServeHTTP(w, r)
	})
}
