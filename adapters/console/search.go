package console

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/operation"
)

// searchView is the page Search.
type searchView struct {
	Asked bool
	Hits  []hit
}

// hit is something that was found. Path is empty if it has no page.
type hit struct{ Kind, Text, Note, Path string }

// finder looks for a text as one thing that it may be.
type finder func(q *request, text string) ([]hit, error)

func showSearch(q *request) error { return q.show("search", searchView{}) }

// search looks for a text as everything that it may be. The text comes in the
// body of the request, so that no URL has it. A single hit is opened at once.
func search(q *request) error {
	text := strings.TrimSpace(q.PostForm.Get("q"))
	if text == "" || len(text) > 800 {
		return q.show("search", searchView{})
	}
	// A request is in three tables, so finding it takes as long as all the others.
	// The console has two connections.
	lanes := [][]finder{{findRequest}, {findOperation, findCustomer, findAccount, findCallerID, findUser, findPush}}
	hits := make([][]hit, len(lanes))
	err := together(len(lanes), func(i int) error {
		for _, find := range lanes[i] {
			found, err := find(q, text)
			if err != nil {
				return err
			}
			hits[i] = append(hits[i], found...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	v := searchView{Asked: true, Hits: slices.Concat(hits[1], hits[0])}
	if len(v.Hits) == 1 && v.Hits[0].Path != "" && v.Hits[0].Kind != noAccount {
		return q.redirect(v.Hits[0].Path)
	}
	return q.show("search", v)
}

// together runs the tasks 0 to n-1 at the same time.
// A panic of a task is one of the caller, whom the HTTP server protects.
func together(n int, task func(i int) error) error {
	errs, panics := make([]error, n), make([]any, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			defer func() { panics[i] = recover() }()
			errs[i] = task(i)
		})
	}
	running.Wait()
	for _, p := range panics {
		if p != nil {
			panic(p)
		}
	}
	return errors.Join(errs...)
}

func findOperation(q *request, text string) ([]hit, error) {
	id, err := operation.ParseID(strings.ToLower(text))
	if err != nil {
		return nil, nil //nolint:nilerr // the text is something else
	}
	found, err := q.o.Office.Operation(q.ctx, id)
	if errors.Is(err, backoffice.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []hit{{"Operation", id.String(), noteOf(&found), salePath(id, 0)}}, nil
}

var accountText = regexp.MustCompile(`^(\d{1,19})\s*[-/. ]\s*(\d{1,19})\s*[-/. ]\s*(\d{1,19})(?:\s+([A-Z]{3}))?$`)

func findCustomer(q *request, text string) ([]hit, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return nil, nil //nolint:nilerr // the text is something else
	}
	known, err := q.knows(n)
	if err != nil || !known {
		return nil, err
	}
	return []hit{{"Customer", q.number(n), "", q.customer(n).Path}}, nil
}

// noAccount is the kind of a hit that is not what was searched for.
const noAccount = "No such account of customer"

// findAccount takes an account as BRANCH-CUSTOMER-SUFFIX, with or without its
// currency. If a customer has no such account, it says so and does not open the
// customer.
func findAccount(q *request, text string) (hits []hit, err error) {
	m := accountText.FindStringSubmatch(text)
	if m == nil {
		return nil, nil
	}
	var numbers [3]int64
	for i := range numbers {
		if numbers[i], err = strconv.ParseInt(m[i+1], 10, 64); err != nil {
			return nil, nil //nolint:nilerr // no account has such a number
		}
	}
	if numbers[1] == 0 {
		return nil, nil // a filter takes every customer for 0
	}
	has, err := q.o.Office.Finder.Customer(q.ctx, numbers[1], time.Time{})
	if err != nil {
		return nil, err
	}
	of := q.customer(numbers[1])
	for i, a := range has.Accounts {
		if a.Key.BranchCode == numbers[0] && a.Key.AccountSuffix == numbers[2] && (m[4] == "" || m[4] == a.Key.Currency.Code()) {
			line := with(of.Path, "line", strconv.Itoa(len(has.Holdings)+i)) + "#line" // see positions
			hits = append(hits, hit{"Account", q.account(a.Key), "of customer " + of.Number, line})
		}
	}
	if len(hits) == 0 && len(has.Holdings)+len(has.Accounts) > 0 {
		return []hit{{noAccount, of.Number, "the page of the customer", of.Path}}, nil
	}
	return hits, nil
}

// knows reports whether a customer has a holding or an account.
func (q *request) knows(customerNo int64) (bool, error) {
	of := backoffice.Query{CustomerNo: customerNo}
	for _, err := range q.o.Office.Reader.Holdings(q.ctx, of) {
		return err == nil, err
	}
	for _, err := range q.o.Office.Reader.Accounts(q.ctx, of) {
		return err == nil, err
	}
	return false, nil
}

// maxPartners is for how many subscriptions a CallerId is looked up.
const maxPartners = 200

func findCallerID(q *request, text string) (hits []hit, err error) {
	partners, err := q.partners()
	if err != nil {
		return nil, err
	}
	for i, name := range partners {
		if i == maxPartners {
			break
		}
		found, err := q.o.Office.OperationsOf(q.ctx, name, text)
		if errors.Is(err, backoffice.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range found {
			hits = append(hits, callerHit(&found[i], name, text))
		}
	}
	return hits, nil
}

// callerHit is an operation of a CallerId. It has no path if the operation stored
// nothing: all its notifications were stored by an earlier one.
func callerHit(found *backoffice.Operation, partner, callerID string) hit {
	r := found.Record
	h := hit{"CallerId", callerID, r.Key.Operation.String() + " from " + partner, salePath(r.ID, 0)}
	if r.Outcome.State == operation.Failed && len(r.Outcome.Faults) > 0 {
		h.Note += ", " + r.Outcome.Faults[0].Code
	}
	if r.Key.Operation == operation.AddPushNotificationResponse && len(found.Notifications) == 0 {
		h.Note, h.Path = h.Note+", all its notifications were stored before", ""
	}
	return h
}

func findUser(q *request, text string) ([]hit, error) {
	for _, err := range q.o.Office.Reader.Notifications(q.ctx, backoffice.Query{UserID: text, Limit: 1, Order: backoffice.Newest}) {
		if err != nil {
			return nil, err
		}
		return []hit{{"Notifications of user", q.user(text), "", q.notificationsPath(narrowed{User: text})}}, nil
	}
	return nil, nil
}

func noteOf(found *backoffice.Operation) string {
	switch {
	case found.Refusal != nil:
		return "refused"
	case len(found.Notifications) > 0:
		return plural(len(found.Notifications), "notification")
	case len(found.Sales) > 0:
		return plural(len(found.Sales), "sale")
	}
	return plural(len(found.Postings), "posting")
}

// maxHits is how many hits of one kind are shown.
const maxHits = 20

// findRequest takes an X-Request-Id, as the caller sent it. Where the caller
// sent none, it is the ID of the operation.
func findRequest(q *request, text string) (hits []hit, err error) {
	if len(text) > 200 {
		return nil, nil
	}
	for d, err := range q.o.Office.Reader.Decisions(q.ctx, backoffice.Query{RequestID: text}) {
		if err != nil {
			return nil, err
		}
		hits = append(hits, hit{"X-Request-Id", text, d.State.String() + ", from " + d.Subscription, salePath(d.ID, 0)})
		if len(hits) == maxHits {
			break
		}
	}
	return hits, nil
}

func findPush(q *request, text string) (hits []hit, err error) {
	if len(text) > 200 {
		return nil, nil
	}
	for n, err := range q.o.Office.Reader.Notifications(q.ctx, backoffice.Query{PushID: text}) {
		if err != nil {
			return nil, err
		}
		hits = append(hits, hit{"Push", text, "to user " + q.user(n.Record.UserID) + ", from " + n.Subscription, salePath(n.OperationID, 0)})
		if len(hits) == maxHits {
			break
		}
	}
	return hits, nil
}
