package console

import (
	"encoding/hex"
	"errors"
	"iter"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// hit is a result of a search. Path is empty if it has no page.
type hit struct {
	Kind, Text, Note, Path string
	Operation              *backoffice.Operation
}

// finders search for each meaning of a text. After findCallerID, they read more than keys.
var finders = []func(q *request, text string) ([]hit, error){findOperation, findCustomer, findPartner, findUser, findCallerID, findPush, findRequest, findAnswer}

const (
	maxHits   = 20
	ofNumber  = "Customer"
	ofUser    = "Notifications of user"
	noAccount = "No such account of customer"
	instance  = "urn:request:" // before the X-Request-Id in the instance of an error
)

// pasted matches an ID in a text that people copied: an answer of the API, a line of its header,
// or a link of the console.
var pasted = regexp.MustCompile(instance + `[^\s"]+|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`)

// maxPasted is how many of them a search tries.
const maxPasted = 5

// showSearch searches for the encrypted text in the URL, or for an ID in its path.
func showSearch(q *request) (any, error) {
	text := storable(q.r.PathValue("id"))
	ref := q.query("q")
	if ref != "" {
		if err := q.follow(ref, &text); err != nil {
			return nil, err
		}
	}
	return searchFor(q, text)
}

// search processes the form, so that no URL has the text. Several hits are shown on their own
// page, so that Back returns to it.
func search(q *request) (any, error) {
	answer, err := searchFor(q, q.field("q"))
	if hits, isPage := answer.([]hit); isPage && len(hits) > 1 {
		return q.redirect(with("/console/search", "q", q.refer(q.field("q"))))
	}
	return answer, err
}

// searchFor searches for a text, and records it. It opens a single hit directly. People copy
// spaces that no ID has. But a partner may fill its IDs with them.
func searchFor(q *request, typed string) (any, error) {
	text := strings.TrimSpace(typed)
	if text == "" {
		return []hit(nil), nil
	}
	hits, err := findAll(q, text)
	if err == nil && len(hits) == 0 && text != typed {
		hits, err = findAll(q, typed)
	}
	for _, id := range pasted.FindAllString(text, maxPasted) {
		if err == nil && len(hits) == 0 && id != text {
			hits, err = findAll(q, id)
		}
	}
	if err != nil {
		return nil, err
	}
	if q.foreign {
		q.about += "by a link of another site"
	}
	if err := q.keep(audit.ConsoleSearch, "search"); err != nil {
		return nil, err
	}
	if opensAtOnce(hits) {
		return q.redirect(hits[0].Path)
	}
	if len(hits) == 0 {
		q.Missed = text
	}
	return hits, nil
}

// findAll searches for each meaning of a text. It stops at an operation: nothing else has the same
// ID, and partners also use a CallerId as X-Request-Id.
func findAll(q *request, text string) (hits []hit, err error) {
	for _, find := range finders {
		found, err := find(q, text)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			continue
		}
		hits = append(hits, found...)
		q.about += found[0].Kind + " "
		if found[0].Operation != nil {
			break
		}
	}
	return hits, nil
}

// opensAtOnce reports whether the first hit is what the person wants. The number of a customer
// is often a UserId too: the page of the customer leads to these messages.
func opensAtOnce(hits []hit) bool {
	switch {
	case len(hits) == 1:
		return hits[0].Path != "" && hits[0].Kind != noAccount
	case len(hits) == 2:
		return hits[0].Kind == ofNumber && hits[1].Kind == ofUser
	}
	return false
}

func findOperation(q *request, text string) ([]hit, error) {
	digits, err := hex.DecodeString(strings.ReplaceAll(strings.TrimPrefix(text, instance), "-", ""))
	if err != nil || len(digits) != len(operation.ID{}) {
		return nil, nil //nolint:nilerr // the text is something else
	}
	id := operation.ID(digits)
	found, err := q.Options.Office.Operation(q.ctx, id)
	if errors.Is(err, backoffice.ErrNotFound) {
		return nil, nil
	}
	return []hit{{Kind: "Operation", Text: id.String(), Operation: &found, Path: salePath(found.ID, 0)}}, err
}

// position is a customer, or one of the customer's accounts, as a person writes it.
type position struct {
	customerNo int64
	isAccount  bool
	branch     int64
	suffix     int64
	currency   string // empty selects every currency
}

// parsePosition reads the number of a customer, or an account as BRANCH-CUSTOMER-SUFFIX with or
// without its currency. It reports false for any other text.
func parsePosition(text string) (p position, is bool) {
	parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("-/. ", r) })
	if len(parts) == 1 && parts[0] == text {
		number, err := strconv.ParseInt(text, 10, 64)
		return position{customerNo: number}, err == nil && number > 0
	}
	if len(parts) != 3 && len(parts) != 4 {
		return p, false
	}
	p.isAccount = true
	var wrongBranch, wrongCustomer, wrongSuffix error
	p.branch, wrongBranch = strconv.ParseInt(parts[0], 10, 64)
	p.customerNo, wrongCustomer = strconv.ParseInt(parts[1], 10, 64)
	p.suffix, wrongSuffix = strconv.ParseInt(parts[2], 10, 64)
	if len(parts) == 4 {
		p.currency = parts[3]
	}
	return p, p.customerNo > 0 && errors.Join(wrongBranch, wrongCustomer, wrongSuffix) == nil
}

// isOf reports whether an account of the customer is the one that the person wrote.
func (p position) isOf(a fund.AccountKey) bool {
	isCurrency := p.currency == "" || p.currency == a.Currency.Code()
	return isCurrency && a.BranchCode == p.branch && a.AccountSuffix == p.suffix
}

// findCustomer finds a customer who has a holding or an account, or requested a sale that was
// refused, or an account. If the customer has no such account, the hit says so and opens no page.
func findCustomer(q *request, text string) (hits []hit, err error) {
	p, is := parsePosition(text)
	if !is {
		return nil, nil
	}
	has, err := q.Options.Office.Customer(q.ctx, p.customerNo, time.Time{})
	if err != nil {
		return nil, err
	}
	found := len(has.Holdings)+len(has.Accounts) > 0
	if !found && !p.isAccount {
		found, err = wasRefused(q, p.customerNo)
		if err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, nil
	}
	q.customer = p.customerNo
	path := q.Customer(p.customerNo)
	number := q.Number(p.customerNo)
	if !p.isAccount {
		return []hit{{Kind: ofNumber, Text: number, Path: path}}, nil
	}
	for _, a := range has.Accounts {
		if p.isOf(a.Key) {
			hits = append(hits, hit{Kind: "Account", Text: q.Account(a.Key), Note: "of customer " + number, Path: path})
		}
	}
	if len(hits) == 0 {
		return []hit{{Kind: noAccount, Text: number, Note: "the page of the customer", Path: path}}, nil
	}
	return hits, nil
}

// wasRefused reports whether a sale of the customer was refused at once.
func wasRefused(q *request, customerNo int64) (bool, error) {
	found, err := backoffice.Collect(q.Options.Office.Reader.Sales(q.ctx, backoffice.Query{CustomerNo: customerNo, Refused: true, Limit: 1}))
	return len(found) > 0, err
}

// findPartner finds a subscription by its name.
func findPartner(q *request, text string) (hits []hit, err error) {
	partners, err := q.Options.Subscriptions.List(q.ctx)
	for _, partner := range partners {
		if partner.Name == text {
			hits = append(hits, hit{Kind: "Partner", Text: text, Note: string(partner.State), Path: subscriptionPath(text)})
		}
	}
	return hits, err
}

// findCallerID finds the operations of a CallerId.
func findCallerID(q *request, text string) (hits []hit, err error) {
	partners, err := q.Options.Subscriptions.List(q.ctx)
	if err != nil {
		return nil, err
	}
	for _, partner := range partners {
		found, err := q.Options.Office.OperationsOf(q.ctx, partner.Name, text)
		if err != nil && !errors.Is(err, backoffice.ErrNotFound) {
			return nil, err
		}
		for i := range found {
			hits = append(hits, hit{Kind: "CallerId", Text: text, Operation: &found[i], Path: salePath(found[i].ID, 0)})
		}
	}
	return hits, nil
}

func findUser(q *request, text string) ([]hit, error) {
	found := q.Options.Office.Reader.Notifications(q.ctx, backoffice.Query{Order: backoffice.Newest, UserID: text, Limit: 1})
	return hitsOf(found, func(*push.Entry) hit {
		return hit{Kind: ofUser, Text: q.User(text), Path: notifications.address(q, "", url.Values{"user": {text}})}
	})
}

func findRequest(q *request, text string) ([]hit, error) {
	text = strings.TrimPrefix(text, instance)
	return hitsOf(q.Options.Office.Reader.Decisions(q.ctx, backoffice.Query{RequestID: text}), func(d *operation.Decision) hit {
		return hit{Kind: "X-Request-Id", Text: text, Note: d.State.String() + ", from " + d.Subscription, Path: salePath(d.ID, 0)}
	})
}

// findAnswer searches the log of requests if nothing else was found.
func findAnswer(q *request, text string) ([]hit, error) {
	if q.about != "" {
		return nil, nil
	}
	for _, of := range []backoffice.Query{{RequestID: strings.TrimPrefix(text, instance)}, {CallerID: text}} {
		of.Order = backoffice.Newest
		of.Limit = 1
		found, err := hitsOf(q.Options.Office.Reader.Requests(q.ctx, of), func(a *summary.Answered) hit {
			list := requests.address(q, "", url.Values{"request": {of.RequestID}, "caller": {of.CallerID}})
			return hit{Kind: "Requests", Text: text, Note: "answered " + strconv.Itoa(a.Status), Path: list}
		})
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

func findPush(q *request, text string) ([]hit, error) {
	return hitsOf(q.Options.Office.Reader.Notifications(q.ctx, backoffice.Query{PushID: text}), func(n *push.Entry) hit {
		to := "to user " + q.User(n.Values.UserID)
		if n.Erasure != nil {
			to = "erased"
		}
		return hit{Kind: "Push", Text: text, Note: to + ", from " + n.Subscription, Path: salePath(n.ID, 0)}
	})
}

func hitsOf[T any](rows iter.Seq2[T, error], show func(*T) hit) (hits []hit, err error) {
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		hits = append(hits, show(&row))
		if len(hits) == maxHits {
			break
		}
	}
	return hits, nil
}
