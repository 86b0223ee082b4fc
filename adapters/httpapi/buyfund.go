package httpapi

import (
	"context"

	"bankingapi/adapters/httpapi/strictjson"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// Buyer is the use case BuyFundFromCustomer. Its methods are Do, Faults and Busy of an
// Operation.
type Buyer interface {
	Buy(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []fund.SaleFields) (operation.Outcome, error)
	Faults(header operation.Header, parameters []fund.SaleFields) []fault.Fault
	Busy(caller *subscription.Subscription) error
}

// BuyFund describes the operation BuyFundFromCustomer.
func BuyFund(buyer Buyer) Operation[fund.SaleFields] {
	return Operation[fund.SaleFields]{
		Name:     operation.BuyFundFromCustomer.String(),
		Members:  saleMembers,
		Do:       buyer.Buy,
		Faults:   buyer.Faults,
		Busy:     buyer.Busy,
		Customer: customerOf,
		Example:  `{"Header":{"CallerId":"demo-sale-1"},"Parameters":[{"CustomerNo":1001,"TransactionType":2,"FundAmount":12.5,"DestinationAccount":{"BranchCode":1,"CustomerNo":1001,"AccountSuffix":1,"CurrencyCode":"TRY"},"FundToProcess":{"IMKBCode":"AFA","HolderCorporationName":"Demo Portfoy","PriceID":1}}]}`,
	}
}

// customerOf returns the number of the customer whose fund is sold, or 0 if it cannot be read:
// then the answer names it.
func customerOf(f *fund.SaleFields) int64 {
	number, err := f.CustomerNo.Integer(0)
	if err != nil {
		return 0
	}
	return number
}

// saleMembers is a fund sale record (the contract, section 5).
var saleMembers = []strictjson.Member[fund.SaleFields]{
	strictjson.Number("CustomerNo", func(f *fund.SaleFields) *decimal.Decimal { return &f.CustomerNo }),
	strictjson.Number("TransactionType", func(f *fund.SaleFields) *decimal.Decimal { return &f.TransactionType }),
	strictjson.Number("FundAmount", func(f *fund.SaleFields) *decimal.Decimal { return &f.FundAmount }),
	strictjson.Object("DestinationAccount", func(f *fund.SaleFields) **fund.AccountFields { return &f.DestinationAccount }, []strictjson.Member[fund.AccountFields]{
		strictjson.Number("BranchCode", func(a *fund.AccountFields) *decimal.Decimal { return &a.BranchCode }),
		strictjson.Number("CustomerNo", func(a *fund.AccountFields) *decimal.Decimal { return &a.CustomerNo }),
		strictjson.Number("AccountSuffix", func(a *fund.AccountFields) *decimal.Decimal { return &a.AccountSuffix }),
		strictjson.Text("CurrencyCode", func(a *fund.AccountFields) *string { return &a.CurrencyCode }),
	}),
	strictjson.Object("FundToProcess", func(f *fund.SaleFields) **fund.FundFields { return &f.FundToProcess }, []strictjson.Member[fund.FundFields]{
		strictjson.Text("IMKBCode", func(p *fund.FundFields) *string { return &p.IMKBCode }),
		strictjson.Text("HolderCorporationName", func(p *fund.FundFields) *string { return &p.HolderCorporationName }),
		strictjson.Number("PriceID", func(p *fund.FundFields) *decimal.Decimal { return &p.PriceID }),
	}),
	strictjson.Number("Amount", func(f *fund.SaleFields) *decimal.Decimal { return &f.Amount }),
	strictjson.Text("SelectedTransactionDate", func(f *fund.SaleFields) *string { return &f.SelectedTransactionDate }),
}
