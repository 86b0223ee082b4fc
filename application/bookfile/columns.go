package bookfile

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

var priceColumns = []Column[fund.Price]{
	{"PriceID", func(p *fund.Price) Value { return Integer(p.ID) }},
	{"IMKBCode", func(p *fund.Price) Value { return Text(p.Fund.IMKBCode) }},
	{"HolderCorporationName", func(p *fund.Price) Value { return Text(p.Fund.HolderCorporationName) }},
	{"Price", func(p *fund.Price) Value { return number(p.PerUnit.String()) }},
	{"CurrencyCode", func(p *fund.Price) Value { return Text(p.Currency.Code()) }},
	{"ValidFrom", func(p *fund.Price) Value { return Text(p.ValidFrom.String()) }},
}

// FundPrices are the columns of funds with the price that holds: the columns of prices, how the price
// changed, and by whom and when it was imported.
var FundPrices = append(ColumnsOf(priceColumns, func(p *backoffice.FundPrice) *fund.Price { return p.Price }),
	Column[backoffice.FundPrice]{"ChangePercent", func(p *backoffice.FundPrice) Value { return number(strings.TrimPrefix(p.Change(), "+")) }},
	Column[backoffice.FundPrice]{"Imported", func(p *backoffice.FundPrice) Value { return Instant(p.Imported) }},
	Column[backoffice.FundPrice]{"ImportedBy", func(p *backoffice.FundPrice) Value { return Text(p.ImportedBy) }},
)

var closedDayColumns = []Column[fund.ClosedDay]{
	{"Day", func(c *fund.ClosedDay) Value { return Text(c.Day.String()) }},
	{"Reason", func(c *fund.ClosedDay) Value { return Text(c.Reason) }},
}

// Holdings are the columns of holdings.
var Holdings = []Column[fund.Holding]{
	{"CustomerNo", func(h *fund.Holding) Value { return Integer(h.Key.CustomerNo).marked(Customer) }},
	{"IMKBCode", func(h *fund.Holding) Value { return Text(h.Key.IMKBCode) }},
	{"HolderCorporationName", func(h *fund.Holding) Value { return Text(h.Key.HolderCorporationName) }},
	{"Units", func(h *fund.Holding) Value { return number(h.Units.String()) }},
}

// Accounts are the columns of accounts.
var Accounts = []Column[fund.Account]{
	{"BranchCode", func(a *fund.Account) Value { return Integer(a.Key.BranchCode) }},
	{"CustomerNo", func(a *fund.Account) Value { return Integer(a.Key.CustomerNo).marked(Customer) }},
	{"AccountSuffix", func(a *fund.Account) Value { return Integer(a.Key.AccountSuffix).marked(Suffix) }},
	{"CurrencyCode", func(a *fund.Account) Value { return Text(a.Key.Currency.Code()) }},
	{"Balance", func(a *fund.Account) Value { return number(a.Balance.String()) }},
}

// envelopeColumns returns the columns of a row's operation, with second after the ID.
func envelopeColumns[T any](envelopeOf func(*T) *operation.Envelope, second Column[T]) []Column[T] {
	return slices.Insert(ColumnsOf([]Column[operation.Envelope]{
		{"OperationId", func(e *operation.Envelope) Value { return Text(e.ID.String()) }},
		{"Subscription", func(e *operation.Envelope) Value { return Text(e.Subscription) }},
		{"AppKey", func(e *operation.Envelope) Value { return Text(e.Header.AppKey) }},
		{"Channel", func(e *operation.Envelope) Value { return Text(e.Header.Channel) }},
		{"TellerName", func(e *operation.Envelope) Value { return Text(e.Header.TellerName) }},
		{"CallerId", func(e *operation.Envelope) Value { return Text(e.Header.CallerID) }},
		{"ChannelSessionId", func(e *operation.Envelope) Value { return Text(e.Header.ChannelSessionID) }},
		{"ChannelRequestId", func(e *operation.Envelope) Value { return Text(e.Header.ChannelRequestID) }},
	}, envelopeOf), 1, second)
}

// Sales are the columns of sales.
var Sales = slices.Concat(
	envelopeColumns(func(s *fund.SaleEntry) *operation.Envelope { return &s.Envelope },
		Column[fund.SaleEntry]{"Position", func(s *fund.SaleEntry) Value { return Integer(int64(s.Index)) }}),
	[]Column[fund.SaleEntry]{
		{"CustomerNo", func(s *fund.SaleEntry) Value { return Integer(s.Terms.Holding.CustomerNo).marked(Customer) }},
		{"TransactionType", func(*fund.SaleEntry) Value { return Integer(fund.SaleTransaction) }},
		{"FundAmount", func(s *fund.SaleEntry) Value { return number(s.Terms.Units.String()) }},
		{"BranchCode", func(s *fund.SaleEntry) Value { return Integer(s.Terms.Account.BranchCode) }},
		{"AccountCustomerNo", func(s *fund.SaleEntry) Value { return Integer(s.Terms.Account.CustomerNo).marked(Customer) }},
		{"AccountSuffix", func(s *fund.SaleEntry) Value { return Integer(s.Terms.Account.AccountSuffix).marked(Suffix) }},
		{"CurrencyCode", func(s *fund.SaleEntry) Value { return Text(s.Terms.Account.Currency.Code()) }},
		{"IMKBCode", func(s *fund.SaleEntry) Value { return Text(s.Terms.Holding.IMKBCode) }},
		{"HolderCorporationName", func(s *fund.SaleEntry) Value { return Text(s.Terms.Holding.HolderCorporationName) }},
		{"PriceID", func(s *fund.SaleEntry) Value { return Integer(s.Terms.PriceID) }},
		{"Amount", func(s *fund.SaleEntry) Value { // the bank treats 0 like a missing amount
			return maybe(s.Terms.ControlTotal != 0, money.New(s.Terms.ControlTotal, s.Terms.Account.Currency).String())
		}},
		{"SelectedTransactionDate", func(s *fund.SaleEntry) Value { return Text(s.Terms.SelectedDay.String()) }},
		{"State", func(s *fund.SaleEntry) Value { return Integer(int64(s.State)) }},
		{"SettledPriceID", func(s *fund.SaleEntry) Value { return maybe(isSettled(s), strconv.FormatInt(s.PriceID, 10)) }},
		{"SettledPrice", func(s *fund.SaleEntry) Value { return maybe(isSettled(s), s.PerUnit.String()) }},
		{"Proceeds", func(s *fund.SaleEntry) Value { return maybe(isSettled(s), s.Proceeds.String()) }},
		{"Refusal", func(s *fund.SaleEntry) Value { return Text(s.Refusal) }},
		{"ReceivedAt", func(s *fund.SaleEntry) Value { return Instant(s.ReceivedAt) }},
		{"SettledAt", func(s *fund.SaleEntry) Value { return Instant(endedIf(!isCancelled(s), s)) }},
		{"CancelledAt", func(s *fund.SaleEntry) Value { return Instant(endedIf(isCancelled(s), s)) }},
		{"ReversedAt", func(s *fund.SaleEntry) Value { return Instant(s.ReversedAt) }},
	},
)

func isCancelled(s *fund.SaleEntry) bool { return s.Refusal == fault.Cancelled }

// endedIf returns when a sale has ended, or the zero time.
func endedIf(is bool, s *fund.SaleEntry) time.Time {
	if !is {
		return time.Time{}
	}
	return s.SettledAt
}

func isSettled(s *fund.SaleEntry) bool { return s.State == operation.Completed }

// maybe returns a number, or a missing value if the number does not exist.
func maybe(exists bool, n string) Value {
	if !exists {
		return number("")
	}
	return number(n)
}

// side is the customer's or the bank's side of a posting.
type side struct {
	posting fund.PostingEntry
	bank    bool
}

func (s *side) hasAccount() bool { return s.posting.IsMoney() && !s.bank }

func bothSides(rows iter.Seq2[fund.PostingEntry, error]) iter.Seq2[side, error] {
	return func(yield func(side, error) bool) {
		for p, err := range rows {
			if !yield(side{p, false}, err) {
				return
			}
			if err != nil {
				continue
			}
			p.Quantity = -p.Quantity
			if !yield(side{p, true}, nil) {
				return
			}
		}
	}
}

var postingColumns = []Column[side]{
	{"OperationId", func(s *side) Value { return Text(s.posting.OperationID.String()) }},
	{"Position", func(s *side) Value { return Integer(int64(s.posting.Index)) }},
	{"Kind", func(s *side) Value { return Text(s.posting.Kind.String()) }},
	{"Side", func(s *side) Value {
		if s.bank {
			return Text("bank")
		}
		return Text("customer")
	}},
	{"CustomerNo", func(s *side) Value {
		return maybe(!s.bank, strconv.FormatInt(s.posting.CustomerNo(), 10)).marked(Customer)
	}},
	{"IMKBCode", func(s *side) Value { return Text(s.posting.Holding.IMKBCode) }},
	{"HolderCorporationName", func(s *side) Value { return Text(s.posting.Holding.HolderCorporationName) }},
	{"BranchCode", func(s *side) Value { return maybe(s.hasAccount(), strconv.FormatInt(s.posting.Account.BranchCode, 10)) }},
	{"AccountSuffix", func(s *side) Value {
		return maybe(s.hasAccount(), strconv.FormatInt(s.posting.Account.AccountSuffix, 10)).marked(Suffix)
	}},
	{"CurrencyCode", func(s *side) Value { return Text(s.posting.Account.Currency.Code()) }},
	{"Units", func(s *side) Value { return maybe(!s.posting.IsMoney(), s.posting.Format(s.posting.Quantity)) }},
	{"Amount", func(s *side) Value { return maybe(s.posting.IsMoney(), s.posting.Format(s.posting.Quantity)) }},
	{"PostedAt", func(s *side) Value { return Instant(s.posting.PostedAt) }},
}

// Postings are the columns of postings, for the customer's side of each.
var Postings = ColumnsOf(postingColumns, func(p *fund.PostingEntry) *side { return &side{*p, false} })

// Notifications are the columns of push messages.
var Notifications = slices.Concat(
	envelopeColumns(func(n *push.Entry) *operation.Envelope { return &n.Envelope },
		Column[push.Entry]{"Position", func(n *push.Entry) Value { return Integer(int64(n.Index)) }}),
	memberColumns(push.Members),
)

// memberColumns returns the columns of a notification's record. SendDate is the last member of
// version 1.0.0. The columns that are no members follow it, so that a member of a later version is
// the last column.
func memberColumns(members []push.Member) (columns []Column[push.Entry]) {
	personal := map[push.Kind]Personal{push.User: User, push.Message: Message}
	for _, m := range members {
		valueOf := Text
		named := personal[m.Kind]
		if m.Kind == push.Number {
			valueOf = number
		}
		columns = append(columns, Column[push.Entry]{m.Name, func(n *push.Entry) Value { return valueOf(m.Value(&n.Values)).marked(named) }})
		if m.Name == "SendDate" {
			columns = append(columns,
				Column[push.Entry]{"TranData", func(n *push.Entry) Value { return number(tranData(n.Values.TranData)).marked(Message) }},
				Column[push.Entry]{"ReceivedAt", func(n *push.Entry) Value { return Instant(n.ReceivedAt) }},
				Column[push.Entry]{"ErasedAt", func(n *push.Entry) Value {
					if n.Erasure == nil {
						return Instant(time.Time{})
					}
					return Instant(n.Erasure.At())
				}},
				Column[push.Entry]{"ErasureReason", func(n *push.Entry) Value { return Text(cmp.Or(n.Erasure, new(push.Erasure)).Reason) }})
		}
	}
	return columns
}

// tranData returns TranData as JSON, with the field names of the requests.
func tranData(items []push.TranDataItem) string {
	b := []byte{'['}
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"Code":`...)
		b = appendQuoted(b, item.Code)
		b = append(b, `,"Name":`...)
		b = appendQuoted(b, item.Name)
		b = append(b, '}')
	}
	return string(append(b, ']'))
}

var outcomeColumns = []Column[fund.Ended]{
	{"Number", func(e *fund.Ended) Value { return Integer(e.Number) }},
	{"OperationId", func(e *fund.Ended) Value { return Text(e.OperationID.String()) }},
	{"Subscription", func(e *fund.Ended) Value { return Text(e.Subscription) }},
	{"CallerId", func(e *fund.Ended) Value { return Text(e.CallerID) }},
	{"State", func(e *fund.Ended) Value { return Integer(int64(e.State)) }},
	{"Codes", func(e *fund.Ended) Value { return Text(codes(e.Faults)) }},
	{"Reversed", func(e *fund.Ended) Value { return boolean(e.Reversed) }},
	{"At", func(e *fund.Ended) Value { return Instant(e.At) }},
}

// codes returns the codes of faults, each code once.
func codes(faults []fault.Fault) string {
	var list []string
	for _, f := range faults {
		if !slices.Contains(list, f.Code) {
			list = append(list, f.Code)
		}
	}
	return strings.Join(list, " ")
}

var decisionColumns = slices.Concat(
	envelopeColumns(func(d *operation.Decision) *operation.Envelope { return &d.Envelope },
		Column[operation.Decision]{"Operation", func(d *operation.Decision) Value { return Text(d.Operation.String()) }}),
	[]Column[operation.Decision]{
		{"RequestId", func(d *operation.Decision) Value { return Text(cmp.Or(d.Header.RequestID, d.ID.String())) }},
		{"State", func(d *operation.Decision) Value { return Integer(int64(d.State)) }},
		{"Codes", func(d *operation.Decision) Value {
			return each(d.Faults, func(f fault.Fault) string { return f.Code })
		}},
		{"ReceivedAt", func(d *operation.Decision) Value { return Instant(d.ReceivedAt) }},
	})

// Requests are the columns of the log of requests.
var Requests = []Column[summary.Answered]{
	{"Id", func(a *summary.Answered) Value { return Text(a.ID.String()) }},
	{"At", func(a *summary.Answered) Value { return Instant(a.At) }},
	{"Subscription", func(a *summary.Answered) Value { return Text(a.Subscription) }},
	{"Method", func(a *summary.Answered) Value { return Text(a.Method) }},
	{"Route", func(a *summary.Answered) Value { return Text(a.Route) }},
	{"Operation", func(a *summary.Answered) Value { return Text(a.Operation) }},
	{"Status", func(a *summary.Answered) Value { return Integer(int64(a.Status)) }},
	{"State", func(a *summary.Answered) Value { return maybe(a.State != 0, strconv.FormatUint(uint64(a.State), 10)) }},
	{"Replayed", func(a *summary.Answered) Value { return boolean(a.Replayed) }},
	{"Codes", func(a *summary.Answered) Value { return Text(strings.Join(a.Codes, " ")) }},
	{"CallerId", func(a *summary.Answered) Value { return Text(a.CallerID) }},
	{"RequestId", func(a *summary.Answered) Value { return Text(a.RequestID) }},
	{"OperationId", func(a *summary.Answered) Value { return Text(a.OperationID) }},
	{"Microseconds", func(a *summary.Answered) Value { return Integer(a.Duration.Microseconds()) }},
	{"Omitted", func(a *summary.Answered) Value { return Integer(a.Omitted) }},
}

// Acts are the columns of acts of administration.
var Acts = []Column[audit.Act]{
	{"Id", func(a *audit.Act) Value { return Text(a.ID.String()) }},
	{"At", func(a *audit.Act) Value { return Instant(a.At) }},
	{"Actor", func(a *audit.Act) Value { return Text(a.Actor) }},
	{"SystemUser", func(a *audit.Act) Value { return Text(a.SystemUser) }},
	{"Origin", func(a *audit.Act) Value { return Text(a.Origin) }},
	{"Action", func(a *audit.Act) Value { return Text(a.Action) }},
	{"Object", func(a *audit.Act) Value { return aboutCustomer(a.Object, a.NamesCustomer()) }},
	{"Reason", func(a *audit.Act) Value { return Text(a.Reason) }},
	{"Details", func(a *audit.Act) Value { return aboutCustomer(a.Details, a.ShowsCustomer()) }},
}

// Findings are the columns of what verify found.
var Findings = []Column[backoffice.Finding]{
	{"Rule", func(f *backoffice.Finding) Value { return Text(f.Rule) }},
	{"Finding", func(f *backoffice.Finding) Value { return MessageText(f.Text) }},
}

// Subscriptions are the columns of subscriptions, without their keys.
var Subscriptions = slices.Concat(
	[]Column[subscription.Subscription]{
		{"Name", func(s *subscription.Subscription) Value { return Text(s.Name) }},
		{"State", func(s *subscription.Subscription) Value { return Text(string(s.State)) }},
		{"Operations", func(s *subscription.Subscription) Value { return Text(strings.Join(s.Operations, ", ")) }},
		{"RequestsPerSecond", func(s *subscription.Subscription) Value { return Integer(int64(s.RequestsPerSecond)) }},
		{"RequireCallerId", func(s *subscription.Subscription) Value { return boolean(s.RequireCallerID) }},
		{"Created", func(s *subscription.Subscription) Value { return Instant(s.Created) }},
	},
	keyColumns("PrimaryKey", func(s *subscription.Subscription) *subscription.KeyLife { return &s.PrimaryKey }),
	keyColumns("SecondaryKey", func(s *subscription.Subscription) *subscription.KeyLife { return &s.SecondaryKey }),
	[]Column[subscription.Subscription]{
		{"AppKey", func(s *subscription.Subscription) Value { return Text(s.AppKey) }},
		{"Channel", func(s *subscription.Subscription) Value { return Text(s.Channel) }},
		{"TellerName", func(s *subscription.Subscription) Value { return Text(s.TellerName) }},
		{"ClientCertificate", func(s *subscription.Subscription) Value { return Text(s.ClientCertificate) }},
	},
)

func keyColumns(name string, of func(*subscription.Subscription) *subscription.KeyLife) []Column[subscription.Subscription] {
	return ColumnsOf([]Column[subscription.KeyLife]{
		{name + "Created", func(k *subscription.KeyLife) Value { return Instant(k.Created) }},
		{name + "Used", func(k *subscription.KeyLife) Value { return Instant(k.Used) }},
		{name + "Expires", func(k *subscription.KeyLife) Value { return Instant(k.Expires) }},
	}, of)
}

func aboutCustomer(text string, is bool) Value {
	if is {
		return MessageText(text)
	}
	return Text(text)
}

// ColumnsOf returns columns that read a part of a row. part returns this part, or nil if the row
// has none: then the columns read a zero part.
func ColumnsOf[T, Part any](columns []Column[Part], part func(*T) *Part) (result []Column[T]) {
	for _, c := range columns {
		result = append(result, Column[T]{c.Name, func(row *T) Value {
			read := part(row)
			if read == nil {
				read = new(Part)
			}
			return c.Value(read)
		}})
	}
	return result
}

// Refusals are the columns of operations that were refused at once: the columns of all
// operations, and the place of each fault in the request.
var Refusals = append(slices.Clip(decisionColumns), Column[operation.Decision]{"Pointers", func(d *operation.Decision) Value {
	return each(d.Faults, func(f fault.Fault) string { return f.Pointer })
}})

// each joins a text of each fault with spaces.
func each(faults []fault.Fault, text func(fault.Fault) string) Value {
	var texts []string
	for _, f := range faults {
		texts = append(texts, text(f))
	}
	return Text(strings.Join(texts, " "))
}

// Statement are the columns of a customer's statement: the columns of postings on the
// customer's side, and the quantity after each posting.
var Statement = append(
	ColumnsOf(postingColumns, func(l *backoffice.Line) *side { return &side{l.Posting, false} }),
	Column[backoffice.Line]{"After", func(l *backoffice.Line) Value { return number(l.Posting.Format(l.After)) }})
