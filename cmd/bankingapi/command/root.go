package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bankingapi/adapters/settings"
	"bankingapi/bootstrap"
	"bankingapi/domain/fault"
	"bankingapi/domain/subscription"
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
	does command
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

// A command has the options of one command line as its fields.
type command interface {
	// flags binds the flags to the fields.
	flags(*flags)
	run(*call) error
}

// A checker reads and checks its flags and arguments before the book is opened.
type checker interface{ check(*call) error }

// A dater reads its flags with days and times. It is called before the book is opened, so that a
// wrong flag is refused first, and again with the time zone of the book.
type dater interface{ dates(*call) error }

// does is a command without options.
type does func(*call) error

func (does) flags(*flags)        {}
func (d does) run(c *call) error { return d(c) }

// printing is a command that prints a value, with --format.
type printing func(*call) error

func (printing) flags(f *flags)      { f.json() }
func (p printing) run(c *call) error { return p(c) }

// acting is a command that does one thing, with --as and --reason.
type acting func(*call) error

func (acting) flags(f *flags)      { f.reason() }
func (a acting) run(c *call) error { return a(c) }

func rows() []row {
	return []row{
		{"serve", allSettings, new(serveCommand)},
		{"migrate up", allSettings, new(migrateCommand)},
		{"migrate status", allSettings, printing(migrateStatus)},
		{"subscriptions create", book, new(createCommand)},
		{"subscriptions change", book, new(changeCommand)},
		{"subscriptions list", book, printing(listSubscriptions)},
		{"subscriptions show", book, printing(showSubscription)},
		{"subscriptions regenerate", book, acting(regenerateKey)},
		{"subscriptions suspend", book, setState(subscription.Suspended)},
		{"subscriptions activate", book, setState(subscription.Active)},
		{"subscriptions cancel", book, setState(subscription.Cancelled)},
		{"import", book, new(importCommand)},
		{"export", book, new(exportCommand)},
		{"backup", allSettings, does(backup)},
		{"copy", allSettings, new(copyCommand)},
		{"show operation", book, new(showOperationCommand)},
		{"show customer", book, new(showCustomerCommand)},
		{"sales cancel", book, new(cancelCommand)},
		{"sales reverse", book, new(reverseCommand)},
		{"adjust holding", book, new(adjustHoldingCommand)},
		{"adjust account", book, new(adjustAccountCommand)},
		{"prices list", book, new(listPricesCommand)},
		{"prices withdraw", book, new(withdrawCommand)},
		{"notifications erase", book, new(eraseCommand)},
		{"rules", book, printing(showRules)},
		{"rules change", book, new(changeRulesCommand)},
		{"reconcile", book, new(reconcileCommand)},
		{"restore", allSettings, new(restoreCommand)},
		{"settle", book, new(settleCommand)},
		{"status", allSettings, printing(showStatus)},
		{"verify", book, new(verifyCommand)},
		{"trail keygen", nothing, new(keygenCommand)},
		{"trail key", keptTrail, does(printKey)},
		{"trail checkpoint", keptTrail, does(printCheckpoint)},
		{"trail prove", keptTrail, new(proveCommand)},
		{"trail check", nothing, new(checkCommand)},
		{"trail adopt", keptTrail, new(adoptCommand)},
		{"trail rekey", allSettings, acting(rekey)},
		{"config", allSettings, new(configCommand)},
		{"openapi", allSettings, new(openAPICommand)},
		{"healthcheck", ownSettings, new(healthcheckCommand)},
		{"version", nothing, printing(printVersion)},
		{"completion", nothing, does(completion)},
	}
}

func (p program) root() *cobra.Command {
	root := group("bankingapi")
	// report prints them.
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.Version = thisBuild().Version
	root.SetVersionTemplate(screen("version", thisBuild()))
	root.SetFlagErrorFunc(explainFlag)
	root.CompletionOptions.DisableDefaultCmd = true // the row replaces it
	root.Flags().Bool("version", false, "print the version and everything needed for a bug report")
	root.PersistentFlags().String("config", "", "read settings from this YAML `file`")
	config := root.PersistentFlags().Lookup("config")
	config.Value = &once{Value: config.Value} // onlyOnce sees the flags of one command only
	for _, r := range rows() {
		parent := root
		if name, _, is := strings.Cut(r.path, " "); is {
			parent, _, _ = root.Find([]string{name})
			if parent == root {
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
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = chooseCommand
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
	near := cmd.SuggestionsFor(args[0])
	if len(near) > 0 && args[0] != "" && near[0] != args[0] { // it is the same after --
		return wrongUsef("unknown command %q (did you mean %s?)", args[0], near[0])
	}
	return wrongUsef("unknown command %q", args[0])
}

// complete adds the flags of a command, and makes it run the command of its row.
func (p program) complete(cmd *cobra.Command, r row) {
	c := &call{cmd: cmd, program: p}
	f := &flags{cmd.Flags(), c}
	r.does.flags(f)
	if r.uses >= ownSettings {
		f.addSettings()
	}
	if cmd.Annotations["name"] == "known" {
		cmd.ValidArgsFunction = p.completeName(cmd.ValidArgsFunction)
	}
	c.onlyOnce()
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		c.reason = strings.TrimSpace(c.reason) // blanks say nothing, in the console too
		if err := c.checkNeeded(); err != nil {
			return err
		}
		c.args = args
		return errors.Join(c.carryOut(r), c.close())
	}
}

// carryOut runs the command of a row after it has opened what the command uses. It parses the
// dates twice, because the book may have another time zone than a new one.
func (c *call) carryOut(r row) error {
	if r.uses >= allSettings {
		if err := c.load(); err != nil {
			return err
		}
	}
	if checked, ok := r.does.(checker); ok {
		if err := checked.check(c); err != nil {
			return err
		}
	}
	if err := c.parseDates(r); err != nil {
		return err
	}
	if r.uses >= book {
		if err := c.openBook(); err != nil {
			return err
		}
		if err := c.parseDates(r); err != nil {
			return err
		}
	}
	if r.uses == keptTrail {
		if err := c.keeper.Missing(); err != nil {
			return err
		}
	}
	return r.does.run(c)
}

// parseDates parses the dates of a command that has some.
func (c *call) parseDates(r row) error {
	dated, hasDates := r.does.(dater)
	if !hasDates {
		return nil
	}
	return dated.dates(c)
}

// run runs the command line and returns the exit status.
func (p program) run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := p.root()
	root.SetArgs(args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) { // also without descriptions
		forCompletion(root)
	}
	root.SetIn(in)
	if isClosed(out) {
		out = closedOutput{}
	}
	printed := &output{Writer: forTerminal(out)}
	root.SetOut(printed)
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = printed.helpFailed
	}
	text, status := report(cmd, err, ctx.Err() != nil && (cmd.Name() != "serve" || errors.Is(err, context.Canceled)))
	if text != "" { // the reader of standard error may hang
		_, _ = io.WriteString(errOut, text)
	}
	return status
}

// output is standard output.
type output struct {
	io.Writer
	// helpFailed is the error of a help text. The function that prints it cannot return one to cobra.
	helpFailed error
}

// isUnread reports whether a command failed only because nobody reads its output to the end: head has
// what it wanted. A command that has done something says so in its error.
func isUnread(err error) bool {
	failed, ok := errors.AsType[*fs.PathError](err)
	return ok && errors.Is(failed, syscall.EPIPE) && failed.Error() == err.Error()
}

// report returns what went wrong and what to do next, and the exit status.
func report(cmd *cobra.Command, err error, interrupted bool) (text string, status int) {
	var problems bootstrap.Problems
	var wrong wrongUse
	switch {
	case err == nil:
		return "", 0
	case isUnread(err):
		return "", 1
	case interrupted:
		if fault.KindOf(err) == fault.Indeterminate {
			cmd = cmd.Root()
		}
		return fmt.Sprintf("Interrupted: %s.\n", told(cmd, "interrupted")), 130 // as shells report SIGINT
	case errors.As(err, &problems):
		lines := strings.ReplaceAll(problems.Error(), "\n", "\n  ")
		return "bankingapi: invalid settings, see 'bankingapi config --help':\n  " + lines + "\n", 2
	case errors.As(err, &wrong):
		sentence := strings.TrimSuffix(err.Error(), ".")
		return fmt.Sprintf("bankingapi: %s; see '%s --help'\n", sentence, cmd.CommandPath()), 2
	case errors.As(err, new(someFailed)):
		return fmt.Sprintf("bankingapi: %v\n", err), 3
	}
	return fmt.Sprintf("bankingapi: %v\n", fault.Explain(err)), 1
}

// nearFlag returns the flag of a command that a name probably means. Settings are not among them.
func nearFlag(cmd *cobra.Command, name string) (string, bool) {
	var own []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !isSetting(flag) {
			own = append(own, flag.Name)
		}
	})
	return fault.Closest(name, slices.Values(own), min(2, len(name)-1))
}

// wrongUse is an error of the command line itself.
type wrongUse struct{ error }

func wrongUsef(format string, args ...any) error { return wrongUse{fmt.Errorf(format, args...)} }

// explainLetters is about a flag with one dash, of which pflag has read -h if it is the first letter.
func explainLetters(cmd *cobra.Command, letters string) error {
	if '0' <= letters[0] && letters[0] <= '9' {
		return wrongUsef("-%s is read as a flag: no argument is a negative number", letters)
	}
	name, _, _ := strings.Cut(letters, "=")
	for _, meant := range []string{name, "h" + name} {
		if cmd.Flags().Lookup(meant) != nil && len(meant) > 1 {
			return wrongUsef("unknown flag -%s (did you mean --%s?)", meant, meant)
		}
	}
	return wrongUsef("unknown flag -%s", name)
}

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
		letters := unknown.GetSpecifiedShortnames()
		if letters != "" {
			return explainLetters(cmd, letters)
		}
		if near, ok := nearFlag(cmd, name); ok {
			return wrongUsef("unknown flag --%s (did you mean --%s?)", name, near)
		}
		if near, ok := settings.Suggest(name); ok && near != name {
			return wrongUsef("unknown flag --%s (did you mean --%s?)", name, near)
		}
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag := invalid.GetFlag()
		if wrong, ok := errors.AsType[flagError](err); ok {
			return wrongUsef("--%s %w", flag.Name, wrong)
		}
		return wrongUsef("--%s: the value must be of type %s", flag.Name, strings.TrimSuffix(flag.Value.Type(), "64"))
	}
	return wrongUse{err}
}
