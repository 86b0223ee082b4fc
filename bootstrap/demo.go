package bootstrap

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"bankingapi/adapters/guide"
	"bankingapi/adapters/httpapi"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
)

// demoName is the subscription of the demo.
const demoName = "demo"

// Demo has instructions for trying the service for the first time. Its Key opens
// the subscription "demo"; it is empty where the store had other data before and
// no demo was loaded.
type Demo = guide.Guide

// LoadDemo loads a small book into an empty store and makes a subscription for
// it, whose key it keeps in demo.key in the data folder, readable only by its
// owner: the same commands work again after a restart. A store that has data
// of its own is left as it is.
func (a *App) LoadDemo(ctx context.Context) (Demo, error) {
	demo := a.guide("demo.key")
	if err := a.usable(ctx); err != nil {
		return demo, err
	}
	if audit.Actor(ctx) == (audit.Who{}) {
		host, _ := os.Hostname() // empty if the system has none
		ctx = audit.By(ctx, audit.Who{Actor: "bankingapi", Origin: host})
	}
	err := a.loadDemo(ctx, &demo)
	return demo, fault.Explain(err)
}

func (a *App) loadDemo(ctx context.Context, demo *Demo) error {
	known, err := a.manager.List(ctx)
	if err != nil {
		return err
	}
	empty, err := a.office.Book.IsEmpty(ctx)
	if err != nil {
		return err
	}
	if empty && len(known) == 0 {
		acts := a.options.acts()
		if err := a.office.Importer.LoadDemo(acts.Begin(ctx, "demo.load", "", "")); err != nil {
			return err
		}
		err := demo.Create(acts.Begin(ctx, "subscription.create", demoName, "demo"), a.manager, demoName)
		if !errors.Is(err, subscriptions.ErrNameTaken) { // another replica was first
			return err
		}
	}
	if err := demo.ReadKey(); err != nil || demo.Key != "" {
		return err
	}
	if err := demo.Renew(ctx, a.manager, demoName); !errors.Is(err, subscriptions.ErrNotFound) {
		return err
	}
	return nil
}

// guide is the guide to the service, without a key.
func (a *App) guide(keyFile string) Demo {
	g := Demo{KeyFile: filepath.Join(a.store.DataFolder, keyFile)}
	for _, each := range a.operations {
		if body := each.ExampleRequest(); body != "" {
			g.Examples = append(g.Examples, guide.Example{Path: httpapi.Path(each.OperationName()), Body: body})
		}
	}
	if a.settings.TLS.Mode == TLSSelfSigned {
		g.CAFile = tlsOptions(a.settings, a.store.DataFolder, a.options, a.observer.logger).CertFile
	}
	return g
}
