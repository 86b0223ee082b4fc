// Package guide helps a person to try a service for the first time: it keeps a
// subscription key in a file, and has commands that use it.
package guide

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bankingapi/application/subscriptions"
	"bankingapi/domain/subscription"
)

// Guide has instructions for trying the service for the first time.
type Guide struct {
	// Key opens the subscription; empty if there is none to try.
	Key string
	// KeyFile has the key.
	KeyFile string
	// CAFile is the certificate of the service if it made its own.
	CAFile string
	// Examples are the requests of the commands.
	Examples []Example
}

// Example is a request that works.
type Example struct{ Path, Body string }

// Commands returns a curl command, in one line, for each example. They work as
// they are in the folder where the service was started.
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

// ReadKey returns the key in the file, or nothing if there is no file.
func (g *Guide) ReadKey() error {
	kept, err := os.ReadFile(g.KeyFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the key: %w", err)
	}
	g.Key = strings.TrimSpace(string(kept))
	return nil
}

// Create makes a subscription and keeps its key in the file, which only its owner
// can read. The error is subscriptions.ErrNameTaken if there is one.
func (g *Guide) Create(ctx context.Context, m *subscriptions.Manager, name string) error {
	key, _, err := m.Create(ctx, subscription.Subscription{Name: name})
	if err != nil {
		return err
	}
	return g.keep(key)
}

// Renew replaces the primary key of a subscription and keeps it in the file.
func (g *Guide) Renew(ctx context.Context, m *subscriptions.Manager, name string) error {
	key, err := m.Regenerate(ctx, name, subscription.Primary)
	if err != nil {
		return err
	}
	return g.keep(key)
}

func (g *Guide) keep(key subscription.Key) error {
	err := os.MkdirAll(filepath.Dir(g.KeyFile), 0o700)
	if err == nil {
		err = os.WriteFile(g.KeyFile, []byte(key.Reveal()+"\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the key: %w", err)
	}
	g.Key = key.Reveal()
	return nil
}
