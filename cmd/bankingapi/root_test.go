package main

import (
	"strings"
	"testing"

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
			golden(t, "help-"+strings.Join(path, "-")+".txt", got.out)

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
		{"config extra", `unexpected argument "extra"; see 'bankingapi config --help'`},
		{"config --no-such", `unknown flag: --no-such; see 'bankingapi config --help'`},
		{"config --http.adress=x", `unknown flag --http.adress (did you mean --http.address?); see 'bankingapi config --help'`},
		{"config --check=perhaps", `--check does not take this value: it must be of type bool; see 'bankingapi config --help'`},
		{"config --log.level", `flag needs an argument: --log.level; see 'bankingapi config --help'`},
		{"completion", `the shell is missing; see 'bankingapi completion --help'`},
		{"completion tcsh", `no completion for the shell "tcsh": bash, zsh, fish or powershell; see 'bankingapi completion --help'`},
		{"healthcheck --ops.address=", `ops.address is empty, so there is nobody to ask: set it, or give --url; see 'bankingapi healthcheck --help'`},
		{"healthcheck --ops.address=127.0.0.1:0", `ops.address has port 0, so the real port is not known here: set one, or give --url; see 'bankingapi healthcheck --help'`},
		{"healthcheck --url nowhere", `--url must be an address like http://127.0.0.1:9090/readyz; see 'bankingapi healthcheck --help'`},
	} {
		t.Run(test.args, func(t *testing.T) {
			t.Parallel()
			got := bankingapi(t, nil, strings.Fields(test.args)...)
			require.Equal(t, outcome{2, "", "bankingapi: " + test.want + "\n"}, got)
		})
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
		"comp":                     "completion\t",
		"completion z":             "zsh",
		"config --tls.mode s":      "self-signed",
		"config --storage.dri":     "--storage.driver",
		"config --storage.driver ": "postgres",
		"help conf":                "config\t",
	} {
		got := bankingapi(t, nil, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		require.Contains(t, "\n"+got.out, "\n"+want, args)
	}
}
