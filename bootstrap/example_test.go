package bootstrap_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/storage/sqlite"
	"bankingapi/bootstrap"
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
	key, _, _ := app.CreateSubscription(ctx, bootstrap.Subscription{Name: "partner"})

	host := http.NewServeMux()
	host.Handle("/bank/", http.StripPrefix("/bank", app.Handler()))

	request := httptest.NewRequest(http.MethodPost, "/bank/BankingApiV01/AddPushNotificationResponse",
		strings.NewReader(`{"Header":{},"Parameters":[{"ExternalApplicationCode":"APP","UserId":"u","PushId":"p","Platform":65,"SendStatus":1}]}`))
	request.Header.Set("Ocp-Apim-Subscription-Key", key)
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
