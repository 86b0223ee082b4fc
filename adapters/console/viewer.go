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

// viewer formats values as a session may see them, at the time of the machine and the bank.
type viewer struct {
	*session
	zone          *time.Location
	machine, bank time.Time
}

func (c *Console) viewer(s *session) *viewer {
	return &viewer{s, c.o.Zone(), c.o.Machine(), c.o.Bank()}
}

const hidden = "******"

// Mask returns what the session may see of a text that names a person.
func (v *viewer) Mask(of bookfile.Personal, text string) string {
	runes := []rune(text)
	n := len(runes)
	switch {
	case v.Revealed() || n == 0:
		return text
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

// Account shows an account as BRANCH-CUSTOMER-SUFFIX CURRENCY.
func (v *viewer) Account(a fund.AccountKey) string {
	return strconv.FormatInt(a.BranchCode, 10) + "-" + v.Number(a.CustomerNo) + "-" + v.Mask(bookfile.Suffix, strconv.FormatInt(a.AccountSuffix, 10)) + " " + a.Currency.Code()
}

// Customer returns the path of a customer's page. The number in it is encrypted.
func (v *viewer) Customer(n int64) string { return "/console/customer/" + v.refer(n) }

// Moment returns an instant in the bank's time zone, and Now the time of the bank.
func (v *viewer) Moment(t time.Time) time.Time             { return t.In(v.zone) }
func (v *viewer) Now() time.Time                           { return v.Moment(v.bank) }
func (v *viewer) local(at time.Time, layout string) string { return v.Moment(at).Format(layout) }

func (v *viewer) City() string { return strings.ReplaceAll(path.Base(v.zone.String()), "_", " ") }

// Day returns the bank's day of an instant, and Today the current day of the bank.
func (v *viewer) Day(at time.Time) day.Day { return day.Of(at, v.zone) }
func (v *viewer) Today() day.Day           { return v.Day(v.bank) }

func (v *viewer) DaysSince(at time.Time) int { return max(0, int(v.machine.Sub(at).Hours()/24)) }

// LastDay returns the last whole day before a time, or no day for the zero time.
func (v *viewer) LastDay(at time.Time) (last day.Day) {
	if at.IsZero() {
		return last
	}
	return v.Day(at.Add(-time.Nanosecond))
}
