package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"bankingapi/application/summary"
	"bankingapi/domain/fault"
)

// What callers notice of a replica that is not ready. A replica without durability still
// answers, because only the operator knows whether the risk is acceptable. One that stops answers
// until its balancer sends nothing more.
const (
	unavailable = "Not ready: requests that need it are answered 503."
	unanswered  = "Callers get no answer."
	unbalanced  = "Not ready: a balancer that asks /readyz sends nothing here. Requests that come are answered."
)

// What to tell partners.
const (
	partnersRepeat     = "Requests are answered 503. Send each again with the same CallerId until it is answered: nothing is carried out twice."
	partnersUnanswered = "Requests get no answer. Send each again with the same CallerId until it is answered: nothing is carried out twice."
	partnersSlow       = "Some requests fail. Send each again with the same CallerId until it is answered: nothing is carried out twice."
)

// durability is the check that says what may lose data, clock the check of the clock, and shutdown
// fails while the service stops.
const durability, clock, shutdown = "durability", "clock", "shutdown"

// nextOfCheck is what an operator does if a check of readiness fails or warns.
var nextOfCheck = map[string]string{
	Database: "If the text names a command, run it. Otherwise see whether the database server runs, has room on its disk and is reachable from here.",
	"schema": "Run bankingapi migrate up with the version of the service that should run.",
	durability: "Change what the text names. The service notices by itself what changes at the database server, or when another program ends." +
		" After a change of storage.dsn, of synchronous_commit, or of how a host opens the database, restart the service.",
	clock:         "Set the clock of this machine: turn on its time service (NTP). Then the replica goes on by itself. If its time is right already, do what the text says.",
	"trail":       "Change what the text names. All replicas need the same key in trail.key_file, and a replica reads the file again on SIGHUP.",
	"certificate": "Replace tls.cert_file and tls.key_file. They are read within a second, without a restart. A self-signed certificate is made anew at the next start after its end.",
	shutdown:      "Nothing: the replica was told to stop.",
	Silent:        "See whether the database server runs, and whether a long transaction holds a lock.",
}

const (
	// At least errorCount 5xx answers, and more than one in errorShare requests, are a trouble. The
	// alert BankingAPIErrors has the same share.
	errorShare, errorCount = 100, 5
	// A rate is unusual if it is surgeFactor times that of the hour before, which must have
	// surgeHistory minutes.
	surgeFactor, surgeHistory = 5, 10
	// floodRate and unknownRate are the requests a second from which a surge counts, and
	// refusedCount the refused requests of two minutes.
	floodRate, unknownRate, refusedCount = 20, 1, 20
	// certificateDays is how long before its end a certificate is a trouble.
	certificateDays = 14
)

// ofChecks returns the troubles of the checks. Checks that fail for one reason are one line.
func ofChecks(checks []summary.Check) (all []Trouble) {
	for _, check := range checks {
		if check.Problem == "" {
			continue
		}
		effect := unavailable
		next := nextOfCheck[check.Name]
		switch {
		case check.OfStorage: // what to do about the clock or the trail would be wrong
			next = nextOfCheck[Database]
		case check.Name == durability, check.Name == shutdown:
			effect = unbalanced
		}
		same := slices.IndexFunc(all, func(t Trouble) bool { return t.Text == check.Problem })
		if same >= 0 {
			all[same].Kind += ", " + check.Name
			continue
		}
		t := Trouble{Kind: check.Name, Text: check.Problem, Effect: effect, Next: next, Bad: true}
		if effect == unavailable {
			t.Partners = partnersRepeat
		}
		all = append(all, t)
	}
	for _, check := range checks {
		if check.Problem != "" || len(check.Warnings) == 0 || check.Name == Certificate {
			continue
		}
		var now, later []string
		for _, w := range check.Warnings {
			switch {
			case followsFrom(w.Text, checks):
			case w.CanWait:
				later = append(later, w.Text)
			default:
				now = append(now, w.Text)
			}
		}
		t := Trouble{Kind: check.Name, Next: nextOfCheck[check.Name]}
		if len(now) > 0 {
			t.Text = strings.Join(now, " ")
			all = append(all, t)
		}
		if len(later) > 0 {
			t.Text = strings.Join(later, " ")
			t.Quiet = true
			all = append(all, t)
		}
	}
	return all
}

// followsFrom reports whether the warning repeats why another check failed, as that of the trail
// does while the clock is wrong. Their numbers differ, because a second has passed between them.
func followsFrom(warning string, checks []summary.Check) bool {
	return slices.ContainsFunc(checks, func(failed summary.Check) bool {
		return failed.Problem != "" && strings.HasSuffix(shapeOf(warning), ": "+shapeOf(failed.Problem))
	})
}

// ofCertificate returns the trouble of the certificate: its files, or its end.
func ofCertificate(checks []summary.Check, end, now time.Time) []Trouble {
	t := Trouble{Kind: Certificate, Next: nextOfCheck[Certificate]}
	for _, check := range checks {
		if check.Name == Certificate {
			t.Text = strings.Join(summary.Texts(check.Warnings), " ")
		}
	}
	switch {
	case !end.IsZero() && !now.Before(end):
		t.Bad = true
		t.Text = cmp.Or(t.Text, "The TLS certificate is over: callers refuse it.")
		t.Partners = "Requests fail before they are sent: nothing was done. Send them again when the certificate is replaced."
	case !end.IsZero() && EndsSoon(end, now) != "":
		t.Quiet = t.Text == ""
		t.Text = strings.TrimSpace(t.Text + " " + EndsSoon(end, now))
	case t.Text == "":
		return nil
	}
	return []Trouble{t}
}

// EndsSoon says when a certificate ends. It returns an empty text if there is time until then.
func EndsSoon(end, now time.Time) string {
	if !end.Before(now.AddDate(0, 0, certificateDays)) {
		return ""
	}
	days := int(end.Sub(now).Hours() / 24)
	return "The TLS certificate ends on " + end.UTC().Format("2 Jan 2006 15:04 UTC") + ", in " + plural(days, "day") + "."
}

// ofTraffic returns the troubles of the last two minutes: errors, and what differs much from the
// hour before.
func ofTraffic(a *Activity, at time.Time) (all []Trouble) {
	now, before := a.compare(at)
	if now.failed >= errorCount && now.failed*errorShare > now.requests {
		all = append(all, Trouble{
			Kind: Errors, Bad: true, Partners: partnersSlow,
			Text: number(now.failed) + " of " + plural(now.requests, "request") + " of the last two minutes were answered 5xx.",
			Next: "Open Requests, 5xx: the code says whether it is the database (storage-unavailable), too many requests (overloaded) or a defect (internal-error). The log has the cause.",
		})
	}
	all = append(all, ofFailures(a, at)...)
	if before.minutes < surgeHistory {
		return all
	}
	all = append(all, ofUnknownKeys(&now, &before)...)
	var flooding, refusing []string
	for _, name := range slices.Sorted(maps.Keys(now.partners)) {
		is := now.partners[name]
		was := before.partners[name]
		if is.requests >= floodRate*60*now.minutes && isSurge(is.requests, now.minutes, was.requests, before.minutes) {
			flooding = append(flooding, name+" ("+number(is.requests/(60*now.minutes))+"/s)")
		}
		if is.refused >= refusedCount && is.refused*2 > is.requests && isSurge(is.refused, now.minutes, was.refused, before.minutes) {
			refusing = append(refusing, name+" ("+number(is.refused)+" of "+number(is.requests)+", most with "+mostOf(is.codes)+")")
		}
	}
	if len(flooding) > 0 {
		all = append(all, Trouble{
			Kind: Flood, Text: "More than five times the requests of the hour before from " + some(flooding) + ".",
			Next: "Ask the partner. To protect the others, give it a rate limit on its page under Subscriptions.",
		})
	}
	if len(refusing) > 0 {
		all = append(all, Trouble{
			Kind: Refusals, Text: "Most requests of the last two minutes were refused, other than in the hour before: " + some(refusing) + ".",
			Next:     "Open Refused operations (from Today) and Requests of the partner: its client may have changed, or a price, a holding or the calendar here.",
			Partners: "Most of your requests are refused. Did your client change? The page of the code in the documentation says what to correct.",
		})
	}
	return all
}

// ofFailures returns the troubles of single requests that failed in a way that needs an operator.
func ofFailures(a *Activity, at time.Time) (all []Trouble) {
	if n := a.failedWith(fault.InternalError, at); n > 0 {
		all = append(all, Trouble{
			Kind: Defect, Bad: true, Partners: partnersSlow,
			Text: plural(n, "request") + " of the last 15 minutes failed for an unexpected reason.",
			Next: "It is a bug of bankingapi. Report it with the line of the log with level error and the output of bankingapi version.",
		})
	}
	n := a.failedWith(fault.OutcomeUnknown, at)
	if n > 0 {
		all = append(all, Trouble{
			Kind: Unknown, Partners: partnersSlow,
			Text: "The outcome of " + plural(n, "request") + " of the last 15 minutes was not known: the database did not confirm a commit.",
			Next: "Partners that send a CallerId learn it by a repeat. For others, search the customer here: the page has every sale.",
		})
	}
	return all
}

// ofUnknownKeys returns the trouble of requests whose key belongs to no subscription.
func ofUnknownKeys(now, before *traffic) []Trouble {
	if now.unknownKeys < unknownRate*60*now.minutes || !isSurge(now.unknownKeys, now.minutes, before.unknownKeys, before.minutes) {
		return nil
	}
	t := Trouble{Kind: UnknownKeys, Text: plural(now.unknownKeys, "request") + " of the last two minutes had a key of no subscription"}
	if keys := len(now.keys); keys <= 2 {
		which := "always the same"
		if keys == 2 {
			which = "always one of two"
		}
		t.Text += ", " + which + ": a client may use an old key."
		t.Next = "Open Requests, 4xx: the log has the address of the caller. Ask the partner whose key was replaced last."
		return []Trouble{t}
	}
	t.Text += ", at least " + number(len(now.keys)) + " different ones: someone may be guessing keys."
	t.Next = "No key can be guessed in this way. The log has the addresses of the callers: block them at the firewall."
	return []Trouble{t}
}

// isSurge reports whether n in some minutes is much more than in the time before.
func isSurge(n, minutes, before, minutesBefore int) bool {
	return n*minutesBefore > surgeFactor*before*minutes
}

// mostOf returns the code with the highest count.
func mostOf(codes map[string]int) string {
	names := slices.SortedFunc(maps.Keys(codes), func(x, y string) int {
		return cmp.Or(cmp.Compare(codes[y], codes[x]), cmp.Compare(x, y))
	})
	if len(names) == 0 {
		return "no code"
	}
	return names[0]
}
