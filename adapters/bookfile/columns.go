package bookfile

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

var priceColumns = []column[fund.Price]{
	{"PriceID", func(p *fund.Price) value { return integer(p.ID) }},
	{"IMKBCode", func(p *fund.Price) value { return value{p.Fund.IMKBCode, text} }},
	{"HolderCorporationName", func(p *fund.Price) value { return value{p.Fund.HolderCorporationName, text} }},
	{"Price", func(p *fund.Price) value { return value{p.PerUnit.String(), raw} }},
	{"CurrencyCode", func(p *fund.Price) value { return value{p.Currency.Code(), text} }},
	{"ValidFrom", func(p *fund.Price) value { return value{p.ValidFrom.String(), text} }},
}

var holdingColumns = []column[fund.Holding]{
	{"CustomerNo", func(h *fund.Holding) value { return integer(h.Key.CustomerNo) }},
	{"IMKBCode", func(h *fund.Holding) value { return value{h.Key.IMKBCode, text} }},
	{"HolderCorporationName", func(h *fund.Holding) value { return value{h.Key.HolderCorporationName, text} }},
	{"Units", func(h *fund.Holding) value { return value{h.Units.String(), raw} }},
}

var accountColumns = []column[fund.Account]{
	{"BranchCode", func(a *fund.Account) value { return integer(a.Key.BranchCode) }},
	{"CustomerNo", func(a *fund.Account) value { return integer(a.Key.CustomerNo) }},
	{"AccountSuffix", func(a *fund.Account) value { return integer(a.Key.AccountSuffix) }},
	{"CurrencyCode", func(a *fund.Account) value { return value{a.Key.Currency.Code(), text} }},
	{"Balance", func(a *fund.Account) value { return value{a.Balance.String(), raw} }},
}

// origin are the columns of the operation that brought a row.
func origin[T any](id func(*T) operation.ID, position func(*T) int, subscription func(*T) string, header func(*T) *operation.Header) []column[T] {
	return []column[T]{
		{"OperationId", func(r *T) value { return value{id(r).String(), text} }},
		{"Position", func(r *T) value { return integer(int64(position(r))) }},
		{"Subscription", func(r *T) value { return value{subscription(r), text} }},
		{"AppKey", func(r *T) value { return value{header(r).AppKey, text} }},
		{"Channel", func(r *T) value { return value{header(r).Channel, text} }},
		{"TellerName", func(r *T) value { return value{header(r).TellerName, text} }},
		{"CallerId", func(r *T) value { return value{header(r).CallerID, text} }},
		{"ChannelSessionId", func(r *T) value { return value{header(r).ChannelSessionID, text} }},
		{"ChannelRequestId", func(r *T) value { return value{header(r).ChannelRequestID, text} }},
	}
}

var saleColumns = slices.Concat(
	origin(
		func(s *fund.SaleEntry) operation.ID { return s.OperationID },
		func(s *fund.SaleEntry) int { return s.Index },
		func(s *fund.SaleEntry) string { return s.Subscription },
		func(s *fund.SaleEntry) *operation.Header { return &s.Header },
	),
	[]column[fund.SaleEntry]{
		{"CustomerNo", func(s *fund.SaleEntry) value { return integer(s.Terms.Holding.CustomerNo) }},
		{"TransactionType", func(*fund.SaleEntry) value { return integer(fund.SaleTransaction) }},
		{"FundAmount", func(s *fund.SaleEntry) value { return value{s.Terms.Units.String(), raw} }},
		{"BranchCode", func(s *fund.SaleEntry) value { return integer(s.Terms.Account.BranchCode) }},
		{"AccountCustomerNo", func(s *fund.SaleEntry) value { return integer(s.Terms.Account.CustomerNo) }},
		{"AccountSuffix", func(s *fund.SaleEntry) value { return integer(s.Terms.Account.AccountSuffix) }},
		{"CurrencyCode", func(s *fund.SaleEntry) value { return value{s.Terms.Account.Currency.Code(), text} }},
		{"IMKBCode", func(s *fund.SaleEntry) value { return value{s.Terms.Holding.IMKBCode, text} }},
		{"HolderCorporationName", func(s *fund.SaleEntry) value { return value{s.Terms.Holding.HolderCorporationName, text} }},
		{"PriceID", func(s *fund.SaleEntry) value { return integer(s.Terms.PriceID) }},
		{"Amount", controlTotal},
		{"SelectedTransactionDate", func(s *fund.SaleEntry) value { return value{s.Terms.SelectedDay.String(), text} }},
		{"State", func(s *fund.SaleEntry) value { return integer(int64(s.State)) }},
		{"SettledPriceID", settled(func(s *fund.SaleEntry) value { return integer(s.PriceID) })},
		{"Price", settled(func(s *fund.SaleEntry) value { return value{s.PerUnit.String(), raw} })},
		{"Proceeds", settled(func(s *fund.SaleEntry) value { return value{s.Proceeds.String(), raw} })},
		{"Refusal", func(s *fund.SaleEntry) value { return value{s.Refusal, text} }},
		{"ReceivedAt", func(s *fund.SaleEntry) value { return instant(s.ReceivedAt) }},
		{"SettledAt", func(s *fund.SaleEntry) value { return instant(s.SettledAt) }},
	},
)

// controlTotal is the caller's Amount; 0 and none are the same to the bank.
func controlTotal(s *fund.SaleEntry) value {
	if s.Terms.ControlTotal == 0 {
		return value{"", raw}
	}
	return value{money.New(s.Terms.ControlTotal, s.Terms.Account.Currency).String(), raw}
}

// settled is a value that only completed sales have.
func settled(of func(*fund.SaleEntry) value) func(*fund.SaleEntry) value {
	return func(s *fund.SaleEntry) value {
		if s.State != operation.Completed {
			return value{"", raw}
		}
		return of(s)
	}
}

// side is one side of a posting.
type side struct {
	fund.PostingEntry
	bank bool
}

func bothSides(rows iter.Seq2[fund.PostingEntry, error]) iter.Seq2[side, error] {
	return func(yield func(side, error) bool) {
		for p, err := range rows {
			if !yield(side{p, false}, err) {
				return
			}
			p.Quantity = -p.Quantity
			if err == nil && !yield(side{p, true}, nil) {
				return
			}
		}
	}
}

var postingColumns = []column[side]{
	{"OperationId", func(s *side) value { return value{s.OperationID.String(), text} }},
	{"Position", func(s *side) value { return integer(int64(s.Index)) }},
	{"Kind", func(s *side) value { return value{s.Kind.String(), text} }},
	{"Side", func(s *side) value {
		if s.bank {
			return value{"bank", text}
		}
		return value{"customer", text}
	}},
	{"CustomerNo", func(s *side) value { return s.only(!s.bank, s.CustomerNo()) }},
	{"IMKBCode", func(s *side) value { return value{s.Holding.IMKBCode, text} }},
	{"HolderCorporationName", func(s *side) value { return value{s.Holding.HolderCorporationName, text} }},
	{"BranchCode", func(s *side) value { return s.only(s.IsMoney() && !s.bank, s.Account.BranchCode) }},
	{"AccountSuffix", func(s *side) value { return s.only(s.IsMoney() && !s.bank, s.Account.AccountSuffix) }},
	{"CurrencyCode", func(s *side) value { return value{s.Account.Currency.Code(), text} }},
	{"Units", func(s *side) value {
		if s.IsMoney() {
			return value{"", raw}
		}
		return value{fund.Units(s.Quantity).String(), raw}
	}},
	{"Amount", func(s *side) value {
		if !s.IsMoney() {
			return value{"", raw}
		}
		return value{money.New(s.Quantity, s.Account.Currency).String(), raw}
	}},
	{"PostedAt", func(s *side) value { return instant(s.PostedAt) }},
}

// only is n where the side has it.
func (s *side) only(has bool, n int64) value {
	if !has {
		return value{"", raw}
	}
	return integer(n)
}

var notificationColumns = slices.Concat(
	origin(
		func(n *push.Entry) operation.ID { return n.OperationID },
		func(n *push.Entry) int { return n.Index },
		func(n *push.Entry) string { return n.Subscription },
		func(n *push.Entry) *operation.Header { return &n.Header },
	),
	memberColumns(),
)

// memberColumns are the columns of a notification's record. The first files ended
// with TranData and ReceivedAt, so newer members follow them.
func memberColumns() (all []column[push.Entry]) {
	for _, m := range push.Members {
		kind := text
		if m.Kind == push.Number {
			kind = raw
		}
		all = append(all, column[push.Entry]{m.Name, func(n *push.Entry) value { return value{m.Value(&n.Record), kind} }})
		if m.Name == "SendDate" {
			all = append(all,
				column[push.Entry]{"TranData", func(n *push.Entry) value { return value{tranData(n.Record.TranData), raw} }},
				column[push.Entry]{"ReceivedAt", func(n *push.Entry) value { return instant(n.ReceivedAt) }})
		}
	}
	return all
}

// tranData is TranData as JSON, with the names of the requests.
func tranData(items []push.TranDataItem) string {
	b := []byte{'['}
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"Code":`...)
		b, _ = jsontext.AppendQuote(b, item.Code)
		b = append(b, `,"Name":`...)
		b, _ = jsontext.AppendQuote(b, item.Name)
		b = append(b, '}')
	}
	return string(append(b, ']'))
}

var decisionColumns = []column[backoffice.Decision]{
	{"OperationId", func(d *backoffice.Decision) value { return value{d.ID.String(), text} }},
	{"Operation", func(d *backoffice.Decision) value { return value{d.Operation.String(), text} }},
	{"Subscription", func(d *backoffice.Decision) value { return value{d.Subscription, text} }},
	{"AppKey", func(d *backoffice.Decision) value { return value{d.Header.AppKey, text} }},
	{"Channel", func(d *backoffice.Decision) value { return value{d.Header.Channel, text} }},
	{"TellerName", func(d *backoffice.Decision) value { return value{d.Header.TellerName, text} }},
	{"CallerId", func(d *backoffice.Decision) value { return value{d.Header.CallerID, text} }},
	{"ChannelSessionId", func(d *backoffice.Decision) value { return value{d.Header.ChannelSessionID, text} }},
	{"ChannelRequestId", func(d *backoffice.Decision) value { return value{d.Header.ChannelRequestID, text} }},
	{"RequestId", func(d *backoffice.Decision) value { return value{cmp.Or(d.Header.RequestID, d.ID.String()), text} }},
	{"State", func(d *backoffice.Decision) value { return integer(int64(d.State)) }},
	{"Codes", func(d *backoffice.Decision) value { return value{strings.Join(d.Codes, " "), text} }},
	{"ReceivedAt", func(d *backoffice.Decision) value { return instant(d.ReceivedAt) }},
}

var actColumns = []column[audit.Act]{
	{"Id", func(a *audit.Act) value { return value{a.ID.String(), text} }},
	{"At", func(a *audit.Act) value { return instant(a.At) }},
	{"Actor", func(a *audit.Act) value { return value{a.Actor, text} }},
	{"SystemUser", func(a *audit.Act) value { return value{a.SystemUser, text} }},
	{"Origin", func(a *audit.Act) value { return value{a.Origin, text} }},
	{"Action", func(a *audit.Act) value { return value{a.Action, text} }},
	{"Object", func(a *audit.Act) value { return value{a.Object, text} }},
	{"Reason", func(a *audit.Act) value { return value{a.Reason, text} }},
	{"Details", func(a *audit.Act) value { return value{a.Details, text} }},
}
