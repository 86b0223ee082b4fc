package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bankingapi/adapters/httpapi/client"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/push"
)

// A sale, from the exact amount to the outcome. The order keeps its CallerId
// for as long as it exists, so it can be sent again at any time.
func ExampleClient_BuyFund() {
	bank, err := client.New("https://bank.example", "the subscription key", client.Options{})
	if err != nil {
		panic(err)
	}
	units, err := decimal.Parse("1234567.89")
	if err != nil {
		panic(err)
	}
	sale, faults := fund.NewSale(fund.SaleFields{
		CustomerNo:      decimal.Int(1001),
		TransactionType: decimal.Int(fund.SaleTransaction),
		FundAmount:      units,
		DestinationAccount: &fund.AccountFields{
			BranchCode: decimal.Int(1), CustomerNo: decimal.Int(1001), AccountSuffix: decimal.Int(1), CurrencyCode: "TRY",
		},
		FundToProcess: &fund.FundFields{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", PriceID: decimal.Int(1)},
	})
	if len(faults) > 0 {
		panic(faults)
	}
	order := client.NewBuyFund(sale) // store order.Header.CallerID before the first call

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	answer, err := bank.BuyFund(ctx, order)
	var failure *client.Error
	switch {
	case err == nil:
		fmt.Println("sold or recorded:", answer.State)
	case errors.Is(err, client.Code(fault.HoldingInsufficient)):
		fmt.Println("the customer holds fewer units")
	case errors.As(err, &failure) && failure.Unknown:
		fmt.Println("send the same order again:", failure.CallerID)
	default:
		fmt.Println("nothing was changed:", err)
	}
}

// A notification may be sent any number of times: the bank stores it once.
func ExampleClient_AddPush() {
	bank, err := client.New("https://bank.example", "the subscription key", client.Options{})
	if err != nil {
		panic(err)
	}
	notification, faults := push.New(push.Fields{
		ExternalApplicationCode: "MOBILE", UserID: "user-1001", PushID: "push-0001",
		Platform: decimal.Int(int64(push.IOS)), SendStatus: decimal.Int(1),
	})
	if len(faults) > 0 {
		panic(faults)
	}
	_, err = bank.AddPush(context.Background(), client.NewAddPush(notification))
	fmt.Println("stored:", err == nil)
}
