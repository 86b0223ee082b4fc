// Command memory runs the whole service on a storage adapter of its own, which keeps everything
// in memory. The adapter has a name, and the settings choose it by that name. The program links
// neither gorm nor a database driver. It ends with 0 if everything worked; `make host` runs it.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"go.uber.org/zap"

	"bankingapi/adapters/httpapi/client"
	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/bootstrap"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("the service works on a storage of the host")
}

func run(ctx context.Context) (err error) {
	data := fake.NewStore()
	options := bootstrap.Options(bootstrap.WithDriver("memory", data.Open), bootstrap.WithLogger(zap.NewNop()))
	loaded, err := bootstrap.Load(bootstrap.Sources{Environment: []string{
		"BANKINGAPI_STORAGE__DRIVER=memory",
		"BANKINGAPI_STORAGE__DSN=",
		"BANKINGAPI_HTTP__ADDRESS=127.0.0.1:0",
		"BANKINGAPI_TLS__MODE=off",
		"BANKINGAPI_OPS__ADDRESS=127.0.0.1:0",
	}}, options)
	if err != nil {
		return err
	}
	app, err := bootstrap.Open(ctx, loaded.Settings, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close(ctx)) }()
	if err := app.Start(ctx); err != nil {
		return err
	}
	return errors.Join(importBook(ctx, app), sell(ctx, app), look(ctx, app))
}

func importBook(ctx context.Context, app *bootstrap.App) error {
	office, err := app.Backoffice(ctx)
	if err != nil {
		return err
	}
	for kind, lines := range map[string]string{
		"prices":   "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom\n1,AFA,H,1.25,TRY,2024-01-01\n",
		"holdings": "CustomerNo,IMKBCode,HolderCorporationName,Units\n1001,AFA,H,100\n",
		"accounts": "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance\n1,1001,1,TRY,0\n",
	} {
		if _, err := bookfile.Import(ctx, office, kind, strings.NewReader(lines), bookfile.Options{}); err != nil {
			return fmt.Errorf("import %s: %w", kind, err)
		}
	}
	return nil
}

func sell(ctx context.Context, app *bootstrap.App) error {
	manager, err := app.Manager(ctx)
	if err != nil {
		return err
	}
	key, _, err := manager.Create(ctx, subscription.Subscription{Name: "host"})
	if err != nil {
		return err
	}
	bank, err := client.New(app.URL(), key.Reveal(), client.Options{})
	if err != nil {
		return err
	}
	sales, err := client.NewSales(client.Sale{
		CustomerNo: 1001, Units: "10", IMKBCode: "AFA", HolderCorporationName: "H", PriceID: 1, BranchCode: 1, AccountSuffix: 1, CurrencyCode: "TRY",
	})
	if err != nil {
		return err
	}
	_, sold := bank.BuyFund(ctx, client.NewBuyFund(sales...))
	_, stored := bank.AddPush(ctx, client.NewAddPush(push.Restore(push.Values{
		ExternalApplicationCode: "HOST", UserID: "u", PushID: "p", Platform: push.Android,
	})))
	return errors.Join(sold, stored)
}

// look verifies the book, exports it and reads the metrics.
func look(ctx context.Context, app *bootstrap.App) error {
	if err := app.Ready(ctx); err != nil {
		return err
	}
	office, err := app.Backoffice(ctx)
	if err != nil {
		return err
	}
	proof, err := office.Verify(ctx, nil, backoffice.Watch{})
	if err != nil || proof.Findings > 0 || proof.Sales != 1 {
		return errors.Join(err, fmt.Errorf("verify: %+v", proof))
	}
	var accounts bytes.Buffer
	err = bookfile.Export(ctx, office, "accounts", "csv", bookfile.Query{}, &accounts, nil)
	if err != nil || !strings.Contains(accounts.String(), "1,1001,1,TRY,12.50") {
		return errors.Join(err, fmt.Errorf("export: %s", accounts.String()))
	}
	response, err := http.Get("http://" + app.OpsAddress() + "/metrics")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	want := `storage="memory"`
	if !strings.Contains(string(metrics), want) {
		return errors.Join(err, fmt.Errorf("the metrics have no %s", want))
	}
	return err
}
