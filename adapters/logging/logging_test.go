package logging_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"pgregory.net/rapid"

	"bankingapi/adapters/logging"
	"bankingapi/application/summary"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 123456000, time.UTC) }

// output is what a log wrote.
type output struct {
	bytes.Buffer
	log *zap.Logger
}

// String waits for the lines.
func (o *output) String() string {
	_ = o.log.Sync()
	return o.Buffer.String()
}

func newOutput(t testing.TB) (*output, *zap.Logger, zap.AtomicLevel) {
	t.Helper()
	out := new(output)
	l, level := newLogger(t, out, "json")
	out.log = l
	return out, l, level
}

func newLogger(t testing.TB, to io.Writer, format string) (*zap.Logger, zap.AtomicLevel) {
	t.Helper()
	l, level, err := logging.New(logging.Options{Level: "info", Format: format, Writer: to, Now: noon})
	require.NoError(t, err)
	return l, level
}

var lines = []summary.Exchange{
	{
		Operation: "BuyFundFromCustomer", Method: "POST", Status: 200, State: operation.Completed, Duration: 3217 * time.Microsecond,
		BytesIn: 412, BytesOut: 20, RequestID: "0197f6b1-6f0a-7c3e-9a4b-2f1d5c8e7a60", Subscription: "Acme Payments",
		OperationID: "0197f6b1-6f0a-7c3e-9a4b-2f1d5c8e7a61", Customer: summary.Mask(12345678), Address: "203.0.113.7",
		CallerID: "sale-1", ChannelRequestID: "channel-request-1", ChannelSessionID: "channel-session-1", TraceID: "0af7651916cd43dd8448eb211c80319c",
	},
	{
		Operation: "BuyFundFromCustomer", Method: "POST", Status: 200, State: operation.Failed, Duration: time.Millisecond, Replayed: true,
		Codes: []string{"holding-insufficient", "amount-mismatch"}, RequestID: "r2", Subscription: "Acme Payments",
	},
	{Operation: "AddPushNotificationResponse", Method: "POST", Status: 401, Duration: 80 * time.Microsecond, Codes: []string{"key-missing"}, RequestID: "r3", Address: "203.0.113.9", KeyStart: "1be2e452"},
	{Route: "/docs", Method: "GET", Status: 200, Duration: 2 * time.Second, BytesOut: 3000, RequestID: "r4"},
	{Method: "OTHER", Status: 404, Duration: 0, Codes: []string{"unknown-path"}, RequestID: "r5"},
	{
		Operation: "AddPushNotificationResponse", Method: "POST", Status: 503, Duration: 5 * time.Second, Codes: []string{"storage-unavailable"}, RequestID: "r6",
		Err: fault.Wrap(fault.Unavailable, errors.New("dial tcp 10.0.0.7:5432: connect: connection refused"), "The storage cannot be reached."),
	},
	{Operation: "AddPushNotificationResponse", Method: "POST", Status: 499, Duration: time.Second, RequestID: "r7", Err: errors.New("context canceled")},
}

func TestTheLineOfARequest(t *testing.T) {
	t.Parallel()
	for format, file := range map[string]string{"json": "requests.json.txt", "console": "requests.console.txt"} {
		var out bytes.Buffer
		l, _ := newLogger(t, &out, format)
		for _, line := range lines {
			logging.Log(l, &line)
		}
		require.NoError(t, l.Sync())
		golden.Equal(t, file, out.String())
	}
}

// TestACallerCannotForgeALine writes every text a caller may choose, in both
// formats: one line comes out, made of printable characters, with the fields
// that belong to it.
func TestACallerCannotForgeALine(t *testing.T) {
	t.Parallel()
	texts := []string{
		"a\n{\"level\":\"error\",\"message\":\"request\"}", "a\r\nb", "\x1b[2J\x1b[31mred", "\u009b31mred", "a\u2028b\u2029c\u0085d",
		"\u202egnol", "\u200b\ufeff", "\u3164\u2800", "\xff\xfe broken", `","status":500,"x":"`, `back\slash`, "\x00", "\x7f", strings.Repeat("ğ", 200),
	}
	check := func(t interface {
		require.TestingT
		Helper()
	}, text string,
	) {
		t.Helper()
		for _, format := range []string{"json", "console"} {
			var out bytes.Buffer
			l, _, err := logging.New(logging.Options{Level: "info", Format: format, Writer: &out, Now: noon})
			require.NoError(t, err)
			logging.Log(l, &summary.Exchange{
				Operation: text, Method: "POST", Status: 400, RequestID: text, Subscription: text,
				ChannelRequestID: text, ChannelSessionID: text, Err: errors.New(text),
			})
			logging.Log(l, &summary.Exchange{
				Operation: text, Method: "POST", Status: 400, RequestID: text, Subscription: text,
				ChannelRequestID: text, ChannelSessionID: text,
			}) // waits
			logging.ServerErrors(l).Print(text)
			require.NoError(t, l.Sync())
			got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			require.Len(t, got, 3)
			for _, line := range got {
				require.Equal(t, -1, strings.IndexFunc(line, func(r rune) bool {
					return r < ' ' || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029' || r == '\u202e' || r == '\u200b' || r == '\ufeff' || r == '\u3164' || r == '\u2800'
				}), "%q", line)
				fields := map[string]any{}
				require.NoError(t, json.Unmarshal([]byte(line[strings.Index(line, "{"):]), &fields))
				require.NotEqual(t, 500.0, fields["status"])
				require.NotContains(t, fields, "x")
			}
		}
	}
	for _, text := range texts {
		check(t, text)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.String().Draw(t, "text")) })
}

// A logger of a host may keep the fields.
func TestALoggerMayKeepALine(t *testing.T) {
	t.Parallel()
	core, kept := observer.New(zap.InfoLevel)
	r := summary.Exchange{RequestID: "r1", Status: 200}
	logging.Log(zap.New(core), &r)
	r = summary.Exchange{}
	require.Equal(t, "r1", kept.All()[0].ContextMap()["request_id"])
}

func TestPrintableTextIsLeftAlone(t *testing.T) {
	t.Parallel()
	out, l, _ := newOutput(t)
	logging.Log(l, &summary.Exchange{ChannelRequestID: `İstanbul "şube" \1 日本`})
	require.NoError(t, l.Sync())
	fields := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &fields))
	require.Equal(t, `İstanbul "şube" \1 日本`, fields["channel_request_id"])
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		format     string
		isTerminal bool
		json       bool
	}{
		{"auto", true, false},
		{"auto", false, true},
		{"console", false, false},
		{"json", true, true},
	} {
		var out bytes.Buffer
		l, _, err := logging.New(logging.Options{Level: "info", Format: test.format, IsTerminal: test.isTerminal, Writer: &out, Now: noon})
		require.NoError(t, err)
		l.Named("settlement").Info("settled")
		require.NoError(t, l.Sync())
		require.Equal(t, test.json, json.Valid(out.Bytes()), "%+v: %s", test, out.String())
		require.Contains(t, out.String(), "settlement")
	}
	_, _, err := logging.New(logging.Options{Level: "info", Format: "xml"})
	require.EqualError(t, err, "log.format must be auto, console or json")
	_, _, err = logging.New(logging.Options{Level: "loud", Format: "json"})
	require.ErrorContains(t, err, "log.level")
}

func TestTheLevelChangesWhileInUse(t *testing.T) {
	t.Parallel()
	out, l, level := newOutput(t)
	child := l.With(zap.String("part", "a"))
	child.Debug("no")
	level.SetLevel(zap.ErrorLevel)
	logging.Log(child, &summary.Exchange{Status: 200})
	require.Empty(t, out.String())
	logging.Log(child, &summary.Exchange{Status: 500})
	level.SetLevel(zap.DebugLevel)
	child.Debug("yes")
	require.Equal(t, 2, strings.Count(out.String(), "\n"))
}

func TestNothingIsSampledAway(t *testing.T) {
	t.Parallel()
	out, l, _ := newOutput(t)
	for range 5000 {
		logging.Log(l, &summary.Exchange{Status: 200})
	}
	require.NoError(t, l.Sync())
	require.Equal(t, 5000, strings.Count(out.String(), "\n"))
}

// Lines are written together, 10 ms later. The order stays.
func TestLinesAreWrittenTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		to := new(writes)
		l, _ := newLogger(t, to, "json")
		request := func(id string, status int) { logging.Log(l, &summary.Exchange{Status: status, RequestID: id}) }

		request("a", 200)
		time.Sleep(9 * time.Millisecond)
		request("b", 500)
		l.Info("settled", zap.String("request_id", "c"))
		synctest.Wait()
		require.Empty(t, to.ids())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"a b c"}, to.ids())

		request("d", 200)
		require.NoError(t, l.Sync())
		require.Equal(t, []string{"a b c", "d"}, to.ids(), "the end")
	})
}

// writes are the calls of Write.
type writes struct {
	mu  sync.Mutex
	all []string
}

func (w *writes) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, string(b))
	return len(b), nil
}

var idField = regexp.MustCompile(`"request_id":"([^"]*)"`)

// ids are the request ids of each call.
func (w *writes) ids() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, each := range w.all {
		var ids []string
		for _, found := range idField.FindAllStringSubmatch(each, -1) {
			ids = append(ids, found[1])
		}
		all = append(all, strings.Join(ids, " "))
	}
	return all
}

// hung is a reader that reads nothing until it is told to, or has ended.
type hung struct {
	writes
	reads chan struct{}
	ended atomic.Bool
}

func (h *hung) Write(b []byte) (int, error) {
	if h.ended.Load() {
		return 0, io.ErrClosedPipe
	}
	<-h.reads
	return h.writes.Write(b)
}

func TestAReaderThatHangsBlocksNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		to := &hung{reads: make(chan struct{})}
		var dropped atomic.Int64
		l, _, err := logging.New(logging.Options{Level: "info", Format: "json", Writer: to, Now: noon, Dropped: &dropped})
		require.NoError(t, err)
		l.Info("first")
		require.Error(t, l.Sync(), "the reader hangs")
		for range 10_000 {
			logging.Log(l, &summary.Exchange{Status: 200, RequestID: "a"})
			logging.Log(l, &summary.Exchange{Status: 500, RequestID: "b"})
		}
		require.Greater(t, dropped.Load(), int64(10_000), "lines beyond a limit are dropped")
		begun := time.Now()
		require.Error(t, l.Sync(), "lines may be lost at the end")
		require.Equal(t, time.Second, time.Since(begun))

		close(to.reads)
		l.Info("later")
		require.NoError(t, l.Sync())
		written := strings.Join(to.all, "")
		require.Contains(t, written, fmt.Sprintf(`"message":"lines of the log were dropped: its reader was too slow","lines":%d`, dropped.Load()))
		require.EqualValues(t, 20_000+3-dropped.Load(), strings.Count(written, "\n"))

		was := dropped.Load()
		to.ended.Store(true)
		l.Info("to nobody")
		require.NoError(t, l.Sync())
		require.Equal(t, was+1, dropped.Load(), "a reader that ended")
		to.ended.Store(false)
		l.Info("to another")
		require.NoError(t, l.Sync())
		require.Contains(t, to.all[len(to.all)-1], `"lines":1`)
	})
}

// disk has room for some bytes.
type disk struct {
	bytes.Buffer
	room int
}

func (d *disk) Write(b []byte) (int, error) {
	n := min(len(b), d.room)
	d.room -= n
	d.Buffer.Write(b[:n])
	if n < len(b) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}

// A full disk takes a part of a line. A program that reads the log must find each later line.
func TestAFullDiskCutsOneLine(t *testing.T) {
	t.Parallel()
	to := &disk{room: 190}
	var dropped atomic.Int64
	l, _, err := logging.New(logging.Options{Level: "info", Format: "json", Writer: to, Now: noon, Dropped: &dropped})
	require.NoError(t, err)
	write := func(messages ...string) {
		for _, message := range messages {
			l.Info(message)
		}
		require.NoError(t, l.Sync())
	}
	write("first", "second", "third", "fourth", "fifth")
	require.False(t, strings.HasSuffix(to.String(), "\n"), "the third is cut")
	require.EqualValues(t, 3, dropped.Load(), to.String())
	write("sixth")
	to.room = 1000
	write("seventh", "eighth")

	var messages []string
	for line := range strings.Lines(to.String()) {
		var event struct {
			Message, Error string
			Lines          int
		}
		if json.Unmarshal([]byte(line), &event) != nil {
			event.Message = "cut"
		}
		messages = append(messages, event.Message)
		if event.Lines > 0 {
			require.Equal(t, 4, event.Lines)
			require.Equal(t, "no space left on device", event.Error)
		}
	}
	require.Equal(t, []string{"first", "second", "cut", "seventh", "eighth", "lines of the log were dropped: they could not be written"}, messages)
}

func TestFailedHandshakesAreForDebug(t *testing.T) {
	t.Parallel()
	out, l, level := newOutput(t)
	errorLog := logging.ServerErrors(l)
	errorLog.Printf("http: TLS handshake error from %s: EOF", "203.0.113.9:1234")
	require.Empty(t, out.String())
	errorLog.Print("http: Accept error: too many open files; retrying in 5ms")
	require.Contains(t, out.String(), `"level":"warn"`)
	level.SetLevel(zap.DebugLevel)
	errorLog.Printf("http: TLS handshake error from %s: EOF", "203.0.113.9:1234")
	require.Contains(t, out.String(), "handshake")
}

// newOutputAt returns a log of level info whose clock a test sets.
func newOutputAt(t *testing.T, now *time.Time) (*output, *zap.Logger) {
	t.Helper()
	out := new(output)
	l, _, err := logging.New(logging.Options{Level: "info", Format: "json", Writer: out, Now: func() time.Time { return *now }})
	require.NoError(t, err)
	out.log = l
	return out, l
}

// While a database hangs, each check of readiness waits for its deadline. The log must not consist of
// these statements only.
func TestAFloodOfSlowStatementsIsCounted(t *testing.T) {
	t.Parallel()
	now := noon()
	out, l := newOutputAt(t, &now)
	slow := logging.SlowStatements(l, zap.WarnLevel)
	for range 1000 {
		slow("SELECT 1", 2*time.Second)
	}
	require.Equal(t, 10, strings.Count(out.String(), `"statements":"SELECT 1"`))
	slow("insert sales", 8*time.Second)
	require.Contains(t, out.String(), `"message":"slow statements","statements":"insert sales","duration":8,"not_logged":990}`, "another one is not lost in the flood")
	now = now.Add(time.Minute)
	slow("SELECT 1", 2*time.Second)
	require.Equal(t, 11, strings.Count(out.String(), `"statements":"SELECT 1"`))
}

func TestAFloodOfServerErrorsIsCounted(t *testing.T) {
	t.Parallel()
	now := noon()
	out, l := newOutputAt(t, &now)
	errorLog := logging.ServerErrors(l)
	flood := func() {
		for i := range 1000 {
			errorLog.Printf("http2: server connection error from 203.0.113.%d:%d: connection error: PROTOCOL_ERROR", i%256, i)
		}
	}
	flood()
	require.Equal(t, 10, strings.Count(out.String(), "\n"))
	require.NotContains(t, out.String(), "not_logged")
	errorLog.Print("http: Accept error: too many open files; retrying in 5ms")
	require.Equal(t, 11, strings.Count(out.String(), "\n"), "another kind is not lost in the flood")
	for i := range 100 {
		errorLog.Printf("http: panic serving 203.0.113.9:%d: boom", i)
	}
	require.Equal(t, 21, strings.Count(out.String(), "\n"))
	now = now.Add(time.Minute)
	flood()
	require.Equal(t, 31, strings.Count(out.String(), "\n"))
	require.Equal(t, 1, strings.Count(out.String(), `"not_logged":990`))
	for i := range 1000 { // not even if every message is of its own kind
		errorLog.Printf("%d %d %d %d", i, i, i, i)
	}
}

func TestAFloodOfResetsIsForDebug(t *testing.T) {
	t.Parallel()
	out, l, level := newOutput(t)
	logging.Log(l, &summary.Exchange{Status: 401, Gone: true})
	logging.Log(l, &summary.Exchange{Status: 499, Gone: true})
	require.Empty(t, out.String())
	logging.Log(l, &summary.Exchange{Status: 499})
	logging.Log(l, &summary.Exchange{Status: 200, State: operation.Completed, Gone: true})
	logging.Log(l, &summary.Exchange{Status: 503, Gone: true})
	require.Equal(t, 3, strings.Count(out.String(), "\n"), "what was decided is always told")
	level.SetLevel(zap.DebugLevel)
	logging.Log(l, &summary.Exchange{Status: 401, Gone: true})
	require.NoError(t, l.Sync())
	require.Contains(t, out.String(), `"level":"debug"`)
}

func TestMaskNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "******", 7: "******", 42: "******2", 1001: "******01", 12345: "******45", 98761234: "******1234",
		-98761234: "******1234", math.MaxInt64: "******5807", math.MinInt64: "******5808",
	} {
		require.Equal(t, want, summary.Mask(n).String())
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "number")
		require.NotContains(t, summary.Mask(n).String(), fmt.Sprint(n))
	})
}

func TestALineBelowTheLevelCostsNothing(t *testing.T) { // measures, so it is alone
	l, level := newLogger(t, io.Discard, "json")
	level.SetLevel(zap.WarnLevel)
	require.Zero(t, testing.AllocsPerRun(100, func() { logging.Log(l, &lines[0]) }))
	level.SetLevel(zap.InfoLevel)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { logging.Log(l, &lines[0]) }), 4.0+raceAllocations)
}

// A flood of requests without a known key costs 50 lines a second, and a partner's lines are all
// there.
func TestAFloodOfStrangersIsCounted(t *testing.T) {
	t.Parallel()
	core, seen := observer.New(zap.InfoLevel)
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	lines := logging.NewRequests(zap.New(core), func() time.Time { return now })
	for range 1000 {
		lines.Log(&summary.Exchange{Status: 401})
		lines.Log(&summary.Exchange{Status: 200, Subscription: "partner", Admitted: true})
	}
	require.Equal(t, 1050, seen.FilterMessage("request").Len())
	now = now.Add(time.Second)
	lines.Log(&summary.Exchange{Status: 401})
	more := seen.FilterMessage("more requests without a known subscription").All()
	require.Len(t, more, 1)
	require.EqualValues(t, 950, more[0].ContextMap()["more"])
	require.Equal(t, 1051, seen.FilterMessage("request").Len())
}

// So does a flood of a partner beyond its rate, with a key that was suspended, or to an operation that
// it may not call. It takes no lines from others.
func TestAFloodOfRefusedRequestsIsCounted(t *testing.T) {
	t.Parallel()
	core, seen := observer.New(zap.InfoLevel)
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	lines := logging.NewRequests(zap.New(core), func() time.Time { return now })
	for range 1000 {
		lines.Log(&summary.Exchange{Status: 429, Subscription: "fast"})
		lines.Log(&summary.Exchange{Status: 401, Subscription: "suspended"})
		lines.Log(&summary.Exchange{Status: 403, Subscription: "not granted"})
		lines.Log(&summary.Exchange{Status: 429, Subscription: "waits", Admitted: true})
		lines.Log(&summary.Exchange{Status: 400, Subscription: "fast", Admitted: true})
	}
	lines.Log(&summary.Exchange{Status: 429, Subscription: "other"})
	require.Equal(t, 1201, seen.FilterMessage("request").Len())
	now = now.Add(time.Second)
	lines.Log(&summary.Exchange{Status: 429, Subscription: "other"})
	more := seen.FilterMessage("more refused requests of a subscription").All()
	require.Len(t, more, 4)
	for i, name := range []string{"fast", "not granted", "suspended", "waits"} {
		require.Equal(t, name, more[i].ContextMap()["subscription"])
		require.EqualValues(t, 950, more[i].ContextMap()["more"])
	}
	require.Equal(t, 1202, seen.FilterMessage("request").Len())
}
