package backoffice

import (
	"fmt"
	"math/big"
	"slices"

	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Rule is a rule that Verify checks.
type Rule struct {
	// Name is stable and kebab-case.
	Name string
	// Proves says what is true if the rule has no finding.
	Proves string
}

// Rules lists all rules of Verify in the order in which they are checked.
func Rules() []Rule {
	all := append(holdingRules[:], accountRules[:]...)
	for _, r := range operationRules {
		all = append(all, r.Rule)
	}
	return append(append(all, postingShape, outcomeOfEnd, rulesOfAct, readable, zeroSum), trailRules...)
}

// The rules of a position: it exists, it is not negative, and it is the sum of its postings.
// Each rule skips the positions that the rules before it report.
var (
	holdingRules = [...]Rule{
		{"holding-exists", "Every posting of units belongs to a holding."},
		{"holding-not-negative", "No holding is below zero."},
		{"holding-is-its-postings", "Every holding is the sum of its postings."},
	}
	accountRules = [...]Rule{
		{"account-exists", "Every posting of money belongs to an account."},
		{"account-not-negative", "No balance is below zero."},
		{"account-is-its-postings", "Every balance is the sum of its postings."},
	}
)

// rule is a Rule of operations.
type rule struct {
	Rule
	// check calls broken with one line for each part of the operation that breaks the rule.
	check func(o *Operation, broken func(text string))
}

// operationRules check an operation with its sales and postings.
var operationRules = []rule{
	eachCompleted("sale-units-posted", "Every completed sale has the posting that takes its units from its holding.",
		"has no posting of its units", func(o *Operation, s *fund.SaleEntry) bool {
			return !hasPosting(o.Postings, s.Index, fund.Posting{Kind: fund.SalePosting, Holding: s.Terms.Holding, Quantity: -int64(s.Terms.Units)})
		}),
	eachCompleted("sale-proceeds-posted", "Every completed sale has the posting that credits its proceeds to its account.",
		"has no posting of its proceeds", func(o *Operation, s *fund.SaleEntry) bool {
			return !hasPosting(o.Postings, s.Index, fund.Posting{Kind: fund.SalePosting, Account: s.Terms.Account, Quantity: s.Proceeds.Minor()})
		}),
	eachCompleted("sale-price", "Every completed sale was settled at a price of its fund and currency.",
		"was not settled at a price of its fund and currency", func(o *Operation, s *fund.SaleEntry) bool {
			p, found := o.Prices[s.PriceID]
			return !found || p.Fund != s.Terms.Holding.Fund || p.Currency != s.Terms.Account.Currency || p.PerUnit != s.PerUnit
		}),
	eachCompleted("sale-settled-at", "Every completed sale has the time of its settlement.",
		"is completed but has no settlement time", func(_ *Operation, s *fund.SaleEntry) bool { return s.SettledAt.IsZero() }),
	eachCompleted("sale-proceeds", "The proceeds of every completed sale are units times price, rounded once.",
		"its proceeds are not units times price", func(_ *Operation, s *fund.SaleEntry) bool {
			proceeds, ok := fund.Proceeds(s.Terms.Units, s.PerUnit, s.Terms.Account.Currency)
			return !ok || proceeds != s.Proceeds
		}),
	eachSale("sale-state", "Every sale is recorded for a day, completed or failed, and only a completed one has a price and proceeds.",
		"is in a state that contradicts itself", func(_ *Operation, s *fund.SaleEntry) bool {
			hasPrice := s.PriceID != 0 || s.PerUnit != 0 || s.Proceeds != money.Amount{}
			switch s.State {
			case operation.Recorded:
				return hasPrice || !s.SettledAt.IsZero() || s.Terms.SelectedDay.IsNone()
			case operation.Failed:
				return hasPrice || s.SettledAt.IsZero()
			case operation.Completed:
				return false
			}
			return true
		}),
	{
		Rule{"sale-of-operation", "Every sale has its operation, and the state of its operation."},
		func(o *Operation, broken func(string)) {
			for _, sales := range [][]fund.SaleEntry{o.Sales, o.RefusedSales} {
				for i := range sales {
					s := &sales[i]
					if d, ok := o.Decision(); !ok || d.Operation != operation.BuyFundFromCustomer || s.State != d.State || s.Envelope != d.Envelope {
						broken(saleName(o, s.Index, s.Terms.Holding.CustomerNo) + ": contradicts its operation")
					}
				}
			}
		},
	},
	withoutSale("posting-units-have-sale", "Every posting of a sale's units belongs to a completed sale.",
		"is not completed, but has a posting of units", false),
	withoutSale("posting-proceeds-have-sale", "Every posting of a sale's proceeds belongs to a completed sale.",
		"is not completed, but has a posting of proceeds", true),
	{
		Rule{"posting-once", "The units and the proceeds of a sale are posted once."},
		func(o *Operation, broken func(string)) {
			for i := 1; i < len(o.Postings); i++ {
				p, before := &o.Postings[i], &o.Postings[i-1]
				if p.Kind == fund.SalePosting && p.Index == before.Index && p.IsMoney() == before.IsMoney() && p.CustomerNo() == before.CustomerNo() {
					broken(postingName(p) + ": its sale was posted before")
				}
			}
		},
	},
	{
		Rule{"posting-reversal-has-sale", "Every posting of a reversal belongs to a sale of a reversed operation."},
		func(o *Operation, broken func(string)) {
			for i := range o.ReversalPostings {
				p := &o.ReversalPostings[i]
				if !slices.ContainsFunc(o.salesAt(p.Index), func(s fund.SaleEntry) bool { return isOf(p, &s) }) {
					broken(postingName(p) + ": belongs to no reversal of a sale")
				}
			}
			for i := range o.Postings {
				if p := &o.Postings[i]; p.Kind == fund.ReversalPosting {
					broken(postingName(p) + ": belongs to no reversal of a sale")
				}
			}
		},
	},
	ofOperation("operation-has-sales", "Every BuyFundFromCustomer that was answered has its sales.",
		"was answered, but it has no sales", func(o *Operation) bool {
			d, ok := o.Decision()
			return ok && d.Operation == operation.BuyFundFromCustomer && len(o.Sales)+len(o.RefusedSales) == 0
		}),
	ofOperation("operation-complete", "No sale of an operation is missing between the first and the last.",
		"some of its sales are missing", func(o *Operation) bool {
			for i := range o.Sales {
				if o.Sales[i].Index != i {
					return true
				}
			}
			return false
		}),
	{
		Rule{"reversal-of-completed", "Every reversed operation has sales, and all of them are completed."},
		func(o *Operation, broken func(string)) {
			if o.Reversal == nil {
				return
			}
			if len(o.Sales) == 0 {
				broken(operationName(o) + ": is reversed, but was not completed")
			}
			for i := range o.Sales {
				if s := &o.Sales[i]; s.State != operation.Completed {
					broken(saleName(o, s.Index, s.Terms.Holding.CustomerNo) + ": is reversed, but was not completed")
				}
			}
		},
	},
	eachSale("reversal-posted", "Every sale of a reversed operation has the postings that return its units and take back its proceeds.",
		"is reversed, but its postings are not undone", func(o *Operation, s *fund.SaleEntry) bool {
			return o.Reversal != nil &&
				(!hasPosting(o.ReversalPostings, s.Index, fund.Posting{Kind: fund.ReversalPosting, Holding: s.Terms.Holding, Quantity: int64(s.Terms.Units)}) ||
					!hasPosting(o.ReversalPostings, s.Index, fund.Posting{Kind: fund.ReversalPosting, Account: s.Terms.Account, Quantity: -s.Proceeds.Minor()}))
		}),
}

// The rules of rows that belong to no operation.
var (
	postingShape = Rule{"posting-shape", "Every posting is of a known kind, and either of units or of money."}
	outcomeOfEnd = Rule{"outcome-of-end", "Every outcome is the end of its operation, and every operation that ended after its answer has its outcome."}
	readable     = Rule{"row-readable", "Every row has values that this program writes."}
)

// eachSale checks the sales of an operation. breaks returns true if a sale breaks the rule.
func eachSale(name, proves, sentence string, breaks func(*Operation, *fund.SaleEntry) bool) rule {
	return rule{Rule{name, proves}, func(o *Operation, broken func(string)) {
		for i := range o.Sales {
			if s := &o.Sales[i]; breaks(o, s) {
				broken(saleName(o, s.Index, s.Terms.Holding.CustomerNo) + ": " + sentence)
			}
		}
	}}
}

func eachCompleted(name, proves, sentence string, breaks func(*Operation, *fund.SaleEntry) bool) rule {
	return eachSale(name, proves, sentence, func(o *Operation, s *fund.SaleEntry) bool {
		return s.State == operation.Completed && breaks(o, s)
	})
}

func ofOperation(name, proves, sentence string, breaks func(*Operation) bool) rule {
	return rule{Rule{name, proves}, func(o *Operation, broken func(string)) {
		if breaks(o) {
			broken(operationName(o) + ": " + sentence)
		}
	}}
}

// withoutSale finds the postings of units, or of money, that belong to no completed sale.
func withoutSale(name, proves, sentence string, ofMoney bool) rule {
	return rule{Rule{name, proves}, func(o *Operation, broken func(string)) {
		for i := range o.Postings {
			p := &o.Postings[i]
			hasSale := func(s fund.SaleEntry) bool { return s.State == operation.Completed && isOf(p, &s) }
			if p.Kind == fund.SalePosting && p.IsMoney() == ofMoney && !slices.ContainsFunc(o.salesAt(p.Index), hasSale) {
				broken(saleName(o, p.Index, p.CustomerNo()) + ": " + sentence)
			}
		}
	}}
}

// isOf reports whether a posting belongs to the customer of a sale.
func isOf(p *fund.PostingEntry, s *fund.SaleEntry) bool {
	if p.IsMoney() {
		return p.CustomerNo() == s.Terms.Account.CustomerNo
	}
	return p.CustomerNo() == s.Terms.Holding.CustomerNo
}

// hasPosting reports whether a posting has that index and the kind, position and quantity of
// wanted.
func hasPosting(all []fund.PostingEntry, index int, wanted fund.Posting) bool {
	at := rowsAt(all, index, func(p *fund.PostingEntry) int { return p.Index })
	return slices.ContainsFunc(at, func(p fund.PostingEntry) bool {
		return p.Kind == wanted.Kind && p.Holding == wanted.Holding && p.Account == wanted.Account && p.Quantity == wanted.Quantity
	})
}

func operationName(o *Operation) string { return "operation " + o.ID.String() }

func saleName(o *Operation, index int, customerNo int64) string {
	return fmt.Sprintf("sale %s/%d of customer %d", o.ID, index, customerNo)
}

func postingName(p *fund.PostingEntry) string {
	leg := 1
	if p.IsMoney() {
		leg = 2
	}
	return fmt.Sprintf("posting %s/%d/%d of customer %d", p.OperationID, p.Index, leg, p.CustomerNo())
}

// zeroSum is checked once for the totals of each fund and currency.
var zeroSum = Rule{"zero-sum", "Units of each fund and money of each currency sum to zero over customers and bank."}

// exact formats n / 10^decimals.
func exact(n *big.Int, decimals int) string {
	one := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	return new(big.Rat).SetFrac(n, one).FloatString(decimals)
}
