package console

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// pageDepth is how many rows are searched for those of one page.
const pageDepth = 20000

// pageSize is how many rows a page of a list has.
const pageSize = 50

// saleRow is a sale in a list.
type saleRow struct {
	At       *moment
	ID       string
	Path     string
	Index    int
	Customer customer
	Fund     string
	Units    string
	Proceeds string
	State    state
	Why      string
	Partner  string
	CallerID string
	Due      string
	Reversed bool
}

func (q *request) saleRow(s *fund.SaleEntry) saleRow {
	row := saleRow{
		At: q.moment(s.ReceivedAt), ID: shortID(s.OperationID), Path: salePath(s.OperationID, s.Index), Index: s.Index + 1,
		Customer: q.customer(s.Terms.Holding.CustomerNo), Fund: s.Terms.Holding.IMKBCode, Units: units(s.Terms.Units),
		State: stateOf(s.State), Why: s.Refusal, Partner: s.Subscription, CallerID: s.Header.CallerID, Due: calendar(s.Terms.SelectedDay),
	}
	if s.State == operation.Completed {
		row.Proceeds = amount(s.Proceeds) + " " + s.Proceeds.Currency().Code()
	}
	if s.State == operation.Failed && row.Why == "" {
		row.Why = "another sale of the request failed"
	}
	return row
}

// shortID is the part of an ID that tells operations of one millisecond apart.
func shortID(id operation.ID) string { return id.String()[:18] }

func salePath(id operation.ID, index int) string {
	path := "/console/sale/" + id.String()
	if index > 0 {
		path += "?sale=" + strconv.Itoa(index+1)
	}
	return path
}

// salesList is the page Sales.
type salesList struct {
	Day, State, Partner string
	Rows                []saleRow
	Next, Export, Depth string
	Partners            []string
}

func (q *request) salesFilter() (f backoffice.Query, err error) {
	values := q.URL.Query()
	if f, err = q.onDay(values.Get("day")); err != nil {
		return f, err
	}
	switch values.Get("state") {
	case "1":
		f.State = operation.Recorded
	case "2":
		f.State = operation.Completed
	case "8":
		f.State = operation.Failed
	}
	f.Subscription = values.Get("partner")
	f.After, err = cursor(values.Get("before"))
	return f, err
}

// cursor reads the place of a row in a URL.
func cursor(text string) (c backoffice.Cursor, err error) {
	if text == "" {
		return c, nil
	}
	id, index, _ := strings.Cut(text, ".")
	if c.OperationID, err = operation.ParseID(id); err != nil {
		return c, errNothing
	}
	if c.Index, err = strconv.Atoi(index); err != nil {
		return c, errNothing
	}
	return c, nil
}

func place(id operation.ID, index int) string { return id.String() + "." + strconv.Itoa(index) }

func showSales(q *request) error {
	f, err := q.salesFilter()
	if err != nil {
		return err
	}
	if err := q.look(); err != nil {
		return err
	}
	values := q.URL.Query()
	list := salesList{Day: values.Get("day"), State: values.Get("state"), Partner: values.Get("partner")}
	list.Export = with("/console/sales/export", "day", list.Day, "state", list.State, "partner", list.Partner)
	if list.Partners, err = q.partners(); err != nil {
		return err
	}
	f.Limit, f.ScanLimit = pageSize+1, pageDepth
	f.Truncated = func(c backoffice.Cursor) {
		list.Next = with("/console/sales", "day", list.Day, "state", list.State, "partner", list.Partner, "before", place(c.OperationID, c.Index))
		list.Depth = grouped(itoa(pageDepth))
	}
	var sales []fund.SaleEntry
	for s, err := range q.o.Office.Reader.Sales(q.ctx, f) {
		if err != nil {
			return err
		}
		if len(sales) == pageSize {
			last := &sales[pageSize-1]
			list.Next = with("/console/sales", "day", list.Day, "state", list.State, "partner", list.Partner, "before", place(last.OperationID, last.Index))
			break
		}
		sales = append(sales, s)
	}
	reversals, err := q.reversals(q.ctx, sales)
	if err != nil {
		return err
	}
	for i := range sales {
		row := q.saleRow(&sales[i])
		_, row.Reversed = reversals[sales[i].OperationID]
		list.Rows = append(list.Rows, row)
	}
	return q.show("sales", list)
}

// reversals finds the reversals of sales, with one lookup.
func (q *request) reversals(ctx context.Context, sales []fund.SaleEntry) (map[operation.ID]fund.Reversal, error) {
	var ids []operation.ID
	for i := range sales {
		if s := &sales[i]; s.State == operation.Completed && (len(ids) == 0 || ids[len(ids)-1] != s.OperationID) {
			ids = append(ids, s.OperationID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return q.o.Office.Lookups.Reversals(ctx, ids)
}

// partners are the names of the subscriptions.
func (q *request) partners() (names []string, err error) {
	all, err := q.o.Subscriptions.List(q.ctx)
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names, err
}

var saleColumns = []string{"ReceivedAt", "OperationId", "Sale", "Partner", "CallerId", "CustomerNo", "Fund", "Holder", "Units", "Account", "PriceID", "SelectedDay", "State", "Refusal", "SettledAt", "SettledPriceID", "Price", "Proceeds", "CurrencyCode", "ReversedAt"}

func exportSales(q *request) error {
	f, err := q.salesFilter()
	if err != nil {
		return err
	}
	f.After = backoffice.Cursor{}
	return q.exportSales("sales", func(ctx context.Context) iter.Seq2[fund.SaleEntry, error] {
		return q.o.Office.Reader.Sales(ctx, f)
	})
}

func (q *request) exportSales(name string, sales func(context.Context) iter.Seq2[fund.SaleEntry, error]) error {
	rows := func(ctx context.Context) iter.Seq2[exportedSale, error] { return q.withReversals(ctx, sales(ctx)) }
	return export(q, name, saleColumns, rows, func(s *exportedSale) []string {
		row := []string{instant(s.ReceivedAt), s.OperationID.String(), strconv.Itoa(s.Index + 1), s.Subscription, s.Header.CallerID,
			q.number(s.Terms.Holding.CustomerNo), s.Terms.Holding.IMKBCode, s.Terms.Holding.HolderCorporationName, s.Terms.Units.String(),
			q.account(s.Terms.Account), strconv.FormatInt(s.Terms.PriceID, 10), s.Terms.SelectedDay.String(), s.State.String(), s.Refusal, instant(s.SettledAt)}
		if s.State != operation.Completed {
			return append(row, "", "", "", s.Terms.Account.Currency.Code(), "")
		}
		return append(row, strconv.FormatInt(s.PriceID, 10), s.PerUnit.String(), s.Proceeds.String(), s.Proceeds.Currency().Code(), instant(s.reversedAt))
	})
}

// exportedSale is a sale and when it was reversed.
type exportedSale struct {
	fund.SaleEntry
	reversedAt time.Time
}

const (
	// exportedAtOnce is for how many sales of an export one lookup finds reversals.
	exportedAtOnce = 500
	// reversalsIn is the maximum time of that lookup. An export holds a connection
	// meanwhile, so it must not wait for another one without end.
	reversalsIn = 20 * time.Second
)

func (q *request) withReversals(ctx context.Context, sales iter.Seq2[fund.SaleEntry, error]) iter.Seq2[exportedSale, error] {
	return func(yield func(exportedSale, error) bool) {
		var part []fund.SaleEntry
		flush := func() bool {
			limited, cancel := context.WithTimeout(ctx, reversalsIn)
			defer cancel()
			reversals, err := q.reversals(limited, part)
			if err != nil {
				yield(exportedSale{}, err)
				return false
			}
			for i := range part {
				if !yield(exportedSale{part[i], reversals[part[i].OperationID].At}, nil) {
					return false
				}
			}
			part = part[:0]
			return true
		}
		for s, err := range sales {
			if err != nil {
				yield(exportedSale{}, err)
				return
			}
			if part = append(part, s); len(part) == exportedAtOnce && !flush() {
				return
			}
		}
		flush()
	}
}

// saleView is the page of a sale.
type saleView struct {
	ID       string
	Booking  *bookingView
	State    state
	Chosen   int
	Count    int
	Sale     *saleFacts
	Request  string
	Cut      int // how many sales Request has, if not all
	Proceeds *proceedsView
	Postings []postingRow
	Steps    []step
	Others   []saleRow
	Repeat   string
	Replay   string
	Why      *whyView
	Refused  []whyView
	Correct  correction
	// Rejected is set for an operation that was refused at once, Notifications for
	// one that stored messages.
	Rejected      *refusedView
	Notifications []notificationRow
	Reversed      bool
	// TrailKey verifies the proof of the operation. It is empty if there is none.
	TrailKey string
}

type saleFacts struct {
	Customer, AccountOwner    customer
	Account, Fund, Units      string
	Price, Control, Due       string
	Partner, Channel, Teller  string
	AppKey, CallerID          string
	SessionID, ChannelRequest string
	RequestID                 string
}

type proceedsView struct{ Units, Price, Exact, Rounded, Currency, PriceID, Decimals string }

// bookingView is the page of an operation that has postings and no sale: a
// reversal, an adjustment or an import.
type bookingView struct {
	Title       string
	At          *moment
	Who, Reason string
	// Audit lists the acts of its day. It is set if the act is not known.
	Audit string
	// Reversed is the operation that a reversal undid.
	Reversed, ReversedPath string
	Total                  int
	Cut                    bool
}

// maxPostings is how many postings of an import are shown, maxRequested how many
// sales of a request.
const (
	maxPostings  = 200
	maxRequested = 20
)

// postingRow has Who only on pages with postings of many customers.
type postingRow struct {
	Who                      customer
	Of, Kind, Customer, Bank string
}

type step struct {
	Class, Text, Note string
	At                *moment
	// Path is where Link leads. Both may be empty.
	Path, Link string
}

// whyView is a fault. Record says which sale or message Pointer leads to: pointers
// count from 0, and pages from 1.
type whyView struct{ Pointer, Record, Code, Meaning, Action string }

// correction says what may be done to an operation.
type correction struct {
	Cancel, Reverse bool
	Wrong           string
}

// refusedView is the page of an operation that was refused at once.
type refusedView struct {
	Partner, Channel, CallerID, RequestID, Operation string
	At                                               *moment
}

func showSale(q *request) error {
	id, err := operation.ParseID(q.PathValue("id"))
	if err != nil {
		return errNothing
	}
	return q.showOperation(id, "")
}

// showOperation shows an operation, and why a correction changed nothing.
func (q *request) showOperation(id operation.ID, wrong string) error {
	found, err := q.o.Office.Operation(q.ctx, id)
	if err != nil {
		return err
	}
	if err := q.look(); err != nil {
		return err
	}
	v, err := q.saleView(&found)
	if err != nil {
		return err
	}
	v.Correct.Wrong = wrong
	return q.show("sale", v)
}

// correctSale cancels or reverses an operation.
func correctSale(q *request) error {
	id, err := operation.ParseID(q.PathValue("id"))
	if err != nil {
		return errNothing
	}
	if !q.session.operator {
		return errRole
	}
	reason := strings.TrimSpace(q.PostForm.Get("reason"))
	if reason == "" || q.PostForm.Get("confirm") != "yes" {
		q.status = http.StatusBadRequest
		return q.showOperation(id, "Nothing was changed: give a reason and tick the box.")
	}
	ctx := by(q.ctx, q.session.user, reason)
	var done string
	switch q.PostForm.Get("action") {
	case "cancel":
		err = q.o.Office.Corrector.Cancel(ctx, id)
		done = "The operation is cancelled. A repeat is answered 8 Failed."
	case "reverse":
		_, err = q.o.Office.Corrector.Reverse(ctx, id)
		done = "The operation is reversed: the units are back and the money is taken."
	default:
		return errNothing
	}
	if err != nil {
		wrong, ok := explain(err)
		if !ok {
			return err
		}
		q.status = http.StatusConflict
		return q.showOperation(id, "Nothing was changed. "+wrong)
	}
	return q.did(salePath(id, 0), done)
}

func (q *request) saleView(found *backoffice.Operation) (v saleView, err error) {
	v = saleView{ID: found.ID.String(), Count: len(found.Sales), Chosen: 1}
	if q.o.Trail != nil && q.session.operator {
		v.TrailKey = q.o.Trail.VerifyingKey()
	}
	if r := found.Refusal; r != nil {
		v.State = stateOf(operation.Failed)
		v.Rejected = &refusedView{r.Subscription, r.Header.Channel, r.Header.CallerID, r.Header.RequestID, r.Operation.String(), q.moment(r.ReceivedAt)}
		for _, f := range r.Faults {
			why := explainCode(f.Code)
			why.Pointer, why.Record = f.Pointer, recordAt(f.Pointer, r.Operation)
			v.Refused = append(v.Refused, why)
		}
		v.Repeat, v.Replay = q.repeatOf(found)
		return v, nil
	}
	if len(found.Notifications) > 0 {
		for i := range found.Notifications {
			v.Notifications = append(v.Notifications, q.notificationRow(&found.Notifications[i]))
		}
		v.State = stateOf(operation.Completed)
		v.Repeat, v.Replay = q.repeatOf(found)
		return v, nil
	}
	if len(found.Sales) == 0 {
		if len(found.Postings) == 0 {
			return v, errNothing
		}
		for i := range min(len(found.Postings), maxPostings) {
			row := q.postingRow(&found.Postings[i])
			row.Who = q.customer(found.Postings[i].CustomerNo())
			v.Postings = append(v.Postings, row)
		}
		v.Booking, err = q.bookingView(found)
		return v, err
	}
	if n, err := strconv.Atoi(q.URL.Query().Get("sale")); err == nil && n >= 1 && n <= len(found.Sales) {
		v.Chosen = n
	}
	s := &found.Sales[v.Chosen-1]
	v.State = stateOf(s.State)
	v.Sale, v.Request, v.Proceeds = q.saleFacts(s), q.requestOf(found), proceedsOf(s)
	if v.Count > maxRequested {
		v.Cut = maxRequested
	}
	if v.Steps, err = q.steps(s); err != nil {
		return v, err
	}
	v.Repeat, v.Replay = q.repeatOf(found)
	if s.State == operation.Failed {
		why := explainCode(s.Refusal)
		if s.Refusal == "" {
			why = whyView{Meaning: "Another sale of this request failed. All sales of a request succeed or fail together."}
		}
		v.Why = &why
	}
	for i := range found.Postings {
		if p := &found.Postings[i]; p.Index == s.Index {
			v.Postings = append(v.Postings, q.postingRow(p))
		}
	}
	for i := range found.ReversalPostings {
		if p := &found.ReversalPostings[i]; p.Index == s.Index {
			v.Postings = append(v.Postings, q.postingRow(p))
		}
	}
	if found.Reversal != nil {
		v.Reversed = true
		undone, err := q.actStep("Reversed", "", found.Reversal.ID, found.Reversal.At)
		if err != nil {
			return v, err
		}
		if undone.Path == "" {
			undone.Path, undone.Link = salePath(found.Reversal.ID, 0), "its postings"
		}
		v.Steps = append(v.Steps, undone)
	}
	if q.session.operator {
		v.Correct.Cancel = s.State == operation.Recorded && s.Terms.SelectedDay.After(q.today())
		v.Correct.Reverse = s.State == operation.Completed && found.Reversal == nil
	}
	if len(found.Sales) > 1 {
		for i := range found.Sales {
			row := q.saleRow(&found.Sales[i])
			row.Reversed = v.Reversed
			v.Others = append(v.Others, row)
		}
	}
	return v, nil
}

// bookingView tells a reversal, an adjustment and an import apart.
func (q *request) bookingView(found *backoffice.Operation) (*bookingView, error) {
	first := &found.Postings[0]
	v := &bookingView{Title: "Import", At: q.moment(first.PostedAt), Total: len(found.Postings), Cut: len(found.Postings) > maxPostings}
	act, err := q.act(found.ID, first.PostedAt)
	switch {
	case err != nil:
		return nil, err
	case act == nil:
		v.Audit = q.auditPath(first.PostedAt)
	default:
		v.Title, v.Who, v.Reason = "Adjustment", act.Actor, act.Reason
	}
	if first.Kind == fund.ReversalPosting {
		v.Title = "Reversal of a sale"
		if act != nil {
			if id, err := operation.ParseID(act.Object); err == nil {
				v.Reversed, v.ReversedPath = act.Object, salePath(id, 0)
			}
		}
	}
	return v, nil
}

// act finds the act that corrected the book at that time. A reversal or an
// adjustment has the ID of its act; a cancelled operation is its object. It is nil
// if there is none.
func (q *request) act(id operation.ID, at time.Time) (*audit.Act, error) {
	for a, err := range q.o.Office.Reader.Acts(q.ctx, backoffice.Query{Since: at, Until: at.Add(time.Millisecond), Order: backoffice.Newest}) {
		if err != nil {
			return nil, err
		}
		if a.ID == id || a.Action == "sales.cancel" && a.Object == id.String() {
			return &a, nil
		}
	}
	return nil, nil //nolint:nilnil // most operations have none
}

// actStep is the step of a correction, with who did it and why.
func (q *request) actStep(did, note string, id operation.ID, at time.Time) (step, error) {
	s := step{Class: "bad", Text: did + " by an operator", Note: note, At: q.moment(at)}
	act, err := q.act(id, at)
	if act == nil {
		s.Path, s.Link = q.auditPath(at), "see Audit for who and why"
		return s, err
	}
	if act.Actor != "" {
		s.Text = did + " by " + act.Actor
	}
	reason := "reason: " + or(act.Reason, "none given")
	if s.Note != "" {
		reason = s.Note + ", " + reason
	}
	s.Note = reason
	return s, nil
}

// auditPath lists the acts of a day.
func (q *request) auditPath(at time.Time) string {
	return with("/console/audit", "day", day.Of(at, q.o.Zone).String())
}

func explainCode(name string) whyView {
	code, ok := fault.Describe(name)
	if !ok {
		return whyView{Code: name}
	}
	return whyView{Code: name, Meaning: code.Meaning, Action: code.Action}
}

// recordAt names the record of a request that a pointer leads to, counted from 1.
func recordAt(pointer string, of operation.Name) string {
	rest, found := strings.CutPrefix(pointer, "/Parameters/")
	index, _, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(index)
	if !found || err != nil {
		return ""
	}
	word := "record "
	switch of {
	case operation.BuyFundFromCustomer:
		word = "sale "
	case operation.AddPushNotificationResponse:
		word = "message "
	}
	return word + strconv.Itoa(n+1)
}

func (q *request) saleFacts(s *fund.SaleEntry) *saleFacts {
	t := &s.Terms
	f := &saleFacts{
		Customer: q.customer(t.Holding.CustomerNo), Account: q.account(t.Account),
		Fund: t.Holding.IMKBCode + ", " + t.Holding.HolderCorporationName, Units: units(t.Units),
		Price: strconv.FormatInt(t.PriceID, 10), Due: calendar(t.SelectedDay),
		Partner: s.Subscription, Channel: s.Header.Channel, Teller: s.Header.TellerName, AppKey: s.Header.AppKey,
		CallerID: s.Header.CallerID, RequestID: s.Header.RequestID, SessionID: s.Header.ChannelSessionID, ChannelRequest: s.Header.ChannelRequestID,
	}
	if t.Account.CustomerNo != t.Holding.CustomerNo {
		f.AccountOwner = q.customer(t.Account.CustomerNo)
	}
	if t.ControlTotal != 0 {
		f.Control = grouped(fixed(t.ControlTotal, t.Account.Currency.Decimals())) + " " + t.Account.Currency.Code()
	}
	return f
}

// requestOf is the request as it was understood: the service does not keep its
// bytes. It has the values that the subscription defines.
func (q *request) requestOf(found *backoffice.Operation) string {
	type object = map[string]any
	number := func(n int64) any {
		if q.session.reveals() {
			return n
		}
		return q.number(n)
	}
	first := &found.Sales[0]
	header := object{}
	for name, value := range map[string]string{
		"AppKey": first.Header.AppKey, "Channel": first.Header.Channel, "TellerName": first.Header.TellerName, "CallerId": first.Header.CallerID,
		"ChannelSessionId": first.Header.ChannelSessionID, "ChannelRequestId": first.Header.ChannelRequestID,
	} {
		if value != "" {
			header[name] = value
		}
	}
	var parameters []object
	for i := range found.Sales {
		if i == maxRequested {
			break
		}
		t := &found.Sales[i].Terms
		suffix := any(t.Account.AccountSuffix)
		if !q.session.reveals() {
			suffix = "*"
		}
		sale := object{
			"CustomerNo": number(t.Holding.CustomerNo), "TransactionType": fund.SaleTransaction, "FundAmount": json.Number(t.Units.String()),
			"DestinationAccount": object{"BranchCode": t.Account.BranchCode, "CustomerNo": number(t.Account.CustomerNo), "AccountSuffix": suffix, "CurrencyCode": t.Account.Currency.Code()},
			"FundToProcess":      object{"IMKBCode": t.Holding.IMKBCode, "HolderCorporationName": t.Holding.HolderCorporationName, "PriceID": t.PriceID},
		}
		if t.ControlTotal != 0 {
			sale["Amount"] = json.Number(fixedAmount(t.ControlTotal, t.Account.Currency.Decimals()))
		}
		if !t.SelectedDay.IsNone() {
			sale["SelectedTransactionDate"] = t.SelectedDay.String()
		}
		parameters = append(parameters, sale)
	}
	return indented(object{"Header": header, "Parameters": parameters})
}

func fixedAmount(minor int64, decimals int) string {
	if decimals == 0 {
		return strconv.FormatInt(minor, 10)
	}
	return fixed(minor, decimals)
}

func indented(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // the template escapes
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(v) // maps of texts and numbers
	return b.String()
}

// proceedsOf shows how the proceeds were worked out.
func proceedsOf(s *fund.SaleEntry) *proceedsView {
	if s.State != operation.Completed {
		return nil
	}
	exact := new(big.Int).Mul(big.NewInt(int64(s.Terms.Units)), big.NewInt(int64(s.PerUnit)))
	scale := fund.UnitDecimals + fund.PriceDecimals
	text := exact.String()
	if len(text) <= scale {
		text = strings.Repeat("0", scale-len(text)+1) + text
	}
	whole, fraction := text[:len(text)-scale], strings.TrimRight(text[len(text)-scale:], "0")
	if fraction != "" {
		whole += "." + fraction
	}
	c := s.Proceeds.Currency()
	return &proceedsView{Units: units(s.Terms.Units), Price: grouped(s.PerUnit.String()), Exact: grouped(whole), Rounded: amount(s.Proceeds),
		Currency: c.Code(), PriceID: strconv.FormatInt(s.PriceID, 10), Decimals: plural(c.Decimals(), "decimal")}
}

func (q *request) postingRow(p *fund.PostingEntry) postingRow {
	row := postingRow{Kind: p.Kind.String()}
	if p.IsMoney() {
		decimals := p.Account.Currency.Decimals()
		row.Of = "Account " + q.account(p.Account)
		row.Customer, row.Bank = signed(grouped(fixedAmount(p.Quantity, decimals))), signed(grouped(fixedAmount(-p.Quantity, decimals)))
		return row
	}
	row.Of = "Units of " + p.Holding.IMKBCode
	row.Customer, row.Bank = signed(units(fund.Units(p.Quantity))), signed(units(fund.Units(-p.Quantity)))
	return row
}

// steps are the states of a sale in the order of time.
func (q *request) steps(s *fund.SaleEntry) ([]step, error) {
	steps := []step{{Text: "Received from " + s.Subscription, At: q.moment(s.ReceivedAt)}}
	if s.Terms.SelectedDay.After(day.Of(s.ReceivedAt, q.o.Zone)) {
		steps = append(steps, step{Class: "wait", Text: "Recorded for " + calendar(s.Terms.SelectedDay), Note: "answered State 1", At: q.moment(s.ReceivedAt)})
	}
	settled := q.moment(s.SettledAt)
	switch s.State {
	case operation.Recorded:
		if !s.Terms.SelectedDay.After(q.today()) {
			steps = append(steps, step{Class: "bad", Text: "Due and not settled yet"})
		} else {
			steps = append(steps, step{Class: "wait", Text: "Waits for its day"})
		}
	case operation.Completed:
		steps = append(steps, step{Class: "good", Text: "Settled and committed", Note: "State 2 Completed", At: settled})
	case operation.Failed:
		if s.Refusal == fault.Cancelled {
			cancelled, err := q.actStep("Cancelled", "State 8 Failed", s.OperationID, s.SettledAt)
			return append(steps, cancelled), err
		}
		steps = append(steps, step{Class: "bad", Text: "Failed", Note: "State 8 Failed, " + or(s.Refusal, "another sale of the request failed"), At: settled})
	}
	return steps, nil
}

// repeatOf is what a repeat of the request would be answered, and how.
func (q *request) repeatOf(found *backoffice.Operation) (answer, why string) {
	if found.Record == nil {
		if found.Refusal != nil && found.Refusal.Header.CallerID != "" {
			return "", "Another operation has this CallerId."
		}
		if len(found.Notifications) > 0 {
			return "", "The caller gave no CallerId. The same messages again are not stored twice, and are answered 2 Completed."
		}
		return "", "The caller gave no CallerId, so the same request again would be a new sale."
	}
	var body bytes.Buffer
	if json.Indent(&body, q.o.Answer(found.Record.Outcome), "", "  ") != nil {
		return "", "No answer is kept."
	}
	return body.String(), "The same content under this CallerId has no second effect. It is answered 200 with the state as it is now and Idempotent-Replayed: true. Other content is answered 422."
}

// downloadProof sends the file that proves an operation. The file has the
// numbers in full, so it is a look at them.
func downloadProof(q *request) error {
	id, err := operation.ParseID(q.PathValue("id"))
	if err != nil || q.o.Trail == nil {
		return errNoPage
	}
	if !q.session.operator {
		return errRole
	}
	if !q.session.reveals() {
		return errMasked
	}
	if _, err := q.o.Office.Operation(q.ctx, id); err != nil {
		return err
	}
	if err := q.look(); err != nil {
		return err
	}
	file, err := q.o.Trail.Prove(q.ctx, id)
	if err != nil {
		return err
	}
	q.streamed = true
	q.w.Header().Set("Content-Type", "application/json")
	q.w.Header().Set("Content-Disposition", `attachment; filename="proof-`+id.String()+`.json"`)
	_, _ = q.w.Write(file) // it fails only if the client disconnected
	return nil
}
