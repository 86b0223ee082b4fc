package backoffice

import (
	"context"
	"errors"
	"strings"

	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// RuleBook keeps the rules of the bank in its book (the contract, section 5.8).
type RuleBook interface {
	// Rules reads the rules. The error is ErrNoRules if the book has none yet.
	Rules(ctx context.Context) (fund.Rules, error)
	// ChangeRules stores the rules that change returns, together with the act that ctx carries,
	// in one transaction that no other change overlaps. The act gets the rules as its Object,
	// so that Verify finds rules that no act wrote. If change returns the rules of the book,
	// nothing is written.
	//
	// change receives the rules of the book, or nil if it has none yet, and whether the book
	// has operations. It may be called several times, after a lost race. ChangeRules returns
	// its error. If the newest change has an act with a larger ID, the error is
	// fault.Unavailable, because the newest act must be that of the rules.
	ChangeRules(ctx context.Context, change func(current *fund.Rules, hasOperations bool) (fund.Rules, error)) error
}

// ErrNoRules is the error of a book that was never used by a service or a command that writes.
var ErrNoRules = fault.New(fault.Unavailable, "The book has no rules of the bank yet. The first start of the service writes them.")

// RulesActs are the actions of the acts that write the rules.
var RulesActs = []string{audit.RulesBegin, audit.RulesChange}

// rulesOfAct is checked by the storage, which sees the rules and the acts.
var rulesOfAct = Rule{"rules-are-of-act", "The rules of the bank are those of the newest act that wrote them."}

// RulesOfNoAct returns the flaw of rules that are not those of the newest act. stored and acted
// are the rules of the book and of the act, each empty if it does not exist.
func RulesOfNoAct(stored, acted string) Flaw {
	switch {
	case acted == "":
		return Flaw{rulesOfAct, "no act wrote them: " + stored}
	case stored == "":
		return Flaw{rulesOfAct, "they are not there, but an act wrote " + acted}
	}
	return Flaw{rulesOfAct, "they are " + stored + ", but the newest act wrote " + acted}
}

// BeginRules gives a new book the rules in of. It changes nothing in a book that has rules. It
// returns the rules of the book.
func BeginRules(ctx context.Context, book RuleBook, acts audit.Acts, of fund.Rules) (fund.Rules, error) {
	rules, err := book.Rules(ctx)
	if !errors.Is(err, ErrNoRules) {
		return rules, err
	}
	err = book.ChangeRules(acts.Begin(ctx, audit.RulesBegin, "", "the rules of a new book"), func(current *fund.Rules, _ bool) (fund.Rules, error) {
		rules = of
		if current != nil { // another replica was faster
			rules = *current
		}
		return rules, nil
	})
	return rules, err
}

// ChangeRules changes the rules whose fields are not empty. It returns the rules before and
// after the change. The change is an act of the person in ctx. The error is that of
// fund.Rules.Change or of the port.
func (o *Office) ChangeRules(ctx context.Context, f fund.RulesFields) (before, after fund.Rules, err error) {
	ctx = o.Acts.Begin(ctx, audit.RulesChange, "", "")
	err = o.RuleBook.ChangeRules(ctx, func(current *fund.Rules, hasOperations bool) (fund.Rules, error) {
		if current == nil {
			return fund.Rules{}, ErrNoRules
		}
		before = *current
		after, err = before.Change(f, hasOperations)
		audit.Describe(ctx, strings.Join(after.Differences(before), "; "))
		return after, err
	})
	return before, after, err
}
