package bookfile

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"bankingapi/application/backoffice"
	"bankingapi/domain/fund"
)

// checkHolders refuses lines whose fund is new to the book and may be taken for another one, of
// the book or of an earlier line. The book has a fund if it has a price of it.
func checkHolders[T any](ctx context.Context, book backoffice.Reader, file *sorted[T]) error {
	c := holderCheck{book: book, seen: make(map[fund.Fund]bool)}
	faults := new(backoffice.Faults)
	for e, err := range file.values(nil) {
		if err != nil {
			return err
		}
		f := file.kind.fundOf(&e.value)
		if c.seen[f] {
			continue
		}
		rule, err := c.add(ctx, f)
		if err != nil {
			return err
		}
		if rule != "" {
			faults.Add(e.Line, "HolderCorporationName", rule)
		}
	}
	if faults.Lines > 0 {
		return inOrder(faults)
	}
	return nil
}

// A holderCheck compares funds that are new to the book with those that it has.
type holderCheck struct {
	book  backoffice.Reader
	seen  map[fund.Fund]bool // the funds of the file up to now
	known map[fund.Fund]bool // the funds of the book; nil until a new fund is compared with them
}

// add returns the rule that a fund breaks, or nothing.
func (c *holderCheck) add(ctx context.Context, f fund.Fund) (rule string, err error) {
	defer func() { c.seen[f] = true }()
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
	if c.known == nil {
		c.known = make(map[fund.Fund]bool)
		for p, err := range c.book.Prices(ctx, backoffice.Query{}) {
			if err != nil {
				return "", err
			}
			c.known[p.Fund] = true
		}
	}
	for _, funds := range []map[fund.Fund]bool{c.known, c.seen} {
		if rule := takenFor(f, funds); rule != "" {
			return rule, nil
		}
	}
	return "", nil
}

// takenFor names the fund for which a new one may be taken: rather one that looks like it than
// another one with its code.
func takenFor(f fund.Fund, funds map[fund.Fund]bool) string {
	other := ""
	for _, o := range slices.SortedFunc(maps.Keys(funds), fund.Fund.Compare) {
		isSameCode := f.IMKBCode == o.IMKBCode
		isSameHolder := f.HolderCorporationName == o.HolderCorporationName
		switch {
		case f.LooksLike(o):
			return fmt.Sprintf("There is the fund %s of %q, whose name only looks the same. Write it in that way, or use --force for a fund of its own.", o.IMKBCode, o.HolderCorporationName)
		case isSameCode && !isSameHolder:
			other = fmt.Sprintf("There is the fund %s of another holder, %q. If both are right, use --force.", o.IMKBCode, o.HolderCorporationName)
		case !isSameHolder && other == "" && fund.IsSameName(f.HolderCorporationName, o.HolderCorporationName):
			other = fmt.Sprintf("There is the holder %q, whose name only looks the same. Write it in that way, or use --force for a holder of its own.", o.HolderCorporationName)
		}
	}
	return other
}
