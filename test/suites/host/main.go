// Command host embeds the service by its three doors, one after the other, and
// ends with 0 when all of them worked. `make check` runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/httpapi/client"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/bootstrap"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
)

func main() {
	folder, err := os.MkdirTemp("", "host")
	if err == nil {
		err = errors.Join(useCase(), service(folder), module(folder), os.RemoveAll(folder))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("all three doors work")
}

// useCase is door one: a use case on ports of the host's own. Here they are
// the in-memory ones that the service's tests use.
func useCase() error {
	buyer, err := buyfund.New(fake.NewStore().Books(nil), buyfund.Options{
		ParametersLimit: 100,
		Commit:          commit.Limits{Batch: 100, Queue: 1000, Timeout: 5 * time.Second},
		Now:             func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) },
		NewID:           func() operation.ID { return operation.ID(uuid.Must(uuid.NewV7())) },
	})
	if err != nil {
		return err
	}
	defer buyer.Close(context.Background())
	outcome, err := buyer.Buy(context.Background(), &subscription.Subscription{Name: "host"}, operation.Header{}, []fund.SaleFields{{
		CustomerNo:         decimal.Int(1001),
		TransactionType:    decimal.Int(2),
		FundAmount:         decimal.Int(5),
		DestinationAccount: &fund.AccountFields{BranchCode: decimal.Int(1), CustomerNo: decimal.Int(1001), AccountSuffix: decimal.Int(1), CurrencyCode: "TRY"},
		FundToProcess:      &fund.FundFields{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", PriceID: decimal.Int(1)},
	}})
	if err != nil {
		return err
	}
	if outcome.State != operation.Failed { // the book is empty
		return fmt.Errorf("door one: state %v", outcome.State)
	}
	return nil
}

// post sends a notification to a handler that is mounted under a prefix.
func post(ctx context.Context, h http.Handler, key string) error {
	server := httptest.NewServer(http.StripPrefix("/bank", h))
	defer server.Close()
	bank, err := client.New(server.URL+"/bank", key, client.Options{})
	if err != nil {
		return err
	}
	_, err = bank.AddPush(ctx, client.NewAddPush(push.Restore(push.Values{
		ExternalApplicationCode: "HOST", UserID: "u", PushID: "p", Platform: push.Android,
	})))
	return err
}

// service is door two: the whole service as a handler of the host's server.
func service(folder string) error {
	ctx := context.Background()
	app, err := bootstrap.Open(ctx, settings(folder, "two"), options())
	if err != nil {
		return err
	}
	key, err := subscribe(ctx, app)
	if err == nil {
		err = post(ctx, app.Handler(), key)
	}
	return errors.Join(err, app.Close(ctx))
}

// subscribe makes a caller of the API and returns its key.
func subscribe(ctx context.Context, app *bootstrap.App) (string, error) {
	manager, err := app.Manager(ctx)
	if err != nil {
		return "", err
	}
	key, _, err := manager.Create(ctx, subscription.Subscription{Name: "host"})
	return key.Reveal(), err
}

// module is door three: the service inside the host's fx application.
func module(folder string) error {
	var app *bootstrap.App
	host := fx.New(fx.NopLogger, bootstrap.Module(settings(folder, "three"), options()), fx.Populate(&app))
	ctx := context.Background()
	if err := host.Start(ctx); err != nil {
		return err
	}
	key, err := subscribe(ctx, app)
	if err == nil {
		err = post(ctx, app.Handler(), key)
	}
	return errors.Join(err, host.Stop(ctx))
}

func settings(folder, name string) bootstrap.Settings {
	s := bootstrap.DefaultSettings()
	s.Storage.DSN = bootstrap.Secret(filepath.Join(folder, name, "bank.db"))
	return s
}

func options() bootstrap.Option {
	return bootstrap.Options(bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open), bootstrap.WithLogger(zap.NewNop()))
}
