package bootstrap

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// newRules makes the rules of the bank, which are part of its book. They are read when the
// service starts.
func newRules(w *setup, s *store.Store) *buyfund.Rules {
	return buyfund.NewRules(s.Backoffice.RuleBook, s.Backoffice.Reader, w.newBook, w.now)
}

// readRules reads the rules of the bank. A new book gets those of the settings. It does nothing
// while the storage cannot be used: the service is not ready then, and a chore reads them.
func (w *setup) readRules(ctx context.Context, s *store.Store, k *trail.Keeper, rules *buyfund.Rules) error {
	err := rules.Refresh(ctx)
	if errors.Is(err, backoffice.ErrNoRules) && !w.storage.AsItIs && mayKeep(ctx, k) == nil {
		err = w.beginRules(ctx, s, rules)
	}
	if errors.Is(err, backoffice.ErrNoRules) || fault.KindOf(err) == fault.Unavailable {
		return nil
	}
	return err
}

// beginRules gives a new book the rules of the settings.
func (w *setup) beginRules(ctx context.Context, s *store.Store, rules *buyfund.Rules) error {
	_, err := backoffice.BeginRules(unguarded(ctx), s.Backoffice.RuleBook, w.acts, w.newBook)
	if err != nil {
		return err
	}
	return rules.Refresh(ctx)
}

// warnOfRules says that the rules of the settings are not those of the book, which keeps its own.
func (w *setup) warnOfRules(ofBook fund.Rules) {
	wanted, faults := fund.NewRules(ofBook, w.settings.Rules)
	if len(faults) == 0 && wanted.String() != ofBook.String() {
		w.log.Warn("the book keeps its rules: they are changed with `bankingapi rules change`",
			zap.String("book", ofBook.String()), zap.Strings("asked", wanted.Differences(ofBook)))
	}
}
