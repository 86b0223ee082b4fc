package prove_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"bankingapi/test/kit/service"
)

// attacker is an HTTP/2 client that breaks the rules of the protocol.
type attacker struct {
	t    *testing.T
	conn *tls.Conn
	*http2.Framer
	headers bytes.Buffer
	encoder *hpack.Encoder
	key     string
	next    uint32 // stream
	written int64
}

// attack opens an HTTP/2 connection. It reads what the service sends and
// discards it, unless deaf is set.
func (s *besieged) attack(t *testing.T, deaf bool, settings ...http2.Setting) *attacker {
	t.Helper()
	conn, err := s.dial("h2")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(service.Patience)))
	a := &attacker{t: t, conn: conn, key: s.key, next: 1}
	a.Framer = http2.NewFramer(a, conn)
	a.encoder = hpack.NewEncoder(&a.headers)
	_, err = io.WriteString(conn, http2.ClientPreface)
	require.NoError(t, err)
	require.NoError(t, a.WriteSettings(settings...))
	if !deaf {
		go func() { _, _ = io.Copy(io.Discard, conn) }()
	}
	return a
}

// Write implements io.Writer and counts the bytes.
func (a *attacker) Write(p []byte) (int, error) {
	n, err := a.conn.Write(p)
	a.written += int64(n)
	return n, err
}

// block returns the compressed header of a request.
func (a *attacker) block(more ...hpack.HeaderField) []byte {
	a.headers.Reset()
	for _, f := range append([]hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "bank"},
		{Name: ":path", Value: addPush}, {Name: "ocp-apim-subscription-key", Value: a.key},
	}, more...) {
		if err := a.encoder.WriteField(f); err != nil {
			panic(err) // a write to a buffer cannot fail
		}
	}
	return a.headers.Bytes()
}

// open begins a request and returns its stream.
func (a *attacker) open(end bool, more ...hpack.HeaderField) (uint32, error) {
	id := a.next
	a.next += 2
	return id, a.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: a.block(more...), EndHeaders: true, EndStream: end})
}

// untilCut repeats an action until the service closes the connection. It
// returns how often it ran.
func (a *attacker) untilCut(most int, once func() error) int {
	a.t.Helper()
	for n := range most {
		if err := once(); err != nil {
			require.False(a.t, errors.Is(err, os.ErrDeadlineExceeded), "the service did not close the connection")
			return n
		}
	}
	return most
}

// TestHTTP2Abuse sends patterns that are known to overload HTTP/2 servers. Each
// must cost the service little, and other callers must still get answers.
func TestHTTP2Abuse(t *testing.T) {
	t.Parallel()
	s := besiege(t, "http.read_timeout", "4s", "http.write_timeout", "4s", "storage.statement_timeout", "1500ms")
	before, threads := s.resident(t), s.measure(t, "go_goroutines")
	abuses := []struct {
		name string
		run  func(t *testing.T) string
	}{
		{"rapid reset (CVE-2023-44487)", func(t *testing.T) string {
			a := s.attack(t, false)
			const streams = 20_000
			n := a.untilCut(streams, func() error {
				id, err := a.open(false)
				if err != nil {
					return err
				}
				return a.WriteRSTStream(id, http2.ErrCodeCancel)
			})
			if n == streams {
				return "20,000 streams that were reset at once left nothing behind"
			}
			return fmt.Sprintf("cut after %d streams that were reset at once", n)
		}},
		{"CONTINUATION without end (CVE-2023-45288)", func(t *testing.T) string {
			a := s.attack(t, false)
			require.NoError(t, a.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: a.block()}))
			fields := bytes.Clone(a.blockOf(strings.Repeat("x", 1000), 15))
			n := a.untilCut(100_000, func() error { return a.WriteContinuation(1, false, fields) })
			require.Less(t, n, 100_000)
			return fmt.Sprintf("cut after %d KiB of headers", a.written>>10)
		}},
		{"a huge header", func(t *testing.T) string {
			a := s.attack(t, true)
			id, err := a.open(true, hpack.HeaderField{Name: "x", Value: strings.Repeat("x", 15<<10)})
			require.NoError(t, err)
			require.Equal(t, "400", a.awaitAnswer(id))
			id = a.next
			a.next += 2
			require.NoError(t, a.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: a.block(), EndStream: true}))
			block := bytes.Clone(a.blockOf(strings.Repeat("y", 10<<10), 1))
			for range 7 {
				require.NoError(t, a.WriteContinuation(id, false, block))
			}
			require.NoError(t, a.WriteContinuation(id, true, block))
			answer := a.awaitAnswer(id)
			require.Contains(t, []string{"431", "cut"}, answer)
			return "15 KiB are accepted, 80 KiB are rejected: " + answer
		}},
		{"too many streams at once", func(t *testing.T) string {
			a := s.attack(t, true)
			for range 2000 {
				if _, err := a.open(false); err != nil {
					break
				}
			}
			refused := a.resets(func(reset map[http2.ErrCode]int) bool { return reset[http2.ErrCodeRefusedStream] >= 1750 })[http2.ErrCodeRefusedStream]
			require.GreaterOrEqual(t, refused, 1750)
			return fmt.Sprintf("%d of 2,000 open requests were refused at once", refused)
		}},
		{"a flood of SETTINGS without reading the acknowledgements", func(t *testing.T) string {
			a := s.attack(t, true)
			const frames = 200_000
			n := a.untilCut(frames, func() error { return a.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0}) })
			if n == frames {
				return "200,000 were accepted, with one acknowledgement queued for all"
			}
			return fmt.Sprintf("cut after %d", n)
		}},
		{"a flood of PING without reading the acknowledgements", func(t *testing.T) string {
			a := s.attack(t, true)
			n := a.untilCut(2_000_000, func() error { return a.WritePing(false, [8]byte{}) })
			require.Less(t, n, 2_000_000)
			return fmt.Sprintf("cut after %d", n)
		}},
		{"responses blocked by flow control (window 0)", func(t *testing.T) string {
			a := s.attack(t, true, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			for range 200 {
				id, err := a.open(false)
				require.NoError(t, err)
				require.NoError(t, a.WriteData(id, true, []byte("{}")))
			}
			all := func(reset map[http2.ErrCode]int) (n int) {
				for _, of := range reset {
					n += of
				}
				return n
			}
			require.Equal(t, 200, all(a.resets(func(reset map[http2.ErrCode]int) bool { return all(reset) == 200 })))
			return "200 of 200 requests were reset after http.write_timeout"
		}},
		{"empty DATA without end", func(t *testing.T) string {
			a := s.attack(t, false)
			id, err := a.open(false)
			require.NoError(t, err)
			began := time.Now()
			n := a.untilCut(50_000_000, func() error { return a.WriteData(id, false, nil) })
			return fmt.Sprintf("cut after %d frames, %s", n, time.Since(began).Round(100*time.Millisecond))
		}},
	}
	for _, abuse := range abuses {
		t.Run(abuse.name, func(t *testing.T) {
			what := abuse.run(t)
			took := s.requireWell(t)
			figure(t, "%s; a request after it took %s", what, took.Round(time.Millisecond))
		})
	}
	eventually(t, service.Patience, "all their goroutines end", func() bool { return s.measure(t, "go_goroutines") < threads+20 })
	after := s.resident(t)
	figure(t, "%d MiB resident before the attacks, %d after", before>>20, after>>20)
	require.Less(t, after-before, int64(128<<20))
}

// blockOf returns a header block with n fields of a value that does not
// compress.
func (a *attacker) blockOf(value string, fields int) []byte {
	a.headers.Reset()
	for i := range fields {
		field := hpack.HeaderField{Name: fmt.Sprintf("x-%d-%d", a.written, i), Value: value, Sensitive: true}
		if err := a.encoder.WriteField(field); err != nil {
			panic(err)
		}
	}
	return a.headers.Bytes()
}

// awaitAnswer reads until a stream is answered and returns its status. It
// returns "cut" if the connection is closed.
func (a *attacker) awaitAnswer(stream uint32) string {
	a.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		frame, err := a.ReadFrame()
		if err != nil {
			require.False(a.t, errors.Is(err, os.ErrDeadlineExceeded), "no answer")
			return "cut"
		}
		if h, ok := frame.(*http2.MetaHeadersFrame); ok && h.StreamID == stream {
			return h.PseudoValue("status")
		}
	}
}

// resets reads until the service has reset enough streams or closes the
// connection. It counts the streams by the reason of the reset.
func (a *attacker) resets(enough func(map[http2.ErrCode]int) bool) map[http2.ErrCode]int {
	reset := map[http2.ErrCode]int{}
	for !enough(reset) {
		frame, err := a.ReadFrame()
		if err != nil {
			break
		}
		if r, ok := frame.(*http2.RSTStreamFrame); ok {
			reset[r.ErrCode]++
		}
	}
	return reset
}
