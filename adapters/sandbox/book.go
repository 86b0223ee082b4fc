package sandbox

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// cancelled is the customer whose recorded sales the bank cancels when the clock moves.
const cancelled = 9104

// reversed is the customer whose completed sales the bank reverses when the clock moves.
const reversed = 9105

// book is the seed of a new sandbox in addition to the demo book. It has the customers and
// funds of the page "Your first hour".
//
//go:embed book.json
var book []byte

// load loads the book of the sandbox into an empty book. today is the day of the bank.
func load(ctx context.Context, to *backoffice.Office, today day.Day) error {
	if err := to.LoadDemo(ctx, today); err != nil {
		return err
	}
	_, err := importJSON(ctx, to, bytes.ReplaceAll(book, []byte("TOMORROW"), []byte(today.Plus(1).String())))
	return err
}

// seed has what a partner adds to the book. The members of its rows are the columns of files.
type seed struct {
	Prices   []fund.PriceFields   `json:"prices"`
	Holdings []fund.HoldingFields `json:"holdings"`
	Accounts []accountFields      `json:"accounts"`
	Calendar []closedDay          `json:"calendar"`
}

type accountFields struct {
	fund.AccountFields

	Balance decimal.Decimal
}

type closedDay struct{ Day, Reason string }

// marks are the columns that identify the kind of a CSV file.
var marks = map[string]string{"Price": "prices", "Units": "holdings", "Balance": "accounts", "Reason": "calendar"}

// importSeed imports a seed in JSON, or a CSV file of one kind, and counts its rows.
func importSeed(ctx context.Context, office *backoffice.Office, body io.Reader) (map[string]int64, error) {
	content, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	text := bytes.TrimLeft(content, "\ufeff \t\r\n")
	if len(text) == 0 || text[0] == '{' {
		return importJSON(ctx, office, text)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	for column := range strings.SplitSeq(strings.TrimSpace(string(line)), ",") {
		kind := marks[column]
		if kind != "" {
			imported, err := bookfile.Import(ctx, office, kind, bytes.NewReader(content), bookfile.Options{})
			if bad, ok := errors.AsType[*backoffice.Faults](err); ok {
				var faults []fault.Fault
				for _, f := range bad.List {
					faults = append(faults, fault.Fault{Code: fault.InvalidFormat, Detail: fmt.Sprintf("Line %d, %s: %s", f.Line, f.Column, f.Rule)})
				}
				err = refuse(faults...)
			}
			return map[string]int64{kind: imported.Lines()}, err
		}
	}
	return nil, refuse(fault.Fault{Code: fault.InvalidFormat, Detail: "The first line must name the columns of prices, holdings, accounts or calendar."})
}

// numbers reads a quantity of a seed, which may be a number or a text.
var numbers = json.UnmarshalFromFunc(func(in *jsontext.Decoder, d *decimal.Decimal) error {
	value, err := in.ReadValue()
	if err != nil || value.Kind() == 'n' {
		return err
	}
	if value.Kind() == '"' {
		if value, err = jsontext.AppendUnquote(nil, value); err != nil {
			return err
		}
	}
	*d, err = decimal.ParseBytes(value)
	return err
})

// counted counts the elements of type T that are read. It ends the reading with tooMany at the
// first one beyond the limit: a short text can have a million of them.
func counted[T any](count *int, limit int, tooMany error) *json.Unmarshalers {
	return json.UnmarshalFromFunc(func(*jsontext.Decoder, *T) error {
		*count++
		if *count > limit {
			return tooMany
		}
		return errors.ErrUnsupported // read it as usual
	})
}

// once sets the default count of an armed fault.
var once = json.UnmarshalFromFunc(func(_ *jsontext.Decoder, a *armed) error {
	a.Count = 1
	return errors.ErrUnsupported
})

// decode reads one JSON value, as strictly as the operations do. It rejects too many armed faults.
func decode(r io.Reader, into any) error {
	count := 0
	readers := json.JoinUnmarshalers(counted[armed](&count, maxArmed, errTooManyArmed), once)
	err := json.UnmarshalRead(r, into, json.WithUnmarshalers(readers), json.RejectUnknownMembers(true))
	if errors.Is(err, errTooManyArmed) {
		return errTooManyArmed
	}
	if err != nil {
		return refuse(faultOf(err))
	}
	return nil
}

// maxRows is how many rows a seed in JSON has at most. A body of 4 MiB has room for as many
// accounts, but for a million rows without members.
const maxRows = 50_000

var errTooManyRows = refuse(fault.Fault{Code: fault.TooMany, Detail: fmt.Sprintf("At most %d rows in one seed.", maxRows)})

// maxFaults is how many faults of a seed are collected. An answer has no more.
const maxFaults = 100

func importJSON(ctx context.Context, to *backoffice.Office, content []byte) (map[string]int64, error) {
	var s seed
	rows := 0
	readers := json.JoinUnmarshalers(numbers,
		counted[fund.PriceFields](&rows, maxRows, errTooManyRows), counted[fund.HoldingFields](&rows, maxRows, errTooManyRows),
		counted[accountFields](&rows, maxRows, errTooManyRows), counted[closedDay](&rows, maxRows, errTooManyRows))
	err := json.Unmarshal(content, &s, json.WithUnmarshalers(readers), json.RejectUnknownMembers(true))
	if errors.Is(err, errTooManyRows) {
		return nil, errTooManyRows
	}
	if err != nil {
		return nil, refuse(faultOfSeed(err))
	}
	if len(s.Prices)+len(s.Holdings)+len(s.Accounts) == 0 && s.Calendar == nil {
		return nil, refuse(fault.Fault{
			Code:   fault.Required,
			Detail: "Send prices, holdings, accounts or calendar, each with at least one row. Only a calendar may be empty: then no day is closed.",
		})
	}
	counts := map[string]int64{}
	err = importRows(ctx, to, counts, "prices", s.Prices, fund.NewPrice, func(a, b fund.Price) int { return cmp.Compare(a.ID, b.ID) }, to.Imports.Prices)
	if err != nil {
		return counts, err
	}
	err = importRows(ctx, to, counts, "holdings", s.Holdings, fund.NewHolding, func(a, b fund.Holding) int { return a.Key.Compare(b.Key) }, to.Imports.Holdings)
	if err != nil {
		return counts, err
	}
	newAccount := func(f accountFields) (fund.Account, []fault.Fault) {
		return fund.NewAccount(f.AccountFields, f.Balance)
	}
	err = importRows(ctx, to, counts, "accounts", s.Accounts, newAccount, func(a, b fund.Account) int { return a.Key.Compare(b.Key) }, to.Imports.Accounts)
	if err != nil {
		return counts, err
	}
	if s.Calendar == nil {
		return counts, nil
	}
	newClosedDay := func(f closedDay) (fund.ClosedDay, []fault.Fault) { return fund.NewClosedDay(f.Day, f.Reason) }
	err = importRows(ctx, to, counts, "calendar", s.Calendar, newClosedDay, func(a, b fund.ClosedDay) int { return a.Day.Compare(b.Day) }, to.Imports.ClosedDays)
	return counts, err
}

// importRows imports the rows of one kind, all or none, in the order of their keys.
func importRows[Fields, T any](
	ctx context.Context, to *backoffice.Office, counts map[string]int64, kind string, rows []Fields,
	check func(Fields) (T, []fault.Fault), compare func(a, b T) int,
	write backoffice.Import[T],
) error {
	type row struct {
		index int64
		value T
	}
	values := make([]row, len(rows))
	var faults []fault.Fault
	wrong := func(index int64, found ...fault.Fault) {
		faults = append(faults, fault.Under(fmt.Sprintf("/%s/%d", kind, index), found)...)
	}
	for i, fields := range rows {
		value, found := check(fields)
		wrong(int64(i), found...)
		if len(faults) >= maxFaults {
			return refuse(faults...)
		}
		values[i] = row{int64(i), value}
	}
	slices.SortStableFunc(values, func(a, b row) int { return compare(a.value, b.value) })
	for i := 1; i < len(values) && len(faults) == 0; i++ {
		if compare(values[i-1].value, values[i].value) == 0 {
			wrong(values[i].index, fault.Fault{Code: fault.InvalidFormat, Detail: "An earlier row has the same key."})
		}
	}
	if len(faults) > 0 {
		return refuse(faults...)
	}
	if len(values) == 0 && kind != "calendar" { // an empty calendar replaces the one before
		return nil
	}
	imported, err := write(ctx, func(yield func(int64, T) error) error {
		for _, r := range values {
			if err := yield(r.index, r.value); err != nil {
				return err
			}
		}
		return nil
	}, backoffice.ImportOptions{ID: to.Acts.NewID()})
	if changed, ok := errors.AsType[*backoffice.Faults](err); ok {
		for _, c := range changed.List {
			wrong(c.Line, fault.Fault{Pointer: "/" + c.Column, Code: fault.NotAllowed, Detail: "The price exists with another value. A price never changes: give the new one another PriceID."})
		}
		return refuse(faults...)
	}
	counts[kind] = imported.Lines()
	return err
}

// faultOf returns the fault of a body with invalid JSON.
func faultOf(err error) fault.Fault {
	twice, ok := errors.AsType[*jsontext.SyntacticError](err)
	if ok && errors.Is(err, jsontext.ErrDuplicateName) {
		return fault.Fault{Pointer: string(twice.JSONPointer), Code: fault.DuplicateMember, Detail: "Duplicate member name in this object."}
	}
	wrong, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return fault.Fault{Code: fault.InvalidJSON, Detail: "The body must be the JSON that the documentation of the sandbox shows."}
	case errors.Is(err, json.ErrUnknownName):
		return fault.Fault{Pointer: string(wrong.JSONPointer), Code: fault.UnknownMember, Detail: "Unknown member. Names are case-sensitive."}
	}
	return fault.Fault{Pointer: string(wrong.JSONPointer), Code: fault.WrongType, Detail: "The value has another JSON type than the documentation of the sandbox shows."}
}

// faultOfSeed returns the fault of a seed with invalid JSON.
func faultOfSeed(err error) fault.Fault {
	f := faultOf(err)
	switch {
	case f.Code == fault.UnknownMember && strings.Count(f.Pointer, "/") == 1:
		f.Detail = "The object has prices, holdings, accounts and calendar."
	case f.Code == fault.UnknownMember:
		f.Detail = "A row has the columns of the file of its kind."
	case f.Code == fault.WrongType:
		f.Detail = "Must be a number or a text, as in the file of this kind."
	}
	return f
}
