package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bankingapi/adapters/httpapi"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/subscription"
)

// demoName is the subscription of the demo.
const demoName = "demo"

// Demo has instructions for trying the service for the first time.
type Demo struct {
	// Key opens the subscription "demo"; empty where the store had other data
	// before and no demo was loaded.
	Key     string
	keyFile string
	// operations are those whose examples the commands send.
	operations []httpapi.Descriptor
	caFile     string // empty without TLS of our own
}

// LoadDemo loads a small book into an empty store and makes a subscription for
// it, whose key it keeps in demo.key in the data folder, readable only by its
// owner: the same commands work again after a restart. A store that has data
// of its own is left as it is.
func (a *App) LoadDemo(ctx context.Context) (Demo, error) {
	if err := a.usable(ctx); err != nil {
		return Demo{}, err
	}
	if audit.Actor(ctx) == (audit.Who{}) {
		host, _ := os.Hostname() // empty if the system has none
		ctx = audit.By(ctx, audit.Who{Actor: "bankingapi", Origin: host})
	}
	acts := a.options.acts()
	demo := a.demo("", filepath.Join(a.store.DataFolder, "demo.key"))
	known, err := a.manager.List(ctx)
	if err != nil {
		return Demo{}, fault.Explain(err)
	}
	empty, err := a.store.Backoffice.Book.IsEmpty(ctx)
	if err != nil {
		return Demo{}, fault.Explain(err)
	}
	if empty && len(known) == 0 {
		if err := a.office.Importer.LoadDemo(acts.Begin(ctx, "demo.load", "", "")); err != nil {
			return Demo{}, fault.Explain(err)
		}
		primary, _, err := a.manager.Create(acts.Begin(ctx, "subscription.create", demoName, "demo"), subscription.Subscription{Name: demoName})
		if err == nil {
			demo.Key = primary.Reveal()
			return demo, keepKey(demo.keyFile, demo.Key)
		}
		if !errors.Is(err, subscriptions.ErrNameTaken) { // another replica was first
			return Demo{}, fault.Explain(err)
		}
	}
	kept, err := os.ReadFile(demo.keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return a.renewDemoKey(ctx, demo)
	}
	demo.Key = strings.TrimSpace(string(kept))
	return demo, err
}

// demo is the guide to a service with that key.
func (a *App) demo(key, keyFile string) Demo {
	d := Demo{Key: key, keyFile: keyFile, operations: a.operations}
	if a.settings.TLS.Mode == TLSSelfSigned {
		d.caFile = tlsOptions(a.settings, a.store.DataFolder, a.options, a.observer.logger).CertFile
	}
	return d
}

// renewDemoKey makes a new key where the file with the old one was lost, and
// none where there is no demo.
func (a *App) renewDemoKey(ctx context.Context, demo Demo) (Demo, error) {
	key, err := a.manager.Regenerate(ctx, demoName, subscription.Primary)
	if errors.Is(err, subscriptions.ErrNotFound) {
		return demo, nil
	}
	if err != nil {
		return demo, fault.Explain(err)
	}
	demo.Key = key.Reveal()
	return demo, keepKey(demo.keyFile, demo.Key)
}

// keepKey writes a key to a file that only its owner can read.
func keepKey(file, key string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("keep the key: %w", err)
	}
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		return fmt.Errorf("keep the key: %w", err)
	}
	return nil
}

// Commands returns a curl command, in one line, for each operation that has an
// example. They work as they are in the folder where the service was started.
func (d Demo) Commands(url string) []string {
	var commands []string
	for _, each := range d.operations {
		if each.ExampleRequest() == "" {
			continue
		}
		ca := ""
		if d.caFile != "" {
			ca = "--cacert " + quote(d.caFile) + " "
		}
		commands = append(commands, fmt.Sprintf(`curl %s%s%s -H "Ocp-Apim-Subscription-Key: $(cat %s)" -H 'Content-Type: application/json' -d '%s'`,
			ca, url, httpapi.Path(each.OperationName()), quote(d.keyFile), each.ExampleRequest()))
	}
	return commands
}

// quote is a path as one word for a shell, also inside double quotes.
func quote(path string) string {
	plain := strings.IndexFunc(path, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-:", r))
	}) < 0
	if plain {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
