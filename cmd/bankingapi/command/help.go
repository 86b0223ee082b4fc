package command

import (
	_ "embed" // help.txt
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bankingapi/adapters/settings"
)

// helpWidth is the width of help texts, except examples.
const helpWidth = 80

// texts has the texts of all commands. A command begins with # and its path. Then follow the
// usage, a summary, a head of lines "name: text", a description and examples. Subcommands
// inherit the head. It has:
//
//	name         known, if the first argument is an existing subscription
//	missing      how messages call the argument that is one of a few words,
//	unknown      and what they say of another word
//	interrupted  what the command leaves behind if it is interrupted
//
//go:embed help.txt
var texts string

// described returns a command with its texts. The command accepts the arguments of its usage:
// [NAME] is optional, and a|b is one of the words.
func described(path string) *cobra.Command {
	_, text, _ := strings.Cut("\n"+texts, "\n# "+path+"\n")
	text, _, _ = strings.Cut(text, "\n# ")
	text, examples, _ := strings.Cut(text, "\nExamples:\n")
	head, long, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimRight(head, "\n"), "\n")
	cmd := &cobra.Command{
		Use: lines[0], Short: lines[1], Long: strings.TrimSpace(long), Example: strings.TrimRight(examples, "\n"),
		Annotations: map[string]string{},
	}
	for _, line := range lines[2:] {
		name, text, _ := strings.Cut(line, ": ")
		cmd.Annotations[name] = text
	}
	wanted := strings.Fields(lines[0])[1:]
	cmd.Args = func(cmd *cobra.Command, args []string) error { return checkArguments(cmd, wanted, args) }
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(wanted) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		word := wanted[len(args)]
		if strings.Contains(word, "|") {
			return strings.Split(word, "|"), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
	return cmd
}

// told returns a text of the head of a command, or of its parents.
func told(cmd *cobra.Command, name string) string {
	for ; cmd != nil; cmd = cmd.Parent() {
		if text, ok := cmd.Annotations[name]; ok {
			return text
		}
	}
	return ""
}

func checkArguments(cmd *cobra.Command, wanted, args []string) error {
	if len(args) > len(wanted) && cmd.HasSubCommands() {
		return chooseCommand(cmd, args)
	}
	if len(args) > len(wanted) {
		return wrongUsef("unexpected argument %q", args[len(wanted)])
	}
	var missing []string
	for i, word := range wanted {
		isChoice := strings.Contains(word, "|")
		switch {
		case i < len(args) && isChoice && !slices.Contains(strings.Split(word, "|"), args[i]):
			return wrongUsef(told(cmd, "unknown"), args[i])
		case i < len(args) || word[0] == '[':
		case isChoice:
			missing = append(missing, told(cmd, "missing"))
		default:
			missing = append(missing, word)
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

// hasSettings reports whether a command, or all commands of a group, have setting flags.
func hasSettings(cmd *cobra.Command) bool {
	if !cmd.HasParent() || cmd.LocalFlags().Lookup(settings.All()[0].Path) != nil {
		return true
	}
	return cmd.HasSubCommands() && !slices.ContainsFunc(cmd.Commands(), func(sub *cobra.Command) bool { return !hasSettings(sub) })
}

// plainValue is the value of a switch in a help text. Without it pflag would show each switch as
// --name[=true|false].
type plainValue struct{ pflag.Value }

// usages describes the flags of a command: the settings, or all other flags.
func usages(cmd *cobra.Command, ofSettings bool) string {
	wanted := pflag.NewFlagSet("", pflag.ContinueOnError)
	wanted.SortFlags = !ofSettings
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if isSetting(flag) == ofSettings {
			shown := *flag
			if flag.Value.Type() == "bool" {
				shown.Value = plainValue{flag.Value}
			}
			wanted.AddFlag(&shown)
		}
	})
	if !ofSettings && hasSettings(cmd) && cmd.HasParent() {
		wanted.AddFlag(cmd.Flag("config"))
	}
	return wanted.FlagUsagesWrapped(helpWidth)
}

// help prints the help of a command. The help of serve and config has all settings. The help of
// other commands only mentions them.
func help(cmd *cobra.Command, _ []string) {
	cmd.InitDefaultHelpFlag() // cobra does this only in some cases
	var err error
	if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 { // --help of a mistyped command
		err = chooseCommand(cmd, cmd.Flags().Args())
	} else {
		err = screens.ExecuteTemplate(cmd.OutOrStdout(), "help", cmd)
	}
	printed, isOurs := cmd.OutOrStdout().(*output)
	if isOurs {
		printed.helpFailed = err
	}
}

// helpCommand returns the help of cobra as a command like the others.
func helpCommand() *cobra.Command {
	cmd := described("help")
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		subject, unknown, _ := cmd.Root().Find(args)
		if len(unknown) > 0 {
			return chooseCommand(subject, unknown)
		}
		return subject.Help()
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		subject, _, err := cmd.Root().Find(args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, sub := range subject.Commands() {
			if !sub.IsAvailableCommand() { // cobra's own for completion
				continue
			}
			names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

func completion(c *call) error {
	root := c.cmd.Root()
	return map[string]func(io.Writer) error{
		"bash":       func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        root.GenZshCompletion,
		"fish":       func(w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": root.GenPowerShellCompletionWithDesc,
	}[c.args[0]](c.cmd.OutOrStdout())
}
