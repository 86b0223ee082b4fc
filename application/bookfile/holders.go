package bookfile

import (
	"context"
	"fmt"
	"slices"

	"bankingapi/application/backoffice"
	"bankingapi/domain/fund"
)

// checkHolders refuses lines whose fund is new to the book and may be taken for another one, of
// the book or of an earlier line. The book has a fund if it has a price of it. It returns the funds
// that are new.
func checkHolders[T any](ctx context.Context, book backoffice.Reader, file *sorted[T]) ([]fund.Fund, error) {
	c := holderCheck{book: book, seen: make(map[fund.Fund]bool), file: newFunds()}
	faults := new(backoffice.Faults)
	for e, err := range file.values(nil) {
		if err != nil {
			return nil, err
		}
		f := file.kind.fundOf(&e.value)
		if c.seen[f] {
			continue
		}
		rule, err := c.add(ctx, f)
		if err != nil {
			return nil, err
		}
		if rule != "" {
			faults.Add(e.Line, "HolderCorporationName", rule)
		}
	}
	if faults.Lines > 0 {
		return nil, inOrder(faults)
	}
	return c.unpriced, nil
}

// A holderCheck compares funds that are new to the book with those that it has.
type holderCheck struct {
	book  backoffice.Reader
	seen  map[fund.Fund]bool
	file  *funds // what it has seen
	known *funds // the funds of the book; nil until a new fund is compared with them

	unpriced []fund.Fund // the funds that are new to the book
}

// add returns the rule that a fund breaks, or nothing.
func (c *holderCheck) add(ctx context.Context, f fund.Fund) (rule string, err error) {
	defer func() {
		c.seen[f] = true
		c.file.add(f)
	}()
	isKnown := false
	for _, err := range c.book.Prices(ctx, backoffice.Query{Fund: f, Limit: 1}) {
		if err != nil {
			return "", err
		}
		isKnown = true
	}
	if isKnown {
		return "", nil
	}
	c.unpriced = append(c.unpriced, f)
	if c.known == nil {
		c.known, err = fundsOf(ctx, c.book)
		if err != nil {
			return "", err
		}
	}
	for _, all := range []*funds{c.known, c.file} {
		rule := all.takenFor(f)
		if rule != "" {
			return rule, nil
		}
	}
	return "", nil
}

// funds finds the funds for which another one may be taken.
type funds struct {
	looking map[fund.Fund][]fund.Fund // by what a person reads
	coded   map[string][]fund.Fund    // by their code
	holders map[string][]string       // by what a person reads
}

func newFunds() *funds {
	return &funds{looking: make(map[fund.Fund][]fund.Fund), coded: make(map[string][]fund.Fund), holders: make(map[string][]string)}
}

// fundsOf returns the funds of the book.
func fundsOf(ctx context.Context, book backoffice.Reader) (*funds, error) {
	all := newFunds()
	added := make(map[fund.Fund]bool)
	for p, err := range book.Prices(ctx, backoffice.Query{}) {
		if err != nil {
			return nil, err
		}
		if !added[p.Fund] {
			added[p.Fund] = true
			all.add(p.Fund)
		}
	}
	return all, nil
}

// add adds a fund that was not added before.
func (a *funds) add(f fund.Fund) {
	read := f.AsRead()
	a.looking[read] = append(a.looking[read], f)
	a.coded[f.IMKBCode] = append(a.coded[f.IMKBCode], f)
	names := a.holders[read.HolderCorporationName]
	if !slices.Contains(names, f.HolderCorporationName) {
		a.holders[read.HolderCorporationName] = append(names, f.HolderCorporationName)
	}
}

// takenFor names the fund for which a new one may be taken: rather one that looks like it than
// another one with its code, and rather that than a holder whose name looks like its own.
func (a *funds) takenFor(f fund.Fund) string {
	read := f.AsRead()
	alike := a.looking[read]
	if len(alike) > 0 {
		o := slices.MinFunc(alike, fund.Fund.Compare)
		return fmt.Sprintf("There is the fund %s of %q, whose name only looks the same. Write it in that way, or use --force for a fund of its own.", o.IMKBCode, o.HolderCorporationName)
	}
	coded := a.coded[f.IMKBCode]
	if i := slices.IndexFunc(coded, func(o fund.Fund) bool { return o.HolderCorporationName != f.HolderCorporationName }); i >= 0 {
		o := coded[i]
		return fmt.Sprintf("There is the fund %s of another holder, %q. If both are right, use --force.", o.IMKBCode, o.HolderCorporationName)
	}
	names := a.holders[read.HolderCorporationName]
	i := slices.IndexFunc(names, func(name string) bool { return name != f.HolderCorporationName })
	if i >= 0 {
		return fmt.Sprintf("There is the holder %q, whose name only looks the same. Write it in that way, or use --force for a holder of its own.", names[i])
	}
	return ""
}
