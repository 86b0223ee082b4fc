package command

import (
	_ "embed" // help.txt
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bankingapi/bootstrap"
)

// helpWidth is the width of help texts, but for examples.
const helpWidth = 80

// texts are those of all commands. A command begins with # and its path. Then come the
// usage, a summary, a description and examples.
//
//go:embed help.txt
var texts string

// described returns a command with its texts. It takes the arguments of its usage:
// [NAME] is optional, and a|b is one of the words.
func described(path string) *cobra.Command {
	_, text, _ := strings.Cut("\n"+texts, "\n# "+path+"\n")
	text, _, _ = strings.Cut(text, "\n# ")
	text, examples, _ := strings.Cut(text, "\nExamples:\n")
	use, text, _ := strings.Cut(text, "\n")
	short, long, _ := strings.Cut(text, "\n")
	wanted := strings.Fields(use)[1:]
	return &cobra.Command{
		Use: use, Short: short, Long: strings.TrimSpace(long), Example: strings.TrimRight(examples, "\n"),
		Args: func(_ *cobra.Command, args []string) error { return checkArguments(wanted, args) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) >= len(wanted) {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			if word := wanted[len(args)]; strings.Contains(word, "|") {
				return strings.Split(word, "|"), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
}

func checkArguments(wanted, args []string) error {
	if len(args) > len(wanted) {
		return wrongUsef("unexpected argument %q", args[len(wanted)])
	}
	var missing []string
	for i, word := range wanted {
		choices := strings.Split(word, "|")
		switch {
		case i >= len(args) && word[0] != '[':
			missing = append(missing, word)
		case i < len(args) && len(choices) > 1 && !slices.Contains(choices, args[i]):
			return wrongUsef("unknown argument %q: want %s", args[i], either(choices))
		}
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return wrongUsef("%s is missing", missing[0])
	}
	return wrongUsef("%s are missing", strings.Join(missing, " and "))
}

// listSettings marks a command whose help has all settings. That of other commands
// only mentions them.
func listSettings(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{"settings": "all"}
	return cmd
}

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
A flag overrides the environment variable, the variable overrides the --config
file, and the file overrides the default. The variable of http.address is
BANKINGAPI_HTTP__ADDRESS. A secret may also come from a file: set
BANKINGAPI_STORAGE__DSN_FILE to its name. Without --config, the file is the one
that BANKINGAPI_CONFIG names, otherwise /etc/bankingapi/bankingapi.yaml if it
exists.
`)
	case usesSettings(cmd):
		fmt.Fprint(out, "\nEvery setting is a flag, like --http.address: see 'bankingapi config --help'.\n")
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

// helpCommand is the help of cobra as a command like the others.
func helpCommand(program) *cobra.Command {
	cmd := described("help")
	cmd.Args = cobra.ArbitraryArgs
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
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		if subject, _, err := cmd.Root().Find(args); err == nil {
			for _, sub := range subject.Commands() {
				names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

func completionCommand(p program) *cobra.Command {
	return p.plain(described("completion"), func(c *call) error {
		root := c.Root()
		return map[string]func(io.Writer) error{
			"bash":       func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
			"zsh":        root.GenZshCompletion,
			"fish":       func(w io.Writer) error { return root.GenFishCompletion(w, true) },
			"powershell": root.GenPowerShellCompletionWithDesc,
		}[c.args[0]](c.OutOrStdout())
	})
}
