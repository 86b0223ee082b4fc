package day

import "time"

// Clock is a local time of day in minutes, from 00:00 to 23:59. The zero value is
// no time.
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

// ClockOf returns the time that a clock in that location shows at the instant,
// without its seconds.
func ClockOf(instant time.Time, in *time.Location) Clock { return clock(instant.In(in)) }

func clock(t time.Time) Clock {
	return Clock{int16(t.Hour()*60 + t.Minute() + 1)} //nolint:gosec // at most 1440
}

// At returns the instant at which a clock in that location shows that time on d. No
// time is 00:00.
func (d Day) At(c Clock, in *time.Location) time.Time {
	midnight := d.utc()
	return time.Date(midnight.Year(), midnight.Month(), midnight.Day(), 0, max(0, int(c.number)-1), 0, 0, in)
}

// IsNone reports whether c is the zero value.
func (c Clock) IsNone() bool { return c.number == 0 }

// Before reports whether c is before other. No time is before every time.
func (c Clock) Before(other Clock) bool { return c.number < other.number }
