package backoffice

import (
	"fmt"
	"math/big"

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

// Rules lists all rules of Verify in the order of reports. Findings may come in another order.
func Rules() []Rule {
	all := append(holdingRules[:], accountRules[:]...)
	for _, r := range operationRules {
		all = append(all, r.Rule)
	}
	return append(append(all, postingShape, outcomeOfEnd, rulesOfAct, readable, searchComplete, zeroSum), trailRules...)
}

// The rules of a position: it exists, it is not negative, it is the sum of its postings, and it has
// one. Each rule skips the positions that the rules before it report.
var (
	holdingRules = [...]Rule{
		{"holding-exists", "Every posting of units belongs to a holding."},
		{"holding-not-negative", "No holding is below zero."},
		{"holding-is-its-postings", "Every holding is the sum of its postings: what imports and corrections added, less the units of completed sales that were not reversed."},
		{"holding-was-imported", "Every holding, also one of zero units, has the posting of its import."},
	}
	accountRules = [...]Rule{
		{"account-exists", "Every posting of money belongs to an account."},
		{"account-not-negative", "No balance is below zero."},
		{"account-is-its-postings", "Every balance is the sum of its postings: what imports and corrections added, and the proceeds of completed sales that were not reversed."},
		{"account-was-imported", "Every account, also one with a balance of zero, has the posting of its import."},
	}
)

// rule is a Rule of operations.
type rule struct {
	Rule
	// check calls broken with one line for each part of the operation that breaks the rule.
	check func(o *Operation, broken func(text string))
}

// operationRules check an operation with its sales. Their postings follow from them.
var operationRules = []rule{
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
				s := &o.Sales[i]
				if s.State != operation.Completed {
					broken(saleName(o, s.Index, s.Terms.Holding.CustomerNo) + ": is reversed, but was not completed")
				}
			}
		},
	},
}

// The rules of rows that belong to no operation.
var (
	postingShape = Rule{"posting-shape", "Every posting of an import or a correction is of a known kind, and either of units or of money."}
	outcomeOfEnd = Rule{"outcome-of-end", "Every outcome is the end of its operation, and every operation that ended after its answer has its outcome."}
	readable     = Rule{"row-readable", "Every row has values that this program writes."}
	// searchComplete is checked by the storage.
	searchComplete = Rule{"search-complete", "A search finds every row that it should."}
)

// eachSale checks the sales of an operation. breaks returns true if a sale breaks the rule.
func eachSale(name, proves, sentence string, breaks func(*Operation, *fund.SaleEntry) bool) rule {
	return rule{Rule{name, proves}, func(o *Operation, broken func(string)) {
		for i := range o.Sales {
			s := &o.Sales[i]
			if breaks(o, s) {
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

func operationName(o *Operation) string { return "operation " + o.ID.String() }

func saleName(o *Operation, index int, customerNo int64) string {
	return fmt.Sprintf("sale %s/%d of customer %d", o.ID, index, customerNo)
}

// zeroSum is checked once for the totals of each fund and currency.
var zeroSum = Rule{"zero-sum", "Units of each fund and money of each currency sum to zero over customers and bank."}

// exact formats n / 10^decimals.
func exact(n *big.Int, decimals int) string {
	one := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	return new(big.Rat).SetFrac(n, one).FloatString(decimals)
}
