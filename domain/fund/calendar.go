package fund

import (
	"strings"
	"time"
	"unicode/utf8"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
)

// Calendar says for which days the bank accepts sales, and until when. It applies when a
// request arrives: a recorded sale is settled on its day. The zero value accepts sales for
// every day at every hour.
type Calendar struct {
	Closed   map[day.Day]bool // the days on which the bank is closed
	Weekdays [7]bool          // the days of the week on which it is always closed
	// CutOff is the local time from which the bank accepts no sale for today. The zero value
	// means no cut-off.
	CutOff day.Clock
}

// IsOpen reports whether the bank carries out sales on that day.
func (c *Calendar) IsOpen(d day.Day) bool { return !c.Closed[d] && !c.Weekdays[d.Weekday()] }

// NextOpen returns the first open day after d. It returns no day if the bank is closed on all
// days for which a sale can be recorded.
func (c *Calendar) NextOpen(d day.Day) day.Day {
	for i := 1; i <= MaxDaysAhead; i++ {
		if next := d.Plus(i); c.IsOpen(next) {
			return next
		}
	}
	return day.Day{}
}

// Refusal returns why the bank refuses a sale for that day if it arrives today at that time.
// The fault names the next open day. Refusal returns nil if the bank accepts the sale.
func (c *Calendar) Refusal(on, today day.Day, at day.Clock) []fault.Fault {
	switch {
	case !c.IsOpen(on):
		return []fault.Fault{RefusalNaming(fault.DayClosed, c.NextOpen(on).String())}
	case on == today && !c.CutOff.IsNone() && !at.Before(c.CutOff):
		return []fault.Fault{RefusalNaming(fault.AfterCutOff, c.NextOpen(on).String())}
	}
	return nil
}

// Day returns the day of the sales of a request without faults.
func (r *Request) Day() day.Day { return r.Sales[0].terms.dayOr(r.Today) }

// ClosedDay is a day on which the bank is closed.
type ClosedDay struct {
	Day    day.Day
	Reason string // the name of a holiday, for people; may be empty
}

// NewClosedDay checks the fields of the bank's file. It returns either a closed day
// or all faults, with pointers from the record (/Day).
func NewClosedDay(on, reason string) (ClosedDay, []fault.Fault) {
	var c checker
	closed := ClosedDay{Reason: reason}
	var err error
	if closed.Day, err = day.Parse(on); err != nil {
		c.Add("/Day", fault.InvalidDate, "Required: a real date in YYYY-MM-DD format, without a time.")
	}
	if utf8.RuneCountInString(reason) > maxHolder || strings.ContainsAny(reason, "\r\n") {
		c.Add("/Reason", fault.TooLong, "At most 200 characters, in one line.")
	}
	return fault.Either(closed, c.List)
}

// parseWeekday reads the English name of a day of the week, such as Sunday, in any letter case.
func parseWeekday(text string) (of time.Weekday, ok bool) {
	for of = range time.Saturday + 1 {
		if strings.EqualFold(of.String(), text) {
			return of, true
		}
	}
	return 0, false
}
