package simulation

import (
	"math/rand/v2"
	"time"
	_ "time/tzdata" // so that a run is the same on every machine

	"bankingapi/application/commit"
)

// weather is what a run is like. It is drawn from the seed, each trouble of
// its own, so that one run has nothing but crashes and another a little of
// everything.
type weather struct {
	zone      *time.Location
	start     time.Time
	limits    commit.Limits
	records   int // the most of one request
	replicas  int
	callers   int
	eagerness int // how much rather callers send than wait
	days      int // after which the finale begins

	// Each is how many of 1,000 transactions or moments it strikes.
	unavailable, lostBefore, lostAfter, conflict, glitch, held int
	// Each is how many of 1,000 events it is.
	crash, drain, outage, giveUp, stepClock, nap int

	poison poison
}

// poison is what is wrong with the holdings of one fund, and with the messages
// to one user, until the finale.
type poison uint8

const (
	noPoison poison = iota
	failing         // the store cannot write it
	panicking
)

// places are where and when a bank may open: around the days on which somebody
// else's software broke.
var places = [...]struct{ zone, opens string }{
	{"Europe/Istanbul", "2026-11-18"},      // no change of the clock since 2016
	{"Europe/Istanbul", "2016-03-24"},      // forward by night
	{"Europe/Istanbul", "2027-12-28"},      // New Year
	{"Europe/Istanbul", "2028-02-26"},      // leap day
	{"Europe/London", "2026-10-22"},        // an hour twice
	{"America/New_York", "2027-03-11"},     // an hour never
	{"America/Sao_Paulo", "2018-11-01"},    // a day without 00:00
	{"America/Sao_Paulo", "2018-02-14"},    // back at midnight, to the day before
	{"America/St_Johns", "2006-10-26"},     // back at 00:01, to the day before
	{"America/Havana", "2026-03-05"},       // a day without 00:00
	{"Africa/Cairo", "2026-04-21"},         // a day without 00:00
	{"Asia/Beirut", "2026-10-22"},          // back at midnight
	{"Pacific/Apia", "2011-12-26"},         // no 30 December
	{"Pacific/Kiritimati", "2026-12-29"},   // the first to have a new year
	{"Pacific/Pago_Pago", "2027-12-29"},    // the last
	{"Australia/Lord_Howe", "2026-04-02"},  // by half an hour
	{"Asia/Kathmandu", "2100-02-26"},       // no leap year, 5:45 ahead
	{"UTC", "9996-12-28"},                  // the end of the calendar comes near
	{"America/Scoresbysund", "2024-03-28"}, // another zone and summer time at once
}

func drawWeather(r *rand.Rand) weather {
	place := places[r.IntN(len(places))]
	zone, err := time.LoadLocation(place.zone)
	if err != nil {
		panic(err)
	}
	start, err := time.ParseInLocation("2006-01-02 15", place.opens+" 09", zone)
	if err != nil {
		panic(err)
	}
	// often is up to most, or nothing in half of the runs.
	often := func(most int) int { return max(0, r.IntN(2*most+1)-most) }
	w := weather{
		zone:  zone,
		start: start,
		limits: commit.Limits{
			Batch: pick(r, 1, 4, 16, 64),
			Queue: pick(r, 2, 8, 64),
			// Whole events are microseconds apart, so that no two time-outs
			// ever fall on one instant.
			Timeout: time.Duration(pick(r, 1, 5, 10))*time.Second + 137*time.Nanosecond,
		},
		records:     pick(r, 3, 6, 12),
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
	}
	if r.IntN(3) == 0 {
		w.poison = pick(r, failing, panicking)
	}
	return w
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
