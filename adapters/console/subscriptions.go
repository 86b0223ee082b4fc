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

// subscriptionsPage is the page Subscriptions. Form has the fields of a new one.
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
	Used    string // the busiest minute of the last hour
	Refused int64  // requests that were refused in the last hour and are not stored
}

// subscriptionForm has the fields of a subscription as the form shows them.
type subscriptionForm struct {
	*subscription.Subscription
	// Expires is the last day of the keys, and From the first that it may be.
	Expires, From day.Day
	// Choices are the operations that can be granted.
	Choices []string
}

func subscriptionPath(name string) string { return with("/console/subscription", "name", name) }

// subscribers are all subscriptions, or that with the name.
func subscribers(q *request, name string) (all []subscriber, err error) {
	found, err := q.Subscriptions.List(q.ctx)
	refused := make(map[string]int64)
	for _, r := range q.console.activity.lastHour(q.machine, q.Today()).Refused {
		refused[r.Partner] += r.Count
	}
	for _, s := range found {
		if name != "" && s.Name != name {
			continue
		}
		used := slices.Max(q.console.activity.rates(s.Name, q.machine))
		row := subscriber{s, short(used) + "/s", refused[s.Name]}
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

func showSubscriptions(q *request) (any, error) { return newSubscriptionsPage(q, change{}) }

func newSubscriptionsPage(q *request, c change) (any, error) {
	rows, err := subscribers(q, "")
	var all subscription.Subscription
	all.Grant(q.Subscriptions.Operations()...)
	return subscriptionsPage{rows, newSubscriptionForm(q, &all), c}, err
}

func showSubscription(q *request) (any, error) {
	return newSubscriptionPage(q, q.query("name"), change{})
}

func newSubscriptionPage(q *request, name string, c change) (any, error) {
	found, err := subscribers(q, cmp.Or(name, "\n")) // no name has a line end
	if err != nil {
		return nil, err
	}
	rates := q.console.activity.rates(name, q.machine)
	rate := minutes(q, rates, "")
	rate.About = "Requests a second of " + name + " over the last hour: at most " + short(slices.Max(rates)) + "."
	return subscriptionPage{found[0], rate, newSubscriptionForm(q, found[0].Subscription), c}, nil
}

func newSubscriptionForm(q *request, s *subscription.Subscription) subscriptionForm {
	f := subscriptionForm{Subscription: s, Expires: q.LastDay(s.PrimaryKey.Expires), From: q.Day(q.machine)}
	if !f.Expires.IsNone() && f.Expires.Before(f.From) {
		f.From = f.Expires // an expired key may stay so
	}
	f.Choices = slices.Concat(q.Subscriptions.Operations(), s.HostOperations) // these may be of another host program on this database
	slices.Sort(f.Choices)
	f.Choices = slices.Compact(f.Choices)
	return f
}

// subscriptionColumns are the columns of the export.
var subscriptionColumns = []bookfile.Column[subscriber]{
	{Name: "Name", Value: func(s *subscriber) bookfile.Value { return bookfile.Text(s.Name) }},
	{Name: "State", Value: func(s *subscriber) bookfile.Value { return bookfile.Text(string(s.State)) }},
	{Name: "Operations", Value: func(s *subscriber) bookfile.Value { return bookfile.Text(strings.Join(s.Granted(), ", ")) }},
	{Name: "RequestsPerSecond", Value: func(s *subscriber) bookfile.Value { return bookfile.Integer(int64(s.RequestsPerSecond)) }},
	{Name: "BusiestMinute", Value: func(s *subscriber) bookfile.Value { return bookfile.Text(s.Used) }},
	{Name: "RequireCallerId", Value: func(s *subscriber) bookfile.Value { return bookfile.Text(strconv.FormatBool(s.RequireCallerID)) }},
	{Name: "Created", Value: func(s *subscriber) bookfile.Value { return bookfile.Instant(s.Created) }},
	{Name: "PrimaryKeyCreated", Value: func(s *subscriber) bookfile.Value { return bookfile.Instant(s.PrimaryKey.Created) }},
	{Name: "PrimaryKeyUsed", Value: func(s *subscriber) bookfile.Value { return bookfile.Instant(s.PrimaryKey.Used) }},
	{Name: "PrimaryKeyExpires", Value: func(s *subscriber) bookfile.Value { return bookfile.Instant(s.PrimaryKey.Expires) }},
	{Name: "SecondaryKeyCreated", Value: func(s *subscriber) bookfile.Value { return bookfile.Instant(s.SecondaryKey.Created) }},
	{Name: "SecondaryKeyUsed", Value: func(s *subscriber) bookfile.Value { return bookfile.Instant(s.SecondaryKey.Used) }},
	{Name: "SecondaryKeyExpires", Value: func(s *subscriber) bookfile.Value { return bookfile.Instant(s.SecondaryKey.Expires) }},
	{Name: "AppKey", Value: func(s *subscriber) bookfile.Value { return bookfile.Text(s.AppKey) }},
	{Name: "Channel", Value: func(s *subscriber) bookfile.Value { return bookfile.Text(s.Channel) }},
	{Name: "TellerName", Value: func(s *subscriber) bookfile.Value { return bookfile.Text(s.TellerName) }},
	{Name: "ClientCertificate", Value: func(s *subscriber) bookfile.Value { return bookfile.Text(s.ClientCertificate) }},
	{Name: "Rejected", Value: func(s *subscriber) bookfile.Value { return bookfile.Integer(s.Refused) }},
}

func exportSubscriptions(q *request) (any, error) {
	all, err := subscribers(q, "")
	if err != nil {
		return nil, err
	}
	return download(q, "subscriptions", subscriptionColumns, rowsOf(all))
}

// changeSubscription carries out a form of the pages. What takes something from
// a caller needs the box of confirmation.
func changeSubscription(q *request) (any, error) {
	name, action := q.field("name"), q.field("action")
	c := change{Wrong: "Nothing was changed: tick the box to confirm."}
	if action == "create" || action == "activate" || q.field("confirm") == "yes" {
		var err error
		if c, err = carryOut(q, name, action); err != nil {
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
	page, err := newSubscriptionPage(q, name, c) // new keys are in this answer only
	answer := shown{0, "subscription", page}
	if c.Wrong != "" {
		answer.status = http.StatusBadRequest
		if action == "create" {
			answer.template = "subscriptions"
			answer.content, err = newSubscriptionsPage(q, c)
		}
	}
	return answer, err
}

func carryOut(q *request, name, action string) (c change, err error) {
	ctx := q.by(q.ctx, q.field("reason"))
	switch action {
	case "create":
		fields, err := fieldsOf(q, new(subscription.Subscription))
		if err != nil {
			return c, err
		}
		fields.Name = name
		primary, secondary, err := q.Subscriptions.Create(ctx, fields)
		return change{Of: name, NewKeys: []newKey{{subscription.Primary, primary.Reveal()}, {subscription.Secondary, secondary.Reveal()}}, Done: name + " can call the API within 5 seconds."}, err
	case "change":
		return revise(ctx, q, name)
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
func revise(ctx context.Context, q *request, name string) (c change, err error) {
	found, err := subscribers(q, name)
	if err != nil {
		return c, err
	}
	before := found[0].Subscription
	fields, err := fieldsOf(q, before)
	if err != nil {
		return c, err
	}
	fields.ClientCertificate = before.ClientCertificate // the form does not have it
	changes := subscriptions.Differences(before, &fields, q.Zone)
	if len(changes) == 0 {
		return change{Wrong: "Nothing was changed: the form has the values that the subscription has."}, nil
	}
	details := strings.Join(changes, "; ")
	expires := fields.PrimaryKey.Expires
	err = q.Subscriptions.Change(ctx, name, func(s *subscription.Subscription) error {
		if q.LastDay(expires) != q.LastDay(s.PrimaryKey.Expires) {
			s.PrimaryKey.Expires, s.SecondaryKey.Expires = expires, expires
		}
		return s.Revise(fields)
	})
	return change{Done: name + " is changed: " + details + ". Every replica follows within 5 seconds."}, err
}

// fieldsOf reads the form of a subscription.
func fieldsOf(q *request, before *subscription.Subscription) (fields subscription.Subscription, err error) {
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
	case !last.IsNone() && last.Before(today) && last != q.LastDay(before.PrimaryKey.Expires):
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
			text = err.Error()
			return strings.ToUpper(text[:1]) + text[1:] + ".", true
		}
	}
	known, ok := errors.AsType[*fault.Error](err)
	if !ok || known.Kind != fault.Invalid {
		return "", false
	}
	all := []string{known.Detail}
	for _, f := range known.Faults {
		all = append(all, strings.TrimPrefix(f.Pointer, "/")+": "+f.Detail)
	}
	return strings.Join(all, " "), true
}
