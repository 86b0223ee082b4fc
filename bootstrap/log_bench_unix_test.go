//go:build unix

package bootstrap_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/logging"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/bootstrap"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/payload"
)

// BenchmarkLogOfAPush compares the processor time of a push through the service with
// three logs: the log of this program, the JSON encoder and the buffer of zap as they
// are, and none. The rounds of the three alternate, so that a busy machine slows all
// of them. share-% is the part of a push that the log takes.
//
// Code of our own for the log is worth keeping only if it saves more than 3 % of a push.
func BenchmarkLogOfAPush(b *testing.B) {
	to, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(b, err)
	defer to.Close()
	ours, _, err := logging.New(logging.Options{Level: "info", Format: "json", Writer: to, Now: clock.Now})
	require.NoError(b, err)
	buffer := &zapcore.BufferedWriteSyncer{WS: to, FlushInterval: 100 * time.Millisecond}
	defer func() { _ = buffer.Stop() }()
	encoder := zap.NewProductionEncoderConfig()
	encoder.EncodeTime = zapcore.ISO8601TimeEncoder
	plain := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoder), buffer, zap.InfoLevel))

	logs := []struct {
		name   string
		logger *zap.Logger
		pushes pushes
		spent  time.Duration
	}{{name: "none", logger: zap.NewNop()}, {name: "ours", logger: ours}, {name: "zap", logger: plain}}
	for i := range logs {
		logs[i].pushes = openForPushes(b, logs[i].logger)
	}
	const round = 512
	count := 0
	for b.Loop() {
		for i := range logs {
			before := processorTime(b)
			logs[i].pushes.send(b, count, round)
			logs[i].spent += processorTime(b) - before
		}
		count += round
	}
	without := logs[0].spent
	for _, each := range logs {
		b.ReportMetric(float64(each.spent.Microseconds())/float64(count), each.name+"-µs/push")
		b.ReportMetric(100*float64(each.spent-without)/float64(without), each.name+"-share-%")
	}
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// pushes send messages to a service.
type pushes struct {
	handler http.Handler
	key     string
}

func openForPushes(b *testing.B, logger *zap.Logger) pushes {
	settings := bootstrap.DefaultSettings()
	settings.Storage.DSN = bootstrap.Secret(filepath.Join(b.TempDir(), "bank.db"))
	app, err := bootstrap.Open(b.Context(), settings, bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open), bootstrap.WithLogger(logger))
	require.NoError(b, err)
	b.Cleanup(func() { _ = app.Close(b.Context()) })
	manager, err := app.Manager(b.Context())
	require.NoError(b, err)
	key, _, err := manager.Create(b.Context(), subscription.Subscription{Name: "partner"})
	require.NoError(b, err)
	return pushes{app.Handler(), key.Reveal()}
}

// send sends count messages from 32 callers.
func (p pushes) send(b *testing.B, first, count int) {
	const callers = 32
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := c; i < count; i += callers {
				body := payload.Request(payload.CallerID(fmt.Sprint("push-", first+i)), payload.Push("APP", "user", fmt.Sprint(first+i)))
				request := httptest.NewRequest(http.MethodPost, "/BankingApiV01/AddPushNotificationResponse", strings.NewReader(body))
				request.Header.Set("Ocp-Apim-Subscription-Key", p.key)
				answer := httptest.NewRecorder()
				p.handler.ServeHTTP(answer, request)
				if answer.Code != http.StatusOK {
					b.Error(answer.Body)
				}
			}
		})
	}
	all.Wait()
}
