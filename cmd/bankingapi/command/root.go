package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bankingapi/bootstrap"
	"bankingapi/domain/fault"
)

// program holds what the commands need from the process in addition to their
// arguments and streams, which cobra passes.
type program struct {
	environment []string
	options     bootstrap.Option // of every bootstrap.Open
	config      string           // the settings file, if no other is named and it exists
}

// run runs the command line and returns the exit status.
func (p program) run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := p.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(forTerminal(out))
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	if name := strings.Fields(cmd.CommandPath() + " ")[min(1, strings.Count(cmd.CommandPath(), " "))]; err != nil && ctx.Err() != nil && name != "serve" {
		return interrupted(errOut, name, err)
	}
	return report(errOut, cmd, err)
}

// leaves says what an interrupted command leaves behind.
var leaves = map[string]string{
	"backup":        "there is no copy",
	"copy":          "what was copied stays, run it again to go on",
	"export":        "the output is not complete",
	"import":        "nothing was imported",
	"notifications": "what was erased stays erased, run it again to go on",
	"migrate":       "finished steps stay, run it again to go on",
	"settle":        "what was settled stays settled, run it again to go on",
	"verify":        "the book was not checked to its end",
}

// interrupted reports that a signal ended the command, and returns the exit status.
func interrupted(errOut io.Writer, name string, err error) int {
	left, known := leaves[name]
	if !known || fault.KindOf(err) == fault.Indeterminate {
		left = "it is not known whether it was done, run it again"
	}
	fmt.Fprintf(errOut, "Interrupted: %s.\n", left)
	return 130 // as shells report SIGINT
}

func (p program) root() *cobra.Command {
	root := group(described("bankingapi"))
	root.SilenceErrors, root.SilenceUsage = true, true // report prints them
	root.Version = thisBuild().Version
	root.SetVersionTemplate(thisBuild().String())
	root.SetFlagErrorFunc(explainFlag)
	root.CompletionOptions.DisableDefaultCmd = true // completion.go replaces it
	root.Flags().Bool("version", false, "print the version and everything needed for a bug report")
	root.PersistentFlags().String("config", "", "read settings from this YAML `file`")
	for _, command := range []func(program) *cobra.Command{
		serveCommand, migrateCommand, subscriptionsCommand, importCommand, exportCommand, backupCommand, copyCommand, showCommand, salesCommand,
		adjustCommand, notificationsCommand, reconcileCommand, restoreCommand, settleCommand, verifyCommand, trailCommand, configCommand, openapiCommand,
		healthcheckCommand, versionCommand, completionCommand,
	} {
		root.AddCommand(command(p))
	}
	root.SetHelpFunc(help)
	root.SetHelpCommand(helpCommand(p))
	return root
}

// chooseCommand runs a command that has only subcommands.
func chooseCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 && !cmd.HasParent() {
		return cmd.Help()
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if len(args) == 0 {
		return wrongUsef("a command is missing: %s", strings.Join(names, ", "))
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return wrongUsef("unknown command %q (did you mean %s?)", args[0], near[0])
	}
	return wrongUsef("unknown command %q", args[0])
}

// wrongUse is an error of the command line itself.
type wrongUse struct{ text string }

func (e wrongUse) Error() string { return e.text }

func wrongUsef(format string, args ...any) error { return wrongUse{fmt.Sprintf(format, args...)} }

// explainFlag rewrites an error of pflag.
func explainFlag(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 { // the flag belongs to a mistyped command
		return chooseCommand(cmd, cmd.Flags().Args())
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if near, ok := bootstrap.Suggest(unknown.GetSpecifiedName()); ok && near != unknown.GetSpecifiedName() {
			return wrongUsef("unknown flag --%s (did you mean --%s?)", unknown.GetSpecifiedName(), near)
		}
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if wanted, ok := invalid.GetFlag().Value.(*choice); ok {
			return wrongUsef("--%s must be %s", invalid.GetFlag().Name, either(wanted.of))
		}
		return wrongUsef("--%s: the value must be of type %s", invalid.GetFlag().Name, invalid.GetFlag().Value.Type())
	}
	return wrongUse{err.Error()}
}

// report prints what went wrong and what to do next, and returns the exit
// status.
func report(errOut io.Writer, cmd *cobra.Command, err error) int {
	var problems bootstrap.Problems
	var wrong wrongUse
	switch {
	case err == nil:
		return 0
	case errors.As(err, &problems):
		fmt.Fprintf(errOut, "bankingapi: invalid settings, see 'bankingapi config --help':\n")
		for _, p := range problems {
			fmt.Fprintf(errOut, "  %v\n", p)
		}
		return 2
	case errors.As(err, &wrong):
		fmt.Fprintf(errOut, "bankingapi: %v; see '%s --help'\n", err, cmd.CommandPath())
		return 2
	case errors.As(err, new(someFailed)):
		fmt.Fprintf(errOut, "bankingapi: %v\n", err)
		return 3
	}
	fmt.Fprintf(errOut, "bankingapi: %v\n", fault.Explain(err))
	return 1
}
