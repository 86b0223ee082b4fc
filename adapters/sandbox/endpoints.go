package sandbox

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/domain/fault"
)

// Endpoints are the endpoints of the sandbox, for callers with a key, by method
// and path. Each returns its answer as JSON. The body of the request is complete.
// The kind of the error is that of package fault.
func (b *Sandbox) Endpoints() map[string]func(*http.Request) ([]byte, error) {
	return map[string]func(*http.Request) ([]byte, error){
		"GET /_sandbox/clock":    b.serveClock,
		"PUT /_sandbox/clock":    b.serveMove,
		"POST /_sandbox/reset":   b.serveReset,
		"POST /_sandbox/seed":    b.serveSeed,
		"GET /_sandbox/requests": b.serveRequests,
		"GET /_sandbox/book":     b.serveBook,
	}
}

type nowAnswer struct {
	Now string `json:"now"`
}

func (b *Sandbox) serveClock(*http.Request) ([]byte, error) {
	return json.Marshal(nowAnswer{show(b.Now(), b.o.Zone)})
}

func (b *Sandbox) serveMove(r *http.Request) ([]byte, error) {
	var move struct{ Now, Advance *string }
	if err := decode(r.Body, &move); err != nil {
		return nil, err
	}
	var moved Moved
	var err error
	switch {
	case (move.Now == nil) == (move.Advance == nil):
		return nil, refuse("", fault.Required, `Send either {"now":"2026-12-01T09:00:00+03:00"} or {"advance":"24h"}.`)
	case move.Now != nil:
		to, invalid := time.Parse(time.RFC3339, *move.Now)
		if invalid != nil {
			return nil, refuse("/now", fault.InvalidFormat, "Must be a time of RFC 3339, like 2026-12-01T09:00:00+03:00.")
		}
		moved, err = b.MoveClock(r.Context(), to)
	default:
		by, invalid := time.ParseDuration(*move.Advance)
		if invalid != nil {
			return nil, refuse("/advance", fault.InvalidFormat, "Must be a duration in hours, minutes or seconds, like 24h or 1h30m.")
		}
		moved, err = b.AdvanceClock(r.Context(), by)
	}
	if err != nil {
		return nil, err
	}
	type counts struct {
		Completed int `json:"completed"`
		Failed    int `json:"failed"`
	}
	return json.Marshal(struct {
		nowAnswer
		Settled counts `json:"settled"`
	}{nowAnswer{show(moved.Now, b.o.Zone)}, counts(moved.Settled)})
}

func (b *Sandbox) serveReset(r *http.Request) ([]byte, error) {
	if err := b.Reset(r.Context()); err != nil {
		return nil, err
	}
	return b.serveClock(r)
}

func (b *Sandbox) serveRequests(r *http.Request) ([]byte, error) {
	after, err := number(r, "after")
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"requests": b.Requests(after)})
}

// number reads a number from the query; 0 if it is absent.
func number(r *http.Request, name string) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, refuse("", fault.NotAnInteger, "The parameter "+name+" must be a number.")
	}
	return n, nil
}

// bookKinds are what a book has, in the order of the answer.
var bookKinds = []string{"prices", "holdings", "accounts", "sales", "postings", "notifications"}

func (b *Sandbox) serveBook(r *http.Request) ([]byte, error) {
	customer, err := number(r, "customer")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for i, kind := range bookKinds {
		fmt.Fprintf(&out, "%c%q:", "{,"[min(i, 1)], kind)
		rows := &jsonArray{out: &out}
		if err := b.o.Export(r.Context(), kind, customer, rows); err != nil {
			return nil, err
		}
		rows.end()
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// jsonArray makes an array of JSON values that are written one in each line, a
// whole line at a time.
type jsonArray struct {
	out  *bytes.Buffer
	rows int
}

func (a *jsonArray) Write(line []byte) (int, error) {
	a.out.WriteByte("[,"[min(a.rows, 1)])
	a.rows++
	a.out.Write(bytes.TrimSuffix(line, []byte("\n")))
	return len(line), nil
}

func (a *jsonArray) end() {
	if a.rows == 0 {
		a.out.WriteByte('[')
	}
	a.out.WriteByte(']')
}

// seedKinds are the files that a seed may have, in the order in which they are
// imported, with the column by which the CSV is known.
var seedKinds = []struct {
	name, mark string
	columns    []string
}{
	{"prices", "Price", []string{"PriceID", "IMKBCode", "HolderCorporationName", "Price", "CurrencyCode", "ValidFrom"}},
	{"holdings", "Units", []string{"CustomerNo", "IMKBCode", "HolderCorporationName", "Units"}},
	{"accounts", "Balance", []string{"BranchCode", "CustomerNo", "AccountSuffix", "CurrencyCode", "Balance"}},
}

func (b *Sandbox) serveSeed(r *http.Request) ([]byte, error) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, refuse("", fault.InvalidJSON, "The body is incomplete.")
	}
	imported := map[string]int64{}
	if text := bytes.TrimLeft(content, "\ufeff \t\r\n"); len(text) > 0 && text[0] != '{' {
		line, _, _ := bytes.Cut(text, []byte("\n"))
		header := strings.Split(strings.TrimSpace(string(line)), ",")
		for _, kind := range seedKinds {
			if slices.Contains(header, kind.mark) {
				imported[kind.name], err = b.importCSV(r.Context(), kind.name, content, csvFault)
				return answerOr(err, imported)
			}
		}
		return nil, refuse("", fault.InvalidFormat, "The first line must name the columns of prices, holdings or accounts.")
	}
	seed, err := readSeed(content)
	if err != nil {
		return nil, err
	}
	for _, kind := range seedKinds {
		if rows := seed[kind.name]; len(rows) > 0 {
			file, err := toCSV(kind.name, kind.columns, rows)
			if err == nil {
				imported[kind.name], err = b.importCSV(r.Context(), kind.name, file, jsonFault)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return json.Marshal(imported)
}

func answerOr(err error, answer any) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// lineFault makes the fault of an answer of a rule that a line of a file breaks.
type lineFault func(kind string, line int64, column, rule string) fault.Fault

func (b *Sandbox) importCSV(ctx context.Context, kind string, file []byte, toFault lineFault) (int64, error) {
	var faults []fault.Fault
	lines, err := b.o.Import(ctx, kind, bytes.NewReader(file), func(line int64, column, rule string) {
		faults = append(faults, toFault(kind, line, column, rule))
	})
	if len(faults) > 0 {
		return 0, fault.New(fault.Invalid, "The seed breaks a rule.", faults...)
	}
	return lines, err
}

func csvFault(_ string, line int64, column, rule string) fault.Fault {
	return fault.Fault{Code: fault.InvalidFormat, Detail: fmt.Sprintf("Line %d, %s: %s", line, column, rule)}
}

func jsonFault(kind string, line int64, column, rule string) fault.Fault {
	return fault.Fault{Pointer: fmt.Sprintf("/%s/%d/%s", kind, line-2, column), Code: fault.InvalidFormat, Detail: rule}
}

// row is one object of a seed, by its members.
type row map[string]json.RawMessage

// readSeed reads {"prices":[…],"holdings":[…],"accounts":[…]}.
func readSeed(content []byte) (map[string][]row, error) {
	seed := map[string][]row{}
	if err := decode(bytes.NewReader(content), &seed); err != nil {
		return nil, err
	}
	for name, rows := range seed {
		known := false
		for _, kind := range seedKinds {
			known = known || kind.name == name
		}
		if !known {
			return nil, refuse("/"+name, fault.UnknownMember, "A seed has prices, holdings and accounts.")
		}
		if len(rows) == 0 {
			return nil, refuse("/"+name, fault.TooFew, "Must have at least one object.")
		}
	}
	if len(seed) == 0 {
		return nil, refuse("", fault.Required, "Send prices, holdings or accounts.")
	}
	return seed, nil
}

// toCSV writes the rows as a CSV file, for the same checks as those of files.
func toCSV(kind string, columns []string, rows []row) ([]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	_ = w.Write(columns) // writing to memory does not fail
	for i, row := range rows {
		for name := range row {
			if !slices.Contains(columns, name) {
				return nil, refuse(fmt.Sprintf("/%s/%d/%s", kind, i, name), fault.UnknownMember, "The columns of "+kind+" are "+strings.Join(columns, ", ")+".")
			}
		}
		record := make([]string, len(columns))
		for at, name := range columns {
			raw := row[name]
			switch {
			case len(raw) == 0 || string(raw) == "null":
			case raw[0] == '"':
				record[at] = textOf(raw)
			case raw[0] == '{' || raw[0] == '[' || raw[0] == 't' || raw[0] == 'f':
				return nil, refuse(fmt.Sprintf("/%s/%d/%s", kind, i, name), fault.WrongType, "Must be a number or a text.")
			default:
				record[at] = string(raw)
			}
		}
		_ = w.Write(record)
	}
	w.Flush()
	return out.Bytes(), nil
}

func refuse(pointer, code, detail string) error {
	return fault.New(fault.Invalid, "The request breaks a rule.", fault.Fault{Pointer: pointer, Code: code, Detail: detail})
}

// decode reads one JSON value that has no unknown members.
func decode(r io.Reader, into any) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("trailing text")
		}
	}
	if err != nil {
		return refuse("", fault.InvalidJSON, "The body must be the JSON object that the documentation of the sandbox shows.")
	}
	return nil
}
