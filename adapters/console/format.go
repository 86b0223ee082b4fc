package console

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

// formats are the functions of templates for values that everyone may see.
var formats = template.FuncMap{
	"actions": audit.Actions, "after": quantityOf, "amount": count, "asset": assetPath, "calendar": calendar, "codes": fault.Codes, "count": count,
	"has": strings.Contains, "held": backoffice.BookHolds, "money": money.New, "moved": moved, "path": with, "plural": plural, "price": count, "ranked": ranked,
	"record": recordAt, "salepath": salePath, "split": strings.Split, "total": total, "units": units,
	"on":      view.on,
	"terms":   terms,
	"add":     func(a, b int) int { return a + b },
	"choices": func(known, granted []string) []string { return subscription.InOrder(slices.Concat(known, granted)) },
	"describe": func(name string) fault.Code {
		code, _ := fault.Describe(name)
		return code
	},
	"exact":   func(s fund.SaleEntry) string { return grouped(fund.ExactProceeds(s.Terms.Units, s.PerUnit)) },
	"columns": columns,
	"list":    func(all ...any) []any { return all },
	"member":  func(m push.Member, r push.Values) string { return m.Value(&r) },
	"members": func() []push.Member { return push.Members },
	"sales": func(r backoffice.Received, state operation.State, waited, reversed bool) int64 {
		return r.Count(backoffice.SalesKey{State: state, Waited: waited, Reversed: reversed})
	},
	"salesof": func(rows []fund.SaleEntry) saleTable { return saleTable{Sales: rows} },
	"shortid": func(id operation.ID) string { return id.String()[:18] }, // distinguishes operations of the same millisecond
}

// column is a column in the head of a table.
type column struct {
	Name     string
	IsNumber bool
}

// columns returns the columns of a head. # before a name marks numbers.
func columns(names ...string) (all []column) {
	for _, name := range names {
		text, isNumber := strings.CutPrefix(name, "#")
		all = append(all, column{text, isNumber})
	}
	return all
}

// saleTable is a table of sales: of one customer, or of several if CustomerNo is 0.
type saleTable struct {
	CustomerNo int64
	Sales      []fund.SaleEntry
	// Twins are the indexes of Sales that have another sale of the same terms within a minute.
	Twins map[int]bool
}

// short formats a rate.
func short(v float64) string {
	return grouped(strconv.FormatFloat(v, 'f', max(0, 2-int(math.Log10(max(1, v)))), 64))
}

// grouped puts commas between thousands: 1,204,318.50
func grouped(number string) string {
	digits, minus := strings.CutPrefix(number, "-")
	for at := strings.IndexByte(digits+".", '.') - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	if minus {
		return "−" + digits
	}
	return digits
}

func ranked(counts map[backoffice.RefusedKey]int64) []backoffice.RefusedKey {
	return slices.SortedFunc(maps.Keys(counts), func(x, y backoffice.RefusedKey) int {
		return cmp.Or(cmp.Compare(counts[y], counts[x]), cmp.Compare(x.Subscription, y.Subscription), cmp.Compare(x.Code, y.Code))
	})
}

// count formats a number, an amount or a price.
func count(n any) string { return grouped(fmt.Sprint(n)) }

func plural(n any, word string) string {
	number := count(n)
	if number != "1" {
		return number + " " + word + "s"
	}
	return "1 " + word
}

// units shows all decimals, so that a column aligns.
func units(u fund.Units) string { return grouped(decimal.FormatFixed(int64(u), fund.UnitDecimals)) }

func quantityOf(p fund.Posting, quantity int64) string {
	if p.IsMoney() {
		return count(money.New(quantity, p.Account.Currency))
	}
	return units(fund.Units(quantity))
}

func earliest(times ...time.Time) time.Time { return slices.MinFunc(times, time.Time.Compare) }

// moved formats the change of a posting with its sign, for the customer or, if side is -1, for
// the bank.
func moved(p fund.Posting, side int64) string {
	text := quantityOf(p, side*p.Quantity)
	if !strings.HasPrefix(text, "−") {
		return "+" + text
	}
	return text
}

func calendar(d day.Day) string {
	if d.IsNone() {
		return ""
	}
	return d.Start(time.UTC).Format("Mon 2 Jan 2006")
}

// recordAt returns the number of the record to which a pointer leads, or 0 if it leads to no
// record. Pointers count from 0, and pages from 1.
func recordAt(pointer string) int {
	n := -1
	_, _ = fmt.Sscanf(pointer, "/Parameters/%d", &n)
	return n + 1
}

// salePath returns the path of the page of an operation, with one of its sales selected.
func salePath(id operation.ID, index int) string {
	path := "/console/sale/" + id.String()
	if index > 0 {
		path += "?sale=" + strconv.Itoa(index+1)
	}
	return path
}

// with adds query values to a path. It omits empty values.
func with(path string, pairs ...string) string {
	values := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			values.Set(pair[0], pair[1])
		}
	}
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	return strings.TrimSuffix(path+separator+values.Encode(), separator)
}
