package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bankingapi/bootstrap"
)

// helpWidth is the width of help texts. With 80 columns every setting would need
// two lines.
const helpWidth = 100

// listSettings marks a command whose help has all settings. That of other commands
// only mentions them.
func listSettings() map[string]string { return map[string]string{"settings": "all"} }

// usesSettings reports whether a command has the flags of settings, or all
// commands of a group.
func usesSettings(cmd *cobra.Command) bool {
	if !cmd.HasParent() || cmd.LocalFlags().Lookup(bootstrap.AllSettings()[0].Path) != nil {
		return true
	}
	return cmd.HasSubCommands() && !slices.ContainsFunc(cmd.Commands(), func(sub *cobra.Command) bool { return !usesSettings(sub) })
}

// help prints the help of a command: description, usage, examples, then commands,
// flags and settings.
func help(cmd *cobra.Command, _ []string) {
	cmd.InitDefaultHelpFlag() // cobra does this only in some cases
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
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if !isSetting(flag) {
			own.AddFlag(flag)
		}
	})
	if config := cmd.Flag("config"); usesSettings(cmd) && own.Lookup(config.Name) == nil {
		own.AddFlag(config)
	}
	printFlags(out, "Flags", own)
	switch {
	case cmd.Annotations != nil:
		settings.SortFlags = false
		for _, s := range bootstrap.AllSettings() {
			settings.AddFlag(cmd.Flags().Lookup(s.Path))
		}
		printFlags(out, "Settings", settings)
		fmt.Fprint(out, `
A flag overrides the environment variable, the variable overrides the --config file, and the file
overrides the default. The variable of http.address is BANKINGAPI_HTTP__ADDRESS. A secret may also
come from a file: set BANKINGAPI_STORAGE__DSN_FILE to its name. Without --config, the file is the one
that BANKINGAPI_CONFIG names, otherwise /etc/bankingapi/bankingapi.yaml if it exists.
`)
	case usesSettings(cmd):
		fmt.Fprint(out, "\nEvery setting is also a flag, for example --http.address: see 'bankingapi config --help'.\n")
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(out, "\nFor details: '%s COMMAND --help'.\n", cmd.CommandPath())
	}
}

func printFlags(out io.Writer, title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		fmt.Fprintf(out, "\n%s:\n%s", title, flags.FlagUsagesWrapped(helpWidth))
	}
}

// addHelp makes the help of cobra a command like the others.
func addHelp(root *cobra.Command) {
	root.SetHelpFunc(help)
	root.InitDefaultHelpCmd()
	cmd, _, _ := root.Find([]string{"help"})
	cmd.Use, cmd.Short, cmd.Long, cmd.Example = "help [COMMAND]...", "Show help for a command", "", "  bankingapi help subscriptions create"
	cmd.Run = nil
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		subject := cmd.Root()
		for _, name := range args {
			next, _, err := subject.Find([]string{name})
			if err != nil || next == subject {
				return chooseCommand(subject, []string{name})
			}
			subject = next
		}
		return subject.Help()
	}
}
