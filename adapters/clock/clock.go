// Package clock is the only place that reads the machine's clock.
package clock

import "time"

// Now returns the current time in UTC, in whole microseconds. Every database
// stores these exactly, so a time that is read back equals the one written.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
