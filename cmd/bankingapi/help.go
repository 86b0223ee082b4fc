package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is where help wraps: an 80 column terminal would break every
// setting in two.
const helpWidth = 100

// What the help of a command says about settings: nothing, where to read, or
// all of them.
const (
	settingsHelp     = "settings"
	settingsAreKnown = "mention"
	settingsInFull   = "full"
)

func mentionSettings() map[string]string { return map[string]string{settingsHelp: settingsAreKnown} }
func listSettings() map[string]string    { return map[string]string{settingsHelp: settingsInFull} }

// help prints the help of a command in the order people need it: what it is
// for, how it is called, an example, the rest.
func help(cmd *cobra.Command, _ []string) {
	cmd.InitDefaultHelpFlag() // cobra does so only on some roads to here
	out := cmd.OutOrStdout()
	description := cmd.Long
	if description == "" {
		description = cmd.Short + "."
	}
	fmt.Fprintf(out, "%s\n\nUsage:\n  %s\n", strings.TrimSpace(description), cmd.UseLine())
	if cmd.Example != "" {
		fmt.Fprintf(out, "\nExamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprint(out, "\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(out, "  %-*s  %s\n", cmd.Commands()[0].NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	own, settings := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	settings.SortFlags = false
	usesSettings := !cmd.HasParent() || cmd.Annotations[settingsHelp] != ""
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if !isSetting(flag) {
			own.AddFlag(flag)
		}
	})
	cmd.Root().PersistentFlags().SortFlags = false
	cmd.Root().PersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if isSetting(flag) {
			settings.AddFlag(flag)
		} else if usesSettings && own.Lookup(flag.Name) == nil {
			own.AddFlag(flag)
		}
	})
	printFlags(out, "Flags", own)
	switch {
	case cmd.Annotations[settingsHelp] == settingsInFull:
		printFlags(out, "Settings", settings)
		fmt.Fprint(out, `
A setting comes from its flag, else from its variable in the environment, else from the
--config file, else it is the default. The variable of http.address is
BANKINGAPI_HTTP__ADDRESS; a secret may be in a file that BANKINGAPI_STORAGE__DSN_FILE names.
`)
	case usesSettings:
		fmt.Fprint(out, "\nEvery setting is a flag too, like --http.address: see 'bankingapi config --help'.\n")
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(out, "\nMore about a command: '%s COMMAND --help'.\n", cmd.CommandPath())
	}
}

func printFlags(out io.Writer, title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		fmt.Fprintf(out, "\n%s:\n%s", title, flags.FlagUsagesWrapped(helpWidth))
	}
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]...",
		Short:   "Tell about a command",
		Example: "  bankingapi help subscriptions create",
		RunE: func(cmd *cobra.Command, args []string) error {
			subject := cmd.Root()
			for _, name := range args {
				next, _, err := subject.Find([]string{name})
				if err != nil || next == subject {
					return chooseCommand(subject, []string{name})
				}
				subject = next
			}
			return subject.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			subject, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, sub := range subject.Commands() {
				names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}
