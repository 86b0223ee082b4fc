package sandbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/operator"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// clock moves the time of the bank, and settles what becomes due by it.
type clock struct {
	o operator.SandboxOptions
	// moving is held while the clock moves and while sales are settled, so that a move counts
	// all settled sales.
	moving sync.Mutex
}

// now returns the time of the bank, in its time zone.
func (c *clock) now() time.Time { return c.o.Bank().In(c.o.Rules().In()) }

// text returns the time of the bank in the format of answers.
func (c *clock) text() string { return c.now().Format(time.RFC3339) }

// maxMove limits how far the clock may be ahead of the real time.
const maxMove = 10 * 366 * 24 * time.Hour

func (c *clock) move(ctx context.Context, where func(now time.Time) time.Time) (all buyfund.Settlement, err error) {
	c.moving.Lock()
	defer c.moving.Unlock()
	now := c.o.Bank()
	to := where(now)
	switch {
	case to.Before(now):
		return all, refuse(fault.Fault{Code: fault.OutOfRange, Detail: "The clock moves forward only. Reset the sandbox to set it back."})
	case to.Sub(c.o.Machine()) > maxMove:
		return all, refuse(fault.Fault{Code: fault.OutOfRange, Detail: "The clock may be at most ten years ahead of the real time."})
	}
	if all.Failed, err = c.cancelSales(ctx); err != nil {
		return all, err
	}
	if err = c.reverseSales(ctx); err != nil {
		return all, err
	}
	due, err := c.o.DueFunds(ctx, c.o.Rules().Today(to), false)
	if err != nil {
		return all, err
	}
	var stops []time.Time
	for _, of := range due {
		begins := c.o.Rules().Begins(of.PriceDay.Day)
		if !begins.After(to) {
			stops = append(stops, begins)
		}
	}
	for _, stop := range append(slices.Compact(stops), to) {
		if stop.After(c.o.Bank()) {
			ahead := stop.Sub(c.o.Machine())
			if err := c.o.Marker.SetNote(ctx, ahead.String()); err != nil {
				return all, err
			}
			c.o.SetAhead(ahead)
		}
		settled, err := c.settle(ctx)
		all.Completed += settled.Completed
		all.Failed += settled.Failed
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// cancelSales cancels the recorded sales of the customer whose sales the bank cancels.
func (c *clock) cancelSales(ctx context.Context) (n int, err error) {
	today := c.o.Rules().Today(c.o.Bank())
	var waiting []operation.ID
	for sale, err := range c.o.Office.Reader.Sales(ctx, backoffice.Query{State: operation.Recorded, DueUntil: today.Plus(fund.MaxDaysAhead)}) {
		if err != nil {
			return 0, err
		}
		if sale.Terms.Holding.CustomerNo == cancelled && sale.Terms.SelectedDay.After(today) {
			waiting = appendOnce(waiting, sale.ID)
		}
	}
	for _, id := range waiting {
		if err := c.o.Office.Corrector().Cancel(asBank(ctx), id); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// appendOnce adds the operation of a sale to a list. The sales of an operation follow each other.
func appendOnce(ids []operation.ID, id operation.ID) []operation.ID {
	if len(ids) > 0 && ids[len(ids)-1] == id {
		return ids
	}
	return append(ids, id)
}

// asBank says that the sandbox acts for the bank.
func asBank(ctx context.Context) context.Context {
	return audit.By(ctx, audit.Who{Actor: store.SandboxMark, Origin: store.SandboxMark})
}

// reverseSales reverses the completed sales of the customer whose sales the bank reverses. It
// leaves sales without a CallerId, because one that it recorded again has none.
func (c *clock) reverseSales(ctx context.Context) error {
	var completed []operation.ID
	for sale, err := range c.o.Office.Reader.Sales(ctx, backoffice.Query{CustomerNo: reversed, State: operation.Completed}) {
		if err != nil {
			return err
		}
		if sale.Terms.Holding.CustomerNo == reversed && sale.ReversedAt.IsZero() && sale.Header.CallerID != "" {
			completed = appendOnce(completed, sale.ID)
		}
	}
	for _, id := range completed {
		if err := c.reverse(asBank(ctx), id); err != nil {
			return err
		}
	}
	return nil
}

// reverse reverses an operation. It records its sales again if the price of their day was corrected.
func (c *clock) reverse(ctx context.Context, id operation.ID) error {
	corrector := c.o.Office.Corrector()
	_, _, err := corrector.ReverseAgain(ctx, id)
	if errors.Is(err, fund.ErrNoDay) || errors.Is(err, fund.ErrPriceHolds) {
		_, err = corrector.Reverse(ctx, id)
	}
	_, isSpent := errors.AsType[*fund.BelowZeroError](err)
	if isSpent { // a seed has lowered the balance: the sale stays
		return nil
	}
	return err
}
