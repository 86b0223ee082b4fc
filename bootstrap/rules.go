package bootstrap

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// newRules makes the rules of the bank, which are part of its book. They are read when the
// service starts.
//
// A storage that keeps no rules cannot compare them in the transaction of a sale either: they are fixed.
func newRules(settings validSettings, c clocks, s *store.Store) *buyfund.Rules {
	if !s.KeepsRules() {
		return buyfund.FixedRules(settings.newBook(), s.Backoffice.Reader, c.now)
	}
	return buyfund.NewRules(s.Backoffice.RuleBook, s.Backoffice.Reader, settings.newBook(), c.now)
}

// ruleBook reads the rules of the bank from its book, and gives a new book those of the settings.
type ruleBook struct {
	rules   *buyfund.Rules
	store   *store.Store
	acts    audit.Acts
	newBook fund.Rules
	asItIs  bool // a new book stays without rules
}

func newRuleBook(settings validSettings, b bookSource, c clocks, s *store.Store, rules *buyfund.Rules) *ruleBook {
	return &ruleBook{rules: rules, store: s, acts: c.acts(), newBook: settings.newBook(), asItIs: b.options.AsItIs}
}

// read reads the rules. It does nothing while the storage cannot be used: the service is not ready
// then, and a chore reads them.
func (r *ruleBook) read(ctx context.Context, k *trail.Keeper) error {
	err := r.rules.Refresh(ctx)
	if errors.Is(err, backoffice.ErrNoRules) && !r.asItIs && mayKeep(ctx, k) == nil {
		err = r.begin(ctx)
	}
	if errors.Is(err, backoffice.ErrNoRules) || fault.KindOf(err) == fault.Unavailable {
		return nil
	}
	return err
}

// begin gives a new book the rules of the settings.
func (r *ruleBook) begin(ctx context.Context) error {
	_, err := backoffice.BeginRules(unguarded(ctx), r.store.Backoffice.RuleBook, r.acts, r.newBook)
	if err != nil {
		return err
	}
	return r.rules.Refresh(ctx)
}

// warnOfRules says that the rules of the settings are not those of the book, which keeps its own.
func warnOfRules(settings validSettings, log serviceLog, ofBook fund.Rules) {
	wanted, faults := fund.NewRules(ofBook, settings.Rules)
	if len(faults) == 0 && wanted.String() != ofBook.String() {
		log.zap.Warn("the book keeps its rules: they are changed with `bankingapi rules change`",
			zap.String("book", ofBook.String()), zap.Strings("asked", wanted.Differences(ofBook)))
	}
}
