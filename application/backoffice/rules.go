package backoffice

import (
	"fmt"
	"math/big"

	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Rule is something that Verify proves.
type Rule struct {
	// Name is stable and kebab-case.
	Name string
	// Proves says what holds if the rule has no finding.
	Proves string
}

// Rules lists all rules of Verify in the order in which they are checked.
func Rules() []Rule {
	var all []Rule
	for _, r := range holdingRules {
		all = append(all, r.Rule)
	}
	for _, r := range accountRules {
		all = append(all, r.Rule)
	}
	for _, r := range saleRules {
		all = append(all, r.Rule)
	}
	for _, r := range postingRules {
		all = append(all, r.Rule)
	}
	for _, r := range operationRules {
		all = append(all, r.Rule)
	}
	for _, r := range reversalRules {
		all = append(all, r.Rule)
	}
	all = append(all, zeroSum)
	return append(all, trailRules...)
}

// rule is a Rule for one kind of rows.
type rule[Row any] struct {
	Rule
	// finding names the row and says in a line how it breaks the rule; it is
	// empty if the row keeps the rule.
	finding func(*Row) string
}

// says returns a finding with a fixed sentence.
func says[Row any](name func(*Row) string, sentence string, breaks func(*Row) bool) func(*Row) string {
	return func(row *Row) string {
		if breaks(row) {
			return name(row) + ": " + sentence
		}
		return ""
	}
}

var holdingRules = []rule[HoldingRow]{
	{Rule{"holding-exists", "Every posting of units belongs to a holding."}, func(h *HoldingRow) string { return h.missing(h) }},
	{Rule{"holding-not-negative", "No holding is below zero."}, func(h *HoldingRow) string { return h.negative(h, fund.UnitDecimals) }},
	{Rule{"holding-is-its-postings", "Every holding is the sum of its postings."}, func(h *HoldingRow) string { return h.differs(h, fund.UnitDecimals) }},
}

// String names the holding in findings.
func (h *HoldingRow) String() string {
	return fmt.Sprintf("holding %d %s %q", h.Key.CustomerNo, h.Key.IMKBCode, h.Key.HolderCorporationName)
}

var accountRules = []rule[AccountRow]{
	{Rule{"account-exists", "Every posting of money belongs to an account."}, func(a *AccountRow) string { return a.missing(a) }},
	{Rule{"account-not-negative", "No balance is below zero."}, func(a *AccountRow) string { return a.negative(a, decimalsOf(a.Key.CurrencyCode)) }},
	{Rule{"account-is-its-postings", "Every balance is the sum of its postings."}, func(a *AccountRow) string { return a.differs(a, decimalsOf(a.Key.CurrencyCode)) }},
}

// String names the account in findings.
func (a *AccountRow) String() string {
	return fmt.Sprintf("account %d-%d-%d %s", a.Key.BranchCode, a.Key.CustomerNo, a.Key.AccountSuffix, a.Key.CurrencyCode)
}

func (p *PositionSums) missing(of fmt.Stringer) string {
	if p.Exists {
		return ""
	}
	return fmt.Sprintf("%s: is not there, but has %d postings", of, p.Postings)
}

func (p *PositionSums) negative(of fmt.Stringer, decimals int) string {
	if p.Quantity >= 0 {
		return ""
	}
	return fmt.Sprintf("%s: is below zero: %s", of, exact(big.NewInt(p.Quantity), decimals))
}

// differs passes over positions that the other rules name.
func (p *PositionSums) differs(of fmt.Stringer, decimals int) string {
	if !p.Exists || p.Quantity < 0 {
		return ""
	}
	held, posted := big.NewInt(p.Quantity), p.Posted.Value()
	if held.Cmp(posted) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: is %s, but its postings sum to %s", of, exact(held, decimals), exact(posted, decimals))
}

var saleRules = []rule[SaleRow]{
	{
		Rule{"sale-units-posted", "Every completed sale has the posting that takes its units from its holding."},
		says((*SaleRow).String, "has no posting of its units", func(s *SaleRow) bool {
			p := s.UnitPosting
			return s.completed() && (p == nil || p.Kind != salePosting || p.Fund != s.Holding.Fund || p.Quantity != -s.Units)
		}),
	},
	{
		Rule{"sale-proceeds-posted", "Every completed sale has the posting that credits its proceeds to its account."},
		says((*SaleRow).String, "has no posting of its proceeds", func(s *SaleRow) bool {
			p := s.MoneyPosting
			return s.completed() && (p == nil || p.Kind != salePosting || p.Account != s.Account || s.Proceeds == nil || p.Quantity != *s.Proceeds)
		}),
	},
	{
		Rule{"sale-price", "Every completed sale was settled at a price of its fund and currency."},
		says((*SaleRow).String, "was not settled at a price of its fund and currency", func(s *SaleRow) bool {
			p := s.Price
			return s.completed() && (p == nil || p.Fund != s.Holding.Fund || p.CurrencyCode != s.Account.CurrencyCode ||
				s.SettledPrice == nil || p.PerUnit != *s.SettledPrice)
		}),
	},
	{
		Rule{"sale-settled-at", "Every completed sale has the time of its settlement."},
		says((*SaleRow).String, "is completed at no time", func(s *SaleRow) bool { return s.completed() && !s.HasSettledAt }),
	},
	{
		Rule{"sale-proceeds", "The proceeds of every completed sale are units times price, rounded once."},
		says((*SaleRow).String, "its proceeds are not units times price", func(s *SaleRow) bool {
			if !s.completed() {
				return false
			}
			if s.SettledPrice == nil || s.Proceeds == nil {
				return true
			}
			currency, _ := money.ParseCurrency(s.Account.CurrencyCode)
			proceeds, ok := fund.Proceeds(fund.Units(s.Units), fund.UnitPrice(*s.SettledPrice), currency)
			return !ok || proceeds.Minor() != *s.Proceeds
		}),
	},
	{
		Rule{"sale-state", "Every sale is recorded for a day, completed or failed, and only a completed one has a price and proceeds."},
		says((*SaleRow).String, "is in a state that contradicts itself", func(s *SaleRow) bool {
			settled := s.SettledPriceID != nil || s.SettledPrice != nil || s.Proceeds != nil
			switch s.State {
			case recorded:
				return settled || s.HasSettledAt || !s.HasSelectedDay
			case failed:
				return settled || !s.HasSettledAt
			case completed:
				return false
			}
			return true
		}),
	},
	{
		Rule{"sale-caller-id", "The CallerId of every sale answers with the sale's operation and state."},
		says((*SaleRow).String, "is in another state than its CallerId answers", func(s *SaleRow) bool {
			r := s.Record
			return s.HasCallerID && (r == nil || r.OperationID != s.OperationID || r.State != s.State)
		}),
	},
}

// String names the sale in findings.
func (s *SaleRow) String() string { return saleName(s.OperationID, s.Index, s.Holding.CustomerNo) }

func (s *SaleRow) completed() bool { return s.State == completed }

func saleName(id operation.ID, index, customerNo int64) string {
	return fmt.Sprintf("sale %s/%d of customer %d", id, index, customerNo)
}

// The states as they are stored.
const (
	recorded  = int64(operation.Recorded)
	completed = int64(operation.Completed)
	failed    = int64(operation.Failed)
)

var postingRules = []rule[PostingRow]{
	{
		Rule{"posting-units-have-sale", "Every posting of a sale's units belongs to a completed sale."},
		says((*PostingRow).sale, "is not completed, but has a posting of units", func(p *PostingRow) bool {
			return p.Kind == salePosting && p.Leg == unitLeg && !p.HasSale
		}),
	},
	{
		Rule{"posting-proceeds-have-sale", "Every posting of a sale's proceeds belongs to a completed sale."},
		says((*PostingRow).sale, "is not completed, but has a posting of proceeds", func(p *PostingRow) bool {
			return p.Kind == salePosting && p.Leg == moneyLeg && !p.HasSale
		}),
	},
	{
		Rule{"posting-once", "The units and the proceeds of a sale are posted once."},
		says((*PostingRow).String, "its sale was posted before", func(p *PostingRow) bool { return p.IsSecond }),
	},
	{
		Rule{"posting-reversal-has-sale", "Every posting of a reversal belongs to a sale of a reversed operation."},
		says((*PostingRow).String, "belongs to no reversal of a sale", func(p *PostingRow) bool {
			return p.Kind == reversalPosting && !p.HasSale
		}),
	},
	{
		Rule{"posting-shape", "Every posting is of a known kind, and either of units or of money."},
		says((*PostingRow).String, "is neither of units nor of money", func(p *PostingRow) bool {
			switch p.Kind {
			case salePosting, int64(fund.OpeningPosting), int64(fund.AdjustmentPosting), reversalPosting:
			default:
				return true
			}
			ofUnits, ofMoney := p.Fund.IMKBCode != "", p.CurrencyCode != ""
			return ofUnits == ofMoney || ofUnits != (p.Leg == unitLeg) || ofMoney != (p.Leg == moneyLeg)
		}),
	},
}

const (
	salePosting     = int64(fund.SalePosting)
	reversalPosting = int64(fund.ReversalPosting)
	// The legs of a posting.
	unitLeg  = 1
	moneyLeg = 2
)

// String names the posting in findings.
func (p *PostingRow) String() string {
	return fmt.Sprintf("posting %s/%d/%d of customer %d", p.OperationID, p.Index, p.Leg, p.CustomerNo)
}

// sale names the sale that the posting claims to belong to.
func (p *PostingRow) sale() string { return saleName(p.OperationID, p.Index, p.CustomerNo) }

var operationRules = []rule[OperationRow]{
	{
		Rule{"operation-has-sales", "Every operation that took place, as its CallerId answers, has sales."},
		says((*OperationRow).String, "its CallerId answers that it took place, but it has no sales", func(o *OperationRow) bool {
			return o.RecordState != 0 && o.RecordState != failed && o.Sales == 0
		}),
	},
	{
		Rule{"operation-one-state", "All sales of an operation are in one state."},
		says((*OperationRow).String, "its sales are in different states", func(o *OperationRow) bool {
			return o.LowestState != o.HighestState
		}),
	},
	{
		Rule{"operation-complete", "No sale of an operation is missing between the first and the last."},
		says((*OperationRow).String, "some of its sales are missing", func(o *OperationRow) bool {
			return o.Sales > 0 && (o.SharesIndex || o.Sales != o.LastIndex+1)
		}),
	},
}

// String names the operation in findings.
func (o *OperationRow) String() string { return "operation " + o.ID.String() }

var reversalRules = []rule[ReversalRow]{
	{
		Rule{"reversal-of-completed", "Every reversed operation has sales, and all of them are completed."},
		says((*ReversalRow).String, "is reversed, but was not completed", func(r *ReversalRow) bool {
			return !r.HasSale || r.State != completed
		}),
	},
	{
		Rule{"reversal-posted", "Every sale of a reversed operation has the postings that return its units and take back its proceeds."},
		says((*ReversalRow).String, "is reversed, but its postings are not undone", func(r *ReversalRow) bool {
			u, m := r.UnitPosting, r.MoneyPosting
			return r.HasSale && (u == nil || u.Kind != reversalPosting || u.Fund != r.Holding.Fund || u.Quantity != r.Units ||
				m == nil || m.Kind != reversalPosting || m.Account != r.Account || r.Proceeds == nil || m.Quantity != -*r.Proceeds)
		}),
	},
}

// String names the sale in findings.
func (r *ReversalRow) String() string { return saleName(r.OperationID, r.Index, r.Holding.CustomerNo) }

// zeroSum is checked once, for the totals of each fund and currency.
var zeroSum = Rule{"zero-sum", "Units of each fund and money of each currency sum to zero over customers and bank."}

// decimalsOf is the number of decimals of a stored currency code. An unknown
// one has none.
func decimalsOf(currencyCode string) int {
	currency, _ := money.ParseCurrency(currencyCode)
	return currency.Decimals()
}

// exact formats n / 10^decimals.
func exact(n *big.Int, decimals int) string {
	if n.IsInt64() {
		return decimal.FormatFixed(n.Int64(), decimals)
	}
	digits := n.String()
	if decimals == 0 {
		return digits
	}
	return digits[:len(digits)-decimals] + "." + digits[len(digits)-decimals:]
}
