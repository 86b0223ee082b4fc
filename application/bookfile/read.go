package bookfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"bankingapi/application/backoffice"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// kind describes the lines of a file.
type kind[T any] struct {
	columns []string
	// newValue makes a value from a line.
	newValue func(*line) (T, []fault.Fault)
	// compare orders values by their keys.
	compare func(a, b T) int
	// same reports whether a second line with the same key has the same values. Such a line is
	// left out. same is nil if a key must be unique.
	same func(a, b T) bool
	// duplicate is the error text for a second line with the same key.
	duplicate string
}

var prices = kind[fund.Price]{
	columns: names(priceColumns),
	newValue: func(l *line) (fund.Price, []fault.Fault) {
		return fund.NewPrice(fund.PriceFields{
			PriceID: l.number(0), IMKBCode: l.text(1), HolderCorporationName: l.text(2),
			Price: l.number(3), CurrencyCode: l.text(4), ValidFrom: l.text(5),
		})
	},
	compare:   func(a, b fund.Price) int { return cmp.Compare(a.ID, b.ID) },
	same:      func(a, b fund.Price) bool { return a == b },
	duplicate: "Another price of this PriceID is on line %d.",
}

var holdings = kind[fund.Holding]{
	columns: names(holdingColumns),
	newValue: func(l *line) (fund.Holding, []fault.Fault) {
		return fund.NewHolding(fund.HoldingFields{
			CustomerNo: l.number(0), IMKBCode: l.text(1), HolderCorporationName: l.text(2), Units: l.number(3),
		})
	},
	compare:   func(a, b fund.Holding) int { return a.Key.Compare(b.Key) },
	duplicate: "The same holding is on line %d.",
}

var accounts = kind[fund.Account]{
	columns: names(accountColumns),
	newValue: func(l *line) (fund.Account, []fault.Fault) {
		fields := fund.AccountFields{
			BranchCode: l.number(0), CustomerNo: l.number(1), AccountSuffix: l.number(2), CurrencyCode: l.text(3),
		}
		return fund.NewAccount(fields, l.number(4))
	},
	compare:   func(a, b fund.Account) int { return a.Key.Compare(b.Key) },
	duplicate: "The same account is on line %d.",
}

var calendar = kind[fund.ClosedDay]{
	columns:   names(closedDayColumns),
	newValue:  func(l *line) (fund.ClosedDay, []fault.Fault) { return fund.NewClosedDay(l.text(0), l.text(1)) },
	compare:   func(a, b fund.ClosedDay) int { return a.Day.Compare(b.Day) },
	duplicate: "The same day is on line %d.",
}

// read reads a file to its end. Then it calls checking, which may be nil.
func read[T any](ctx context.Context, r io.Reader, k *kind[T], checking func()) (_ *sorted[T], err error) {
	file := newRecords(r)
	faults := new(backoffice.Faults)
	order, err := header(file, k.columns)
	if err != nil {
		return nil, err
	}
	content := &sorted[T]{kind: k, order: order}
	defer func() {
		if err != nil {
			err = errors.Join(err, content.close())
		}
	}()
	for {
		rec, err := file.next()
		if err = cmp.Or(ctx.Err(), err); errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if value, ok := k.parse(&rec, order, faults); ok {
			if err := content.add(&rec, value); err != nil {
				return nil, err
			}
		}
	}
	if checking != nil {
		checking()
	}
	if err := content.finish(ctx, faults); err != nil {
		return nil, err
	}
	if faults.Lines > 0 {
		return nil, inOrder(faults)
	}
	return content, nil
}

// inOrder sorts the faults by line.
func inOrder(faults *backoffice.Faults) error {
	slices.SortStableFunc(faults.List, func(a, b backoffice.Fault) int { return cmp.Compare(a.Line, b.Line) })
	return faults
}

// badHeader returns the error of a file whose first line is wrong.
func badHeader(line int64, rule string) error {
	faults := new(backoffice.Faults)
	faults.Add(line, "", rule)
	return faults
}

// header reads the line of column names. It returns the index of each column in the file.
func header(file *records, columns []string) ([]int, error) {
	faults := new(backoffice.Faults)
	expected := strings.Join(columns, ",")
	rec, err := file.next()
	if errors.Is(err, io.EOF) {
		return nil, badHeader(1, "The file is empty; the first line must be "+expected+".")
	}
	if err != nil {
		return nil, err
	}
	if rec.broken != "" {
		return nil, badHeader(rec.line, string(rec.broken))
	}
	set := func(names []string) string { return strings.Join(slices.Sorted(slices.Values(names)), ",") }
	for name, others := range map[string][]string{"prices": prices.columns, "holdings": holdings.columns, "accounts": accounts.columns, "calendar": calendar.columns} {
		if set(columns) != set(others) && set(rec.fields) == set(others) {
			return nil, badHeader(rec.line, "This is a file of "+name+".")
		}
	}
	order := make([]int, len(columns))
	for i, name := range columns {
		order[i] = slices.Index(rec.fields, name)
	}
	for place, name := range rec.fields {
		switch {
		case !slices.Contains(columns, name):
			faults.Add(rec.line, "", fmt.Sprintf("Column %d has an unknown name; the first line must be %s.", place+1, expected))
		case slices.Contains(rec.fields[:place], name):
			faults.Add(rec.line, name, "The column is there twice.")
		}
	}
	if !slices.ContainsFunc(order, func(place int) bool { return place >= 0 }) { // wrong separator or wrong file
		rule := "The first line must be " + expected + "."
		switch first := strings.Join(rec.fields, ","); {
		case strings.HasPrefix(first, "\xff\xfe"), strings.HasPrefix(first, "\xfe\xff"):
			rule += " The file is UTF-16: save it as CSV UTF-8."
		case strings.ContainsAny(first, ";\t"):
			rule += " The values are separated by semicolons or tabs: save the file with commas."
		}
		return nil, badHeader(rec.line, rule)
	}
	for i, place := range order {
		if place < 0 {
			faults.Add(rec.line, columns[i], "The column is missing.")
		}
	}
	if faults.Lines > 0 {
		return nil, faults
	}
	return order, nil
}

// parse checks one record. ok is false if it has faults. order has the index of each column.
func (k *kind[T]) parse(r *record, order []int, faults *backoffice.Faults) (value T, ok bool) {
	switch {
	case r.broken != "":
		faults.Add(r.line, "", string(r.broken))
		return value, false
	case len(r.fields) != len(order):
		faults.Add(r.line, "", fmt.Sprintf("%d values are needed, there are %d.", len(order), len(r.fields)))
		return value, false
	}
	l := line{columns: k.columns, order: order, fields: r.fields}
	value, broken := k.newValue(&l)
	l.List = append(l.List, broken...)
	for _, column := range k.columns { // report one fault per column
		if i := slices.IndexFunc(l.List, func(f fault.Fault) bool { return f.Pointer == "/"+column }); i >= 0 {
			faults.Add(r.line, column, l.List[i].Detail)
		}
	}
	return value, len(l.List) == 0
}

// line gives access to the fields of a record by column. order has the index of each column.
type line struct {
	columns    []string
	order      []int
	fields     []string
	fault.List // faults of fields with a wrong syntax
}

func (l *line) text(column int) string {
	text := l.fields[l.order[column]]
	switch {
	case strings.IndexByte(text, 0) >= 0:
		l.Add("/"+l.columns[column], fault.InvalidFormat, "A NUL character cannot be kept.")
	case !utf8.ValidString(text):
		l.Add("/"+l.columns[column], fault.InvalidFormat, "The text is not UTF-8.")
	}
	return text
}

func (l *line) number(column int) decimal.Decimal {
	text := l.fields[l.order[column]]
	if text == "" {
		return decimal.Decimal{} // missing: the domain decides whether it is optional
	}
	d, err := decimal.Parse(text)
	if err != nil {
		l.Add("/"+l.columns[column], fault.InvalidFormat, "A number like 1234.5 is needed.")
	}
	return d
}
