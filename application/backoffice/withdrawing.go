package backoffice

import (
	"context"
	"strconv"
	"time"

	"bankingapi/domain/day"
)

// Withdrawing takes prices back.
type Withdrawing interface {
	// WithdrawPrice stores what fund.Price.Withdraw returns for the price on that day, and
	// keeps the act of the context, with the old price, in the same transaction. The error
	// is ErrNotFound or that of Withdraw; then nothing was changed.
	WithdrawPrice(ctx context.Context, id int64, today day.Day) error
}

// withdrawBefore is how long before its day a price can be withdrawn at the latest. A
// sale of that day must not be settled at it while it is being withdrawn.
const withdrawBefore = time.Minute

// WithdrawPrice withdraws a price of a later day, so that it never counts. Its PriceID
// stays taken. The errors are those of Withdrawing.
func (o *Office) WithdrawPrice(ctx context.Context, id int64) error {
	ctx = o.Acts.Begin(ctx, "prices.withdraw", strconv.FormatInt(id, 10), "")
	return o.Withdrawing.WithdrawPrice(ctx, id, day.Of(o.Acts.Now().Add(withdrawBefore), o.Zone))
}
