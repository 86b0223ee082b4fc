package command

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"bankingapi/domain/audit"
	"bankingapi/test/kit/golden"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestHelpOfEveryCommand(t *testing.T) {
	t.Parallel()
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())
		t.Run(strings.Join(path, "-"), func(t *testing.T) {
			t.Parallel()
			got := bankingapi(t, nil, append(path[1:], "--help")...)
			require.Zero(t, got.status)
			require.Empty(t, got.err)
			require.Contains(t, got.out, "Examples:\n  ")
			before, examples, _ := strings.Cut(got.out, "\nUsage:")
			_, flags, _ := strings.Cut(examples, "\nFlags:")
			for line := range strings.Lines(before + flags) {
				require.LessOrEqual(t, len(line), 81, line)
			}
			golden.Equal(t, "help-"+strings.Join(path, "-")+".txt", got.out)

			byName := bankingapi(t, nil, append([]string{"help"}, path[1:]...)...)
			require.Equal(t, got, byName)
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	root := program{}.root()
	root.InitDefaultHelpCmd()
	visit(root)
}

// The audit names an act by the words of its command, so that a person who knows the command finds
// the act.
func TestActionsAreCommands(t *testing.T) {
	t.Parallel()
	others := []string{audit.RulesBegin, audit.CopyTo, audit.CopyFrom, audit.CopyTakeBack, audit.DemoLoad}
	for _, action := range audit.Actions() {
		group, _, _ := strings.Cut(action, ".")
		if group == "command" || group == "console" || slices.Contains(others, action) {
			continue
		}
		words := strings.Split(action, ".")
		if group == "import" {
			words = words[:1] // the other word is an argument
		}
		found, rest, err := program{}.root().Find(words)
		require.NoError(t, err, action)
		require.Empty(t, rest, action)
		require.True(t, found.Runnable(), action)
	}
	misspelt := bankingapi(t, nil, "export", "audit", "--action", "subscription.create")
	require.Equal(t, 2, misspelt.status)
	require.Contains(t, misspelt.err, "--action: there is no action subscription.create: did you mean subscriptions.create?")
	require.Contains(t, bankingapi(t, nil, "__complete", "export", "audit", "--action", "sales").out, "sales.reverse\n")
}

func TestHelpWithoutACommand(t *testing.T) {
	t.Parallel()
	require.Equal(t, bankingapi(t, nil, "--help"), bankingapi(t, nil))
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ args, want string }{
		{"nonsense", `unknown command "nonsense"; see 'bankingapi --help'`},
		{"confg", `unknown command "confg" (did you mean config?); see 'bankingapi --help'`},
		{"confg --check", `unknown command "confg" (did you mean config?); see 'bankingapi --help'`},
		{"help confg", `unknown command "confg" (did you mean config?); see 'bankingapi help --help'`},
		{"confg --help", `unknown command "confg" (did you mean config?); see 'bankingapi --help'`},
		{"subscriptions creat -h", `unknown command "creat" (did you mean create?); see 'bankingapi subscriptions --help'`},
		{"-- config", `unknown command "config"; see 'bankingapi --help'`},
		{"-help", `unknown flag -help (did you mean --help?); see 'bankingapi --help'`},
		{"verify -report x", `unknown flag -report (did you mean --report?); see 'bankingapi verify --help'`},
		{"config -http.address=x", `unknown flag -http.address (did you mean --http.address?); see 'bankingapi config --help'`},
		{"config -x", `unknown flag -x; see 'bankingapi config --help'`},
		{"verify --r", `unknown flag: --r; see 'bankingapi verify --help'`},
		{"config extra", `unexpected argument "extra"; see 'bankingapi config --help'`},
		{"config --no-such", `unknown flag: --no-such; see 'bankingapi config --help'`},
		{"config --http.adress=x", `unknown flag --http.adress (did you mean --http.address?); see 'bankingapi config --help'`},
		{"config --check=perhaps", `--check: the value must be of type bool; see 'bankingapi config --help'`},
		{"config --log.level", `flag needs an argument: --log.level; see 'bankingapi config --help'`},
		{"completion", `the shell is missing; see 'bankingapi completion --help'`},
		{"completion tcsh", `no completion for the shell "tcsh": want bash, zsh, fish or powershell; see 'bankingapi completion --help'`},
		{"healthcheck --ops.address=", `ops.address is empty: set it, or use --url; see 'bankingapi healthcheck --help'`},
		{"healthcheck --ops.address=127.0.0.1:0", `ops.address has port 0, so the actual port is unknown: set a port, or use --url; see 'bankingapi healthcheck --help'`},
		{"healthcheck --url nowhere", `--url must be an address like http://127.0.0.1:9464/readyz; see 'bankingapi healthcheck --help'`},

		{"subscriptions", `a command is missing: activate, cancel, change, create, list, regenerate, show, suspend; see 'bankingapi subscriptions --help'`},
		{"subscriptions make x", `unknown command "make"; see 'bankingapi subscriptions --help'`},
		{"subscriptions creat x --rate 1", `unknown command "creat" (did you mean create?); see 'bankingapi subscriptions --help'`},
		{"subscriptions create", `NAME is missing; see 'bankingapi subscriptions create --help'`},
		{"subscriptions create a b", `unexpected argument "b"; see 'bankingapi subscriptions create --help'`},
		{"subscriptions create a --rate -1", `--rate must be 1 or more, or 0 for no limit; see 'bankingapi subscriptions create --help'`},
		{"subscriptions create a --rate many", `--rate: the value must be of type int; see 'bankingapi subscriptions create --help'`},
		{"subscriptions create a --operation Pay", `--operation must be AddPushNotificationResponse or BuyFundFromCustomer; see 'bankingapi subscriptions create --help'`},
		{"subscriptions regenerate a", `primary or secondary is missing; see 'bankingapi subscriptions regenerate --help'`},
		{"subscriptions regenerate a third", `unknown key "third": want primary or secondary; see 'bankingapi subscriptions regenerate --help'`},
		{"subscriptions cancel", `NAME is missing; see 'bankingapi subscriptions cancel --help'`},
		{"migrate", `a command is missing: status, up; see 'bankingapi migrate --help'`},
		{"migrate sideways", `unknown command "sideways"; see 'bankingapi migrate --help'`},
		{"import", `what to import and FILE are missing; see 'bankingapi import --help'`},
		{"import prices", `FILE is missing; see 'bankingapi import --help'`},
		{"import sales x.csv", `cannot import "sales": want prices, holdings, accounts, calendar; see 'bankingapi import --help'`},
		{"export", `what to export is missing; see 'bankingapi export --help'`},
		{"export keys", `cannot export "keys": want prices, holdings, accounts, calendar, sales, postings, notifications, operations, outcomes, requests, audit; see 'bankingapi export --help'`},
		{"export sales --format xml", `--format must be csv, json, ndjson or excel; see 'bankingapi export --help'`},
		{"export sales --user u", `--user does not filter sales; see 'bankingapi export --help'`},
		{"export holdings --since 2026-11-20", `--since does not filter holdings; see 'bankingapi export --help'`},
		{"export notifications --customer 1", `--customer does not filter notifications; see 'bankingapi export --help'`},
		{"export postings --state failed", `--state does not filter postings; see 'bankingapi export --help'`},
		{"export audit --customer 1 --object shop", `use --customer or --object, not both; see 'bankingapi export --help'`},
		{"export requests --customer 1", `--customer does not filter requests; see 'bankingapi export --help'`},
		{"prices list --day tomorrow", `--day must be a day like 2026-12-04; see 'bankingapi prices list --help'`},
		{"export sales --customer 0", `--customer must be greater than 0; see 'bankingapi export --help'`},
		{"export sales --customer 0x10", `--customer: the value must be of type int; see 'bankingapi export --help'`},
		{"export sales --customer 1 --customer 2", `--customer is given twice; see 'bankingapi export --help'`},
		{"config --config a.yaml --config b.yaml", `--config is given twice; see 'bankingapi config --help'`},
		{"config --config=", `--config has no value; see 'bankingapi config --help'`},
		{"export sales --subscription=", `--subscription has no value; see 'bankingapi export --help'`},
		{"export sales --price-id 0", `--price-id must be greater than 0; see 'bankingapi export --help'`},
		{"export sales --since 2026-11-20 --until 2026-11-01", `the period from --since to --until is empty; see 'bankingapi export --help'`},
		{"export sales --due-since 2026-11-20 --due-until 2026-11-19", `the period from --due-since to --due-until is empty; see 'bankingapi export --help'`},
		{"show customer 1 --since 2026-11-20 --at 2026-11-01", `the period from --since to --at is empty; see 'bankingapi show customer --help'`},
		{"show customer -5", `-5 is read as a flag: no argument is a negative number; see 'bankingapi show customer --help'`},
		{"rules chnage", `unknown command "chnage" (did you mean change?); see 'bankingapi rules --help'`},
		{"subscriptions list --format json --format text", `--format is given twice; see 'bankingapi subscriptions list --help'`},
		{"settle --as=", `--as has no value; see 'bankingapi settle --help'`},
		{"adjust account --customer 1 --branch 010 --suffix 0x1 --currency TRY --by 1 --reason r", `--suffix: the value must be of type int; see 'bankingapi adjust account --help'`},
		{"export sales --state done", `--state must be recorded, completed or failed; see 'bankingapi export --help'`},
		{"import prices x.csv --as-of 2026-11-20", `--as-of is for holdings and accounts; see 'bankingapi import --help'`},
		{"export sales --since 2026-02-29", `--since must be a day like 2026-11-20, or a time like 2026-11-20T09:30:00+03:00; see 'bankingapi export --help'`},
		{"export sales --until tomorrow", `--until must be a day like 2026-11-20, or a time like 2026-11-20T09:30:00+03:00; see 'bankingapi export --help'`},
		{"serve now", `unexpected argument "now"; see 'bankingapi serve --help'`},
		{"settle now", `unexpected argument "now"; see 'bankingapi settle --help'`},
		{"show operation zzz", `"zzz" is no ID of an operation; see 'bankingapi show operation --help'`},
		{"sales cancel x --reason r", `"x" is no ID of an operation; see 'bankingapi sales cancel --help'`},
		{"verify --against no-such-file", `--against: open no-such-file: ` + syscall.ENOENT.Error() + `; see 'bankingapi verify --help'`},
		{"verify now", `unexpected argument "now"; see 'bankingapi verify --help'`},
		{"openapi --version 2.0", `unknown OpenAPI version "2.0": use 3.0 or 3.1; see 'bankingapi openapi --help'`},
		{"openapi --server bank.example", `the server must be an http or https URL without a user, blanks and a query, like https://bank.example; see 'bankingapi openapi --help'`},
		{"openapi --server https://user:secret@bank.example", `the server must be an http or https URL without a user, blanks and a query, like https://bank.example; see 'bankingapi openapi --help'`},
		{"openapi now", `unexpected argument "now"; see 'bankingapi openapi --help'`},
	} {
		t.Run(test.args, func(t *testing.T) {
			t.Parallel()
			got := bankingapi(t, nil, strings.Fields(test.args)...)
			require.Equal(t, outcome{2, "", "bankingapi: " + test.want + "\n"}, got)
		})
	}
}

// These need a book before they see that they are used wrongly.
func TestWrongUseOfABook(t *testing.T) {
	t.Parallel()
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + filepath.Join(t.TempDir(), "bank.db")}
	require.Zero(t, bankingapi(t, environment, "migrate", "up").status)
	for args, want := range map[string]string{
		"adjust account --branch 1 --customer 1 --suffix 1 --currency TRY --by 0 --reason r":       `"0" is no amount of TRY: it must not be 0, and may have 2 decimals and at most 2^63-1 minor units`,
		"adjust account --branch 1 --customer 1 --suffix 1 --currency TRY --by 1e5 --reason r":     `"1e5" has an exponent: write all digits`,
		"adjust account --branch 1 --customer 1 --suffix 1 --currency TRY --by 12,50 --reason r":   `"12,50" has a comma: write a point before the decimals`,
		"adjust account --branch 1 --customer 1 --suffix 1 --currency XXX --by 1 --reason r":       "CurrencyCode: Must be an active ISO 4217 code in capital letters; see",
		"adjust holding --customer 1 --fund AFA --holder H --by 1.1234567 --reason r":              `"1.1234567" is no number of units: it must not be 0, and may have 6 decimals and be at most 10^12`,
		"adjust holding --customer 1 --fund AFA --holder H --by 1.23457E+11 --reason r":            `"1.23457E+11" has an exponent: write all digits`,
		"subscriptions create " + strings.Repeat("x", 201):                                         "/Name: ",
		"subscriptions create a --channel " + strings.Repeat("x", 201) + " --client-certificate z": "/Channel: ",
	} {
		got := bankingapi(t, environment, strings.Fields(args)...)
		require.Equal(t, 2, got.status, got.err)
		require.Contains(t, got.err, want)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		got := bankingapi(t, nil, "completion", shell)
		require.Zero(t, got.status)
		require.Contains(t, got.out, "bankingapi")
	}
	for args, want := range map[string]string{
		"comp":                                   "completion\t",
		"completion z":                           "zsh",
		"config --tls.mode s":                    "self-signed",
		"config --storage.dri":                   "--storage.driver",
		"config --storage.driver ":               "postgres",
		"subscriptions create a --operation Buy": "BuyFundFromCustomer",
		"subscriptions change a --operation Add": "AddPushNotificationResponse",
		"subscriptions regenerate a p":           "primary",
		"import h":                               "holdings",
		"export s":                               "sales",
		"export sales --state f":                 "failed",
		"export sales --state failed --si":       "--since",
		"settle --as me --dry-run --da":          "--day",
		"help conf":                              "config\t",
		"rules change --clo":                     "--closed-weekdays\tdays of the week on which the bank is closed, like Saturday,Sunday",
	} {
		got := bankingapi(t, nil, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		require.Contains(t, "\n"+got.out, "\n"+want, args)
		require.NotContains(t, got.out, "__complete", args)
		require.NotContains(t, got.out, "`", args)
	}
}
