package storage

import (
	"context"
	"fmt"
	"time"

	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// Lines is a checked file. It calls yield for each line, in the order of the
// keys and each key once, and returns yield's first error or its own. It may
// be called again.
type Lines[T any] func(yield func(line int64, value T) error) error

// chunk is how many lines travel together.
const chunk = 2000

// ChangedPrices is the error of an import whose prices are in the book with
// other values.
type ChangedPrices struct {
	// List has the first hundred, by PriceID.
	List []ChangedPrice
	// Lines is how many there are.
	Lines int64
}

// ChangedPrice is a line of an import, and the column whose value is another
// one in the book.
type ChangedPrice struct {
	Line   int64
	Column string
}

// Error counts the lines.
func (c *ChangedPrices) Error() string {
	return fmt.Sprintf("%d prices are in the book with another value", c.Lines)
}

const changesListed = 100

func (c *ChangedPrices) add(line int64, column string) {
	if c.Lines++; len(c.List) < changesListed {
		c.List = append(c.List, ChangedPrice{line, column})
	}
}

// ImportPrices adds prices, all or none. A price that is there with the same
// values is left as it is; the error is *ChangedPrices when others are there.
// done is told how many lines are written, not yet for good, and begins anew
// if the transaction lost a race.
func (s *Store) ImportPrices(ctx context.Context, lines Lines[fund.Price], done func(int64)) error {
	var changed ChangedPrices
	err := s.transact(ctx, func(session Session) error {
		changed = ChangedPrices{}
		err := inChunks(ctx, s, session, lines, done, func(part []imported[fund.Price]) error {
			return session.Exchange(ctx, s.addPrices(part), s.comparePrices(part, &changed))
		})
		if err != nil {
			return err
		}
		if changed.Lines > 0 {
			return &changed
		}
		return session.Commit(ctx)
	})
	if changed.Lines > 0 {
		return &changed
	}
	return err
}

func (s *Store) addPrices(part []imported[fund.Price]) Request {
	rows := newRows(s.statements.addPrice.columns, len(part))
	for i := range part {
		p := &part[i].value
		rows.int(p.ID).text(p.Fund.IMKBCode).text(p.Fund.HolderCorporationName).
			int(int64(p.PerUnit)).text(p.Currency.Code()).text(p.ValidFrom.String())
	}
	return s.request(s.statements.addPrice, rows, nil)
}

// comparePrices looks at what is there after adding.
func (s *Store) comparePrices(part []imported[fund.Price], changed *ChangedPrices) Request {
	ids := make([]int64, len(part))
	for i := range part {
		ids[i] = part[i].value.ID
	}
	return s.findPrices(ids, func(key int, there fund.Price) {
		line, wanted := part[key].line, part[key].value
		switch {
		case there == wanted:
		case there.Fund.IMKBCode != wanted.Fund.IMKBCode:
			changed.add(line, "IMKBCode")
		case there.Fund != wanted.Fund:
			changed.add(line, "HolderCorporationName")
		case there.PerUnit != wanted.PerUnit:
			changed.add(line, "Price")
		case there.Currency != wanted.Currency:
			changed.add(line, "CurrencyCode")
		default:
			changed.add(line, "ValidFrom")
		}
	})
}

// ImportHoldings sets holdings, all or none. Each new one gets an opening
// posting, each one whose units change an adjustment; both carry the import's
// ID and the line. done is as in ImportPrices.
func (s *Store) ImportHoldings(ctx context.Context, id operation.ID, lines Lines[fund.Holding], done func(int64)) error {
	return importPositions(ctx, s, lines, done, positions[fund.Holding]{
		find: func(part []imported[fund.Holding], found func(int, int64)) Request {
			keys := make([]fund.HoldingKey, len(part))
			for i := range part {
				keys[i] = part[i].value.Key
			}
			return s.findHoldings(keys, found)
		},
		quantity: func(h *fund.Holding) int64 { return int64(h.Units) },
		posting: func(kind fund.PostingKind, line int64, h *fund.Holding, by int64) fund.Posting {
			return fund.UnitPosting(kind, id, int(line), h.Key, fund.Units(by))
		},
		add: func(h []fund.Holding) Request { return s.writeHoldings(s.statements.addHolding, h) },
		put: func(h []fund.Holding) Request { return s.writeHoldings(s.statements.putHolding, h) },
	})
}

// ImportAccounts sets accounts, all or none, as ImportHoldings does holdings.
func (s *Store) ImportAccounts(ctx context.Context, id operation.ID, lines Lines[fund.Account], done func(int64)) error {
	return importPositions(ctx, s, lines, done, positions[fund.Account]{
		find: func(part []imported[fund.Account], found func(int, int64)) Request {
			keys := make([]fund.AccountKey, len(part))
			for i := range part {
				keys[i] = part[i].value.Key
			}
			return s.findAccounts(keys, found)
		},
		quantity: func(a *fund.Account) int64 { return a.Balance.Minor() },
		posting: func(kind fund.PostingKind, line int64, a *fund.Account, by int64) fund.Posting {
			return fund.MoneyPosting(kind, id, int(line), a.Key, by)
		},
		add: func(a []fund.Account) Request { return s.writeAccounts(s.statements.addAccount, a) },
		put: func(a []fund.Account) Request { return s.writeAccounts(s.statements.putAccount, a) },
	})
}

// imported is one line.
type imported[T any] struct {
	line  int64
	value T
}

// positions is how holdings, or accounts, are found and written.
type positions[T any] struct {
	find     func(part []imported[T], found func(key int, quantity int64)) Request
	quantity func(*T) int64
	posting  func(kind fund.PostingKind, line int64, of *T, by int64) fund.Posting
	add, put func([]T) Request
}

func importPositions[T any](ctx context.Context, s *Store, lines Lines[T], done func(int64), p positions[T]) error {
	now := s.now()
	return s.transact(ctx, func(session Session) error {
		err := inChunks(ctx, s, session, lines, done, func(part []imported[T]) error {
			return importChunk(ctx, s, session, part, &p, &now)
		})
		if err != nil {
			return err
		}
		return session.Commit(ctx)
	})
}

// importChunk reads and locks the positions that are there, and writes what is
// different. If two imports add one position at the same moment, the second
// one loses that race and is run again.
func importChunk[T any](ctx context.Context, s *Store, session Session, part []imported[T], p *positions[T], now *time.Time) error {
	before := make([]int64, len(part))
	there := make([]bool, len(part))
	find := p.find(part, func(key int, quantity int64) { before[key], there[key] = quantity, true })
	if err := session.Exchange(ctx, find); err != nil {
		return err
	}
	var added, changed []T
	var postings []fund.Posting
	for i := range part {
		of := &part[i].value
		by := p.quantity(of) - before[i] // both are from 0 on: no wrap
		kind := fund.AdjustmentPosting
		switch {
		case !there[i]:
			kind = fund.OpeningPosting
			added = append(added, *of)
		case by != 0:
			changed = append(changed, *of)
		}
		if by != 0 {
			postings = append(postings, p.posting(kind, part[i].line, of, by))
		}
	}
	writes := some(p.add(added), p.put(changed), s.insertPostings(postings, unitLeg, now), s.insertPostings(postings, moneyLeg, now))
	if len(writes) == 0 {
		return nil
	}
	return session.Exchange(ctx, writes...)
}

// inChunks hands the lines on in chunks, in a transaction that may take its
// time.
func inChunks[T any](ctx context.Context, s *Store, session Session, lines Lines[T], done func(int64), write func([]imported[T]) error) error {
	if s.engine.Dialect == Postgres {
		lift := Request{Name: "lift the time-out", SQL: noTimeout, Rows: newRows(nil, 0)}
		if err := session.Exchange(ctx, lift); err != nil {
			return err
		}
	}
	part := make([]imported[T], 0, chunk)
	total := int64(0)
	flush := func() error {
		if len(part) == 0 {
			return nil
		}
		if err := write(part); err != nil {
			return err
		}
		total += int64(len(part))
		part = part[:0]
		done(total)
		return nil
	}
	err := lines(func(line int64, value T) error {
		if part = append(part, imported[T]{line, value}); len(part) < chunk {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}
