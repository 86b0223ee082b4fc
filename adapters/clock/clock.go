// Package clock is the only place that reads the machine's clock.
package clock

import "time"

// Now is the current time in UTC, cut to microseconds: what every database
// keeps exactly, so that a time read back equals the time that was written.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
