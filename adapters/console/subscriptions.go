package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/fault"
	"bankingapi/domain/subscription"
)

type subscriptionsPage struct {
	Rows []subscriber
	// New has the fields of the form for a new subscription.
	New *subscription.Subscription
	// NewKeys are shown once, after they were made. Done describes the change that made them.
	NewKeys keys
	Done    string
	// Waiting are the recorded sales of a subscription on its own page.
	Waiting backoffice.WaitingSales
}

type keys map[subscription.Slot]subscription.Key

// subscriber is a subscription and its use of this replica.
type subscriber struct {
	*subscription.Subscription
	Used    string // the busiest minute of the last hour
	Refused int64  // requests that were refused in the last hour
}

func subscriptionPath(name string) string { return with("/console/subscription", "name", name) }

func subscribers(q *request, name string) (all []subscriber, err error) {
	found, err := q.Options.Subscriptions.List(q.ctx)
	refused := q.Options.Activity.LastHour(q.Clock.Machine).Refused
	for _, s := range found {
		if name != "" && s.Name != name {
			continue
		}
		used := q.Options.Activity.BusiestMinute(s.Name, q.Clock.Machine)
		row := subscriber{Subscription: s, Used: short(used) + "/s"}
		if s.RequestsPerSecond > 0 {
			row.Used += ", " + strconv.Itoa(int(100*used)/s.RequestsPerSecond) + " %"
		}
		for of, n := range refused {
			if of.Subscription == s.Name {
				row.Refused += n
			}
		}
		all = append(all, row)
	}
	if err != nil {
		return all, err
	}
	if name != "" && len(all) == 0 {
		return nil, errNothing
	}
	return all, nil
}

func showSubscriptions(q *request) (any, error) {
	rows, err := subscribers(q, "")
	p := subscriptionsPage{Rows: rows, New: new(subscription.Subscription)}
	if q.field("action") == "create" { // the form was refused, and keeps what the operator typed
		*p.New, _ = fieldsOf(q, p.New)
		p.New.Name = q.field("name")
	}
	return p, err
}

func showSubscription(q *request) (any, error) {
	return newSubscriptionPage(q, nil, cmp.Or(q.query("name"), q.field("name"), "\n"), "", nil) // as below
}

func newSubscriptionPage(q *request, err error, name, done string, made keys) (any, error) {
	if err != nil {
		return nil, err
	}
	rows, err := subscribers(q, name)
	if err != nil && made != nil { // the keys can be shown only now
		rows = []subscriber{{Subscription: &subscription.Subscription{Name: name}}}
		err = nil
	}
	if err != nil {
		return nil, err
	}
	waiting, err := q.Options.Office.WaitingSalesOf(q.ctx, name)
	if made != nil { // as above
		err = nil
	}
	q.template = "subscription"
	return subscriptionsPage{Rows: rows, NewKeys: made, Done: done, Waiting: waiting}, err
}

// subscriberColumns are the columns of subscriptions, and their use.
var subscriberColumns = append(
	bookfile.ColumnsOf(bookfile.Subscriptions, func(s *subscriber) *subscription.Subscription { return s.Subscription }),
	bookfile.Column[subscriber]{Name: "BusiestMinute", Value: func(s *subscriber) bookfile.Value { return bookfile.Text(s.Used) }},
	bookfile.Column[subscriber]{Name: "Rejected", Value: func(s *subscriber) bookfile.Value { return bookfile.Integer(s.Refused) }},
)

func exportSubscriptions(q *request) (any, error) {
	all, err := subscribers(q, "")
	if err != nil {
		return nil, err
	}
	return download(q, "subscriptions", subscriberColumns, rowsOf(all))
}

// changeSubscription processes a form. What may restrict a caller must be confirmed.
func changeSubscription(q *request) (any, error) {
	name := q.field("name")
	action := q.field("action")
	if action != "create" && action != "activate" && q.field("confirm") != "yes" {
		return nil, errConfirm
	}
	ctx := q.by(q.ctx, q.field("reason"))
	become := func(state subscription.State, done string) (any, error) {
		return q.done(q.Options.Subscriptions.SetState(ctx, name, state), subscriptionPath(name), name+done)
	}
	switch action {
	case "create":
		fields, err := fieldsOf(q, new(subscription.Subscription))
		if err != nil {
			return nil, err
		}
		fields.Name = name
		primary, secondary, err := q.Options.Subscriptions.Create(ctx, fields)
		return newSubscriptionPage(q, err, name, name+" can call the API within 5 seconds.", keys{subscription.Primary: primary, subscription.Secondary: secondary})
	case "change":
		return revise(ctx, q, name)
	case "suspend":
		return become(subscription.Suspended, " is suspended. Its keys stop working within 5 seconds.")
	case "activate":
		return become(subscription.Active, " is active.")
	case "cancel":
		return become(subscription.Cancelled, " is cancelled, for good.")
	case "regenerate-primary", "regenerate-secondary":
		slot := subscription.Slot(strings.TrimPrefix(action, "regenerate-"))
		key, err := q.Options.Subscriptions.Regenerate(ctx, name, slot)
		return newSubscriptionPage(q, err, name, "The old key stops working within 5 seconds.", keys{slot: key})
	}
	return nil, errNothing
}

// terms returns a text that differs if the fields of a subscription differ.
func terms(o *Options, s *subscription.Subscription) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(subscriptions.Differences(nil, s, o.Zone()), "\n"))))
}

// revise applies the fields of a form to a subscription, unless it was changed meanwhile.
func revise(ctx context.Context, q *request, name string) (any, error) {
	var changes []string
	err := q.Options.Subscriptions.Change(ctx, name, func(s *subscription.Subscription) error {
		if q.field("shown") != terms(q.Options, s) {
			return &problem{http.StatusBadRequest, "Nothing was changed: somebody changed " + name + " after this page was opened. The form has its values of now. Change it again."}
		}
		fields, err := fieldsOf(q, s)
		if err != nil {
			return err
		}
		changes = subscriptions.Differences(s, &fields, q.Options.Zone())
		if len(changes) == 0 {
			return &problem{http.StatusBadRequest, "Nothing was changed: the form has the values that the subscription has."}
		}
		expires := fields.PrimaryKey.Expires
		if q.Clock.LastDay(expires) != q.Clock.LastDay(s.PrimaryKey.Expires) {
			s.PrimaryKey.Expires = expires
			s.SecondaryKey.Expires = expires
		}
		return s.Revise(fields)
	})
	return q.done(err, subscriptionPath(name), name+" is changed: "+strings.Join(changes, "; ")+". Every replica follows within 5 seconds.")
}

// fieldsOf returns the fields of a form, even if it returns an error.
func fieldsOf(q *request, before *subscription.Subscription) (fields subscription.Subscription, err error) {
	fields = subscription.Subscription{
		AppKey:            q.retyped("appkey", before.AppKey),
		Channel:           q.retyped("channel", before.Channel),
		TellerName:        q.retyped("teller", before.TellerName),
		RequireCallerID:   q.field("callerid") == "required",
		ClientCertificate: strings.ToLower(strings.ReplaceAll(q.field("certificate"), ":", "")), // as it is stored
	}
	names := q.r.PostForm["operation"]
	today := q.Clock.Day(q.Clock.Machine)
	fields.Operations = subscription.InOrder(names)
	last, wrongDay := parseDay(q.field("expires"))
	if !last.IsNone() {
		expires := last.Plus(1).Start(q.Options.Zone()).UTC()
		fields.PrimaryKey.Expires = expires
		fields.SecondaryKey.Expires = expires
	}
	rate, wrongRate := strconv.Atoi(cmp.Or(strings.TrimSpace(q.field("rate")), "0"))
	fields.RequestsPerSecond = rate
	err = q.Options.Subscriptions.CheckOperations(slices.DeleteFunc(slices.Clone(names), before.MayCall)...)
	switch {
	case err != nil:
	case len(names) == 0:
		err = fault.New(fault.Invalid, "Choose at least one operation. To refuse all, suspend the subscription.")
	case wrongRate != nil:
		err = fault.New(fault.Invalid, "The rate limit must be a whole number.")
	case wrongDay != nil:
		err = fault.New(fault.Invalid, "The last day of the keys must be a day, such as 2027-12-31.")
	case !last.IsNone() && last.Before(today) && last != q.Clock.LastDay(before.PrimaryKey.Expires):
		err = fault.New(fault.Invalid, "Last day of both keys: choose "+today.String()+" or a later day. An earlier day would end both keys at once. To do that, suspend the subscription.")
	}
	return fields, err
}
