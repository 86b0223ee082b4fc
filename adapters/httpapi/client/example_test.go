package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bankingapi/adapters/httpapi/client"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/push"
)

// A sale, from the exact amount to the outcome. The order keeps its CallerId
// for as long as it exists, so it can be sent again at any time.
func ExampleClient_BuyFund() {
	bank, err := client.New("https://bank.example", "the subscription key", client.Options{})
	if err != nil {
		panic(err)
	}
	sales, err := client.NewSales(client.Sale{
		CustomerNo: 1001, Units: "1234567.89", IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", PriceID: 1,
		BranchCode: 1, AccountSuffix: 1, CurrencyCode: "TRY",
	})
	if err != nil {
		panic(err)
	}
	order := client.NewBuyFund(sales...) // store order.Header.CallerID before the first call

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
