package office

import (
	"context"

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
		p := priceImport{imports: i, options: o, session: session, seen: make(map[fund.Fund]bool), inFile: make(map[int64]bool), refused: new(backoffice.Faults)}
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
	inFile   map[int64]bool     // the PriceIDs of the parts until now
	refused  *backoffice.Faults // lines that may not be imported
}

func (p *priceImport) run(ctx context.Context, lines backoffice.Lines[fund.Price]) error {
	err := inChunks(ctx, p.imports.db, p.session, lines, p.options.TellProgress, p.write)
	if err != nil {
		return err
	}
	if p.refused.Lines > 0 {
		return batch.FailureError{Failure: batch.Refused, Cause: p.refused}
	}
	return p.imports.commit(ctx, p.session, p.options, p.imported, nil)
}

// write adds the prices that do not exist, and compares all of them with what the book has then.
// So the prices of a file are also compared with each other.
func (p *priceImport) write(ctx context.Context, part []numbered[fund.Price]) error {
	d := p.imports.db
	rows := rowsOfPrices(ctx, part)
	ids := tables.Convert(rows, func(r tables.PriceRow) int64 { return r.PriceID })
	funds := p.newKeys(part)
	isKnown := make([]bool, len(funds))
	exists := make([]bool, len(part))
	add := d.Prices.Add.Request(rows)
	add.Decides = true
	requests := []batch.Request{
		d.FindCurrentPrice.Request(funds, func(i int, _ *tables.PriceRow) error {
			isKnown[i] = true
			return nil
		}),
		book.FindPrices(d, ids, func(i int, _ fund.Price) { exists[i] = true }),
		add,
		book.FindPrices(d, ids, func(i int, stored fund.Price) { p.refused.ComparePrice(part[i].line, stored, part[i].value) }),
	}
	if p.options.PriceChangeLimit > 0 {
		requests = append(requests, p.compareBefore(part, rows, exists))
	}
	err := p.session.Exchange(ctx, requests...)
	if err != nil {
		return err
	}
	for i := range funds {
		if !isKnown[i] {
			p.imported.NewFunds = append(p.imported.NewFunds, fund.Fund{IMKBCode: funds[i].IMKBCode, HolderCorporationName: funds[i].HolderCorporationName})
		}
	}
	var fresh []tables.PriceRow
	for i := range part {
		p.inFile[part[i].value.ID] = true
		if !exists[i] {
			fresh = append(fresh, rows[i])
		}
	}
	outranked := make([]bool, len(fresh))
	entries := p.count(part, rows, exists)
	err = p.session.Exchange(ctx, batch.NonEmpty(p.imports.journal.Write(entries...), p.findOutranked(fresh, outranked))...)
	if err != nil {
		return err
	}
	for i := range fresh {
		if outranked[i] {
			p.imported.Outranked = append(p.imported.Outranked, fresh[i].PriceID)
		}
	}
	return nil
}

// findOutranked finds the new prices whose day has a price with a higher PriceID that is not in
// the file.
func (p *priceImport) findOutranked(fresh []tables.PriceRow, outranked []bool) batch.Request {
	return p.imports.db.FindCurrentPrice.Request(fresh, func(i int, current *tables.PriceRow) error {
		outranked[i] = current.PriceID > fresh[i].PriceID && !p.inFile[current.PriceID]
		return nil
	})
}

// compareBefore compares each new price with the price of the day before it.
func (p *priceImport) compareBefore(part []numbered[fund.Price], rows []tables.PriceRow, exists []bool) batch.Request {
	return p.imports.db.FindEarlierPrice.Request(rows, func(i int, row *tables.PriceRow) error {
		before, err := row.ToPrice()
		if err != nil {
			return err
		}
		if !exists[i] {
			p.refused.CompareBefore(part[i].line, before, part[i].value, p.options.PriceChangeLimit)
		}
		return nil
	})
}

// count counts the prices of a part, and returns the entries of the new ones in the trail.
func (p *priceImport) count(part []numbered[fund.Price], rows []tables.PriceRow, exists []bool) (entries []proof.Entry) {
	for i := range part {
		if exists[i] {
			p.imported.Unchanged++
			continue
		}
		p.imported.New++
		if p.imports.journal.Keys() != nil {
			leaf := proof.OfPrice(&part[i].value, operation.ID(rows[i].ActID))
			entries = append(entries, leaf.Entry())
		}
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
