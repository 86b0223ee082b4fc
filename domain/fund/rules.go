package fund

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
)

// Rules are the rules of the bank that are part of its book (the contract, section 5.8). They
// decide which day it is for the bank, for which days it accepts sales, and from which hour it
// settles the sales of a day. The zero value has the days of UTC, is open on every day and
// settles from 00:00.
type Rules struct {
	Zone *time.Location // nil means UTC
	// Weekdays are the days of the week on which the bank is always closed.
	Weekdays [7]bool
	// CutOff is the local time from which the bank accepts no sale for today. No time means no
	// cut-off.
	CutOff day.Clock
	// SettleFrom is the local time from which the sales of a day are settled. No time means
	// 00:00.
	SettleFrom day.Clock
}

// RulesFields are the rules as people write them. An empty field means the rule of the book, or
// the default of a new book. NoRule means no closed weekdays or no cut-off.
type RulesFields struct {
	TimeZone       string // a name of the IANA time zone database
	ClosedWeekdays string // names of days of the week in English, separated by commas, or NoRule
	CutOff         string // HH:MM, or NoRule
	SettleFrom     string // HH:MM
}

// NoRule is the value of a rule that the bank does not have.
const NoRule = "none"

// DefaultRules are the rules of a new book for which nothing else is chosen.
func DefaultRules() Rules {
	rules, err := ParseRules("time-zone=Europe/Istanbul closed-weekdays=none cut-off=none settle-from=00:00")
	if err != nil {
		panic(fmt.Sprintf("fund: the default rules: %v", err))
	}
	return rules
}

// The pointers of the faults of RulesFields.
const (
	zonePointer     = "/TimeZone"
	weekdaysPointer = "/ClosedWeekdays"
	cutOffPointer   = "/CutOff"
	settlePointer   = "/SettleFrom"
)

// NewRules returns the rules with the fields that are not empty. The other rules are those of
// current. It returns either the rules or all faults.
func NewRules(current Rules, f RulesFields) (Rules, []fault.Fault) {
	var c checker
	rules := current
	rules.Zone = cmp.Or(rules.Zone, time.UTC)
	if f.TimeZone != "" {
		zone, err := loadZone(f.TimeZone)
		if err != nil {
			c.Add(zonePointer, fault.InvalidFormat, "Must be a name of the IANA time zone database, like Europe/Istanbul.")
		} else {
			rules.Zone = zone
		}
	}
	if f.ClosedWeekdays != "" {
		weekdays, ok := parseWeekdays(f.ClosedWeekdays)
		if !ok {
			c.Add(weekdaysPointer, fault.InvalidFormat, "Must be days of the week separated by commas, like Saturday,Sunday, or none.")
		}
		if weekdays == everyDay {
			c.Add(weekdaysPointer, fault.OutOfRange, "Must leave one day of the week open: otherwise every sale is refused.")
		}
		rules.Weekdays = weekdays
	}
	if f.CutOff != "" {
		at, err := day.ParseClock(f.CutOff)
		if err != nil && f.CutOff != NoRule {
			c.Add(cutOffPointer, fault.InvalidFormat, "Must be a local time of the bank, like 17:30, or none.")
		}
		rules.CutOff = at
	}
	if f.SettleFrom != "" {
		at, err := day.ParseClock(f.SettleFrom)
		if err != nil {
			c.Add(settlePointer, fault.InvalidFormat, "Must be a local time of the bank, like 18:30.")
		}
		rules.SettleFrom = at
	}
	return fault.Either(rules, c.List)
}

// everyDay has all days of the week.
var everyDay = [7]bool{true, true, true, true, true, true, true}

// loadZone rejects names that are no zones of the IANA database, although files of a machine have
// them. localtime is another zone on each machine, the zones of right count leap seconds, and no
// other machine needs to have any of them: it could not read the rules of the book.
func loadZone(name string) (*time.Location, error) {
	folder, _, _ := strings.Cut(name, "/")
	if slices.Contains([]string{"Local", "localtime", "posixrules", "Factory", "posix", "right"}, folder) {
		return nil, errors.New("a book needs a zone with a name")
	}
	return time.LoadLocation(name)
}

func parseWeekdays(text string) (closed [7]bool, ok bool) {
	if text == NoRule {
		return closed, true
	}
	for name := range strings.SplitSeq(text, ",") {
		of, isDay := parseWeekday(strings.TrimSpace(name))
		if !isDay {
			return [7]bool{}, false
		}
		closed[of] = true
	}
	return closed, true
}

// Fields returns the rules as people write them.
func (r Rules) Fields() RulesFields {
	f := RulesFields{TimeZone: cmp.Or(r.Zone, time.UTC).String(), ClosedWeekdays: NoRule, CutOff: NoRule, SettleFrom: "00:00"}
	var closed []string
	for i := range r.Weekdays {
		of := time.Weekday(i+1) % 7 // a week begins on Monday
		if r.Weekdays[of] {
			closed = append(closed, of.String())
		}
	}
	if len(closed) > 0 {
		f.ClosedWeekdays = strings.Join(closed, ",")
	}
	if !r.CutOff.IsNone() {
		f.CutOff = r.CutOff.String()
	}
	if !r.SettleFrom.IsNone() {
		f.SettleFrom = r.SettleFrom.String()
	}
	return f
}

// members are the rules with their names, in the order of the text.
func (f *RulesFields) members() []ruleMember {
	return []ruleMember{
		{"time-zone", &f.TimeZone}, {"closed-weekdays", &f.ClosedWeekdays}, {"cut-off", &f.CutOff}, {"settle-from", &f.SettleFrom},
	}
}

type ruleMember struct {
	name  string
	value *string
}

// String returns the rules as the book keeps them. Rules with the same text are the same rules.
func (r Rules) String() string {
	fields := r.Fields()
	var all []string
	for _, m := range fields.members() {
		all = append(all, m.name+"="+*m.value)
	}
	return strings.Join(all, " ")
}

// ParseRules reads what String returns. The text must have every rule once.
func ParseRules(text string) (Rules, error) {
	var fields RulesFields
	members := fields.members()
	words := strings.Split(text, " ")
	if len(words) != len(members) {
		return Rules{}, errRules
	}
	for i, m := range members {
		name, value, hasValue := strings.Cut(words[i], "=")
		if name != m.name || !hasValue || value == "" {
			return Rules{}, errRules
		}
		*m.value = value
	}
	rules, faults := NewRules(Rules{}, fields)
	if len(faults) > 0 {
		return Rules{}, errRules
	}
	return rules, nil
}

var errRules = fault.New(fault.Unavailable, "The rules of the book cannot be read: a newer version has written them, or somebody has changed them by hand."+
	" Run the newer version, or restore the row rules of the table properties from a backup.")

// Differences returns a text for each rule that differs from before, such as
// "cut-off none -> 17:30".
func (r Rules) Differences(before Rules) []string {
	was := before.Fields()
	is := r.Fields()
	old := was.members()
	var all []string
	for i, m := range is.members() {
		if *m.value != *old[i].value {
			all = append(all, m.name+" "+*old[i].value+" -> "+*m.value)
		}
	}
	return all
}

// ErrZoneFixed is returned for a change of the time zone of a book that has operations: their
// days were those of the old zone.
var ErrZoneFixed = fault.New(fault.Conflict, "The time zone of a book cannot be changed once the book has operations, because their days are those of this zone.")

// Change returns the rules with the fields that are not empty. hasOperations says that the book
// has operations: then its time zone stays. The error has the kind fault.Invalid with all
// faults, or is ErrZoneFixed.
func (r Rules) Change(f RulesFields, hasOperations bool) (Rules, error) {
	changed, faults := NewRules(r, f)
	if len(faults) > 0 {
		return Rules{}, fault.New(fault.Invalid, "The rules are not valid.", faults...)
	}
	if hasOperations && changed.Fields().TimeZone != r.Fields().TimeZone {
		return Rules{}, ErrZoneFixed
	}
	return changed, nil
}

// In returns the time zone of the bank.
func (r Rules) In() *time.Location { return cmp.Or(r.Zone, time.UTC) }

// Today returns the bank's day at that moment.
func (r Rules) Today(now time.Time) day.Day { return day.Of(now, r.In()) }

// ClockAt returns the bank's local time at that moment.
func (r Rules) ClockAt(now time.Time) day.Clock { return day.ClockOf(now, r.In()) }

// DueUntil returns the last day whose sales are settled at that moment: today, or the day
// before if it is too early for the sales of today.
func (r Rules) DueUntil(now time.Time) day.Day {
	today := r.Today(now)
	if r.ClockAt(now).Before(r.SettleFrom) {
		return today.Plus(-1)
	}
	return today
}

// Begins returns the moment from which the sales of a day are settled.
func (r Rules) Begins(of day.Day) time.Time { return of.At(r.SettleFrom, r.In()) }

// Calendar returns the days for which the bank accepts sales, without the single days that are
// closed.
func (r Rules) Calendar() Calendar { return Calendar{Weekdays: r.Weekdays, CutOff: r.CutOff} }

// ErrRulesChanged is the error of an operation that was prepared by other rules than those of
// the book. It has had no effect. Whoever prepared it reads the rules again.
var ErrRulesChanged = fault.New(fault.Unavailable, "The rules of the bank were changed at this moment. Try again.")

// follows reports whether the operation was prepared by these rules. An operation without rules
// belongs to a caller that keeps no rules in the book.
func (o *Operation) follows(rules string) bool { return o.Rules == "" || o.Rules == rules }

// LoadRules puts the text of the rules of the bank into the book.
func (b *Book) LoadRules(text string) { b.rules = text }

// rulesOf returns the first rules by which one of the operations was prepared.
func rulesOf(operations []*Operation) string {
	i := slices.IndexFunc(operations, func(o *Operation) bool { return o.Rules != "" })
	if i < 0 {
		return ""
	}
	return operations[i].Rules
}

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
		next := d.Plus(i)
		if c.IsOpen(next) {
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
