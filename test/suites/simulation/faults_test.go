package simulation

import (
	"math/rand/v2"
	"time"
	_ "time/tzdata" // so that a run is the same on every machine

	"bankingapi/application/commit"
)

// faultInjector has the conditions of a run. The seed chooses each of them
// independently, so one run has only crashes and another a little of everything.
type faultInjector struct {
	zone      *time.Location
	start     time.Time
	limits    commit.Limits
	records   int // maximum number of records in a request
	replicas  int
	callers   int
	eagerness int // how often callers send rather than wait
	days      int // number of days before the finale
	weekend   bool
	cutOff    string

	// Number of 1,000 transactions or moments that each fault hits.
	unavailable, lostBefore, lostAfter, conflict, glitch, held int
	// Number of 1,000 events that are of this kind.
	crash, drain, outage, giveUp, stepClock, nap int

	poison poison
}

// poison is a defect of the holdings of one fund, and of the messages to one
// user, until the finale.
type poison uint8

const (
	noPoison poison = iota
	failing         // the store cannot write it
	panicking
)

// places lists time zones and days at which a bank may start: those on which other
// software has failed.
var places = [...]struct{ zone, opens string }{
	{"Europe/Istanbul", "2026-11-18"},      // no clock change since 2016
	{"Europe/Istanbul", "2016-03-24"},      // clocks go forward at night
	{"Europe/Istanbul", "2027-12-28"},      // New Year
	{"Europe/Istanbul", "2028-02-26"},      // leap day
	{"Europe/London", "2026-10-22"},        // an hour happens twice
	{"America/New_York", "2027-03-11"},     // an hour is missing
	{"America/Sao_Paulo", "2018-11-01"},    // a day without 00:00
	{"America/Sao_Paulo", "2018-02-14"},    // back at midnight, to the day before
	{"America/St_Johns", "2006-10-26"},     // back at 00:01, to the day before
	{"America/Havana", "2026-03-05"},       // a day without 00:00
	{"Africa/Cairo", "2026-04-21"},         // a day without 00:00
	{"Asia/Beirut", "2026-10-22"},          // back at midnight
	{"Pacific/Apia", "2011-12-26"},         // 30 December is missing
	{"Pacific/Kiritimati", "2026-12-29"},   // the first to have a new year
	{"Pacific/Pago_Pago", "2027-12-29"},    // the last
	{"Australia/Lord_Howe", "2026-04-02"},  // by half an hour
	{"Asia/Kathmandu", "2100-02-26"},       // no leap year, 5:45 ahead
	{"UTC", "9996-12-28"},                  // close to the end of the calendar
	{"America/Scoresbysund", "2024-03-28"}, // another zone and summer time at once
}

func newFaultInjector(r *rand.Rand) faultInjector {
	place := places[r.IntN(len(places))]
	zone, err := time.LoadLocation(place.zone)
	if err != nil {
		panic(err)
	}
	start, err := time.ParseInLocation("2006-01-02 15", place.opens+" 09", zone)
	if err != nil {
		panic(err)
	}
	// often returns up to most, and 0 in half of the runs.
	often := func(most int) int { return max(0, r.IntN(2*most+1)-most) }
	w := faultInjector{
		zone:  zone,
		start: start,
		limits: commit.Limits{
			Wait:  time.Hour, // it measures the real time
			Batch: pick(r, 1, 4, 16, 64),
			Queue: pick(r, 2, 8, 64),
			// Events are whole microseconds apart, so two timeouts never happen
			// at the same instant.
			Timeout: time.Duration(pick(r, 1, 5, 10))*time.Second + 137*time.Nanosecond,
		},
		records:     pick(r, 3, 5, 6), // of ten callers so few that no batch of others runs beside them
		replicas:    pick(r, 1, 2, 2, 3),
		callers:     3 + r.IntN(8),
		eagerness:   pick(r, 2, 6, 20),
		days:        5 + r.IntN(25),
		unavailable: often(60),
		lostBefore:  often(60),
		lostAfter:   often(60),
		conflict:    often(300),
		glitch:      often(60),
		held:        often(100),
		crash:       often(12),
		drain:       often(8),
		outage:      often(3),
		giveUp:      often(40),
		stepClock:   often(6),
		nap:         often(20),
		weekend:     r.IntN(4) == 0,
		cutOff:      pick(r, "", "", "", "09:30", "14:00", "23:59"),
	}
	if r.IntN(3) == 0 {
		w.poison = pick(r, failing, panicking)
	}
	return w
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
