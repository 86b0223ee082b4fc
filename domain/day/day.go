// Package day has the calendar day: a date without a time of day and without a time zone.
package day

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrSyntax is returned for text that is not a valid date in YYYY-MM-DD format.
var ErrSyntax = errors.New("not a day of the form YYYY-MM-DD")

// ErrClockSyntax is returned for text that is not a time in HH:MM format.
var ErrClockSyntax = errors.New("not a time of the form HH:MM")

// Day is a day of the Gregorian calendar from 0001-01-01 to 9999-12-31. The zero
// value is no day. Compare days with == or Compare.
type Day struct {
	number int32 // days since 0000-12-31, so that no day is 0
}

const layout = time.DateOnly

// Last is the last day that there is.
var Last = civil(time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC))

var origin = time.Date(0, time.December, 31, 0, 0, 0, 0, time.UTC)

// Parse reads a date in YYYY-MM-DD format. The error is ErrSyntax.
func Parse(text string) (Day, error) {
	t, err := time.Parse(layout, text)
	if err != nil || t.Year() < 1 {
		return Day{}, ErrSyntax
	}
	return civil(t), nil
}

// ParseMidnight reads a date in YYYY-MM-DD format, or its midnight: .NET writes the date
// 2026-11-20 as 2026-11-20T00:00:00. A fraction of the second may follow if it is zero. Any
// other time and every time zone is ErrSyntax.
func ParseMidnight(text string) (Day, error) {
	date, time, hasTime := strings.Cut(text, "T")
	if hasTime && !isMidnight(time) {
		return Day{}, ErrSyntax
	}
	return Parse(date)
}

func isMidnight(time string) bool {
	seconds, fraction, hasFraction := strings.Cut(time, ".")
	if hasFraction && (fraction == "" || strings.Trim(fraction, "0") != "") {
		return false
	}
	return seconds == "00:00:00"
}

// Of returns the day that a clock in that location shows at the instant.
func Of(instant time.Time, in *time.Location) Day {
	local := instant.In(in)
	return civil(time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC))
}

func civil(midnight time.Time) Day {
	return Day{int32((midnight.Unix() - origin.Unix()) / secondsPerDay)} //nolint:gosec // years 1 to 9999
}

const secondsPerDay = 24 * 60 * 60

// IsNone reports whether d is the zero value.
func (d Day) IsNone() bool { return d.number == 0 }

// Compare returns a negative number if d is before other, 0 if they are equal,
// and a positive number if d is after other. No day is before every day.
func (d Day) Compare(other Day) int { return int(d.number) - int(other.number) }

// Before reports whether d is before other.
func (d Day) Before(other Day) bool { return d.number < other.number }

// After reports whether d is after other.
func (d Day) After(other Day) bool { return d.number > other.number }

// Plus returns the day n days later, or earlier if n is negative. Before the first day there is
// none. After the last one there is its end, which begins the year 10000, and nothing later.
func (d Day) Plus(n int) Day {
	end := int(Last.number) + 1
	n = min(max(n, -end), end)                           // the sum must fit
	return Day{int32(min(max(int(d.number)+n, 0), end))} //nolint:gosec // as above
}

// Weekday returns the day of the week.
func (d Day) Weekday() time.Weekday { return d.utc().Weekday() }

// Start returns the first instant at which a clock in that location shows the
// day. This is 00:00, or the instant of a clock change that skips midnight. A day
// that a clock change skips begins together with the next day.
func (d Day) Start(in *time.Location) time.Time { return firstInstant(d.utc(), in) }

// firstInstant returns the first instant at which a clock in that location shows this date and
// time or, if a clock change skips them, later ones. local has them in UTC.
func firstInstant(local time.Time, in *time.Location) time.Time {
	// No time zone is a whole day away from UTC, and none changes twice in two days.
	from := local.AddDate(0, 0, -1)
	until := local.AddDate(0, 0, 1)
	before := offset(from, in)
	after := offset(until, in)
	_, change := from.In(in).ZoneBounds()
	first := local.Add(-before)
	if !first.Before(change) {
		first = local.Add(-after)
		if first.Before(change) {
			first = change
		}
	}
	return first.In(in)
}

// offset returns how far a clock in that location is ahead of UTC.
func offset(instant time.Time, in *time.Location) time.Duration {
	_, seconds := instant.In(in).Zone()
	return time.Duration(seconds) * time.Second
}

// String returns the day in YYYY-MM-DD format, and an empty text for no day.
func (d Day) String() string {
	if d.IsNone() {
		return ""
	}
	return d.utc().Format(layout)
}

// Append appends what String returns.
func (d Day) Append(b []byte) []byte {
	if d.IsNone() {
		return b
	}
	return d.utc().AppendFormat(b, layout)
}

func (d Day) utc() time.Time { return origin.AddDate(0, 0, int(d.number)) }

// Clock is a local time of day in minutes, from 00:00 to 23:59. The zero value is no time.
type Clock struct {
	number int16 // minutes since midnight, and 1 more, so that no time is 0
}

// ParseClock reads a time in HH:MM format. The error is ErrClockSyntax.
func ParseClock(text string) (Clock, error) {
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return Clock{}, ErrClockSyntax
	}
	return clock(t), nil
}

// ClockOf returns the latest time that a clock in that location has shown on the day of the
// instant, without its seconds. This is the time that it shows, except in the hour that a clock
// change repeats. There it stays at the time before the change, so that what begins at a local
// time does not end again.
func ClockOf(instant time.Time, in *time.Location) Clock {
	local := instant.In(in)
	shown := clock(local)
	change, _ := local.ZoneBounds()
	if change.IsZero() {
		return shown
	}
	before := change.Add(-1)
	latest := clock(before.In(in))
	if shown.Before(latest) && Of(before, in) == Of(instant, in) {
		return latest
	}
	return shown
}

func clock(t time.Time) Clock {
	return Clock{int16(t.Hour()*60 + t.Minute() + 1)} //nolint:gosec // at most 1440
}

// At returns the first instant at which a clock in that location shows that time on d, or a later
// one if a clock change skips it. No time is 00:00.
func (d Day) At(c Clock, in *time.Location) time.Time {
	minutes := time.Duration(max(0, int(c.number)-1)) * time.Minute
	return firstInstant(d.utc().Add(minutes), in)
}

// IsNone reports whether c is the zero value.
func (c Clock) IsNone() bool { return c.number == 0 }

// String returns the time in HH:MM format, and an empty text for no time.
func (c Clock) String() string {
	if c.IsNone() {
		return ""
	}
	minutes := int(c.number) - 1
	return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60)
}

// Before reports whether c is before other. No time is before every time.
func (c Clock) Before(other Clock) bool { return c.number < other.number }
