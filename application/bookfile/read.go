package bookfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"bankingapi/application/backoffice"
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
	// fundOf returns the fund of a value. It is nil if values have none.
	fundOf func(*T) fund.Fund
	// isNothing reports whether a book without the value says the same. It is nil if no value does.
	isNothing func(*T) bool
	// duplicate is the error text for a second line with the same key.
	duplicate string
}

var prices = kind[fund.Price]{
	columns: names(priceColumns),
	newValue: func(l *line) (fund.Price, []fault.Fault) {
		return fund.NewPrice(fund.PriceFields{
			PriceID: l.number(0), IMKBCode: l.text(1), HolderCorporationName: l.text(2),
			Price: l.number(3), CurrencyCode: l.text(4), ValidFrom: l.day(5),
		})
	},
	compare:   func(a, b fund.Price) int { return cmp.Compare(a.ID, b.ID) },
	same:      func(a, b fund.Price) bool { return a == b },
	fundOf:    func(p *fund.Price) fund.Fund { return p.Fund },
	duplicate: "Another price of this PriceID is on line %d.",
}

var holdings = kind[fund.Holding]{
	columns: names(Holdings),
	newValue: func(l *line) (fund.Holding, []fault.Fault) {
		return fund.NewHolding(fund.HoldingFields{
			CustomerNo: l.number(0), IMKBCode: l.text(1), HolderCorporationName: l.text(2), Units: l.number(3),
		})
	},
	compare:   func(a, b fund.Holding) int { return a.Key.Compare(b.Key) },
	fundOf:    func(h *fund.Holding) fund.Fund { return h.Key.Fund },
	isNothing: func(h *fund.Holding) bool { return h.Units == 0 },
	duplicate: "The same holding is on line %d.",
}

var accounts = kind[fund.Account]{
	columns: names(Accounts),
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
	newValue:  func(l *line) (fund.ClosedDay, []fault.Fault) { return fund.NewClosedDay(l.day(0), l.text(1)) },
	compare:   func(a, b fund.ClosedDay) int { return a.Day.Compare(b.Day) },
	duplicate: "The same day is on line %d.",
}

// read reads a file to its end. Then it calls checking, which may be nil. Without a format the
// first line decides.
func read[T any](ctx context.Context, r io.Reader, k *kind[T], format Format, checking func()) (_ *sorted[T], err error) {
	file := newRecords(r)
	faults := new(backoffice.Faults)
	order, err := header(file, k.columns, format)
	if err != nil {
		return nil, err
	}
	written := layout{order: order, excel: file.separator == semicolon}
	content := &sorted[T]{kind: k, layout: written}
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
		if value, ok := k.parse(&rec, written, faults); ok {
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
func header(file *records, columns []string, format Format) ([]int, error) {
	faults := new(backoffice.Faults)
	rec, err := file.first(format)
	expected := strings.Join(columns, file.separator)
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
		similar := slices.IndexFunc(columns, func(column string) bool { return strings.EqualFold(column, strings.TrimSpace(name)) })
		switch {
		case !slices.Contains(columns, name) && similar >= 0:
			order[similar] = place
			faults.Add(rec.line, columns[similar], fmt.Sprintf("Column %d must have exactly this name: in this letter case and without blanks.", place+1))
		case name == "":
			faults.Add(rec.line, "", fmt.Sprintf("Column %d has no name: remove it. A spreadsheet saves such columns beside a table.", place+1))
		case !slices.Contains(columns, name):
			faults.Add(rec.line, "", fmt.Sprintf("Column %d has an unknown name; the first line must be %s.", place+1, expected))
		case slices.Contains(rec.fields[:place], name):
			faults.Add(rec.line, name, "The column is there twice.")
		}
	}
	if !slices.ContainsFunc(order, func(place int) bool { return place >= 0 }) { // wrong separator or wrong file
		rule := "The first line must be " + expected + "."
		switch first := strings.Join(rec.fields, ","); {
		case file.separator == comma && strings.Contains(first, semicolon):
			rule += " The values are separated by semicolons: save the file with commas, or import it with --format excel."
		case file.separator == semicolon && strings.Contains(first, comma):
			rule += " The values are separated by commas: save the file with semicolons, or import it with --format csv."
		case strings.Contains(first, "\t"):
			rule += " The values are separated by tabs: save the file as CSV UTF-8."
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

// parse checks one record. ok is false if it has faults.
func (k *kind[T]) parse(r *record, written layout, faults *backoffice.Faults) (value T, ok bool) {
	needed := len(written.order)
	isEmpty := !slices.ContainsFunc(r.fields, func(text string) bool { return text != "" })
	switch {
	case r.broken != "":
		faults.Add(r.line, "", string(r.broken))
		return value, false
	case isEmpty && len(r.fields) > 1:
		faults.Add(r.line, "", "The row is empty: remove it. A spreadsheet saves such rows below a table.")
		return value, false
	case len(r.fields) != needed:
		faults.Add(r.line, "", fmt.Sprintf("%d values are needed, there are %d.", needed, len(r.fields)))
		return value, false
	}
	l := line{layout: written, columns: k.columns, fields: r.fields}
	if l.isHeader() {
		faults.Add(r.line, "", "The line of column names appears again: remove it. A file that was joined from several files has it more than once.")
		return value, false
	}
	value, broken := k.newValue(&l)
	l.faults = append(l.faults, broken...)
	for _, column := range k.columns { // report one fault per column
		i := slices.IndexFunc(l.faults, func(f fault.Fault) bool { return f.Pointer == "/"+column })
		if i >= 0 {
			faults.Add(r.line, column, l.faults[i].Detail)
		}
	}
	return value, len(l.faults) == 0
}
