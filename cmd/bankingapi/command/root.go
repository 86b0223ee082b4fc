package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bankingapi/adapters/settings"
	"bankingapi/bootstrap"
	"bankingapi/domain/fault"
)

// program holds what the commands need from the process in addition to their
// arguments and streams, which cobra passes.
type program struct {
	environment []string
	options     bootstrap.Option // of every bootstrap.Open
	config      string           // the default settings file, which need not exist
}

// A row is a command: its path in help.txt, what it uses, and what it does.
type row struct {
	path string
	uses resource
	does action
}

// A resource is what a command uses. Each one includes those before it.
type resource int

const (
	nothing     resource = iota
	ownSettings          // it has the flags of settings, and loads them itself
	allSettings
	book      // it must exist, and have the schema of this program
	keptTrail // the book must keep a trail
)

// An action is what a command does. check, which may be nil, reads and checks flags and
// arguments before the book is opened.
type action struct{ run, check func(*call) error }

func does(run func(*call) error) action { return action{run: run} }

// with returns an action with options. read reads the options before the book is opened.
func with[Options any](read func(*call) (Options, error), run func(*call, Options) error) action {
	var options Options
	return action{
		func(c *call) error { return run(c, options) },
		func(c *call) (err error) { options, err = read(c); return err },
	}
}

func rows() []row {
	return []row{
		{"serve", allSettings, does(serve)},
		{"migrate up", allSettings, does(migrateUp)},
		{"migrate status", allSettings, does(migrateStatus)},
		{"subscriptions create", book, with(readTerms, createSubscription)},
		{"subscriptions change", book, with(readChange, changeSubscription)},
		{"subscriptions list", book, does(listSubscriptions)},
		{"subscriptions regenerate", book, does(regenerateKey)},
		{"subscriptions suspend", book, setState("suspended")},
		{"subscriptions activate", book, setState("active")},
		{"subscriptions cancel", book, setState("cancelled")},
		{"import", book, with(readImport, importFile)},
		{"export", book, with(readFilter, export)},
		{"backup", allSettings, does(backup)},
		{"copy", allSettings, does(copyBook)},
		{"show operation", book, with(readShown, showOperation)},
		{"show customer", book, with(readCustomer, showCustomer)},
		{"show notification", book, does(showNotification)},
		{"sales cancel", book, with(readID, cancelSale)},
		{"sales reverse", book, with(readID, reverseSale)},
		{"adjust holding", book, does(adjustHolding)},
		{"adjust account", book, does(adjustAccount)},
		{"prices withdraw", book, with(readPriceID, withdrawPrice)},
		{"notifications erase", book, with(readErased, erase)},
		{"reconcile", book, does(reconcile)},
		{"restore", allSettings, with(readCheckpoints, restore)},
		{"settle", book, with(readForecast, settle)},
		{"verify", book, with(readCheckpoints, verify)},
		{"trail keygen", nothing, does(keygen)},
		{"trail key", keptTrail, does(printKey)},
		{"trail checkpoint", keptTrail, does(printCheckpoint)},
		{"trail prove", keptTrail, with(readProved, prove)},
		{"trail check", nothing, does(checkProof)},
		{"trail rekey", allSettings, does(rekey)},
		{"config", allSettings, does(config)},
		{"openapi", allSettings, does(printOpenAPI)},
		{"healthcheck", ownSettings, does(healthcheck)},
		{"version", nothing, does(printVersion)},
		{"completion", nothing, does(completion)},
	}
}

func (p program) root() *cobra.Command {
	root := group("bankingapi")
	root.SilenceErrors, root.SilenceUsage = true, true // report prints them
	root.Version = thisBuild().Version
	root.SetVersionTemplate(screen("version", thisBuild()))
	root.SetFlagErrorFunc(explainFlag)
	root.CompletionOptions.DisableDefaultCmd = true // the row replaces it
	root.Flags().Bool("version", false, told(root, "--version"))
	root.PersistentFlags().String("config", "", told(root, "--config"))
	for _, r := range rows() {
		parent := root
		if name, _, is := strings.Cut(r.path, " "); is {
			if parent, _, _ = root.Find([]string{name}); parent == root {
				parent = group(name)
				root.AddCommand(parent)
			}
		}
		cmd := described(r.path)
		parent.AddCommand(cmd)
		p.complete(cmd, r)
	}
	root.SetHelpFunc(help)
	root.SetHelpCommand(helpCommand())
	return root
}

// group makes a command that has only subcommands.
func group(path string) *cobra.Command {
	cmd := described(path)
	cmd.Args, cmd.RunE = cobra.ArbitraryArgs, chooseCommand
	return cmd
}

// chooseCommand runs a command that has only subcommands.
func chooseCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 && !cmd.HasParent() {
		return cmd.Help()
	}
	if len(args) == 0 {
		var names []string
		for _, sub := range cmd.Commands() {
			names = append(names, sub.Name())
		}
		return wrongUsef("a command is missing: %s", strings.Join(names, ", "))
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return wrongUsef("unknown command %q (did you mean %s?)", args[0], near[0])
	}
	return wrongUsef("unknown command %q", args[0])
}

// complete adds the flags of a command, and makes it run the action of its row.
func (p program) complete(cmd *cobra.Command, r row) {
	addFlags(cmd)
	if r.uses >= ownSettings {
		addSettingFlags(cmd)
	}
	if cmd.Annotations["name"] == "known" {
		cmd.ValidArgsFunction = p.completeName(cmd.ValidArgsFunction)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkFlags(cmd); err != nil {
			return err
		}
		c := &call{Command: cmd, program: p, args: args}
		return errors.Join(c.carryOut(r), c.close())
	}
}

func (c *call) carryOut(r row) (err error) {
	if r.uses >= allSettings {
		err = c.load()
	}
	if err == nil && r.does.check != nil {
		err = r.does.check(c)
	}
	if err == nil && r.uses >= book {
		err = c.openBook()
	}
	if err == nil && r.uses == keptTrail {
		err = c.keeper.Missing()
	}
	if err != nil {
		return err
	}
	return r.does.run(c)
}

// run runs the command line and returns the exit status.
func (p program) run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := p.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(forTerminal(out))
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	text, status := report(cmd, err, ctx.Err() != nil && (cmd.Name() != "serve" || errors.Is(err, context.Canceled)))
	if text != "" { // the reader of standard error may hang
		_, _ = io.WriteString(errOut, text)
	}
	return status
}

// report returns what went wrong and what to do next, and the exit status.
func report(cmd *cobra.Command, err error, interrupted bool) (text string, status int) {
	var problems bootstrap.Problems
	var wrong wrongUse
	switch {
	case err == nil:
		return "", 0
	case interrupted:
		if fault.KindOf(err) == fault.Indeterminate {
			cmd = cmd.Root()
		}
		return fmt.Sprintf("Interrupted: %s.\n", told(cmd, "interrupted")), 130 // as shells report SIGINT
	case errors.As(err, &problems):
		lines := strings.ReplaceAll(problems.Error(), "\n", "\n  ")
		return "bankingapi: invalid settings, see 'bankingapi config --help':\n  " + lines + "\n", 2
	case errors.As(err, &wrong):
		return fmt.Sprintf("bankingapi: %v; see '%s --help'\n", err, cmd.CommandPath()), 2
	case errors.As(err, new(someFailed)):
		return fmt.Sprintf("bankingapi: %v\n", err), 3
	}
	return fmt.Sprintf("bankingapi: %v\n", fault.Explain(err)), 1
}

// wrongUse is an error of the command line itself.
type wrongUse struct{ error }

func wrongUsef(format string, args ...any) error { return wrongUse{fmt.Errorf(format, args...)} }

// explainFlag rewrites an error of pflag.
func explainFlag(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 { // the flag belongs to a mistyped command
		return chooseCommand(cmd, cmd.Flags().Args())
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := unknown.GetSpecifiedName()
		if rule, isGone := settings.Gone(name); isGone {
			return wrongUsef("--%s %s", name, rule)
		}
		if near, ok := settings.Suggest(name); ok && near != name {
			return wrongUsef("unknown flag --%s (did you mean --%s?)", name, near)
		}
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag := invalid.GetFlag()
		if value, ok := flag.Value.(*flagText); ok && value.of[0] != "text" {
			return wrongUsef("--%s must be %s", flag.Name, settings.Choice(value.of))
		}
		return wrongUsef("--%s: the value must be of type %s", flag.Name, strings.TrimSuffix(flag.Value.Type(), "64"))
	}
	return wrongUse{err}
}
