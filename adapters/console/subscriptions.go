package console

import (
	"context"
	"errors"
	"html/template"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/subscriptions"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/subscription"
)

// subscriptionsView is the page Subscriptions.
type subscriptionsView struct {
	Rows   []subscriptionRow
	Form   subscriptionForm
	Export string
	change
}

// change says what a form did.
type change struct {
	// Done says what it did, Wrong why it did not.
	Done, Wrong string
	// NewKeys are shown once, after they were made. Of is their subscription.
	NewKeys []keyView
	Of      string
}

type keyView struct{ Slot, Key string }

type subscriptionRow struct {
	Name, Path                  string
	Created                     string
	Keys                        []keyLife
	State                       state
	Operations                  string
	Limit, Used                 string
	Refused, RefusedPath        string
	AppKey, Channel, TellerName string
	CallerID, Without           string
	Active, Cancelled           bool
}

// subscriptionView is the page of one subscription.
type subscriptionView struct {
	subscriptionRow
	Rate template.HTML
	Form subscriptionForm
	change
}

// subscriptionForm has the fields of a subscription as the form shows them.
type subscriptionForm struct {
	Rate, Expires string
	// From is the first day that Expires may be.
	From                        string
	AppKey, Channel, TellerName string
	CallerID                    bool
	Operations                  []operationChoice
}

type operationChoice struct {
	Name   string
	Chosen bool
}

func (q *request) subscriptionRows() ([]subscriptionRow, error) {
	all, err := q.o.Subscriptions.List(q.ctx)
	if err != nil {
		return nil, err
	}
	refused := q.refusedToday()
	var rows []subscriptionRow
	for _, s := range all {
		rows = append(rows, q.subscriptionRow(s, refused[s.Name]))
	}
	return rows, nil
}

// refusedToday counts the refused requests of each subscription.
func (q *request) refusedToday() map[string]int {
	refused := make(map[string]int)
	for _, r := range q.activity.snapshot(q.real).refusals {
		refused[r.subscription] += r.count
	}
	return refused
}

func (q *request) subscriptionRow(s *subscription.Subscription, refused int) subscriptionRow {
	row := subscriptionRow{
		Name: s.Name, Path: subscriptionPath(s.Name), State: state{string(s.State), "good"}, Limit: "none", CallerID: "optional",
		AppKey: s.AppKey, Channel: s.Channel, TellerName: s.TellerName,
		Refused: count(refused), RefusedPath: with("/console/refusals", "partner", s.Name, "day", q.today().String()),
		Active: s.State == subscription.Active, Cancelled: s.State == subscription.Cancelled,
		Created: q.dated(s.Created), Without: q.dated(s.WithoutCallerID),
		Keys: []keyLife{q.keyLife(subscription.Primary, s.PrimaryKey), q.keyLife(subscription.Secondary, s.SecondaryKey)},
	}
	switch s.State {
	case subscription.Suspended:
		row.State.Class = "wait"
	case subscription.Cancelled:
		row.State.Class = "bad"
	case subscription.Active:
	}
	used := slices.Max(q.activity.rates(s.Name, q.real))
	row.Used = short(used) + "/s"
	if s.RequestsPerSecond > 0 {
		row.Limit = count(s.RequestsPerSecond) + "/s"
		row.Used += ", " + strconv.Itoa(int(100*used)/s.RequestsPerSecond) + " %"
	}
	if s.RequireCallerID {
		row.CallerID = "required"
	}
	row.Operations = namesOf(s)
	return row
}

func namesOf(s *subscription.Subscription) string { return strings.Join(s.Granted(), ", ") }

func subscriptionPath(name string) string { return with("/console/subscription", "name", name) }

func showSubscriptions(q *request) error { return q.showSubscriptions(change{}) }

func (q *request) showSubscriptions(c change) (err error) {
	v := subscriptionsView{change: c, Export: "/console/subscriptions/export"}
	if v.Rows, err = q.subscriptionRows(); err != nil {
		return err
	}
	var all subscription.Subscription
	all.Grant(q.o.Subscriptions.Operations()...)
	v.Form = q.formOf(&all)
	return q.show("subscriptions", v)
}

func (q *request) formOf(s *subscription.Subscription) subscriptionForm {
	f := subscriptionForm{AppKey: s.AppKey, Channel: s.Channel, TellerName: s.TellerName, CallerID: s.RequireCallerID, Expires: q.lastDay(s.PrimaryKey.Expires)}
	f.From = day.Of(q.real, q.o.Zone).String()
	if f.Expires != "" {
		f.From = min(f.From, f.Expires) // an expired key may stay so
	}
	if s.RequestsPerSecond > 0 {
		f.Rate = strconv.Itoa(s.RequestsPerSecond)
	}
	known := q.o.Subscriptions.Operations()
	for _, name := range known {
		f.Operations = append(f.Operations, operationChoice{name, s.MayCallNamed(name)})
	}
	for _, name := range s.HostOperations { // of another host program on this database
		if !slices.Contains(known, name) {
			f.Operations = append(f.Operations, operationChoice{name, true})
		}
	}
	return f
}

// lastDay is the last whole day before a time.
func (q *request) lastDay(expires time.Time) string {
	if expires.IsZero() {
		return ""
	}
	return day.Of(expires.Add(-time.Nanosecond), q.o.Zone).String()
}

func showSubscription(q *request) error {
	return q.showSubscription(q.URL.Query().Get("name"), change{})
}

func (q *request) showSubscription(name string, c change) error {
	s, err := q.subscription(name)
	if err != nil {
		return err
	}
	rates := q.activity.rates(name, q.real)
	from, to := q.real.Add(-(hour-1)*time.Minute).In(q.o.Zone).Format("15:04"), q.real.In(q.o.Zone).Format("15:04")
	return q.show("subscription", subscriptionView{
		subscriptionRow: q.subscriptionRow(s, q.refusedToday()[name]), change: c, Form: q.formOf(s),
		Rate: chart(halfWidth, "Requests a second of "+name+" over the last hour: at most "+short(slices.Max(rates))+".", "", from, to, false, line{"first", rates}),
	})
}

// subscription finds a subscription by its name.
func (q *request) subscription(name string) (*subscription.Subscription, error) {
	all, err := q.o.Subscriptions.List(q.ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
	}
	return nil, errNothing
}

func exportSubscriptions(q *request) error {
	rows, err := q.subscriptionRows()
	if err != nil {
		return err
	}
	columns := []string{"Name", "State", "Operations", "RequestsPerSecond", "BusiestMinute", "CallerId", "Created", "PrimaryKey", "SecondaryKey", "AppKey", "Channel", "TellerName", "RefusedToday"}
	return export(q, "subscriptions", columns, sliceOf(rows), func(r *subscriptionRow) []string {
		return []string{r.Name, r.State.Text, r.Operations, strings.TrimSuffix(r.Limit, "/s"), r.Used, r.CallerID, r.Created, r.Keys[0].Text, r.Keys[1].Text, r.AppKey, r.Channel, r.TellerName, r.Refused}
	})
}

// sliceOf yields rows that are in memory.
func sliceOf[T any](rows []T) func(context.Context) iter.Seq2[T, error] {
	return func(context.Context) iter.Seq2[T, error] {
		return func(yield func(T, error) bool) {
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// changeSubscription carries out a form of the pages. What takes something from
// a caller needs the box of confirmation.
func changeSubscription(q *request) error {
	if !q.session.operator {
		return errRole
	}
	name, action := q.PostForm.Get("name"), q.PostForm.Get("action")
	show := func(c change) error {
		if action == "create" && c.Wrong != "" {
			return q.showSubscriptions(c)
		}
		return q.showSubscription(name, c)
	}
	if action != "create" && action != "activate" && q.PostForm.Get("confirm") != "yes" {
		q.status = http.StatusBadRequest
		return show(change{Wrong: "Nothing was changed: tick the box to confirm."})
	}
	c, err := q.carryOut(name, action)
	if err != nil {
		wrong, ok := explain(err)
		if !ok {
			return err
		}
		c = change{Wrong: "Nothing was changed. " + wrong}
	}
	switch {
	case c.Wrong != "":
		q.status = http.StatusBadRequest
		return show(c)
	case len(c.NewKeys) > 0: // they are in this answer only
		return show(c)
	}
	return q.did(subscriptionPath(name), c.Done)
}

func (q *request) carryOut(name, action string) (c change, err error) {
	manager := q.o.Subscriptions
	ctx := by(q.ctx, q.session.user, q.PostForm.Get("reason"))
	switch action {
	case "create":
		fields, err := q.fields(new(subscription.Subscription))
		if err != nil {
			return c, err
		}
		fields.Name = name
		primary, secondary, err := manager.Create(ctx, fields)
		return change{Of: name, NewKeys: []keyView{{"primary", primary.Reveal()}, {"secondary", secondary.Reveal()}}, Done: name + " can call the API within 5 seconds."}, err
	case "change":
		return q.revise(ctx, name)
	case "suspend":
		return change{Done: name + " is suspended. Its keys stop working within 5 seconds."}, manager.SetState(ctx, name, subscription.Suspended)
	case "activate":
		return change{Done: name + " is active."}, manager.SetState(ctx, name, subscription.Active)
	case "cancel":
		return change{Done: name + " is cancelled, for good."}, manager.SetState(ctx, name, subscription.Cancelled)
	case "regenerate-primary", "regenerate-secondary":
		slot := subscription.Slot(strings.TrimPrefix(action, "regenerate-"))
		key, err := manager.Regenerate(ctx, name, slot)
		return change{Of: name, NewKeys: []keyView{{string(slot), key.Reveal()}}, Done: "The old key stops working within 5 seconds."}, err
	}
	return c, errNothing
}

// revise changes what the form has changed.
func (q *request) revise(ctx context.Context, name string) (c change, err error) {
	before, err := q.subscription(name)
	if err != nil {
		return c, err
	}
	fields, err := q.fields(before)
	if err != nil {
		return c, err
	}
	changes := subscriptions.Differences(before, &fields, q.o.Zone)
	if len(changes) == 0 {
		return change{Wrong: "Nothing was changed: the form has the values that the subscription has."}, nil
	}
	details := strings.Join(changes, "; ")
	expires := fields.PrimaryKey.Expires
	err = q.o.Subscriptions.Change(ctx, name, func(s *subscription.Subscription) error {
		if q.lastDay(expires) != q.lastDay(s.PrimaryKey.Expires) {
			s.PrimaryKey.Expires, s.SecondaryKey.Expires = expires, expires
		}
		return s.Revise(fields)
	})
	return change{Done: name + " is changed: " + details + ". Every replica follows within 5 seconds."}, err
}

// fields reads the form of a subscription.
func (q *request) fields(before *subscription.Subscription) (fields subscription.Subscription, err error) {
	fields = subscription.Subscription{AppKey: q.PostForm.Get("appkey"), Channel: q.PostForm.Get("channel"), TellerName: q.PostForm.Get("teller"),
		RequireCallerID: q.PostForm.Get("callerid") == "required"}
	names := q.PostForm["operation"]
	if err := q.o.Subscriptions.CheckOperations(slices.DeleteFunc(slices.Clone(names), before.MayCallNamed)...); err != nil {
		return fields, err
	}
	fields.Grant(names...)
	if len(fields.Granted()) == 0 {
		return fields, fault.New(fault.Invalid, "Choose at least one operation. To refuse all, suspend the subscription.")
	}
	slices.Sort(fields.Operations)
	if text := strings.TrimSpace(q.PostForm.Get("rate")); text != "" {
		if fields.RequestsPerSecond, err = strconv.Atoi(text); err != nil {
			return fields, fault.New(fault.Invalid, "The rate limit must be a whole number.")
		}
	}
	last, err := q.day(q.PostForm.Get("expires"))
	if err != nil {
		return fields, fault.New(fault.Invalid, "The last day of the keys must be a day, such as 2027-12-31.")
	}
	if today := day.Of(q.real, q.o.Zone); !last.IsNone() && last.Before(today) && last.String() != q.lastDay(before.PrimaryKey.Expires) {
		return fields, fault.New(fault.Invalid, "Last day of both keys: choose "+today.String()+" or a later day. An earlier day would end both keys at once. To do that, suspend the subscription.")
	}
	if !last.IsNone() {
		expires := last.Plus(1).Start(q.o.Zone).UTC()
		fields.PrimaryKey.Expires, fields.SecondaryKey.Expires = expires, expires
	}
	return fields, nil
}

// explain is the sentence for an error that the form caused.
func explain(err error) (text string, ok bool) {
	switch known, isFault := errors.AsType[*fault.Error](err); {
	case errors.Is(err, subscriptions.ErrNameTaken), errors.Is(err, subscriptions.ErrNotFound), errors.Is(err, subscription.ErrCancelled),
		errors.Is(err, fund.ErrNotRecorded), errors.Is(err, fund.ErrDayHasCome), errors.Is(err, fund.ErrNotCompleted), errors.Is(err, fund.ErrReversed),
		errors.Is(err, fund.ErrNoHolding), errors.Is(err, fund.ErrNoAccount), errors.Is(err, fund.ErrOutOfRange):
		return sentence(err), true
	case isFault && known.Kind == fault.Invalid:
		sentences := []string{known.Detail}
		for _, f := range known.Faults {
			sentences = append(sentences, strings.TrimPrefix(f.Pointer, "/")+": "+f.Detail)
		}
		return strings.Join(sentences, " "), true
	}
	return "", false
}

// keyLife is how old a key is, and when it was used.
type keyLife struct {
	Slot, Text string
	// Expired says that the key does not work any more.
	Expired bool
}

func (q *request) keyLife(slot subscription.Slot, life subscription.KeyLife) keyLife {
	parts := []string{or(q.made(life.Created), "age not known")}
	if life.Used.IsZero() {
		parts = append(parts, "never used")
	} else {
		parts = append(parts, "last used "+q.dated(life.Used))
	}
	expired := !life.Expires.IsZero() && !q.real.Before(life.Expires)
	if last := q.lastDay(life.Expires); expired {
		parts = append(parts, "expired on "+last)
	} else if last != "" {
		parts = append(parts, "works until "+last)
	}
	return keyLife{string(slot), strings.Join(parts, ", "), expired}
}

// made says when something was made, and how long ago.
func (q *request) made(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return "made " + q.dated(at) + " (" + plural(max(0, int(q.real.Sub(at).Hours()/24)), "day") + " ago)"
}

// dated is the bank's day and time of an instant, to the minute.
func (q *request) dated(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.In(q.o.Zone).Format("2 Jan 2006 15:04")
}
