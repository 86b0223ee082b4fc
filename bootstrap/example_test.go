package bootstrap_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/strictjson"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/bootstrap"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// The whole service as a handler, mounted under a prefix of the host's server.
func ExampleOpen() {
	folder, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(folder)
	ctx := context.Background()
	settings := bootstrap.DefaultSettings()
	settings.Storage.DSN = bootstrap.Secret(filepath.Join(folder, "bank.db"))
	app, err := bootstrap.Open(ctx, settings,
		bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open),
		bootstrap.WithLogger(zap.NewNop()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer app.Close(ctx)
	manager, err := app.Manager(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	key, _, _ := manager.Create(ctx, subscription.Subscription{Name: "partner"})

	host := http.NewServeMux()
	host.Handle("/bank/", http.StripPrefix("/bank", app.Handler()))

	request := httptest.NewRequest(http.MethodPost, "/bank/BankingApiV01/AddPushNotificationResponse",
		strings.NewReader(`{"Header":{},"Parameters":[{"ExternalApplicationCode":"APP","UserId":"u","PushId":"p","Platform":65,"SendStatus":1}]}`))
	request.Header.Set("Ocp-Apim-Subscription-Key", key.Reveal())
	answer := httptest.NewRecorder()
	host.ServeHTTP(answer, request)
	fmt.Println(answer.Code, answer.Body)
	// Output: 200 {"Data":{"State":2}}
}

// The service inside a host's fx application.
func ExampleModule() {
	folder, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(folder)
	settings := bootstrap.DefaultSettings()
	settings.Storage.DSN = bootstrap.Secret(filepath.Join(folder, "bank.db"))
	host := fx.New(
		fx.NopLogger,
		bootstrap.Module(settings, bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open), bootstrap.WithLogger(zap.NewNop())),
		fx.Invoke(func(lc fx.Lifecycle, app *bootstrap.App) {
			lc.Append(fx.StartHook(func(ctx context.Context) error {
				fmt.Println("ready:", app.Ready(ctx) == nil)
				return nil
			}))
		}),
	)
	ctx := context.Background()
	if err := host.Start(ctx); err != nil {
		fmt.Println(err)
	}
	if err := host.Stop(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: ready: true
}

// A host's own operation beside those of the bank. It has their callers, limits,
// error body, metrics and log lines.
func ExampleWithOperation() {
	folder, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(folder)
	ctx := context.Background()
	type consent struct{ UserID string }
	recordConsent := httpapi.Operation[consent]{
		Name: "RecordConsent",
		Members: []strictjson.Member[consent]{
			strictjson.Text("UserId", func(c *consent) *string { return &c.UserID }),
		},
		Do: func(_ context.Context, caller *subscription.Subscription, header operation.Header, consents []consent) (operation.Outcome, error) {
			// What ours check: all faults at once, then the values defined for the caller.
			if faults := slices.Concat(header.Faults(), caller.Missing(header), operation.CountFaults(len(consents), 10)); len(faults) > 0 {
				return operation.Outcome{}, fault.New(fault.Invalid, "The request breaks a rule.", faults...)
			}
			header, err := caller.Complete(header)
			if err != nil {
				return operation.Outcome{}, err
			}
			fmt.Println(caller.Name, "records", len(consents), "consent in", header.Channel)
			return operation.Outcome{State: operation.Completed}, nil
		},
	}
	settings := bootstrap.DefaultSettings()
	settings.Storage.DSN = bootstrap.Secret(filepath.Join(folder, "bank.db"))
	app, err := bootstrap.Open(ctx, settings,
		bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open),
		bootstrap.WithLogger(zap.NewNop()),
		bootstrap.WithOperation(recordConsent))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer app.Close(ctx)
	manager, err := app.Manager(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	key, _, _ := manager.Create(ctx, subscription.Subscription{Name: "partner", Channel: "branches"})

	request := httptest.NewRequest(http.MethodPost, httpapi.Path("RecordConsent"),
		strings.NewReader(`{"Header":{},"Parameters":[{"UserId":"u"}]}`))
	request.Header.Set("Ocp-Apim-Subscription-Key", key.Reveal())
	answer := httptest.NewRecorder()
	app.Handler().ServeHTTP(answer, request)
	fmt.Println(answer.Code, answer.Body)
	// Output:
	// partner records 1 consent in branches
	// 200 {"Data":{"State":2}}
}
