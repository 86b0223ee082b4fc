package bootstrap_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"bankingapi/adapters/sandbox"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/bootstrap"
)

// A Go test of a client has a sandbox of its own: it sells for a later day, and
// moves the clock to that day.
func ExampleOpenSandbox() {
	folder, _ := os.MkdirTemp("", "example") // in a test: t.TempDir()
	defer os.RemoveAll(folder)
	ctx := context.Background()
	bank, err := bootstrap.OpenSandbox(ctx, bootstrap.SandboxSettings(folder),
		bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open),
		bootstrap.WithSandbox(sandbox.Open),
		bootstrap.WithLogger(zap.NewNop()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer bank.Close(ctx)
	server := httptest.NewServer(bank.Handler())
	defer server.Close()

	later := bank.Controls.Now().AddDate(0, 0, 2).Format(time.DateOnly)
	sell := func() string {
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/BankingApiV01/BuyFundFromCustomer", strings.NewReader(`{
			"Header": {"CallerId": "my-sale-1"},
			"Parameters": [{
				"CustomerNo": 1001, "TransactionType": 2, "FundAmount": 12.5, "SelectedTransactionDate": "`+later+`",
				"DestinationAccount": {"BranchCode": 1, "CustomerNo": 1001, "AccountSuffix": 1, "CurrencyCode": "TRY"},
				"FundToProcess": {"IMKBCode": "AFA", "HolderCorporationName": "Demo Portfoy", "PriceID": 1}}]}`))
		request.Header.Set("Ocp-Apim-Subscription-Key", bank.Key)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return string(body)
	}
	fmt.Println("today:  ", sell())
	moved, err := bank.Controls.AdvanceClock(ctx, 48*time.Hour)
	fmt.Println("settled:", moved.Completed, err)
	fmt.Println("later:  ", sell())
	// Output:
	// today:   {"Data":{"State":1}}
	// settled: 1 <nil>
	// later:   {"Data":{"State":2}}
}
