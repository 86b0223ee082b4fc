package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/strictjson"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// held is a body that arrives but for its end, until it is released.
type held struct {
	*io.PipeReader
	writer *io.PipeWriter
	rest   string
}

func hold(content string) *held {
	reader, writer := io.Pipe()
	return &held{reader, writer, content}
}

// release sends the whole body.
func (h *held) release() {
	_, _ = io.WriteString(h.writer, h.rest)
	_ = h.writer.Close()
}

// bounded is the API for four subscriptions, each of which may have one body of the limit.
func bounded(change ...func(*service)) *service {
	return newService(func(s *service) {
		for _, c := range change {
			c(s)
		}
		s.options.BodiesLimit = 4 * bodyLimit
		for _, name := range []string{"b", "c", "d", "e"} {
			s.callers[name] = caller(func(c *subscription.Subscription) { c.Name = name })
		}
	})
}

func TestTheBodiesInProgressAreBounded(t *testing.T) {
	t.Parallel()
	full := pushBody + strings.Repeat(" ", bodyLimit-len(pushBody))
	for name, length := range map[string]int64{"of a known length": bodyLimit, "of an unknown length": -1, "read by Check": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := bounded(func(s *service) {
					if name == "read by Check" {
						s.options.Check = func(r *http.Request) (time.Duration, error) {
							content, err := io.ReadAll(r.Body)
							if err != nil {
								return 0, fault.Wrap(fault.Unavailable, err, "")
							}
							r.Body = io.NopCloser(bytes.NewReader(content))
							return 0, nil
						}
					}
				})
				var answers sync.Map
				var all sync.WaitGroup
				begin := func(of string) *held {
					body := hold(full[1:])
					all.Go(func() {
						r := post(pushPath, "", func(r *http.Request) {
							r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(full[:1]), body)), length
							r.Header.Set("Ocp-Apim-Subscription-Key", of)
						})
						answers.Store(of, s.do(r).Code)
					})
					synctest.Wait()
					return body
				}
				refused := func(of string) {
					w := s.do(post(pushPath, "", func(r *http.Request) {
						r.Body, r.ContentLength = io.NopCloser(brokenReader{errors.New("was read")}), bodyLimit
						r.Header.Set("Ocp-Apim-Subscription-Key", of)
					}))
					require.Equal(t, http.StatusServiceUnavailable, w.Code, w.Body)
					require.Equal(t, []string{"overloaded"}, codes(t, w))
					require.Equal(t, "1", w.Header().Get("Retry-After"))
					require.NotContains(t, w.Body.String(), `"Data"`, "an earlier attempt may have succeeded")
				}
				bodies := []*held{begin(key)}
				refused(key) // its share is taken
				for _, of := range []string{"b", "c", "d"} {
					bodies = append(bodies, begin(of))
				}
				refused("e") // everything is taken
				for _, body := range bodies {
					body.release()
				}
				all.Wait()
				answers.Range(func(of, code any) bool {
					require.Equal(t, http.StatusOK, code, of)
					return true
				})
				require.Equal(t, http.StatusOK, s.do(post(pushPath, full)).Code, "all bytes were given back")
			})
		})
	}
}

// A body that grows beyond what is free ends in the middle, whoever sends it.
func TestABodyOfUnknownLengthTakesItsBytesWhileItArrives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const step = 64 << 10
		s := newService(func(s *service) { s.options.BodyLimit, s.options.BodiesLimit = 2*step, 8*step })
		content := pushBody + strings.Repeat(" ", 2*step-len(pushBody))
		chunked := func(body io.Reader) int {
			return s.do(post(pushPath, "", func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(body), -1 })).Code
		}
		first, second := hold(content[1:]), hold(content[1:])
		var answers [2]int
		var all sync.WaitGroup
		for i, body := range []*held{first, second} {
			all.Go(func() { answers[i] = chunked(io.MultiReader(strings.NewReader(content[:1]), body)) })
		}
		synctest.Wait() // each has taken one step of two
		require.Equal(t, http.StatusServiceUnavailable, chunked(strings.NewReader(content)), "nothing of the share is free")
		go first.release()
		synctest.Wait()
		go second.release()
		all.Wait()
		require.Equal(t, [2]int{http.StatusServiceUnavailable, http.StatusOK}, answers, "the second has what the first gave back")
	})
}

// slowReader is a http.ResponseWriter of a caller that reads nothing until it is told to.
type slowReader struct {
	*httptest.ResponseRecorder
	reads chan struct{}
}

func (s *slowReader) Write(b []byte) (int, error) {
	<-s.reads
	return s.ResponseRecorder.Write(b)
}

// A caller that asks for large answers and does not read them would use up the memory.
func TestAnswersOfReadsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := bounded(func(s *service) {
			s.options.Routes = map[string]func(*http.Request) (any, error){
				"GET /large": func(*http.Request) (any, error) { return strings.Repeat("x", bodyLimit/2), nil },
			}
		})
		ask := func() *http.Request {
			r := httptest.NewRequest(http.MethodGet, "/large", nil)
			r.Header.Set("Ocp-Apim-Subscription-Key", key)
			return r
		}
		w := &slowReader{httptest.NewRecorder(), make(chan struct{})}
		var unread sync.WaitGroup
		unread.Go(func() { s.ServeHTTP(w, ask()) })
		synctest.Wait()
		require.Equal(t, http.StatusServiceUnavailable, s.do(ask()).Code)
		close(w.reads)
		unread.Wait()
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, http.StatusOK, s.do(ask()).Code)
	})
}

// A partner that sends large bodies on many connections at the same time must not have all
// processors.
func TestASubscriptionDecodesOneLargeBodyAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		decoding := make(chan string, 10) // the bodies that are being decoded
		turn := make(chan bool)
		s := newService(func(s *service) {
			s.options.BodyLimit = 1 << 20
			s.callers["other"] = caller(func(c *subscription.Subscription) { c.Name = "other" })
			read := func(r *strictjson.Reader, of *struct{ string }) {
				strictjson.Text("Of", func(of *struct{ string }) *string { return &of.string }).Read(r, of)
				decoding <- of.string
				if !<-turn {
					panic("broken")
				}
			}
			s.others = []httpapi.Descriptor{httpapi.Operation[struct{ string }]{
				Name:    "Held",
				Members: []strictjson.Member[struct{ string }]{{Name: "Of", Read: read}},
				Do: func(context.Context, *subscription.Subscription, operation.Header, []struct{ string }) (operation.Outcome, error) {
					return operation.Outcome{State: operation.Completed}, nil
				},
				MayCall: func(*subscription.Subscription) bool { return true },
			}}
		})
		answers := make(chan int, 10)
		send := func(key, name string, size int) {
			go func() {
				answers <- s.do(post("/BankingApiV01/Held", `{"Header":{},"Parameters":[{"Of":"`+name+`"}]}`+strings.Repeat(" ", size), func(r *http.Request) {
					r.Header.Set("Ocp-Apim-Subscription-Key", key)
				})).Code
			}()
			synctest.Wait()
		}
		const large = 40 << 10
		send(key, "first", large)
		send(key, "second", large)
		send(key, "third", large)
		send("other", "of another subscription", large)
		send(key, "small", 0)
		require.Len(t, decoding, 3)
		require.Equal(t, "first", <-decoding)
		require.Equal(t, "of another subscription", <-decoding)
		require.Equal(t, "small", <-decoding)
		turn <- false // a panic passes the turn on too
		for _, code := range []int{http.StatusInternalServerError, http.StatusOK, http.StatusOK} {
			if code == http.StatusOK {
				turn <- true
			}
			require.Equal(t, code, <-answers)
		}
		for _, name := range []string{"second", "third"} {
			require.Equal(t, name, <-decoding)
			turn <- true
			require.Equal(t, http.StatusOK, <-answers)
		}
		send(key, "fourth", large)
		require.Equal(t, "fourth", <-decoding)
		turn <- true
		require.Equal(t, http.StatusOK, <-answers)
	})
}

// What callers can announce and send on a connection before it is known who they are is bounded.
func TestAConnectionCostsLittle(t *testing.T) {
	t.Parallel()
	o := selfSigned(t)
	framer := speakHTTP2(t, dial(t, serve(t, newService(), o)), o, 1<<30)
	frame, err := framer.ReadFrame()
	require.NoError(t, err)
	settings, ok := frame.(*http2.SettingsFrame)
	require.True(t, ok, frame)
	for setting, want := range map[http2.SettingID]uint32{
		http2.SettingMaxConcurrentStreams: 32,
		http2.SettingMaxFrameSize:         16 << 10, // it is allocated before the frame arrives
		http2.SettingInitialWindowSize:    256 << 10,
	} {
		got, isSet := settings.Value(setting)
		require.True(t, isSet, setting)
		require.Equal(t, want, got, setting)
	}
	headers, isSet := settings.Value(http2.SettingMaxHeaderListSize)
	require.True(t, isSet)
	require.Less(t, headers, uint32(17<<10))
}

// speakHTTP2 begins HTTP/2 on a connection to a server with TLS. It reads nothing. The window is how
// many bytes of each answer the caller takes.
func speakHTTP2(t *testing.T, raw net.Conn, o options, window uint32) *http2.Framer {
	t.Helper()
	conn := tls.Client(raw, &tls.Config{RootCAs: roots(t, o.TLS.Files.CertFile), ServerName: "localhost", NextProtos: []string{"h2"}})
	_, err := io.WriteString(conn, http2.ClientPreface)
	require.NoError(t, err)
	framer := http2.NewFramer(conn, conn)
	require.NoError(t, framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}))
	return framer
}

// ask sends a GET of the path /large with these headers.
func ask(t *testing.T, framer *http2.Framer, stream uint32, headers ...hpack.HeaderField) {
	t.Helper()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	fields := []hpack.HeaderField{
		{Name: ":method", Value: http.MethodGet}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "bank"}, {Name: ":path", Value: "/large"},
	}
	for _, field := range append(fields, headers...) {
		require.NoError(t, encoder.WriteField(field))
	}
	require.NoError(t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true}))
}

// A caller of HTTP/2 that takes no byte of its answers would use up the memory with small requests on
// many connections. Those of others are answered.
func TestTheRequestsOfHTTP2AreBounded(t *testing.T) {
	t.Parallel()
	o := selfSigned(t)
	bodies := httpapi.NewBodies(0)
	bodies.LimitRequests(8) // two of each subscription, and two of unknown callers
	s := newService(func(s *service) {
		s.options.Bodies = bodies
		s.options.Routes = map[string]func(*http.Request) (any, error){
			"GET /large": func(*http.Request) (any, error) { return "short", nil },
		}
		s.callers["b"] = caller(func(c *subscription.Subscription) { c.Name = "b" })
	})
	server := serve(t, s, o)
	framer := speakHTTP2(t, dial(t, server), o, 0)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	answer := func(stream uint32) string {
		t.Helper()
		for {
			frame, err := framer.ReadFrame()
			require.NoError(t, err)
			if frame.Header().StreamID != stream {
				continue
			}
			switch f := frame.(type) {
			case *http2.MetaHeadersFrame:
				return f.PseudoValue("status")
			case *http2.RSTStreamFrame:
				return f.ErrCode.String()
			}
		}
	}
	own := hpack.HeaderField{Name: "ocp-apim-subscription-key", Value: key}
	for i, want := range []string{"200", "200", "503", "503", "INTERNAL_ERROR"} { // the 503 count as those of unknown callers
		stream := uint32(2*i + 1)
		ask(t, framer, stream, own)
		require.Equal(t, want, answer(stream), stream)
	}
	ask(t, framer, 11)
	require.Equal(t, "INTERNAL_ERROR", answer(11), "an unknown caller")

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots(t, o.TLS.Files.CertFile)}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+hostPort(server)+"/large", nil)
	require.NoError(t, err)
	r.Header.Set("Ocp-Apim-Subscription-Key", "b")
	for range 3 {
		w, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, w.Body.Close())
		require.Equal(t, http.StatusOK, w.StatusCode, "another subscription")
		require.Equal(t, 2, w.ProtoMajor)
		require.Equal(t, int64(len(`"short"`)), w.ContentLength)
	}

	require.NoError(t, framer.WriteWindowUpdate(1, 1<<20))
	for ended := false; !ended; {
		frame, err := framer.ReadFrame()
		require.NoError(t, err)
		data, isData := frame.(*http2.DataFrame)
		ended = isData && data.StreamID == 1 && data.StreamEnded()
	}
	ask(t, framer, 13, own)
	require.Equal(t, "200", answer(13), "after an answer was taken")
}

// opened is a body that is not read, until it is closed.
type opened struct {
	io.Reader
	isClosed bool
}

func (o *opened) Close() error { o.isClosed = true; return nil }

// closedFirst is a caller that notes whether the body was closed before the answer.
type closedFirst struct {
	http.ResponseWriter
	body *opened
	is   bool
}

func (c *closedFirst) Write(p []byte) (int, error) {
	c.is = c.body.isClosed
	return c.ResponseWriter.Write(p)
}

// While an answer waits for its caller, what has arrived of the body must not take memory: that is up
// to 256 KiB on each connection of HTTP/2.
func TestAnAnswerDoesNotKeepTheBody(t *testing.T) {
	t.Parallel()
	for path, own := range map[string]string{"/nowhere": "", pushPath: "", salePath: "nobody's"} {
		body := &opened{Reader: strings.NewReader("{}")}
		r := post(path, "", func(r *http.Request) {
			r.ProtoMajor = 2
			r.Body = body
			r.Header.Set("Ocp-Apim-Subscription-Key", own)
		})
		w := &closedFirst{httptest.NewRecorder(), body, false}
		newService().ServeHTTP(w, r)
		require.True(t, w.is, path)
	}
}

// A caller of HTTP/2 that does not read anything would keep its requests in progress forever,
// because the frame that ends them cannot be written either.
func TestACallerThatNeverReadsIsCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := selfSigned(t)
		o.WriteTimeout = time.Second
		ended := make(chan struct{})
		listener := &memoryListener{dialed: make(chan net.Conn), closed: make(chan struct{})}
		server := newServer("", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			defer close(ended)
			_, _ = w.Write(make([]byte, 1<<20))
		}), o)
		require.NoError(t, server.StartOn(listener))
		mine, its := net.Pipe() // has no buffer
		defer func() { _ = mine.Close() }()
		listener.dialed <- its

		framer := speakHTTP2(t, mine, o, 1<<30)
		require.NoError(t, framer.WriteWindowUpdate(0, 1<<30))
		ask(t, framer, 1)
		<-ended
		require.NoError(t, server.Shutdown(t.Context()))
	})
}

// A caller must be able to tell a slow service from a forged record.
func TestAnAnswerAfterTheWriteTimeoutEndsTheConnectionCleanly(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{"a short answer": "late", "a long answer": strings.Repeat("late", 64<<10)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := selfSigned(t)
				o.WriteTimeout = time.Second
				transport := serveInMemory(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					time.Sleep(2 * time.Second)
					_, _ = io.WriteString(w, answer)
				}), o)
				raw, err := transport.DialContext(t.Context(), "", "")
				require.NoError(t, err)
				conn := tls.Client(raw, &tls.Config{RootCAs: roots(t, o.TLS.Files.CertFile), ServerName: "localhost"})
				defer func() { _ = conn.Close() }()
				require.NoError(t, httptest.NewRequest(http.MethodGet, "/", nil).Write(conn))
				_, err = http.ReadResponse(bufio.NewReader(conn), nil)
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			})
		})
	}
}
