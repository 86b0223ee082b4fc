package httpapi

import (
	"context"

	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// Buyer is the use case BuyFundFromCustomer.
type Buyer interface {
	// Buy carries the operation out. Its errors are of the kinds of package
	// fault, and each kind is a status. The parameters are the API's again when
	// Buy returns; the texts in them may be kept.
	Buy(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []fund.SaleFields) (operation.Outcome, error)
	// Faults are the rules the request breaks, as Buy would report them.
	Faults(header operation.Header, parameters []fund.SaleFields) []fault.Fault
}

func newBuyFund(a *api, buyer Buyer) *endpoint[fund.SaleFields] {
	return &endpoint[fund.SaleFields]{
		api:       a,
		operation: operation.BuyFundFromCustomer,
		members:   requestMembers(saleMembers, a.ParametersLimit),
		do:        buyer.Buy,
		faults:    buyer.Faults,
	}
}

// saleMembers is a fund sale record (the contract, section 5).
var saleMembers = []member[fund.SaleFields]{
	number("CustomerNo", func(f *fund.SaleFields) *decimal.Decimal { return &f.CustomerNo }),
	number("TransactionType", func(f *fund.SaleFields) *decimal.Decimal { return &f.TransactionType }),
	number("FundAmount", func(f *fund.SaleFields) *decimal.Decimal { return &f.FundAmount }),
	object("DestinationAccount", func(f *fund.SaleFields) **fund.AccountFields { return &f.DestinationAccount }, []member[fund.AccountFields]{
		number("BranchCode", func(a *fund.AccountFields) *decimal.Decimal { return &a.BranchCode }),
		number("CustomerNo", func(a *fund.AccountFields) *decimal.Decimal { return &a.CustomerNo }),
		number("AccountSuffix", func(a *fund.AccountFields) *decimal.Decimal { return &a.AccountSuffix }),
		text("CurrencyCode", func(a *fund.AccountFields) *string { return &a.CurrencyCode }),
	}),
	object("FundToProcess", func(f *fund.SaleFields) **fund.FundFields { return &f.FundToProcess }, []member[fund.FundFields]{
		text("IMKBCode", func(p *fund.FundFields) *string { return &p.IMKBCode }),
		text("HolderCorporationName", func(p *fund.FundFields) *string { return &p.HolderCorporationName }),
		number("PriceID", func(p *fund.FundFields) *decimal.Decimal { return &p.PriceID }),
	}),
	number("Amount", func(f *fund.SaleFields) *decimal.Decimal { return &f.Amount }),
	text("SelectedTransactionDate", func(f *fund.SaleFields) *string { return &f.SelectedTransactionDate }),
}
