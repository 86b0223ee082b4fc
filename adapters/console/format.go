package console

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// formats are the functions of templates for values that anybody may see.
var formats = template.FuncMap{
	"add":      func(a, b int) int { return a + b },
	"after":    func(p fund.Posting, quantity int64) string { return quantityOf(&p, quantity) },
	"amount":   amount,
	"asset":    assetPath,
	"calendar": calendar,
	"count":    count,
	"describe": func(name string) fault.Code {
		code, _ := fault.Describe(name)
		return code
	},
	"duepath": duePath,
	"exports": func(path, format string) string { return joined(path) + "format=" + format },
	"has":     strings.Contains,
	"fixed":   func(minor int64, c money.Currency) string { return money.New(minor, c).String() },
	"held":    backoffice.Held,
	"isid": func(text string) bool {
		_, err := operation.ParseID(text)
		return err == nil
	},
	"json": func(text string) (string, error) {
		b, err := json.Marshal(text)
		return string(b), err
	},
	"minor":    func(n int64, c money.Currency) string { return amount(money.New(n, c)) },
	"moved":    moved,
	"path":     with,
	"plural":   plural,
	"price":    func(p fund.UnitPrice) string { return grouped(p.String()) },
	"record":   recordAt,
	"salepath": salePath,
	"short":    short,
	"shortid":  func(id operation.ID) string { return id.String()[:18] }, // tells operations of one millisecond apart
	"units":    units,
	"upto": func(text, end string) string {
		before, _, _ := strings.Cut(text, end)
		return before
	},
}

// grouped puts commas between thousands: 1,204,318.50
func grouped(number string) string {
	digits, minus := strings.CutPrefix(number, "-")
	whole, fraction, has := strings.Cut(digits, ".")
	var b strings.Builder
	if minus {
		b.WriteString("−")
	}
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(whole[i])
	}
	if has {
		b.WriteString("." + fraction)
	}
	return b.String()
}

// count is an integer with commas.
func count(n any) string { return grouped(fmt.Sprint(n)) }

// plural takes an integer.
func plural(n any, word string) string {
	if number := count(n); number != "1" {
		return number + " " + word + "s"
	}
	return "1 " + word
}

// units shows all decimals, so that a column aligns.
func units(u fund.Units) string { return grouped(decimal.FormatFixed(int64(u), fund.UnitDecimals)) }

func amount(a money.Amount) string { return grouped(a.String()) }

// quantityOf is a quantity of the holding or account of a posting.
func quantityOf(p *fund.Posting, quantity int64) string {
	if p.IsMoney() {
		return amount(money.New(quantity, p.Account.Currency))
	}
	return units(fund.Units(quantity))
}

// moved is what a posting changed, with its sign: on the customer's side or, with -1,
// on the bank's.
func moved(p fund.Posting, side int64) string {
	text := quantityOf(&p, side*p.Quantity)
	if !strings.HasPrefix(text, "−") {
		return "+" + text
	}
	return text
}

// calendar shows a day for people.
func calendar(d day.Day) string {
	if d.IsNone() {
		return ""
	}
	return d.Start(time.UTC).Format("Mon 2 Jan 2006")
}

// recordAt is the record of a request that a pointer leads to, 0 if it leads to none.
// Pointers count from 0, and pages from 1.
func recordAt(pointer string) int {
	n := -1
	_, _ = fmt.Sscanf(pointer, "/Parameters/%d", &n)
	return n + 1
}

// salePath is the page of an operation, with one of its sales in front.
func salePath(id operation.ID, index int) string {
	path := "/console/sale/" + id.String()
	if index > 0 {
		path += "?sale=" + strconv.Itoa(index+1)
	}
	return path
}

// with is the path with these query values; empty ones are left out.
func with(path string, pairs ...string) string {
	values := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			values.Set(pair[0], pair[1])
		}
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

// joined is a path to which a query value can be added.
func joined(path string) string {
	if strings.Contains(path, "?") {
		return path + "&"
	}
	return path + "?"
}
