package bootstrap

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bankingapi/application/subscriptions"
	"bankingapi/domain/subscription"
)

//go:embed demo/*.csv
var demoBook embed.FS

// demoName is the subscription of the demo.
const demoName = "demo"

// Demo is what somebody needs who tries the service for the first time.
type Demo struct {
	// Key opens the subscription "demo"; empty where the store had other data
	// before and no demo was loaded.
	Key     string
	keyFile string
	caFile  string // empty without TLS of our own
}

// LoadDemo loads a small book into an empty store and makes a subscription for
// it, whose key it keeps in demo.key in the data folder, readable only by its
// owner: the same commands work again after a restart. A store that has data
// of its own is left as it is.
func (a *App) LoadDemo(ctx context.Context) (Demo, error) {
	if err := a.usable(ctx); err != nil {
		return Demo{}, err
	}
	demo := Demo{keyFile: filepath.Join(dataFolder(a.settings), "demo.key")}
	if a.settings.TLS.Mode == TLSSelfSigned {
		demo.caFile = tlsOptions(a.settings, a.options, a.observer.logger).CertFile
	}
	known, err := a.manager().List(ctx)
	if err != nil {
		return Demo{}, explain(err)
	}
	empty, err := a.store.IsEmpty(ctx)
	if err != nil {
		return Demo{}, explain(err)
	}
	if empty && len(known) == 0 {
		if err := a.loadDemoBook(ctx); err != nil {
			return Demo{}, err
		}
		primary, _, err := a.manager().Create(ctx, subscription.Subscription{Name: demoName})
		if err == nil {
			demo.Key = primary.Reveal()
			return demo, demo.keepKey()
		}
		if !errors.Is(err, subscriptions.ErrNameTaken) { // another replica was first
			return Demo{}, explain(err)
		}
	}
	kept, err := os.ReadFile(demo.keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return a.renewDemoKey(ctx, demo)
	}
	demo.Key = strings.TrimSpace(string(kept))
	return demo, err
}

// renewDemoKey makes a new key where the file with the old one was lost, and
// none where there is no demo.
func (a *App) renewDemoKey(ctx context.Context, demo Demo) (Demo, error) {
	key, err := a.manager().Regenerate(ctx, demoName, subscription.Primary)
	if errors.Is(err, subscriptions.ErrNotFound) {
		return demo, nil
	}
	if err != nil {
		return demo, explain(err)
	}
	demo.Key = key.Reveal()
	return demo, demo.keepKey()
}

func (d Demo) keepKey() error {
	if err := os.MkdirAll(filepath.Dir(d.keyFile), 0o700); err != nil {
		return fmt.Errorf("keep the demo's key: %w", err)
	}
	if err := os.WriteFile(d.keyFile, []byte(d.Key+"\n"), 0o600); err != nil {
		return fmt.Errorf("keep the demo's key: %w", err)
	}
	return nil
}

func (a *App) loadDemoBook(ctx context.Context) error {
	for _, kind := range []string{"prices", "holdings", "accounts"} {
		file, err := demoBook.Open("demo/" + kind + ".csv")
		if err != nil {
			return err
		}
		if _, err := a.Import(ctx, kind, file, ImportWatch{}); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

// demoRequests are the bodies of the two commands.
var demoRequests = []struct{ operation, body string }{
	{"AddPushNotificationResponse", `{"Header":{},"Parameters":[{"ExternalApplicationCode":"MOBILE","UserId":"user-1","PushId":"push-1","Platform":65,"Subject":"Hello","Content":"Your order was carried out.","SendStatus":1,"SendDate":"2026-11-20"}]}`},
	{"BuyFundFromCustomer", `{"Header":{"CallerId":"demo-sale-1"},"Parameters":[{"CustomerNo":1001,"TransactionType":2,"FundAmount":12.5,"DestinationAccount":{"BranchCode":1,"CustomerNo":1001,"AccountSuffix":1,"CurrencyCode":"TRY"},"FundToProcess":{"IMKBCode":"AFA","HolderCorporationName":"Demo Portfoy","PriceID":1}}]}`},
}

// Commands are two curl commands, one line each, that work as they stand in
// the folder where the service was started.
func (d Demo) Commands(url string) []string {
	commands := make([]string, len(demoRequests))
	for i, r := range demoRequests {
		ca := ""
		if d.caFile != "" {
			ca = "--cacert " + quote(d.caFile) + " "
		}
		commands[i] = fmt.Sprintf(`curl %s%s/BankingApiV01/%s -H "Ocp-Apim-Subscription-Key: $(cat %s)" -H 'Content-Type: application/json' -d '%s'`,
			ca, url, r.operation, quote(d.keyFile), r.body)
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
