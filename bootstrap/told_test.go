package bootstrap_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"bankingapi/adapters/httpapi/certificate"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/adapters/trail"
	"bankingapi/application/store"
	"bankingapi/bootstrap"
	"bankingapi/domain/fault"
)

// Only a database that keeps no key beside the book is told that it has none. A file that does
// not exist is not made.
func TestInspect(t *testing.T) {
	t.Parallel()
	m := newMemory(func(s *store.Store) {
		s.Risks = func(context.Context) ([]store.Risk, error) { return []store.Risk{{Detail: "no checksums"}}, nil }
	})
	drivers := bootstrap.Options(quiet,
		bootstrap.WithDriver("memory", func(context.Context, store.Options) (*store.Store, error) { return m.ports, nil }),
		bootstrap.WithDriver(bootstrap.SQLite, func(context.Context, store.Options) (*store.Store, error) {
			return nil, errors.New("opened")
		}))
	inspect := func(driver string, change func(*bootstrap.Settings)) bootstrap.Inspection {
		t.Helper()
		settings := bootstrap.DefaultSettings()
		settings.Storage.Driver = driver
		change(&settings)
		found, err := bootstrap.Inspect(t.Context(), settings, drivers)
		require.NoError(t, err)
		return found
	}
	as := func(*bootstrap.Settings) {}
	warnings := func(sentences ...string) bootstrap.Inspection { return bootstrap.Inspection{Warnings: sentences} }
	require.Zero(t, inspect(bootstrap.SQLite, as))
	require.Equal(t, warnings("no checksums"), inspect("memory", as), "this storage can keep no trail")
	ports := m.data.Trail(nil)
	m.ports.Trail = &ports
	require.Equal(t, warnings(trail.NoKey, "no checksums"), inspect("memory", as))
	require.Equal(t, warnings("no checksums"), inspect("memory", func(s *bootstrap.Settings) { s.Trail.Enabled = false }))
	missing := filepath.Join(t.TempDir(), "log.key")
	blocked := inspect("memory", func(s *bootstrap.Settings) { s.Trail.KeyFile = missing })
	require.Len(t, blocked.Blockers, 1)
	require.Contains(t, blocked.Blockers[0], "trail.key_file: stat "+missing)
	m.ports.Ping = func(context.Context) error { return fault.New(fault.Unavailable, "The encoding is wrong.") }
	require.Equal(t, []string{"The encoding is wrong."}, inspect("memory", as).Blockers)
	m.ports.Ping = func(context.Context) error {
		return fault.Wrap(fault.Unavailable, errors.New("SQLSTATE 25006"), "The database is read-only.")
	}
	require.Equal(t, []string{"The database is read-only. SQLSTATE 25006"}, inspect("memory", as).Blockers, "a database that refuses has answered")
	for _, silence := range []error{fault.Wrap(fault.Unavailable, io.EOF, fault.Unreached), context.DeadlineExceeded} {
		m.ports.Ping = func(context.Context) error { return silence }
		settings := bootstrap.DefaultSettings()
		settings.Storage.Driver = "memory"
		found, err := bootstrap.Inspect(t.Context(), settings, drivers)
		require.ErrorIs(t, err, silence)
		require.Empty(t, found.Blockers)
	}
	m.ports.Ping = func(context.Context) error { return nil }
	folder := t.TempDir()
	require.Equal(t, []string{"opened"}, inspect(bootstrap.SQLite, func(s *bootstrap.Settings) { s.Storage.DSN = bootstrap.Secret(folder) }).Blockers,
		"a file that cannot be opened keeps the service from starting")
	empty := filepath.Join(folder, "empty.db")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	require.Zero(t, inspect(bootstrap.SQLite, func(s *bootstrap.Settings) { s.Storage.DSN = bootstrap.Secret(empty) }), "the service makes its book")
	ofTLS := func(made time.Time) func(*bootstrap.Settings) {
		folder := t.TempDir()
		files := certificate.Files{CertFile: filepath.Join(folder, "tls.crt"), KeyFile: filepath.Join(folder, "tls.key"), Now: func() time.Time { return made }}
		require.NoError(t, files.EnsureSelfSigned())
		return func(s *bootstrap.Settings) {
			s.TLS.Mode, s.TLS.CertFile, s.TLS.KeyFile, s.Trail.Enabled = bootstrap.TLSFiles, files.CertFile, files.KeyFile, false
		}
	}
	require.Contains(t, inspect("memory", ofTLS(time.Now().AddDate(-3, 0, 0))).Warnings[0], "is over since")
	require.Regexp(t, `^The TLS certificate ends on .*, in \d+ days\.$`, inspect("memory", ofTLS(time.Now().AddDate(0, 0, -390))).Warnings[0])
	require.Equal(t, warnings("no checksums"), inspect("memory", ofTLS(time.Now())))
	schema := m.ports.Schema
	m.ports.Schema = &lateSchema{failures: 1}
	require.Equal(t, []string{"The schema is too old."}, inspect("memory", as).Blockers, "nothing will migrate it")
	require.Empty(t, inspect("memory", func(s *bootstrap.Settings) { s.Storage.Migrate = true }).Blockers, "the service migrates it")
	m.ports.MigrateAtStart = true
	require.Empty(t, inspect("memory", as).Blockers, "the service migrates it")
	m.ports.Schema = &lateSchema{failures: 1, status: store.Status{Version: 2, Wanted: 1}}
	require.Equal(t, []string{"The schema is too old."}, inspect("memory", as).Blockers, "no migration leads to an older version")
	m.ports.Schema, m.ports.MigrateAtStart = schema, false
	m.ports.Clock = func(context.Context) (theirs, newest time.Time, err error) {
		return time.Now().Add(time.Hour), time.Time{}, nil
	}
	blocked = inspect("memory", as)
	require.Len(t, blocked.Blockers, 1)
	require.Contains(t, blocked.Blockers[0], "behind the clock of the database")
	allowed := inspect("memory", func(s *bootstrap.Settings) { s.Storage.AllowUnsafe = true })
	require.Empty(t, allowed.Blockers)
	require.Contains(t, allowed.Warnings[0], "behind the clock of the database")
}

// The commands of a guide name the certificate that the service made, and no other.
func TestTheGuideNamesTheCertificate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for mode, want := range map[string]string{bootstrap.TLSSelfSigned: filepath.Join(folder, "tls.crt"), bootstrap.TLSOff: ""} {
		app := newMemory(func(s *store.Store) { s.DataFolder = folder }).open(t, func(s *bootstrap.Settings) {
			s.TLS.Mode, s.HTTP.Address, s.Ops.Address = mode, "127.0.0.1:0", ""
		})
		demo, err := app.LoadDemo(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, demo.CAFile)
		require.NotEmpty(t, demo.Examples)
	}
}

// Callers refuse an expired certificate, so nobody asks the service what is wrong.
func TestTheLogNamesAnExpiredCertificate(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zapcore.WarnLevel)
	folder, past := t.TempDir(), time.Now().AddDate(-3, 0, 0)
	files := certificate.Files{CertFile: filepath.Join(folder, "tls.crt"), KeyFile: filepath.Join(folder, "tls.key"), Now: func() time.Time { return past }}
	require.NoError(t, files.EnsureSelfSigned())
	app := newMemory(nil).open(t, func(s *bootstrap.Settings) {
		s.TLS.Mode, s.TLS.CertFile, s.TLS.KeyFile, s.HTTP.Address, s.Ops.Address = bootstrap.TLSFiles, files.CertFile, files.KeyFile, "127.0.0.1:0", ""
	}, bootstrap.WithLogger(zap.New(core)))
	require.NoError(t, app.Start(t.Context()))
	require.NoError(t, app.Close(t.Context()))
	told := logged.FilterMessage("callers may refuse the certificate").All()
	require.Len(t, told, 1)
	require.Contains(t, told[0].ContextMap()["reason"], "is over since")
}

// The log names the book as an operator knows it, without secrets.
func TestTheLogNamesTheBook(t *testing.T) {
	t.Parallel()
	file, err := filepath.Abs("book.db")
	require.NoError(t, err)
	for want, of := range map[string]struct{ driver, dsn string }{
		"SQLite file " + file:                           {bootstrap.SQLite, "file:book.db"},
		"Postgres database bank at db.example:5432":     {bootstrap.Postgres, "postgres://u:secret@db.example:5432/bank"},
		"Postgres database host=db.example dbname=bank": {bootstrap.Postgres, "host=db.example user=u password=secret dbname=bank"},
		"storage memory":                                {"memory", "secret"},
		"database of the host":                          {},
	} {
		core, logged := observer.New(zapcore.InfoLevel)
		settings, database := bootstrap.DefaultSettings(), bootstrap.WithDatabase(newMemory(nil).ports.Open)
		settings.Settlement.Enabled, settings.TLS.Mode, settings.HTTP.Address, settings.Ops.Address = false, bootstrap.TLSOff, "127.0.0.1:0", ""
		if of.driver != "" {
			settings.Storage.Driver, settings.Storage.DSN = of.driver, bootstrap.Secret(of.dsn)
			database = bootstrap.WithDriver(of.driver, func(context.Context, store.Options) (*store.Store, error) { return newMemory(nil).ports, nil })
		}
		app, err := bootstrap.Open(t.Context(), settings, database, pages, bootstrap.WithLogger(zap.New(core)))
		require.NoError(t, err)
		require.NoError(t, app.Start(t.Context()))
		require.Equal(t, want, logged.FilterMessage("serving the API").All()[0].ContextMap()["storage"])
		require.NoError(t, app.Close(t.Context()))
	}
}

// The level of a logger of the host is the host's to change.
func TestTheLevelOfTheHostsLogger(t *testing.T) {
	t.Parallel()
	app := newMemory(func(s *store.Store) { s.DataFolder = t.TempDir() }).open(t, func(s *bootstrap.Settings) {
		s.HTTP.Address, s.Ops.Address = "127.0.0.1:0", "127.0.0.1:0"
	})
	require.NoError(t, app.Start(t.Context()))
	require.Equal(t, http.StatusOK, get(t, "http://"+app.OpsAddress()+"/livez"))
	require.Equal(t, http.StatusNotFound, get(t, "http://"+app.OpsAddress()+"/log/level"))
}

// PUT /log/level changes the log of the running service, at each name of ops.hosts.
func TestTheLevelOfTheLogIsChanged(t *testing.T) { //nolint:paralleltest // standard error is replaced
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer file.Close()
	defer func(before *os.File) { os.Stderr = before }(os.Stderr)
	os.Stderr = file
	app := newMemory(nil).openWithLog(t, func(s *bootstrap.Settings) {
		s.HTTP.Address, s.Ops.Address, s.TLS.Mode = "127.0.0.1:0", "127.0.0.1:0", bootstrap.TLSOff
		s.Log.Level, s.Ops.Hosts = "error", "ops.bank.example"
	})
	require.NoError(t, app.Start(t.Context()))
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	send := func(method, host, body string) (status int, answer string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+app.OpsAddress()+"/log/level", strings.NewReader(body))
		require.NoError(t, err)
		r.Host = host
		response, err := client.Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(content)
	}
	status, _ := send(http.MethodPut, "ops.bank.example", `{"level":"info"}`)
	require.Equal(t, http.StatusOK, status)
	status, level := send(http.MethodGet, "ops.bank.example", "")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"level":"info"}`, level)
	status, _ = send(http.MethodGet, "evil.example", "")
	require.Equal(t, http.StatusMisdirectedRequest, status)
	require.NoError(t, app.Close(t.Context()))
	logged, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	require.Contains(t, string(logged), "stopping")
	require.NotContains(t, string(logged), "serving the API", "it was logged before the change")
}

func TestASandboxThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	broken := errors.New("no disk")
	box, err := bootstrap.OpenSandbox(t.Context(), bootstrap.SandboxSettings(t.TempDir()), quiet,
		bootstrap.WithDriver(bootstrap.SQLite, func(context.Context, store.Options) (*store.Store, error) { return nil, broken }))
	require.ErrorIs(t, err, broken)
	require.Nil(t, box)

	folder := t.TempDir()
	box, err = bootstrap.OpenSandbox(t.Context(), bootstrap.SandboxSettings(folder), bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open))
	require.EqualError(t, err, "this program has no sandbox: pass bootstrap.WithSandbox(sandbox.Open)")
	require.Nil(t, box)
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, files)
}
