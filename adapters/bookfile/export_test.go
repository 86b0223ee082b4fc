package bookfile

import (
	"context"
	"io"

	"bankingapi/domain/fund"
)

func ReadPrices(ctx context.Context, r io.Reader) (*Sorted[fund.Price], error) {
	return read(ctx, r, &prices, nil)
}

func ReadHoldings(ctx context.Context, r io.Reader) (*Sorted[fund.Holding], error) {
	return read(ctx, r, &holdings, nil)
}

func ReadAccounts(ctx context.Context, r io.Reader) (*Sorted[fund.Account], error) {
	return read(ctx, r, &accounts, nil)
}
