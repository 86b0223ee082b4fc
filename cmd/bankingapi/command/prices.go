package command

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/domain/day"
)

type listPricesCommand struct{ on day.Day }

func (o *listPricesCommand) flags(f *flags) {
	f.json()
	f.set.Var(&dayValue{&o.on, "2026-12-04"}, "day", "the prices that hold on this `day` of the bank (default: today)")
}

// listedPrice is a fund with the price that holds, and the due sales that have no price. Its names
// are those of export prices.
type listedPrice struct {
	IMKBCode              string
	HolderCorporationName string
	PriceID               int64
	Price                 *json.Number
	CurrencyCode          string
	ValidFrom             string
	// ChangePercent is the difference from the price before in percent, like 1.25. It is nil if
	// there is none.
	ChangePercent *json.Number
	// Imported and ImportedBy are when and by whom the price was imported, if that is known.
	Imported   *moment
	ImportedBy string
	// Waiting are the due sales that wait for a price of their day.
	Waiting []waitingDay
}

type waitingDay struct {
	Day   string
	Sales int64
}

func (o *listPricesCommand) run(c *call) error {
	prices, err := c.office.PricesOn(c.cmd.Context(), cmp.Or(o.on, c.office.Today()))
	if err != nil {
		return err
	}
	due, err := c.app.Buyer().CountDue(c.cmd.Context())
	if err != nil {
		return err
	}
	return c.write("prices", listedPrices(prices, due.ForPrice))
}

// listedPrices joins the prices and the sales that wait for one. A fund that has never had a
// price is listed too if sales wait for it.
func listedPrices(prices []backoffice.FundPrice, waits []buyfund.DueFund) []listedPrice {
	list := make([]listedPrice, 0, len(prices))
	for _, w := range waits {
		isKnown := slices.ContainsFunc(prices, func(p backoffice.FundPrice) bool { return p.Fund == w.PriceDay.Fund })
		if !isKnown {
			prices = append(prices, backoffice.FundPrice{Fund: w.PriceDay.Fund})
		}
	}
	for i := range prices {
		p := &prices[i]
		line := listedPrice{
			IMKBCode: p.Fund.IMKBCode, HolderCorporationName: p.Fund.HolderCorporationName,
			ChangePercent: decimalNumber(strings.TrimPrefix(p.Change(), "+")), Waiting: []waitingDay{},
		}
		if p.Price != nil {
			line.PriceID = p.Price.ID
			line.Price = decimalNumber(p.Price.PerUnit.String())
			line.CurrencyCode = p.Price.Currency.Code()
			line.ValidFrom = p.Price.ValidFrom.String()
			line.Imported = instant(p.Imported)
			line.ImportedBy = p.ImportedBy
		}
		for _, w := range waits {
			if w.PriceDay.Fund == p.Fund {
				line.Waiting = append(line.Waiting, waitingDay{w.PriceDay.Day.String(), w.Sales})
			}
		}
		list = append(list, line)
	}
	return list
}
