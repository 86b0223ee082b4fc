package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"bankingapi/application/bookfile"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/subscription"
)

// subscriptionsPage is the page Subscriptions.
type subscriptionsPage struct {
	Rows []subscriber
	Form subscriptionForm
	change
}

// subscriptionPage is the page of one subscription.
type subscriptionPage struct {
	subscriber
	Rate picture
	Form subscriptionForm
	change
}

// change says what a form did.
type change struct {
	// Done says what it did, Wrong why it did not.
	Done, Wrong string
	// NewKeys are shown once, after they were made. Of is their subscription.
	NewKeys []newKey
	Of      string
}

type newKey struct {
	Slot subscription.Slot
	Key  string
}

// subscriber is a subscription and what it did on this replica.
type subscriber struct {
	*subscription.Subscription
	Keys  []keyLife
	Used  string // the busiest minute of the last hour
	Today string // the bank's day
	// Refused are the requests that were refused today.
	Refused int
}

// keyLife is how old a key is, and when it was used.
type keyLife struct {
	Slot    subscription.Slot
	Text    string
	Expired bool
}

// subscriptionForm has the fields of a subscription as the form shows them.
type subscriptionForm struct {
	*subscription.Subscription
	// Expires is the last day of the keys, and From the first that it may be.
	Expires, From day.Day
	Choices       []operationChoice
}

type operationChoice struct {
	Name   string
	Chosen bool
}

func subscriptionPath(name string) string { return with("/console/subscription", "name", name) }

// subscribers are all subscriptions, or that with the name.
func (q *request) subscribers(name string) (all []subscriber, err error) {
	found, err := q.Subscriptions.List(q.ctx)
	refused := make(map[string]int)
	for _, r := range q.console.activity.snapshot(q.machine).Refusals {
		refused[r.Partner] += r.Requests
	}
	for _, s := range found {
		if name != "" && s.Name != name {
			continue
		}
		used := slices.Max(q.console.activity.rates(s.Name, q.machine))
		row := subscriber{Subscription: s, Used: short(used) + "/s", Refused: refused[s.Name], Today: q.Today().String(),
			Keys: []keyLife{q.keyLife(subscription.Primary, s.PrimaryKey), q.keyLife(subscription.Secondary, s.SecondaryKey)}}
		if s.RequestsPerSecond > 0 {
			row.Used += ", " + strconv.Itoa(int(100*used)/s.RequestsPerSecond) + " %"
		}
		all = append(all, row)
	}
	if err == nil && name != "" && len(all) == 0 {
		err = errNothing
	}
	return all, err
}

func (q *request) keyLife(slot subscription.Slot, life subscription.KeyLife) keyLife {
	k := keyLife{Slot: slot, Text: "age not known", Expired: !life.Expires.IsZero() && !q.machine.Before(life.Expires)}
	if !life.Created.IsZero() {
		k.Text = "made " + q.Local(life.Created) + " (" + plural(max(0, int(q.machine.Sub(life.Created).Hours()/24)), "day") + " ago)"
	}
	k.Text += ", never used"
	if !life.Used.IsZero() {
		k.Text = strings.TrimSuffix(k.Text, "never used") + "last used " + q.Local(life.Used)
	}
	if last := q.lastDay(life.Expires).String(); k.Expired {
		k.Text += ", expired on " + last
	} else if last != "" {
		k.Text += ", works until " + last
	}
	return k
}

// Calls are the names of the operations that it may call.
func (s subscriber) Calls() string { return strings.Join(s.Granted(), ", ") }

// Badge is its state.
func (s subscriber) Badge() state {
	return state{string(s.State), map[subscription.State]string{subscription.Active: "good", subscription.Suspended: "wait", subscription.Cancelled: "bad"}[s.State]}
}

// Limit is its rate limit.
func (s subscriber) Limit() string {
	if s.RequestsPerSecond == 0 {
		return "none"
	}
	return count(s.RequestsPerSecond) + "/s"
}

// CallerID says whether it must send one.
func (s subscriber) CallerID() string {
	if s.RequireCallerID {
		return "required"
	}
	return "optional"
}

func showSubscriptions(q *request) (any, error) { return q.subscriptionsPage(change{}) }

func (q *request) subscriptionsPage(c change) (any, error) {
	rows, err := q.subscribers("")
	var all subscription.Subscription
	all.Grant(q.Subscriptions.Operations()...)
	return subscriptionsPage{rows, q.subscriptionForm(&all), c}, err
}

func showSubscription(q *request) (any, error) { return q.subscriptionPage(q.query("name"), change{}) }

func (q *request) subscriptionPage(name string, c change) (any, error) {
	found, err := q.subscribers(cmp.Or(name, "\n")) // no name has a line end
	if err != nil {
		return nil, err
	}
	rates := q.console.activity.rates(name, q.machine)
	rate := q.lastHour(rates, "")
	rate.About = "Requests a second of " + name + " over the last hour: at most " + short(slices.Max(rates)) + "."
	return subscriptionPage{found[0], rate, q.subscriptionForm(found[0].Subscription), c}, nil
}

func (q *request) subscriptionForm(s *subscription.Subscription) subscriptionForm {
	f := subscriptionForm{Subscription: s, Expires: q.lastDay(s.PrimaryKey.Expires), From: q.Day(q.machine)}
	if !f.Expires.IsNone() && f.Expires.Before(f.From) {
		f.From = f.Expires // an expired key may stay so
	}
	known := q.Subscriptions.Operations()
	for _, name := range known {
		f.Choices = append(f.Choices, operationChoice{name, s.MayCallNamed(name)})
	}
	for _, name := range s.HostOperations { // of another host program on this database
		if !slices.Contains(known, name) {
			f.Choices = append(f.Choices, operationChoice{name, true})
		}
	}
	return f
}

func exportSubscriptions(q *request) (any, error) {
	rows, err := q.subscribers("")
	var columns []bookfile.Column[subscriber]
	for _, c := range []struct {
		name string
		text func(*subscriber) string
	}{
		{"Name", func(s *subscriber) string { return s.Name }},
		{"State", func(s *subscriber) string { return string(s.State) }},
		{"Operations", func(s *subscriber) string { return s.Calls() }},
		{"RequestsPerSecond", func(s *subscriber) string { return strings.TrimSuffix(s.Limit(), "/s") }},
		{"BusiestMinute", func(s *subscriber) string { return s.Used }},
		{"CallerId", func(s *subscriber) string { return s.CallerID() }},
		{"Created", func(s *subscriber) string { return q.Local(s.Created) }},
		{"PrimaryKey", func(s *subscriber) string { return s.Keys[0].Text }},
		{"SecondaryKey", func(s *subscriber) string { return s.Keys[1].Text }},
		{"AppKey", func(s *subscriber) string { return s.AppKey }},
		{"Channel", func(s *subscriber) string { return s.Channel }},
		{"TellerName", func(s *subscriber) string { return s.TellerName }},
		{"RefusedToday", func(s *subscriber) string { return count(s.Refused) }},
	} {
		columns = append(columns, bookfile.Column[subscriber]{Name: c.name, Value: func(s *subscriber) bookfile.Value { return bookfile.Text(c.text(s)) }})
	}
	if err != nil {
		return nil, err
	}
	return download(q, "subscriptions", columns, rowsOf(rows))
}

// changeSubscription carries out a form of the pages. What takes something from
// a caller needs the box of confirmation.
func changeSubscription(q *request) (any, error) {
	if !q.session.operator {
		return nil, errRole
	}
	name, action := q.field("name"), q.field("action")
	c := change{Wrong: "Nothing was changed: tick the box to confirm."}
	if action == "create" || action == "activate" || q.field("confirm") == "yes" {
		var err error
		if c, err = q.carryOut(name, action); err != nil {
			reason, ok := reasonOf(err)
			if !ok {
				return nil, err
			}
			c = change{Wrong: "Nothing was changed. " + reason}
		}
	}
	if c.Wrong == "" && len(c.NewKeys) == 0 {
		return q.done(subscriptionPath(name), c.Done)
	}
	page, err := q.subscriptionPage(name, c) // new keys are in this answer only
	answer := shown{0, "subscription", page}
	if c.Wrong != "" {
		answer.status = http.StatusBadRequest
		if action == "create" {
			answer.template = "subscriptions"
			answer.content, err = q.subscriptionsPage(c)
		}
	}
	return answer, err
}

func (q *request) carryOut(name, action string) (c change, err error) {
	ctx := q.by(q.ctx, q.field("reason"))
	switch action {
	case "create":
		fields, err := q.fields(new(subscription.Subscription))
		if err != nil {
			return c, err
		}
		fields.Name = name
		primary, secondary, err := q.Subscriptions.Create(ctx, fields)
		return change{Of: name, NewKeys: []newKey{{subscription.Primary, primary.Reveal()}, {subscription.Secondary, secondary.Reveal()}}, Done: name + " can call the API within 5 seconds."}, err
	case "change":
		return q.revise(ctx, name)
	case "suspend":
		return change{Done: name + " is suspended. Its keys stop working within 5 seconds."}, q.Subscriptions.SetState(ctx, name, subscription.Suspended)
	case "activate":
		return change{Done: name + " is active."}, q.Subscriptions.SetState(ctx, name, subscription.Active)
	case "cancel":
		return change{Done: name + " is cancelled, for good."}, q.Subscriptions.SetState(ctx, name, subscription.Cancelled)
	case "regenerate-primary", "regenerate-secondary":
		slot := subscription.Slot(strings.TrimPrefix(action, "regenerate-"))
		key, err := q.Subscriptions.Regenerate(ctx, name, slot)
		return change{Of: name, NewKeys: []newKey{{slot, key.Reveal()}}, Done: "The old key stops working within 5 seconds."}, err
	}
	return c, errNothing
}

// revise changes what the form has changed.
func (q *request) revise(ctx context.Context, name string) (c change, err error) {
	found, err := q.subscribers(name)
	if err != nil {
		return c, err
	}
	before := found[0].Subscription
	fields, err := q.fields(before)
	if err != nil {
		return c, err
	}
	changes := subscriptions.Differences(before, &fields, q.Zone)
	if len(changes) == 0 {
		return change{Wrong: "Nothing was changed: the form has the values that the subscription has."}, nil
	}
	details := strings.Join(changes, "; ")
	expires := fields.PrimaryKey.Expires
	err = q.Subscriptions.Change(ctx, name, func(s *subscription.Subscription) error {
		if q.lastDay(expires) != q.lastDay(s.PrimaryKey.Expires) {
			s.PrimaryKey.Expires, s.SecondaryKey.Expires = expires, expires
		}
		return s.Revise(fields)
	})
	return change{Done: name + " is changed: " + details + ". Every replica follows within 5 seconds."}, err
}

// fields reads the form of a subscription.
func (q *request) fields(before *subscription.Subscription) (fields subscription.Subscription, err error) {
	fields = subscription.Subscription{AppKey: q.field("appkey"), Channel: q.field("channel"), TellerName: q.field("teller"), RequireCallerID: q.field("callerid") == "required"}
	names := q.r.PostForm["operation"]
	if err := q.Subscriptions.CheckOperations(slices.DeleteFunc(slices.Clone(names), before.MayCallNamed)...); err != nil {
		return fields, err
	}
	fields.Grant(names...)
	if len(fields.Granted()) == 0 {
		return fields, fault.New(fault.Invalid, "Choose at least one operation. To refuse all, suspend the subscription.")
	}
	slices.Sort(fields.Operations)
	if text := strings.TrimSpace(q.field("rate")); text != "" {
		if fields.RequestsPerSecond, err = strconv.Atoi(text); err != nil {
			return fields, fault.New(fault.Invalid, "The rate limit must be a whole number.")
		}
	}
	last, err := parseDay(q.field("expires"))
	switch today := q.Day(q.machine); {
	case err != nil:
		return fields, fault.New(fault.Invalid, "The last day of the keys must be a day, such as 2027-12-31.")
	case !last.IsNone() && last.Before(today) && last != q.lastDay(before.PrimaryKey.Expires):
		return fields, fault.New(fault.Invalid, "Last day of both keys: choose "+today.String()+" or a later day. An earlier day would end both keys at once. To do that, suspend the subscription.")
	case !last.IsNone():
		expires := last.Plus(1).Start(q.Zone).UTC()
		fields.PrimaryKey.Expires, fields.SecondaryKey.Expires = expires, expires
	}
	return fields, nil
}

// reasonOf is the sentence for an error that the form caused.
func reasonOf(err error) (text string, ok bool) {
	for _, known := range []error{
		subscriptions.ErrNameTaken, subscriptions.ErrNotFound, subscriptions.ErrExpired, subscription.ErrCancelled, fund.ErrNotRecorded, fund.ErrDayHasCome,
		fund.ErrNotCompleted, fund.ErrReversed, fund.ErrNoHolding, fund.ErrNoAccount, fund.ErrOutOfRange,
	} {
		if errors.Is(err, known) {
			return sentence(err), true
		}
	}
	known, ok := errors.AsType[*fault.Error](err)
	if !ok || known.Kind != fault.Invalid {
		return "", false
	}
	text = known.Detail
	for _, f := range known.Faults {
		text += " " + strings.TrimPrefix(f.Pointer, "/") + ": " + f.Detail
	}
	return text, true
}
