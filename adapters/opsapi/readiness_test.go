package opsapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/opsapi"
	"bankingapi/application/store"
	"bankingapi/application/summary"
	"bankingapi/domain/fault"
	"bankingapi/test/kit/golden"
)

// checked is the handler of a service with these checks.
func checked(now func() time.Time, checks ...opsapi.Check) (http.Handler, *opsapi.Readiness) {
	r := opsapi.NewReadiness(now, func(string, []string, error) {}, checks...)
	return opsapi.New(opsapi.Options{Readiness: r}), r
}

func passes(context.Context) ([]summary.Warning, error) { return nil, nil }

func fails(err error) func(context.Context) ([]summary.Warning, error) {
	return func(context.Context) ([]summary.Warning, error) { return nil, err }
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	schema := fault.New(fault.Unavailable, "The schema is too old: version 3, this program needs 4. Run `bankingapi migrate up`, or set storage.migrate.")
	native := errors.New("failed to connect to user=bank password=hunter2 host=10.0.0.7")
	for _, test := range []struct {
		file   string
		checks []opsapi.Check
		drain  bool
		status int
	}{
		{"ready.txt", []opsapi.Check{{"database", passes}, {"schema", passes}}, false, 200},
		{"schema.txt", []opsapi.Check{{"database", passes}, {"schema", fails(schema)}}, false, 503},
		{"secret.txt", []opsapi.Check{
			{"database", fails(fault.Wrap(fault.Unavailable, native, "The storage cannot be reached."))},
			{"schema", fails(native)},
			{"panics", func(context.Context) ([]summary.Warning, error) { panic(native) }},
		}, false, 503},
		{"stopping.txt", []opsapi.Check{{"database", passes}}, true, 503},
	} {
		h, r := checked(time.Now, test.checks...)
		if test.drain {
			r.Drain()
		}
		verbose := get(t, h, "/readyz?verbose")
		require.Equal(t, test.status, verbose.Code)
		require.Equal(t, "text/plain; charset=utf-8", verbose.Header().Get("Content-Type"))
		golden.Equal(t, test.file, verbose.Body.String())

		short := get(t, h, "/readyz")
		require.Equal(t, test.status, short.Code)
		if test.status == http.StatusOK {
			require.Equal(t, "ok\n", short.Body.String())
		} else {
			require.Equal(t, verbose.Body.String(), short.Body.String(), "who is not ready says why")
		}
		require.Equal(t, test.status, get(t, h, "/healthz").Code)
	}
}

func TestDrainingShowsAtOnce(t *testing.T) {
	t.Parallel()
	h, r := checked(time.Now)
	require.Equal(t, http.StatusOK, get(t, h, "/readyz").Code)
	r.Drain()
	require.Equal(t, http.StatusServiceUnavailable, get(t, h, "/readyz").Code)
	r.Drain()
	require.Equal(t, http.StatusServiceUnavailable, get(t, h, "/readyz").Code)
}

func TestAFloodOfProbesIsOneLookASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		h, _ := checked(time.Now, opsapi.Check{"database", func(context.Context) ([]summary.Warning, error) {
			looks.Add(1)
			time.Sleep(100 * time.Millisecond)
			return nil, nil
		}})
		flood := func() {
			var all sync.WaitGroup
			for range 1000 {
				all.Go(func() { require.Equal(t, http.StatusOK, get(t, h, "/readyz").Code) })
			}
			all.Wait()
		}
		flood()
		flood()
		require.EqualValues(t, 1, looks.Load())
		time.Sleep(time.Second)
		flood()
		require.EqualValues(t, 2, looks.Load())
	})
}

func TestAClockThatStepsBackIsNoExcuse(t *testing.T) {
	t.Parallel()
	now, looks := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 0
	h, _ := checked(func() time.Time { return now }, opsapi.Check{"database", func(context.Context) ([]summary.Warning, error) {
		looks++
		return nil, nil
	}})
	get(t, h, "/readyz")
	now = now.Add(-time.Hour)
	get(t, h, "/readyz")
	require.Equal(t, 2, looks)
}

// TestACheckThatHangs: the answer comes after two seconds, the other checks are
// told as they are, and the check is not called again before it has returned.
func TestACheckThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan error)
		var calls atomic.Int32
		var changes []string
		h := opsapi.New(opsapi.Options{Readiness: opsapi.NewReadiness(time.Now,
			func(check string, _ []string, err error) {
				changes = append(changes, fmt.Sprintf("%s: %v", check, err))
			},
			opsapi.Check{"database", func(context.Context) ([]summary.Warning, error) {
				calls.Add(1)
				return nil, <-release
			}}, opsapi.Check{"schema", passes})})
		for range 5 {
			start := time.Now()
			answer := get(t, h, "/readyz")
			require.Equal(t, 2*time.Second, time.Since(start))
			require.Equal(t, http.StatusServiceUnavailable, answer.Code)
			require.Equal(t, "[-]database failed: No answer within 2s.\n[+]schema ok\n[+]shutdown ok\nreadyz check failed\n", answer.Body.String())
			time.Sleep(2 * time.Second)
		}
		require.EqualValues(t, 1, calls.Load())
		require.Len(t, changes, 1)

		close(release)
		synctest.Wait()
		require.Equal(t, http.StatusOK, get(t, h, "/readyz").Code)
		require.EqualValues(t, 2, calls.Load())
		require.Len(t, changes, 2)
		require.Equal(t, "database: <nil>", changes[1])
	})
}

// A check that was slow once fails one request, not the next one much later too.
func TestOneSlowCheckFailsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := true
		h, _ := checked(time.Now, opsapi.Check{"database", func(ctx context.Context) ([]summary.Warning, error) {
			if !slow {
				return nil, nil
			}
			slow = false
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		require.Equal(t, http.StatusServiceUnavailable, get(t, h, "/readyz").Code)
		time.Sleep(time.Minute)
		require.Equal(t, http.StatusOK, get(t, h, "/readyz").Code)
	})
}

func TestACheckThatHeedsItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, _ := checked(time.Now, opsapi.Check{"database", func(ctx context.Context) ([]summary.Warning, error) {
			<-ctx.Done()
			return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "The storage cannot be reached.")
		}})
		answer := get(t, h, "/readyz")
		require.Equal(t, http.StatusServiceUnavailable, answer.Code)
		require.Contains(t, answer.Body.String(), "[-]database failed: No answer within 2s.\n")
		synctest.Wait()
	})
}

func TestACallerThatLeavesDoesNotFailTheOthers(t *testing.T) {
	t.Parallel()
	h, _ := checked(time.Now, opsapi.Check{"database", func(ctx context.Context) ([]summary.Warning, error) { return nil, ctx.Err() }})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	ask(t, h, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
	require.Equal(t, http.StatusOK, get(t, h, "/readyz").Code)
}

// TestChangesAreTold: when a check begins to fail and when it passes again, not
// for every probe; with the whole error, for the log.
func TestChangesAreTold(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	gone := fault.Wrap(fault.Unavailable, errors.New("connection refused"), "The storage cannot be reached.")
	var state error
	var changes []error
	h := opsapi.New(opsapi.Options{Readiness: opsapi.NewReadiness(func() time.Time { return now },
		func(_ string, _ []string, err error) { changes = append(changes, err) },
		opsapi.Check{"database", func(context.Context) ([]summary.Warning, error) { return nil, state }})})
	for _, state = range []error{nil, nil, gone, gone, nil, gone} {
		get(t, h, "/readyz")
		now = now.Add(time.Second)
	}
	require.Equal(t, []error{gone, nil, gone}, changes)
}

// TestWarningsDoNotStopTheService: a risk is told, and the service is ready.
func TestWarningsDoNotStopTheService(t *testing.T) {
	t.Parallel()
	var told []string
	r := opsapi.NewReadiness(time.Now, func(check string, _ []string, _ error) { told = append(told, check) },
		opsapi.Check{"database", passes},
		opsapi.Check{"durability", func(context.Context) ([]summary.Warning, error) {
			return []summary.Warning{{Text: "There are no checksums.", CanWait: true}, {Text: "There is no standby."}}, nil
		}})
	h := opsapi.New(opsapi.Options{Readiness: r})
	verbose := get(t, h, "/readyz?verbose")
	require.Equal(t, http.StatusOK, verbose.Code)
	require.Equal(t, "[+]database ok\n[!]durability warning: There are no checksums.\n[!]durability warning: There is no standby.\n"+
		"[+]shutdown ok\nreadyz check passed\n", verbose.Body.String())
	require.Equal(t, "ok\n", get(t, h, "/readyz").Body.String())
	require.Equal(t, []summary.Check{
		{Name: "database"}, {Name: "durability", Warnings: []summary.Warning{{Text: "There are no checksums.", CanWait: true}, {Text: "There is no standby."}}},
	}, r.Results())
	require.NoError(t, r.Require(t.Context()))
	require.Empty(t, told)
}

// A check that passes again with a warning does not fail.
func TestAWarningAfterAFailure(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	gone := errors.New("connection refused")
	state := gone
	var told []string
	r := opsapi.NewReadiness(func() time.Time { return now },
		func(check string, warnings []string, err error) {
			told = append(told, fmt.Sprint(check, warnings, err))
		},
		opsapi.Check{"durability", func(context.Context) ([]summary.Warning, error) {
			if state != nil {
				return nil, state
			}
			return []summary.Warning{{Text: "There is no standby."}}, nil
		}})
	for _, state = range []error{gone, nil, nil} {
		r.Results()
		now = now.Add(time.Second)
	}
	require.Equal(t, []string{"durability[] connection refused", "durability[There is no standby.] <nil>"}, told)
}

// TestRequireAsksNow: it returns the first error as it is, and stops with the
// service.
func TestRequireAsksNow(t *testing.T) {
	t.Parallel()
	gone := errors.New("connection refused")
	state := error(nil)
	_, r := checked(time.Now, opsapi.Check{"database", func(context.Context) ([]summary.Warning, error) { return nil, state }}, opsapi.Check{"schema", passes})
	require.NoError(t, r.Require(t.Context()))
	state = gone
	require.Equal(t, gone, r.Require(t.Context()))
	state = nil
	r.Drain()
	require.ErrorContains(t, r.Require(t.Context()), "The service is stopping.")
}

// A check that the storage did not answer has no result of its own.
func TestACheckSaysThatTheStorageDidNotAnswer(t *testing.T) {
	t.Parallel()
	lost := fault.Wrap(fault.Unavailable, errors.New("connection refused"), "The storage cannot be reached.")
	own := fault.New(fault.Unavailable, "The clock of this machine is 90s behind.")
	for want, err := range map[bool]error{true: lost, false: own} {
		r := opsapi.NewReadiness(time.Now, func(string, []string, error) {}, opsapi.Check{"clock", func(context.Context) ([]summary.Warning, error) { return nil, err }})
		require.Equal(t, want, r.Results()[0].OfStorage, err)
	}
}

// A storage with the mark of another use answers: readiness says which mark.
func TestReadinessNamesAMark(t *testing.T) {
	t.Parallel()
	s := &store.Store{Ping: func(context.Context) error {
		return fault.Wrap(fault.Unavailable, store.MarkError(store.CopiedMark), "The service does not use this database: it is")
	}}
	r := opsapi.NewReadiness(time.Now, func(string, []string, error) {}, opsapi.StorageChecks(s, false)[0])
	require.Equal(t, "The service does not use this database: it is a book whose copy is used instead", r.Results()[0].Problem)
	require.False(t, r.Results()[0].OfStorage)
}
