// Package guide helps a person to try a service for the first time. It keeps a subscription key
// in a file, and has commands that use the key.
package guide

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"bankingapi/application/backoffice"
	"bankingapi/application/owner"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/audit"
	"bankingapi/domain/subscription"
)

// Guide has instructions for trying the service for the first time.
type Guide struct {
	Key       string    // opens the subscription; empty if no subscription can be tried
	KeyFile   string    // has the key
	KeyPrefix string    // is the prefix of new keys
	Page      string    // where the documentation begins, below /docs; may be empty
	About     string    // what the service is; may be empty
	CAFile    string    // the certificate of the service if it made its own
	Examples  []Example // the requests of the commands
}

// Example is a request that works.
type Example struct{ Path, Body string }

// Commands returns a curl command, in one line, for each example. The commands work unchanged
// in the folder where the service was started.
func (g Guide) Commands(url string) []string {
	var commands []string
	for _, each := range g.Examples {
		ca := ""
		if g.CAFile != "" {
			ca = "--cacert " + quote(g.CAFile) + " "
		}
		commands = append(commands, fmt.Sprintf(`curl %s%s%s -H "Ocp-Apim-Subscription-Key: $(cat %s)" -H 'Content-Type: application/json' -d '%s'`,
			ca, url, each.Path, quote(g.KeyFile), each.Body))
	}
	return commands
}

var plain = regexp.MustCompile(`^[a-zA-Z0-9/._:-]*$`)

// quote returns a path as one word for a shell, also inside double quotes.
func quote(path string) string {
	if plain.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// demo is the subscription of the demo book.
const demo = "demo"

// LoadBook loads the demo book into an empty store and makes its subscription. If the store has
// data already, it reads the key in the file, or renews it if the store has the subscription.
func (g *Guide) LoadBook(ctx context.Context, office *backoffice.Office, m *subscriptions.Manager, acts audit.Acts) error {
	if audit.Actor(ctx) == (audit.Who{}) {
		host, _ := os.Hostname() // empty if the system has none
		ctx = audit.By(ctx, audit.Who{Actor: "bankingapi", Origin: host})
	}
	known, err := m.List(ctx)
	if err != nil {
		return err
	}
	empty, err := backoffice.IsEmpty(ctx, office.Reader)
	if err != nil {
		return err
	}
	if empty && len(known) == 0 {
		if err := office.LoadDemo(acts.Begin(ctx, audit.DemoLoad, "", ""), office.Today()); err != nil {
			return err
		}
		err := g.create(acts.Begin(ctx, audit.SubscriptionsCreate, demo, "demo"), m, demo)
		if !errors.Is(err, subscriptions.ErrNameTaken) { // another replica was first
			return err
		}
	}
	if err := g.readKey(); err != nil || g.Key != "" {
		return err
	}
	if err := g.keep(m.Regenerate(ctx, demo, subscription.Primary)); !errors.Is(err, subscriptions.ErrNotFound) {
		return err
	}
	return nil
}

// KeepKey reads the key in the file. If it opens no subscription, as find says,
// KeepKey makes the subscription, or renews its key.
func (g *Guide) KeepKey(ctx context.Context, m *subscriptions.Manager, find func(ctx context.Context, key string) (*subscription.Subscription, error), name string) error {
	if err := g.readKey(); err != nil {
		return err
	}
	if g.Key != "" {
		if found, err := find(ctx, strings.TrimPrefix(g.Key, g.KeyPrefix)); err != nil || found != nil {
			return err
		}
	}
	err := g.create(ctx, m, name)
	if errors.Is(err, subscriptions.ErrNameTaken) {
		err = g.keep(m.Regenerate(ctx, name, subscription.Primary))
	}
	return err
}

// readKey reads the key. It reads nothing if the file does not exist.
func (g *Guide) readKey() error {
	kept, err := os.ReadFile(g.KeyFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the key: %w", err)
	}
	g.Key = strings.TrimSpace(string(kept))
	return nil
}

// create makes a subscription. The error is subscriptions.ErrNameTaken if the name exists.
func (g *Guide) create(ctx context.Context, m *subscriptions.Manager, name string) error {
	key, _, err := m.Create(ctx, subscription.Subscription{Name: name})
	return g.keep(key, err)
}

// keep writes a key to the file, readable only by its owner, unless making it failed.
func (g *Guide) keep(key subscription.Key, err error) error {
	if err != nil {
		return err
	}
	g.Key = g.KeyPrefix + key.Reveal()
	if err := g.write(); err != nil {
		return fmt.Errorf("keep the key: %w", err)
	}
	return nil
}

func (g *Guide) write() error {
	if err := owner.MakeFolder(filepath.Dir(g.KeyFile)); err != nil {
		return err
	}
	file, err := owner.Create(g.KeyFile, os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(g.Key + "\n")
	return errors.Join(err, file.Close())
}
