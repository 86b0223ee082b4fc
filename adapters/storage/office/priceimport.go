package office

import (
	"context"
	"slices"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/book"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

func (i imports) Prices(ctx context.Context, lines backoffice.Lines[fund.Price], o backoffice.ImportOptions) (imported backoffice.Imported, err error) {
	err = i.transact(ctx, o, func(session batch.Session) error {
		p := priceImport{imports: i, options: o, session: session, seen: make(map[fund.Fund]bool), funds: make(map[fund.Fund]int), used: make(map[fundDay]int64), refused: new(backoffice.Faults)}
		err := p.run(ctx, lines)
		imported = p.imported
		return err
	})
	return imported, err
}

// priceImport is one attempt to import prices.
type priceImport struct {
	imports  imports
	options  backoffice.ImportOptions
	session  batch.Session
	imported backoffice.Imported
	seen     map[fund.Fund]bool // the funds of earlier parts
	refused  *backoffice.Faults // lines that may not be imported

	// used has the new price of earlier parts that is used for each fund and day, as long as no later
	// line of the file has a higher PriceID.
	used  map[fundDay]int64
	funds map[fund.Fund]int // the numbers of funds in fundDay
}

// fundDay is a fund and a day. A file may have millions of them, so the fund is a number.
type fundDay struct {
	fund int
	day  day.Day
}

func (p *priceImport) run(ctx context.Context, lines backoffice.Lines[fund.Price]) error {
	err := inChunks(ctx, p.imports.db, p.session, lines, p.options.TellProgress, p.write)
	if err != nil {
		return err
	}
	if p.refused.Lines > 0 {
		return batch.FailureError{Failure: batch.Refused, Cause: p.refused}
	}
	slices.Sort(p.imported.Outranked)
	return p.imports.commit(ctx, p.session, p.options, p.imported, nil)
}

// write adds the prices that do not exist. It compares the others with what the book has, and the
// new ones with the prices before them, also with those of the file. If two imports add one price at
// the same moment, the second one loses the race and is retried: only the import that added a price
// writes its leaf.
func (p *priceImport) write(ctx context.Context, part []numbered[fund.Price]) error {
	d := p.imports.db
	rows := rowsOfPrices(ctx, part)
	ids := tables.Convert(rows, func(r tables.PriceRow) int64 { return r.PriceID })
	funds := p.newKeys(part)
	isKnown := make([]bool, len(funds))
	exists := make([]bool, len(part))
	find := book.FindPrices(d, ids, func(i int, stored fund.Price) {
		exists[i] = true
		p.refused.ComparePrice(part[i].line, stored, part[i].value)
	})
	find.Decides = true
	err := p.session.Exchange(ctx, find, d.FindCurrentPrice.Request(funds, func(i int, _ *tables.PriceRow) error {
		isKnown[i] = true
		return nil
	}))
	if err != nil {
		return err
	}
	for i := range funds {
		if !isKnown[i] {
			p.imported.NewFunds = append(p.imported.NewFunds, fund.Fund{IMKBCode: funds[i].IMKBCode, HolderCorporationName: funds[i].HolderCorporationName})
		}
	}
	return p.add(ctx, part, rows, exists)
}

// add adds the prices of a part that do not exist.
func (p *priceImport) add(ctx context.Context, part []numbered[fund.Price], rows []tables.PriceRow, exists []bool) error {
	var fresh []tables.PriceRow
	var added []numbered[fund.Price]
	for i := range part {
		if !exists[i] {
			fresh = append(fresh, rows[i])
			added = append(added, part[i])
		}
	}
	p.imported.New += int64(len(fresh))
	p.imported.Unchanged += int64(len(part) - len(fresh))
	outranked := make([]bool, len(fresh))
	var earlier earlierPrices
	requests := []batch.Request{p.imports.db.Prices.Add.Request(fresh), p.findOutranked(fresh, outranked)}
	if p.options.PriceChangeLimit > 0 {
		requests = append(requests, earlier.sameCurrency.find(p.imports.db.FindEarlierPrice, fresh))
	}
	if p.options.SameCurrency {
		requests = append(requests, earlier.anyCurrency.find(p.imports.db.FindPriceBefore, fresh))
	}
	err := p.session.Exchange(ctx, batch.NonEmpty(append(requests, p.imports.journal.Write(p.entries(added, fresh)...))...)...)
	if err != nil {
		return err
	}
	p.compare(added, earlier)
	for i := range added {
		p.rank(added[i].value, outranked[i])
	}
	return nil
}

// rank notes whether a new price is used. It may end the use of one of an earlier part.
func (p *priceImport) rank(price fund.Price, outranked bool) {
	if price.IsWithdrawn() {
		return
	}
	if outranked {
		p.imported.Outranked = append(p.imported.Outranked, price.ID)
		return
	}
	number, isKnown := p.funds[price.Fund]
	if !isKnown {
		number = len(p.funds)
		p.funds[price.Fund] = number
	}
	of := fundDay{number, price.ValidFrom}
	before, isUsed := p.used[of]
	if isUsed {
		p.imported.Outranked = append(p.imported.Outranked, before)
	}
	p.used[of] = price.ID
}

// findOutranked finds the new prices whose day has a price with a higher PriceID, in the book or in
// the parts of the file until now.
func (p *priceImport) findOutranked(fresh []tables.PriceRow, outranked []bool) batch.Request {
	return p.imports.db.FindCurrentPrice.Request(fresh, func(i int, current *tables.PriceRow) error {
		outranked[i] = current.PriceID > fresh[i].PriceID
		return nil
	})
}

// earlierPrices are the newest prices of the days before the new ones, by the place of the new price.
// A place is missing if the fund had no price before.
type earlierPrices struct{ sameCurrency, anyCurrency pricesByPlace }

type pricesByPlace map[int]fund.Price

// find fills the prices with what the query finds for each new price.
func (p *pricesByPlace) find(query *batch.Query[tables.PriceRow], fresh []tables.PriceRow) batch.Request {
	found := make(pricesByPlace)
	*p = found
	return query.Request(fresh, func(i int, row *tables.PriceRow) (err error) {
		found[i], err = row.ToPrice()
		return err
	})
}

// compare compares each new price with the prices before it. A withdrawn one never counts. All faults
// of a line must be added together, so it waits for both queries.
func (p *priceImport) compare(added []numbered[fund.Price], earlier earlierPrices) {
	for i, price := range added {
		if price.value.IsWithdrawn() {
			continue
		}
		before, isKnown := earlier.anyCurrency[i]
		if isKnown {
			p.refused.CompareCurrency(price.line, before, price.value)
		}
		before, isKnown = earlier.sameCurrency[i]
		if isKnown {
			p.refused.CompareBefore(price.line, before, price.value, p.options.PriceChangeLimit)
		}
	}
}

// entries returns the entries of the new prices in the trail.
func (p *priceImport) entries(added []numbered[fund.Price], fresh []tables.PriceRow) (entries []proof.Entry) {
	if p.imports.journal.Keys() == nil {
		return nil
	}
	for i := range added {
		leaf := proof.OfPrice(&added[i].value, operation.ID(fresh[i].ActID))
		entries = append(entries, leaf.Entry())
	}
	return entries
}

// newKeys returns keys that find any price of the funds of a part that no earlier part had.
func (p *priceImport) newKeys(part []numbered[fund.Price]) (keys []tables.PriceRow) {
	for i := range part {
		of := part[i].value.Fund
		if p.seen[of] {
			continue
		}
		p.seen[of] = true
		keys = append(keys, tables.NewCurrentPriceRow(fund.PriceDay{Fund: of, Day: day.Last}, fund.Price{}))
	}
	return keys
}

// rowsOfPrices returns the rows, which name the act of the import.
func rowsOfPrices(ctx context.Context, part []numbered[fund.Price]) []tables.PriceRow {
	act, _ := audit.From(ctx)
	rows := make([]tables.PriceRow, len(part))
	for i := range part {
		rows[i] = tables.NewPriceRow(part[i].value)
		rows[i].ActID = batch.UUID(act.ID)
	}
	return rows
}
