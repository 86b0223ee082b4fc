package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bankingapi/application/backoffice"
	"bankingapi/application/subscriptions"
	"bankingapi/bootstrap"
)

// call is one run of a command: its arguments and streams, the settings, and the
// book as soon as the command asks for it.
type call struct {
	*cobra.Command
	program
	args   []string
	loaded bootstrap.Loaded
	opened *bootstrap.App
}

// command completes a command that uses settings: it gets their flags, and run
// is called with them. Without Args it takes no arguments.
func (p program) command(cmd *cobra.Command, run func(*call) error) *cobra.Command {
	addSettingFlags(cmd)
	if cmd.Args == nil {
		cmd.Args = named()
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		loaded, err := p.load(cmd)
		if err != nil {
			return err
		}
		c := &call{Command: cmd, program: p, args: args, loaded: loaded}
		return errors.Join(run(c), c.close())
	}
	return cmd
}

// group makes a command that has only subcommands.
func group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = cobra.ArbitraryArgs, chooseCommand
	cmd.AddCommand(subs...)
	return cmd
}

// open opens the service with its options in addition to those of the program.
func (c *call) open(settings bootstrap.Settings, more ...bootstrap.Option) (*bootstrap.App, error) {
	return bootstrap.Open(c.Context(), settings, c.options, buildVersion(), bootstrap.WithProfiles(profiles()), c.showLink(), bootstrap.Options(more...))
}

// showLink prints each link to the console on a line of its own.
func (c *call) showLink() bootstrap.Option {
	return bootstrap.WithConsoleLink(func(link string) { c.print("console: %s\n", link) })
}

// book opens the book, which must exist: only serve and migrate up create one. A
// command that has no --as changes nothing, and verify no more than its act. It
// settles and signs nothing in the background, and logs only warnings and errors.
// It is closed when the command ends.
func (c *call) book() (_ *bootstrap.App, err error) {
	if c.opened == nil {
		settings := c.loaded.Settings
		settings.Settlement.Enabled, settings.Trail.Interval = false, 0
		if settings.Log.Level != "error" {
			settings.Log.Level = "warn"
		}
		existing := bootstrap.WithExistingBook()
		if c.Flag("as") == nil || c.Name() == "verify" {
			existing = bootstrap.WithBookAsItIs()
		}
		c.opened, err = c.open(settings, existing)
	}
	return c.opened, err
}

// close closes the book, if it is open. After a signal it still closes in order.
// The settings limit how long that takes.
func (c *call) close() error {
	app := c.opened
	if c.opened = nil; app == nil {
		return nil
	}
	reason := "a listener failed"
	if cause := context.Cause(c.Context()); cause != nil {
		reason = cause.Error() // names the signal
	}
	return app.CloseBecause(context.WithoutCancel(c.Context()), reason)
}

// office opens the book for the use cases of people.
func (c *call) office() (*backoffice.Office, error) {
	return part(c, func(app *bootstrap.App) (*backoffice.Office, error) { return app.Backoffice(c.Context()) })
}

// manager opens the book to read or change subscriptions.
func (c *call) manager() (*subscriptions.Manager, error) {
	return part(c, func(app *bootstrap.App) (*subscriptions.Manager, error) { return app.Manager(c.Context()) })
}

// part opens the book and returns a part of it.
func part[T any](c *call, of func(*bootstrap.App) (T, error)) (part T, err error) {
	app, err := c.book()
	if err != nil {
		return part, err
	}
	return of(app)
}

// print writes data to standard output.
func (c *call) print(format string, args ...any) { fmt.Fprintf(c.OutOrStdout(), format, args...) }

// tell writes to standard error what is no data.
func (c *call) tell(format string, args ...any) { fmt.Fprintf(c.ErrOrStderr(), format, args...) }

// settingValue keeps the text of a flag. bootstrap.Load parses it, so that it can
// report the problems of all settings at once.
type settingValue struct{ text, form string }

func (v *settingValue) Set(text string) error { v.text = text; return nil }
func (v *settingValue) String() string        { return v.text }
func (v *settingValue) Type() string          { return v.form }

func addSettingFlags(cmd *cobra.Command) {
	for _, s := range bootstrap.AllSettings() {
		value := &settingValue{s.Default(), s.Form}
		flag := cmd.Flags().VarPF(value, s.Path, "", s.Usage)
		if s.IsSwitch() {
			value.form, flag.NoOptDefVal = "bool", "true"
		}
		if choices := s.Choices(); choices != nil {
			complete(cmd, s.Path, choices...)
		}
	}
}

// complete registers the values of a flag for shell completion.
func complete(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was renamed
	}
}

func isSetting(flag *pflag.Flag) bool {
	_, ok := flag.Value.(*settingValue)
	return ok
}

// load reads the settings of a command line. Its error is bootstrap.Problems.
func (p program) load(cmd *cobra.Command) (bootstrap.Loaded, error) {
	flags := map[string]string{}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if isSetting(flag) {
			flags[flag.Name] = flag.Value.String()
		}
	})
	return bootstrap.Load(bootstrap.Sources{
		File:        cmd.Flag("config").Value.String(),
		DefaultFile: p.config,
		Environment: p.environment,
		Flags:       flags,
	}, p.options)
}
