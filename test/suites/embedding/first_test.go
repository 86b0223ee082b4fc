package embedding_test

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/addpush"
	"bankingapi/application/buyfund"
	"bankingapi/bootstrap"
	"bankingapi/test/kit/testdb"
)

// firstSurface uses every exported name that bootstrap had when the first hosts
// were written against it, as they may use it. It need not run: a host of that
// time must go on compiling.
//
//nolint:ineffassign,staticcheck,wastedassign // it only compiles
func firstSurface(ctx context.Context, app *bootstrap.App, engine *storage.Engine, tx *sql.Tx) {
	var err error
	var lines, rows int64
	var texts []string
	var _ fx.Option = bootstrap.Module(bootstrap.DefaultSettings(), nil)
	var document []byte = bootstrap.OpenAPI()
	texts = bootstrap.OperationNames()
	var version int64 = bootstrap.SchemaVersion()
	text, near := bootstrap.Suggest("http.adress")
	app, err = bootstrap.Open(ctx, bootstrap.Settings{}, bootstrap.Options(
		bootstrap.WithClock(time.Now), bootstrap.WithDatabase(engine), bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open),
		bootstrap.WithLogger(zap.NewNop()), bootstrap.WithRegistry(prometheus.NewRegistry()), bootstrap.WithTablePrefix("p_"),
		bootstrap.WithVersion("1", "abc")))
	var _ *addpush.Adder = app.Adder()
	var _ *buyfund.Buyer = app.Buyer()
	var _ http.Handler = app.Handler()
	var _ <-chan error = app.Failed()
	err = app.Start(ctx)
	err = app.Ready(ctx)
	err = app.Close(ctx)
	text = app.URL()
	var subscription = bootstrap.Subscription{
		Name: "n", State: "active", Operations: []string{"BuyFundFromCustomer"}, RequestsPerSecond: 1, AppKey: "k", Channel: "c", TellerName: "t",
	}
	text, text, err = app.CreateSubscription(ctx, subscription)
	text, err = app.RegenerateKey(ctx, "n", "primary")
	err = app.SetSubscriptionState(ctx, "n", "suspended")
	var all []bootstrap.Subscription
	all, err = app.Subscriptions(ctx)
	text, text, texts = all[0].Name, all[0].State, all[0].Operations
	filter := bootstrap.ExportFilter{Customer: 1, User: "u", Since: time.Time{}, Until: time.Time{}, State: 2}
	err = app.Export(ctx, "sales", "csv", filter, io.Discard, func(n int64) { rows = n })
	lines, err = app.Import(ctx, "prices", nil, bootstrap.ImportWatch{
		Progress: func(n int64) { lines = n },
		Fault:    func(f bootstrap.LineFault) { lines, text, text = f.Line, f.Column, f.Rule },
	})
	demo, err := app.LoadDemo(ctx)
	text, texts = demo.Key, demo.Commands("https://127.0.0.1")
	var settled bootstrap.Settlement
	settled, err = app.Settle(ctx)
	var proof bootstrap.Proof
	proof, err = app.Verify(ctx, bootstrap.VerifyWatch{Progress: func(n int64) { rows = n }, Finding: func(found string) { text = found }})
	rows = proof.Holdings + proof.Accounts + proof.Sales + proof.Postings + proof.Findings
	_, _, err = app.Within(tx)

	var loaded bootstrap.Loaded
	loaded, err = bootstrap.Load(bootstrap.Sources{File: "f", Environment: texts, Flags: map[string]string{"http.address": ":1"}})
	var values []bootstrap.Value = loaded.Values()
	text, text = values[0].Text, values[0].Origin
	var settings bootstrap.Settings = loaded.Settings
	settings.HTTP = bootstrap.HTTPSettings{Address: "a", BodyLimit: bootstrap.Size(1), ParametersLimit: 1, ReadTimeout: 1, WriteTimeout: 1, IdleTimeout: 1, HeaderTimeout: 1, Docs: true}
	settings.TLS = bootstrap.TLSSettings{Mode: bootstrap.TLSFiles, CertFile: "c", KeyFile: "k"}
	settings.Storage = bootstrap.StorageSettings{Driver: bootstrap.Postgres, DSN: bootstrap.Secret("s"), Migrate: true, MaxConnections: 1, StatementTimeout: 1}
	settings.Commit = bootstrap.CommitSettings{BatchLimit: 1, QueueLimit: 1}
	settings.Bank = bootstrap.BankSettings{TimeZone: "UTC"}
	settings.Settlement = bootstrap.SettlementSettings{Enabled: true, Interval: 1}
	settings.Ops = bootstrap.OpsSettings{Address: "a"}
	settings.Log = bootstrap.LogSettings{Level: "info", Format: bootstrap.LogJSON}
	settings.Telemetry = bootstrap.TelemetrySettings{OTLPEndpoint: "e"}
	settings.Shutdown = bootstrap.ShutdownSettings{Delay: 1, Timeout: 1}
	for _, mode := range []string{bootstrap.TLSSelfSigned, bootstrap.TLSOff, bootstrap.TLSProxy, bootstrap.LogAuto, bootstrap.LogConsole} {
		settings.TLS.Mode = mode
	}
	err = settings.Validate()
	if problems, ok := err.(bootstrap.Problems); ok {
		var problem bootstrap.Problem = problems[0]
		text, text, text = problem.Path, problem.Rule, problem.Origin
	}
	_, err = settings.Bank.Location()
	_, _, err = settings.Bank.Day("2026-11-20")
	for _, setting := range bootstrap.AllSettings() {
		text, text, text, text = setting.Path, setting.Form, setting.Usage, setting.Default()+setting.Variable()
		near = setting.IsSecret() || setting.IsSwitch()
	}
	var applied []bootstrap.Migration
	applied, err = bootstrap.MigrateUp(ctx, settings)
	applied[0], err = bootstrap.MigrateDown(ctx, settings)
	var schema bootstrap.Schema
	schema, err = bootstrap.SchemaStatus(ctx, settings)
	version = schema.Version + schema.Wanted + schema.Migrations[0].Version
	_, _, _, _, _, _, _, _, _ = err, lines, rows, text, texts, near, document, version, settled
}

// The doors of that time for people work: subscriptions, import, export, verify
// and settle.
func TestFirstSurfaceWorks(t *testing.T) {
	t.Parallel()
	_ = firstSurface
	settings := bootstrap.DefaultSettings()
	settings.Storage.DSN, settings.Settlement.Enabled = bootstrap.Secret(testdb.SQLite(t)), false
	app := opened(t, settings, bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open), quiet)

	wanted := bootstrap.Subscription{Name: "n", Operations: []string{"BuyFundFromCustomer"}, RequestsPerSecond: 5, AppKey: "k", Channel: "c", TellerName: "t"}
	primary, secondary, err := app.CreateSubscription(t.Context(), wanted)
	require.NoError(t, err)
	require.NotEqual(t, primary, secondary)
	_, _, err = app.CreateSubscription(t.Context(), bootstrap.Subscription{Name: "m", Operations: []string{"Nonsense"}})
	require.EqualError(t, err, `there is no operation "Nonsense"`)
	renewed, err := app.RegenerateKey(t.Context(), "n", "secondary")
	require.NoError(t, err)
	require.NotEqual(t, secondary, renewed)
	require.NoError(t, app.SetSubscriptionState(t.Context(), "n", "suspended"))
	_, err = app.RegenerateKey(t.Context(), "nobody", "primary")
	require.EqualError(t, err, `subscription "nobody": there is no subscription with this name`)
	all, err := app.Subscriptions(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	got := bootstrap.Subscription{Name: all[0].Name, State: all[0].State, Operations: all[0].Operations,
		RequestsPerSecond: all[0].RequestsPerSecond, AppKey: all[0].AppKey, Channel: all[0].Channel, TellerName: all[0].TellerName}
	wanted.State = "suspended"
	require.Equal(t, wanted, got)

	loadBook(t, app)
	settled, err := app.Settle(t.Context())
	require.NoError(t, err)
	require.Zero(t, settled)
	require.EqualError(t, app.Export(t.Context(), "sales", "csv", bootstrap.ExportFilter{State: 3}, io.Discard, nil),
		"there is no state 3: it is 1 (recorded), 2 (completed) or 8 (failed)")
	proof, err := app.Verify(t.Context(), bootstrap.VerifyWatch{})
	require.NoError(t, err)
	require.Zero(t, proof.Findings)
}
