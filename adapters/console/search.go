package console

import (
	"cmp"
	"errors"
	"iter"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// searchPage is the page Search.
type searchPage struct {
	Asked bool
	Hits  []hit
}

// hit is something that was found. Path is empty if it has no page.
type hit struct{ Kind, Text, Note, Path string }

// finders look for a text as all that it may be.
var finders = []func(q *request, text string) ([]hit, error){findOperation, findCustomer, findAccount, findCallerID, findUser, findPush, findRequest}

const (
	// maxQuery is the longest text to search for, in bytes.
	maxQuery = 800
	// maxPartners is for how many subscriptions a CallerId is looked up.
	maxPartners = 200
	// maxHits is how many hits of one kind are shown.
	maxHits = 20
	// maxID is the longest ID that is stored, in bytes.
	maxID = 200
	// noAccount is the kind of a hit that is not what was searched for.
	noAccount = "No such account of customer"
)

// showSearch shows the hits of a text that the URL has sealed.
func showSearch(q *request) (any, error) {
	var text string
	if ref := q.query("q"); ref != "" {
		if err := q.follow(ref, &text); err != nil {
			return nil, err
		}
	}
	return searchFor(q, text)
}

// search takes the form. The text comes in the body of the request, so that no URL has
// it. Several hits have a page of their own, to which Back leads.
func search(q *request) (any, error) {
	answer, err := searchFor(q, q.field("q"))
	if p, isPage := answer.(searchPage); isPage && len(p.Hits) > 1 {
		return q.redirect(with("/console/search", "q", q.refer(q.field("q"))))
	}
	return answer, err
}

// searchFor looks for a text as everything that it may be, and records it. A single hit
// is opened at once.
func searchFor(q *request, text string) (any, error) {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > maxQuery {
		return searchPage{}, nil
	}
	p := searchPage{Asked: true}
	for _, find := range finders {
		found, err := find(q, text)
		if err != nil {
			return nil, err
		}
		p.Hits = append(p.Hits, found...)
	}
	for _, h := range p.Hits {
		if !strings.Contains(q.of.text, h.Kind) {
			q.of.text += h.Kind + " "
		}
	}
	if err := q.record("console.search", "search"); err != nil {
		if q.Revealed() {
			return nil, err
		}
		q.Failed("Search", err) // on a full disk, an operator searches all the more
	}
	if len(p.Hits) == 1 && p.Hits[0].Path != "" && p.Hits[0].Kind != noAccount {
		return q.redirect(p.Hits[0].Path)
	}
	return p, nil
}

func findOperation(q *request, text string) ([]hit, error) {
	id, err := operation.ParseID(strings.ToLower(text))
	if err != nil {
		return nil, nil //nolint:nilerr // the text is something else
	}
	found, err := q.Office.Operation(q.ctx, id)
	if errors.Is(err, backoffice.ErrNotFound) {
		return nil, nil
	}
	note := plural(len(found.Postings), "posting")
	switch {
	case found.Refusal != nil:
		note = "refused"
	case len(found.Notifications) > 0:
		note = plural(len(found.Notifications), "notification")
	case len(found.Sales) > 0:
		note = plural(len(found.Sales), "sale")
	}
	return []hit{{"Operation", id.String(), note, salePath(id, 0)}}, err
}

// findCustomer takes a number whose customer has a holding or an account, or asked for a
// sale that was refused.
func findCustomer(q *request, text string) ([]hit, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return nil, nil //nolint:nilerr // the text is no number of a customer
	}
	has, err := q.Office.Finder.Customer(q.ctx, n, time.Time{})
	found := len(has.Holdings)+len(has.Accounts) > 0
	for _, wrong := range q.Office.Reader.Sales(q.ctx, backoffice.Query{CustomerNo: n, Refused: true, Limit: 1}) {
		found, err = true, cmp.Or(err, wrong)
	}
	if err != nil || !found {
		return nil, err
	}
	q.of.customer = n
	return []hit{{"Customer", q.Number(n), "", q.Customer(n)}}, nil
}

var accountText = regexp.MustCompile(`^(\d{1,19})\s*[-/. ]\s*(\d{1,19})\s*[-/. ]\s*(\d{1,19})(?:\s+([A-Z]{3}))?$`)

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
	customerNo := numbers[1]
	if customerNo == 0 {
		return nil, nil // a filter takes every customer for 0
	}
	has, err := q.Office.Finder.Customer(q.ctx, customerNo, time.Time{})
	if err != nil || len(has.Holdings)+len(has.Accounts) == 0 {
		return nil, err
	}
	q.of.customer = customerNo
	path := q.Customer(customerNo)
	for i, a := range has.Accounts {
		if a.Key.BranchCode == numbers[0] && a.Key.AccountSuffix == numbers[2] && (m[4] == "" || m[4] == a.Key.Currency.Code()) {
			line := customerPage{Path: path}.LinePath(len(has.Holdings) + i)
			hits = append(hits, hit{"Account", q.Account(a.Key), "of customer " + q.Number(customerNo), line})
		}
	}
	if len(hits) == 0 {
		return []hit{{noAccount, q.Number(customerNo), "the page of the customer", path}}, nil
	}
	return hits, nil
}

// findCallerID finds the operations of a CallerId. One that stored nothing has no
// page: all its notifications were stored by an earlier one.
func findCallerID(q *request, text string) (hits []hit, err error) {
	partners, err := q.Subscriptions.List(q.ctx)
	if err != nil {
		return nil, err
	}
	for _, partner := range partners[:min(len(partners), maxPartners)] {
		found, err := q.Office.OperationsOf(q.ctx, partner.Name, text)
		if err != nil && !errors.Is(err, backoffice.ErrNotFound) {
			return nil, err
		}
		for i := range found {
			r := found[i].Record
			h := hit{"CallerId", text, r.Key.Operation.String() + " from " + partner.Name, salePath(r.ID, 0)}
			if r.Outcome.State == operation.Failed && len(r.Outcome.Faults) > 0 {
				h.Note += ", " + r.Outcome.Faults[0].Code
			}
			if r.Key.Operation == operation.AddPushNotificationResponse && len(found[i].Notifications) == 0 {
				h.Note, h.Path = h.Note+", all its notifications were stored before", ""
			}
			hits = append(hits, h)
		}
	}
	return hits, nil
}

func findUser(q *request, text string) ([]hit, error) {
	found := q.Office.Reader.Notifications(q.ctx, backoffice.Query{Order: backoffice.Newest, UserID: text, Limit: 1})
	return hitsOf(found, text, func(*push.Entry) hit {
		return hit{"Notifications of user", q.User(text), "", notifications.address(q, "", url.Values{"user": {text}})}
	})
}

// findRequest takes an X-Request-Id, as the caller sent it. Where the caller
// sent none, it is the ID of the operation.
func findRequest(q *request, text string) ([]hit, error) {
	return hitsOf(q.Office.Reader.Decisions(q.ctx, backoffice.Query{RequestID: text}), text, func(d *backoffice.Decision) hit {
		return hit{"X-Request-Id", text, d.State.String() + ", from " + d.Subscription, salePath(d.ID, 0)}
	})
}

func findPush(q *request, text string) ([]hit, error) {
	return hitsOf(q.Office.Reader.Notifications(q.ctx, backoffice.Query{PushID: text}), text, func(n *push.Entry) hit {
		return hit{"Push", text, "to user " + q.User(n.Record.UserID) + ", from " + n.Subscription, salePath(n.OperationID, 0)}
	})
}

// hitsOf are the first rows that an ID finds.
func hitsOf[T any](rows iter.Seq2[T, error], id string, show func(*T) hit) (hits []hit, err error) {
	if len(id) > maxID {
		return nil, nil
	}
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		if hits = append(hits, show(&row)); len(hits) == maxHits {
			break
		}
	}
	return hits, nil
}
