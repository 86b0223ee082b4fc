package console

import (
	"path"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/bookfile"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
)

// viewer formats values as a session may see them.
type viewer struct {
	*session
	Clock clock
}

func (c *Console) viewer(s *session) *viewer {
	return &viewer{s, clock{c.o.Zone(), c.o.Machine(), c.o.Bank()}}
}

const hidden = "******"

// Mask returns what the session may see of a text that names a person.
func (v *viewer) Mask(of bookfile.Personal, text string) string {
	if v.Revealed() {
		return text
	}
	return masked(of, text)
}

func masked(of bookfile.Personal, text string) string {
	runes := []rune(text)
	n := len(runes)
	switch {
	case n == 0:
		return ""
	case of == bookfile.Customer:
		return hidden + string(runes[n-min(4, n/2):])
	case of == bookfile.Suffix:
		return "*" + string(runes[n/2+n%2:])
	case of == bookfile.User:
		return hidden + string(runes[n-min(4, n/3):])
	}
	return "hidden (" + plural(n, "character") + ")"
}

// Number, User and Text return what the session may see of a customer, a user and a text.
func (v *viewer) Number(n int64) string   { return v.Mask(bookfile.Customer, strconv.FormatInt(n, 10)) }
func (v *viewer) User(id string) string   { return v.Mask(bookfile.User, id) }
func (v *viewer) Text(text string) string { return v.Mask(bookfile.Message, text) }

// Masked returns a customer as every session may see it.
func (v *viewer) Masked(n int64) string { return masked(bookfile.Customer, strconv.FormatInt(n, 10)) }

// Account shows an account as BRANCH-CUSTOMER-SUFFIX CURRENCY.
func (v *viewer) Account(a fund.AccountKey) string {
	return strconv.FormatInt(a.BranchCode, 10) + "-" + v.Number(a.CustomerNo) + "-" + v.Mask(bookfile.Suffix, strconv.FormatInt(a.AccountSuffix, 10)) + " " + a.Currency.Code()
}

// Customer returns the path of a customer's page. The number in it is encrypted.
func (v *viewer) Customer(n int64) string { return "/console/customer/" + v.refer(n) }

// clock is the time of a page, in the time zone of the bank. The machine has the real time. That of
// the bank differs from it in a sandbox only.
type clock struct {
	zone          *time.Location
	Machine, bank time.Time
}

// Moment returns an instant in the bank's time zone, and Now the time of the bank.
func (c clock) Moment(t time.Time) time.Time { return t.In(c.zone) }
func (c clock) Now() time.Time               { return c.Moment(c.bank) }

func (c clock) City() string { return strings.ReplaceAll(path.Base(c.zone.String()), "_", " ") }

// Day returns the bank's day of an instant, and Today the current day of the bank.
func (c clock) Day(at time.Time) day.Day { return day.Of(at, c.zone) }
func (c clock) Today() day.Day           { return c.Day(c.bank) }

func (c clock) DaysSince(at time.Time) int { return max(0, int(c.Machine.Sub(at).Hours()/24)) }

// LastDay returns the last whole day before a time, or no day for the zero time.
func (c clock) LastDay(at time.Time) (last day.Day) {
	if at.IsZero() {
		return last
	}
	return c.Day(at.Add(-time.Nanosecond))
}
