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
	// newValue makes a value of the columns of a line.
	newValue func(*line) (T, []fault.Fault)
	// compare orders values by their keys.
	compare func(a, b T) int
	// same reports whether a second line of one key says the same, and is left
	// out; nil when a key may be there only once.
	same func(a, b T) bool
	// again is the rule that a second line of one key breaks.
	again string
}

var prices = kind[fund.Price]{
	columns: names(priceColumns),
	newValue: func(l *line) (fund.Price, []fault.Fault) {
		return fund.NewPrice(fund.PriceFields{
			PriceID: l.number(0), IMKBCode: l.text(1), HolderCorporationName: l.text(2),
			Price: l.number(3), CurrencyCode: l.text(4), ValidFrom: l.text(5),
		})
	},
	compare: func(a, b fund.Price) int { return cmp.Compare(a.ID, b.ID) },
	same:    func(a, b fund.Price) bool { return a == b },
	again:   "Another price of this PriceID is on line %d.",
}

var holdings = kind[fund.Holding]{
	columns: names(holdingColumns),
	newValue: func(l *line) (fund.Holding, []fault.Fault) {
		return fund.NewHolding(fund.HoldingFields{
			CustomerNo: l.number(0), IMKBCode: l.text(1), HolderCorporationName: l.text(2), Units: l.number(3),
		})
	},
	compare: func(a, b fund.Holding) int { return a.Key.Compare(b.Key) },
	again:   "The same holding is on line %d.",
}

var accounts = kind[fund.Account]{
	columns: names(accountColumns),
	newValue: func(l *line) (fund.Account, []fault.Fault) {
		fields := fund.AccountFields{
			BranchCode: l.number(0), CustomerNo: l.number(1), AccountSuffix: l.number(2), CurrencyCode: l.text(3),
		}
		return fund.NewAccount(fields, l.number(4))
	},
	compare: func(a, b fund.Account) int { return a.Key.Compare(b.Key) },
	again:   "The same account is on line %d.",
}

var calendar = kind[fund.ClosedDay]{
	columns:  names(closedDayColumns),
	newValue: func(l *line) (fund.ClosedDay, []fault.Fault) { return fund.NewClosedDay(l.text(0), l.text(1)) },
	compare:  func(a, b fund.ClosedDay) int { return a.Day.Compare(b.Day) },
	again:    "The same day is on line %d.",
}

// read reads a file to its end. It calls checking when all lines were read; it may be nil.
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
		found, err := file.next()
		if err = cmp.Or(ctx.Err(), err); errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if value, ok := k.parse(&found, order, faults); ok {
			if err := content.add(&found, value); err != nil {
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

// inOrder are the faults in the order of the file.
func inOrder(faults *backoffice.Faults) error {
	slices.SortStableFunc(faults.List, func(a, b backoffice.Fault) int { return cmp.Compare(a.Line, b.Line) })
	return faults
}

// badHeader returns the error of a file whose first line is not that of its kind.
func badHeader(line int64, rule string) error {
	faults := new(backoffice.Faults)
	faults.Add(line, "", rule)
	return faults
}

// header reads the line of column names and returns where each of the columns is in the file.
func header(file *records, columns []string) ([]int, error) {
	faults := new(backoffice.Faults)
	expected := strings.Join(columns, ",")
	found, err := file.next()
	if errors.Is(err, io.EOF) {
		return nil, badHeader(1, "The file is empty; the first line must be "+expected+".")
	}
	if err != nil {
		return nil, err
	}
	if found.broken != "" {
		return nil, badHeader(found.line, string(found.broken))
	}
	set := func(names []string) string { return strings.Join(slices.Sorted(slices.Values(names)), ",") }
	for name, others := range map[string][]string{"prices": prices.columns, "holdings": holdings.columns, "accounts": accounts.columns, "calendar": calendar.columns} {
		if set(columns) != set(others) && set(found.fields) == set(others) {
			return nil, badHeader(found.line, "This is a file of "+name+".")
		}
	}
	order := make([]int, len(columns))
	for i, name := range columns {
		order[i] = slices.Index(found.fields, name)
	}
	for place, name := range found.fields {
		switch {
		case !slices.Contains(columns, name):
			faults.Add(found.line, "", fmt.Sprintf("Column %d has an unknown name; the first line must be %s.", place+1, expected))
		case slices.Contains(found.fields[:place], name):
			faults.Add(found.line, name, "The column is there twice.")
		}
	}
	if !slices.ContainsFunc(order, func(place int) bool { return place >= 0 }) { // another separator, another file
		rule := "The first line must be " + expected + "."
		switch first := strings.Join(found.fields, ","); {
		case strings.HasPrefix(first, "\xff\xfe"), strings.HasPrefix(first, "\xfe\xff"):
			rule += " The file is UTF-16: save it as CSV UTF-8."
		case strings.ContainsAny(first, ";\t"):
			rule += " The values are separated by semicolons or tabs: save the file with commas."
		}
		return nil, badHeader(found.line, rule)
	}
	for i, place := range order {
		if place < 0 {
			faults.Add(found.line, columns[i], "The column is missing.")
		}
	}
	if faults.Lines > 0 {
		return nil, faults
	}
	return order, nil
}

// parse checks one record; ok is false when it has faults. order says where each column
// is in the record.
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
	for _, column := range k.columns { // one for each
		if i := slices.IndexFunc(l.List, func(f fault.Fault) bool { return f.Pointer == "/"+column }); i >= 0 {
			faults.Add(r.line, column, l.List[i].Detail)
		}
	}
	return value, len(l.List) == 0
}

// line is a record whose fields are taken by column. order says where each column is.
type line struct {
	columns    []string
	order      []int
	fields     []string
	fault.List // of fields that are not even what they should be
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
		return decimal.Decimal{} // absent: the domain knows whether it may be
	}
	d, err := decimal.Parse(text)
	if err != nil {
		l.Add("/"+l.columns[column], fault.InvalidFormat, "A number like 1234.5 is needed.")
	}
	return d
}
