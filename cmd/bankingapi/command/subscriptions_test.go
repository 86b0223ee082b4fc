package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/golden"
)

func TestSubscriptionsTable(t *testing.T) {
	t.Parallel()
	list := []listed{
		listedSubscription(&subscription.Subscription{Name: "mobile-app", State: "active", Operations: operation.AllNames()}),
		listedSubscription(&subscription.Subscription{
			Name: "branch office", State: "suspended", Operations: []string{"BuyFundFromCustomer", "RecordConsent"},
			RequestsPerSecond: 20, Channel: "BRANCH", TellerName: "A \t\"B\"",
			PrimaryKey: subscription.KeyLife{Created: time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)},
		}),
	}
	for format, file := range map[string]string{"text": "subscriptions.txt", "json": "subscriptions.json"} {
		var out strings.Builder
		c := &call{cmd: new(cobra.Command), settings: bootstrap.DefaultSettings(), format: format}
		c.cmd.SetOut(&out)
		require.NoError(t, c.write("subscriptions", list))
		golden.Equal(t, file, out.String())
	}
}

// The audit says what changed, and why.
func TestTheAuditSaysWhatChanged(t *testing.T) {
	t.Parallel()
	book := filepath.Join(t.TempDir(), "bank.db")
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + book}
	for _, command := range [][]string{
		{"migrate", "up"},
		{"subscriptions", "create", "shop", "--rate", "20", "--operation", "BuyFundFromCustomer", "--reason", "contract 7"},
		{"subscriptions", "change", "shop", "--rate", "0", "--expires", "2999-12-31"},
		{"subscriptions", "suspend", "shop", "--reason", "key was leaked"},
		{"subscriptions", "regenerate", "shop", "primary", "--reason", "key was leaked"},
	} {
		got := bankingapi(t, environment, command...)
		require.Zero(t, got.status, got.err)
	}
	again := bankingapi(t, environment, "subscriptions", "change", "shop", "--rate", "0", "--expires", "2999-12-31", "--reason", "twice")
	require.Equal(t, outcome{0, "", "shop is as it was: it has these values already.\n"}, again)
	require.Contains(t, bankingapi(t, environment, "__complete", "subscriptions", "suspend", "").out, "shop\n")
	require.Contains(t, bankingapi(t, nil, "__complete", "subscriptions", "suspend", "--storage.dsn", book, "").out, "shop\n")
	require.Contains(t, bankingapi(t, environment, "__complete", "subscriptions", "regenerate", "shop", "p").out, "primary\n")
	only := bankingapi(t, environment, "export", "audit", "--action", "subscriptions.suspend", "--object", "shop")
	require.Equal(t, 2, strings.Count(only.out, "\n"), only)
	audit := bankingapi(t, environment, "export", "audit").out
	require.Contains(t, audit, `subscriptions.create,shop,contract 7,rate limit 20/s; may call BuyFundFromCustomer`)
	require.Contains(t, audit, `subscriptions.change,shop,,rate limit none instead of 20/s; last day of the keys 2999-12-31 instead of never`)
	require.Contains(t, audit, `subscriptions.suspend,shop,key was leaked,`)
	require.NotContains(t, audit, "twice", "what changes nothing has no act")
	require.Contains(t, audit, `subscriptions.regenerate,shop,key was leaked,primary`)
}

// A Tab after the name of a command that changes a subscription makes no book.
func TestCompletionChangesNothing(t *testing.T) {
	t.Parallel()
	book := filepath.Join(t.TempDir(), "bank.db")
	require.NoError(t, os.WriteFile(book, nil, 0o600))
	bankingapi(t, []string{"BANKINGAPI_STORAGE__DSN=" + book}, "__complete", "subscriptions", "change", "")
	file, err := os.Stat(book)
	require.NoError(t, err)
	require.Zero(t, file.Size())
}

// Whoever leaves out --rate is told what that means. The keys stay alone on standard output.
func TestASubscriptionWithoutARateIsPointedOut(t *testing.T) {
	t.Parallel()
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + filepath.Join(t.TempDir(), "bank.db")}
	require.Zero(t, bankingapi(t, environment, "migrate", "up").status)
	unlimited := bankingapi(t, environment, "subscriptions", "create", "the shop")
	require.Zero(t, unlimited.status, unlimited.err)
	require.Contains(t, unlimited.err, "the shop may send any number of requests per second, because --rate is not set. "+
		`Limit it with 'bankingapi subscriptions change "the shop" --rate NUMBER'.`)
	require.Regexp(t, `^[0-9a-f]{32}\n[0-9a-f]{32}\n$`, unlimited.out)
	for _, rate := range []string{"20", "0"} {
		limited := bankingapi(t, environment, "subscriptions", "create", "shop-"+rate, "--rate", rate)
		require.Zero(t, limited.status, limited.err)
		require.NotContains(t, limited.err, "any number of requests")
	}
}
