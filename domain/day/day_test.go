package day_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/domain/day"
)

func on(t require.TestingT, text string) day.Day {
	d, err := day.Parse(text)
	require.NoError(t, err, text)
	return d
}

func zone(t require.TestingT, name string) *time.Location {
	z, err := time.LoadLocation(name)
	require.NoError(t, err)
	return z
}

func instant(t require.TestingT, text string) time.Time {
	i, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return i.UTC()
}

func TestDaysThatExist(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"0001-01-01", "9999-12-31", "2026-11-20", "2024-02-29", "2000-02-29", "0004-02-29", "1582-10-10",
		"2026-01-31", "2026-04-30", "2026-12-31", "2025-02-28",
	} {
		d := on(t, text)
		require.Equal(t, text, d.String())
		require.False(t, d.IsNone())
	}
}

func TestMidnightIsADate(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"2026-11-20", "2026-11-20T00:00:00", "2026-11-20T00:00:00.0", "2026-11-20T00:00:00.0000000"} {
		d, err := day.ParseMidnight(text)
		require.NoError(t, err, text)
		require.Equal(t, on(t, "2026-11-20"), d, text)
	}
	for _, text := range []string{
		"", "T", "T00:00:00", "2026-02-29T00:00:00", "2026-11-20T", "2026-11-20T00", "2026-11-20T00:00", "2026-11-20T0:00:00",
		"2026-11-20T00:00:00.", "2026-11-20T00:00:00.1", "2026-11-20T00:00:00.0000001", "2026-11-20T00:00:00,0",
		"2026-11-20T00:00:01", "2026-11-20T24:00:00", "2026-11-20T12:00:00", "2026-11-20T00:00:00Z", "2026-11-20T00:00:00.0Z",
		"2026-11-20T00:00:00+00:00", "2026-11-20T00:00:00+03:00", "2026-11-20t00:00:00", "2026-11-20 00:00:00",
		"2026-11-20T00:00:00T00:00:00", "2026-11-20T00:00:00 ", " 2026-11-20T00:00:00", "2026-11-20T00:00:00.0 0", "2026-11-20T00:00:00.٠",
	} {
		_, err := day.ParseMidnight(text)
		require.ErrorIs(t, err, day.ErrSyntax, text)
	}
}

func TestOnlyADayThatExistsIsADay(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "2026", "2026-11", "2026-11-2", "2026-1-20", "26-11-20", "2026-11-020", "02026-11-20", "12026-11-20",
		"2026-00-10", "2026-13-10", "2026-11-00", "2026-11-31", "2026-04-31", "2026-01-32", "2026-02-29", "1900-02-29", "2100-02-29",
		"0000-01-01", "0000-12-31", "0000-02-29",
		" 2026-11-20", "2026-11-20 ", "2026-11- 2", "2026- 1-20", " 026-11-20", "2026-11-2\n", "2026-11-20\x00",
		"+026-11-20", "-026-11-20", "2026-+1-20", "2026-11-+2", "-2026-11-20", "2026--1-20",
		"2026/11/20", "20261120", "2026-1120", "202611-20", "20.11.2026", "20-11-2026", "2026.11.20", "2026-Nov-20", "2026-325",
		"2026-11-20T00:00:00Z", "2026-11-20Z", "2026-11-20+03", "today", "null", "aaaa-bb-cc", "2026-11-2o", "2026–11–20",
		"2026-11-2٠", "٢٠٢٦-١١-٢٠", "2026-11-2\uff10", "1e03-11-20", "0x1a-11-20",
	} {
		d, err := day.Parse(text)
		require.ErrorIs(t, err, day.ErrSyntax, text)
		require.True(t, d.IsNone(), text)
		require.NotContains(t, err.Error(), "2026")
	}
}

func TestTheDayOfAnInstant(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ instant, zone, want string }{
		{"2026-11-20T12:00:00Z", "UTC", "2026-11-20"},
		{"2026-11-20T00:00:00Z", "UTC", "2026-11-20"},
		{"2026-11-19T23:59:59.999999999Z", "UTC", "2026-11-19"},
		// Istanbul is three hours ahead all year since 2016, and had two and three before.
		{"2026-11-19T20:59:59.999999Z", "Europe/Istanbul", "2026-11-19"},
		{"2026-11-19T21:00:00Z", "Europe/Istanbul", "2026-11-20"},
		{"2014-12-31T21:59:59Z", "Europe/Istanbul", "2014-12-31"},
		{"2014-12-31T22:00:00Z", "Europe/Istanbul", "2015-01-01"},
		{"2014-06-30T21:00:00Z", "Europe/Istanbul", "2014-07-01"},
		{"2026-07-01T03:59:59Z", "America/New_York", "2026-06-30"},
		{"2026-07-01T04:00:00Z", "America/New_York", "2026-07-01"},
		{"2026-12-01T04:59:59Z", "America/New_York", "2026-11-30"},
		{"2026-12-01T05:00:00Z", "America/New_York", "2026-12-01"},
		{"2026-01-01T10:00:00Z", "Pacific/Kiritimati", "2026-01-02"},
		{"2026-01-01T10:00:00Z", "Pacific/Pago_Pago", "2025-12-31"},
		{"2011-12-30T09:59:59Z", "Pacific/Apia", "2011-12-29"},
		{"2011-12-30T10:00:00Z", "Pacific/Apia", "2011-12-31"},
		{"1900-01-01T00:00:00Z", "UTC", "1900-01-01"},
		{"0001-01-01T00:00:00Z", "UTC", "0001-01-01"},
		{"9999-12-31T23:59:59Z", "UTC", "9999-12-31"},
	} {
		require.Equal(t, tt.want, day.Of(instant(t, tt.instant), zone(t, tt.zone)).String(), "%s in %s", tt.instant, tt.zone)
	}
}

func TestTheZoneOfTheClockDoesNotCount(t *testing.T) {
	t.Parallel()
	at := instant(t, "2026-11-19T21:00:00Z")
	istanbul := zone(t, "Europe/Istanbul")
	require.Equal(t, day.Of(at, istanbul), day.Of(at.In(zone(t, "America/New_York")), istanbul))
}

func TestTheDayBeginsAtMidnightOrWithTheFirstInstantTheClockShowsIt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ zone, day, want string }{
		{"UTC", "2026-11-20", "2026-11-20T00:00:00Z"},
		{"Europe/Istanbul", "2026-11-20", "2026-11-19T21:00:00Z"},
		{"Europe/Istanbul", "0001-01-01", "0000-12-31T22:04:08Z"}, // local mean time
		{"Europe/Istanbul", "9999-12-31", "9999-12-30T21:00:00Z"},
		{"America/New_York", "2026-07-01", "2026-07-01T04:00:00Z"},

		// Midnight is skipped: the clock goes from 23:59:59 to 01:00.
		{"America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00Z"},
		{"Africa/Cairo", "2010-04-30", "2010-04-29T22:00:00Z"},
		{"Africa/Cairo", "2023-04-28", "2023-04-27T22:00:00Z"},
		{"Asia/Beirut", "2022-03-27", "2022-03-26T22:00:00Z"},
		{"Asia/Amman", "2022-02-25", "2022-02-24T22:00:00Z"},
		{"America/Havana", "2026-03-08", "2026-03-08T05:00:00Z"},
		{"America/Asuncion", "2023-10-01", "2023-10-01T04:00:00Z"},

		// Midnight lies inside the skipped hour: 23:30 to 00:30.
		{"America/Toronto", "1919-03-31", "1919-03-31T04:30:00Z"},

		// Midnight comes twice: the clock goes from 01:00 back to it, or just
		// past it back to the day before. The first one counts.
		{"America/Havana", "2026-11-01", "2026-11-01T04:00:00Z"},
		{"Atlantic/Azores", "2026-10-25", "2026-10-25T00:00:00Z"},
		{"America/St_Johns", "2010-11-07", "2010-11-07T02:30:00Z"},
		{"America/Sao_Paulo", "2018-02-18", "2018-02-18T03:00:00Z"},

		// A day that does not exist begins when the next one does.
		{"Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00Z"},
		{"Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00Z"},
		{"Pacific/Kwajalein", "1993-08-21", "1993-08-21T12:00:00Z"},
		// One that comes twice begins once.
		{"America/Juneau", "1867-10-18", "1867-10-17T08:57:41Z"},
	} {
		start := on(t, tt.day).Start(zone(t, tt.zone))
		require.Equal(t, tt.want, start.UTC().Format(time.RFC3339Nano), "%s in %s", tt.day, tt.zone)
	}
}

// oddZones have clocks that changed at or about midnight, by a day, or by
// parts of an hour.
var oddZones = []string{
	"UTC", "Europe/Istanbul", "America/Sao_Paulo", "Africa/Cairo", "Asia/Beirut", "Pacific/Apia", "Pacific/Kwajalein",
	"America/Toronto", "America/St_Johns", "America/Havana", "America/Asuncion", "America/Santiago", "Asia/Amman", "Asia/Gaza",
	"Asia/Kathmandu", "Asia/Manila", "America/Juneau", "Africa/Monrovia", "Antarctica/Troll", "Australia/Lord_Howe",
	"Atlantic/Azores", "America/Nuuk", "Asia/Tehran", "Asia/Pyongyang", "Pacific/Kiritimati", "Europe/Dublin",
}

func TestADayBeginsWithItsFirstInstant(t *testing.T) {
	t.Parallel()
	zones := make(map[string]*time.Location, len(oddZones))
	for _, name := range oddZones {
		zones[name] = zone(t, name)
	}
	first, last := on(t, "1860-01-01"), on(t, "2040-12-31")
	rapid.Check(t, func(t *rapid.T) {
		in := zones[rapid.SampledFrom(oddZones).Draw(t, "zone")]
		d := first.Plus(rapid.IntRange(0, last.Compare(first)).Draw(t, "day"))
		requireFirstInstant(t, d, in)
	})
	for _, in := range zones { // and every day on which one of these clocks changed
		until := last.Start(in)
		_, before := first.Start(in).Zone()
		for at := first.Start(in); at.Before(until); at = at.Add(48 * time.Hour) {
			if _, after := at.Zone(); after != before {
				for beside := -2; beside <= 1; beside++ {
					requireFirstInstant(t, day.Of(at, in).Plus(beside), in)
				}
				before = after
			}
		}
	}
}

func requireFirstInstant(t require.TestingT, d day.Day, in *time.Location) {
	start := d.Start(in)
	what := func() string { return fmt.Sprintf("%s in %s begins %s", d, in, start) }
	if shown := day.Of(start, in); shown != d { // the clock goes over this day
		require.True(t, shown.After(d), what())
		require.Contains(t, []string{"Pacific/Apia", "Pacific/Kwajalein", "Asia/Manila", "Pacific/Kiritimati"}, in.String(), what())
	}
	for before := time.Duration(1); before < 3*time.Hour; before += 11 * time.Minute {
		if !day.Of(start.Add(-before), in).Before(d) {
			require.Fail(t, "the clock showed the day before its start", what())
		}
	}
	require.Equal(t, in, start.Location())
}

// A rule of the bank that names a local time applies from one instant of the day on. It does
// not end when a clock change shows an earlier time again.
func TestTheClockOfADayNeverGoesBack(t *testing.T) {
	t.Parallel()
	for _, name := range oddZones {
		in := zone(t, name)
		until := time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)
		_, before := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).In(in).Zone()
		for at := time.Date(2024, 1, 1, 0, 0, 0, 0, in); at.Before(until); at = at.Add(24 * time.Hour) {
			_, after := at.Zone()
			if after == before {
				continue
			}
			before = after
			for beside := -1; beside <= 0; beside++ {
				requireOneClock(t, day.Of(at, in).Plus(beside), in)
			}
		}
	}
}

func requireOneClock(t *testing.T, d day.Day, in *time.Location) {
	t.Helper()
	var last day.Clock
	begins := map[day.Clock]time.Time{} // the first instant at which the clock showed that time or later
	shown := day.Clock{}
	for at := d.Start(in); day.Of(at, in) == d; at = at.Add(time.Minute) {
		c := day.ClockOf(at, in)
		require.False(t, c.Before(shown), "%s in %s: %s after %s at %s", d, in, c, shown, at)
		if c != shown {
			begins[c] = at
		}
		shown, last = c, c
	}
	for minute := range 24 * 60 {
		c, err := day.ParseClock(fmt.Sprintf("%02d:%02d", minute/60, minute%60))
		require.NoError(t, err)
		want, isShown := begins[c]
		if !isShown || c.Before(day.ClockOf(d.Start(in), in)) || last.Before(c) {
			continue
		}
		require.True(t, d.At(c, in).Equal(want), "%s %s in %s: %s, not %s", d, c, in, d.At(c, in), want)
	}
}

func TestTheInstantOfATimeThatComesTwiceOrNever(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ zone, day, clock, want string }{
		{"Europe/Istanbul", "2026-11-20", "18:30", "2026-11-20T15:30:00Z"},
		{"Europe/Berlin", "2026-10-25", "02:30", "2026-10-25T00:30:00Z"},       // twice: the first
		{"America/Santiago", "2027-04-03", "23:15", "2027-04-04T02:15:00Z"},    // twice, at the end of the day
		{"America/Havana", "2026-11-01", "00:30", "2026-11-01T04:30:00Z"},      // twice, at its begin
		{"Europe/Berlin", "2026-03-29", "02:30", "2026-03-29T01:00:00Z"},       // never: with the first later time
		{"America/Santiago", "2027-09-05", "00:30", "2027-09-05T04:00:00Z"},    // never: with the first of the day
		{"Australia/Lord_Howe", "2026-10-04", "02:15", "2026-10-03T15:30:00Z"}, // a change of half an hour
	} {
		c, err := day.ParseClock(tt.clock)
		require.NoError(t, err)
		at := on(t, tt.day).At(c, zone(t, tt.zone))
		require.Equal(t, tt.want, at.UTC().Format(time.RFC3339), "%s %s in %s", tt.day, tt.clock, tt.zone)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	days := []day.Day{{}, on(t, "0001-01-01"), on(t, "1999-12-31"), on(t, "2000-01-01"), on(t, "2026-11-20"), on(t, "9999-12-31")}
	require.True(t, slices.IsSortedFunc(days, day.Day.Compare))
	for i, a := range days {
		for j, b := range days {
			require.Equal(t, i < j, a.Before(b), "%s %s", a, b)
			require.Equal(t, i > j, a.After(b), "%s %s", a, b)
			require.Equal(t, i == j, a == b, "%s %s", a, b)
			require.Equal(t, i < j, a.Compare(b) < 0, "%s %s", a, b)
			require.Equal(t, i > j, a.Compare(b) > 0, "%s %s", a, b)
		}
	}
}

func TestPlus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from string
		n    int
		want string
	}{
		{"2026-11-20", 0, "2026-11-20"},
		{"2026-11-20", 1, "2026-11-21"},
		{"2026-11-30", 1, "2026-12-01"},
		{"2026-12-31", 1, "2027-01-01"},
		{"2026-01-01", -1, "2025-12-31"},
		{"2024-02-28", 1, "2024-02-29"},
		{"2024-02-29", 366, "2025-03-01"},
		{"2026-11-20", 366, "2027-11-21"},
		{"1900-02-28", 1, "1900-03-01"},
		{"2026-11-20", -10_000_000, ""}, // as of a retention that means for ever
		{"2026-11-20", 1 - 1<<32, ""},
		{"2026-11-20", math.MinInt, ""},
		{"0001-01-01", -1, ""},
		{"9999-12-31", 1, "10000-01-01"},
		{"2026-11-20", 1<<32 - 1, "10000-01-01"},
		{"2026-11-20", math.MaxInt, "10000-01-01"},
	} {
		require.Equal(t, tt.want, on(t, tt.from).Plus(tt.n).String())
	}
}

func TestNoDay(t *testing.T) {
	t.Parallel()
	var none day.Day
	require.True(t, none.IsNone())
	require.Empty(t, none.String())
}

func TestDaysAreThoseOfTheGregorianCalendar(t *testing.T) {
	t.Parallel()
	first := on(t, "0001-01-01")
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 3_652_058).Draw(t, "n")
		want := time.Date(1, 1, 1+n, 0, 0, 0, 0, time.UTC)
		d := first.Plus(n)
		require.Equal(t, want.Format(time.DateOnly), d.String())
		require.Equal(t, d, on(t, d.String()))
		require.Equal(t, d, day.Of(want, time.UTC))
		require.Equal(t, d, day.Of(want.Add(24*time.Hour-1), time.UTC))
		require.Equal(t, first, d.Plus(-n))
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"2026-11-20", "2024-02-29", "2023-02-29", "0000-01-01", "9999-12-31", "2026-1-01", "2026-11- 2", "2026-11-20T00:00:00Z", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := day.Parse(text)
		require.Equal(t, isDay(text), err == nil, "%q", text)
		require.Equal(t, err != nil, d.IsNone())
		if err == nil {
			require.Equal(t, text, d.String())
		}
	})
}

// isDay is the calendar by hand.
func isDay(text string) bool {
	if len(text) != 10 || text[4] != '-' || text[7] != '-' {
		return false
	}
	number := func(digits string) int {
		n := 0
		for _, c := range []byte(digits) {
			if c < '0' || c > '9' {
				return math.MinInt32
			}
			n = n*10 + int(c-'0')
		}
		return n
	}
	year, month, date := number(text[:4]), number(text[5:7]), number(text[8:])
	if year < 1 || month < 1 || month > 12 || date < 1 {
		return false
	}
	length := []int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
	if month == 2 && (year%4 == 0 && year%100 != 0 || year%400 == 0) {
		length = 29
	}
	return date <= length
}
