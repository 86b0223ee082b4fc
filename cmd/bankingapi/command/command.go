package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bankingapi/application/backoffice"
	"bankingapi/application/subscriptions"
	"bankingapi/bootstrap"
	"bankingapi/domain/audit"
)

// call is one run of a command: its arguments and streams, the settings, and the
// book if the command works on one.
type call struct {
	*cobra.Command
	program
	args     []string
	settings bootstrap.Settings
	loaded   bootstrap.Loaded
	app      *bootstrap.App
	// office and manager need a book with the schema of this program.
	office  *backoffice.Office
	manager *subscriptions.Manager
}

// plain completes a command that uses no settings.
func (p program) plain(cmd *cobra.Command, run func(*call) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkFlags(cmd); err != nil {
			return err
		}
		c := &call{Command: cmd, program: p, args: args}
		return errors.Join(run(c), c.close())
	}
	return cmd
}

// command completes a command that uses settings: it gets their flags.
func (p program) command(cmd *cobra.Command, run func(*call) error) *cobra.Command {
	addSettingFlags(cmd)
	return p.plain(cmd, func(c *call) error {
		if err := c.load(); err != nil {
			return err
		}
		return run(c)
	})
}

// onBook completes a command that works on the book. check is called before the book
// is opened, so that wrong use needs no book. It may be nil.
func (p program) onBook(cmd *cobra.Command, check, run func(*call) error) *cobra.Command {
	return p.command(cmd, func(c *call) error {
		if check != nil {
			if err := check(c); err != nil {
				return err
			}
		}
		if err := c.openBook(); err != nil {
			return err
		}
		return run(c)
	})
}

// group makes a command that has only subcommands.
func group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = cobra.ArbitraryArgs, chooseCommand
	cmd.AddCommand(subs...)
	return cmd
}

// load reads the settings, and who runs the command. Its error is bootstrap.Problems.
func (c *call) load() (err error) {
	flags := map[string]string{}
	c.Flags().Visit(func(flag *pflag.Flag) {
		if isSetting(flag) {
			flags[flag.Name] = flag.Value.String()
		}
	})
	c.loaded, err = bootstrap.Load(bootstrap.Sources{
		File:        c.Flag("config").Value.String(),
		DefaultFile: c.config,
		Environment: c.environment,
		Flags:       flags,
	}, c.options)
	c.settings = c.loaded.Settings
	c.SetContext(audit.By(c.Context(), c.who()))
	return err
}

// open opens the service with its options in addition to those of the program.
func (c *call) open(settings bootstrap.Settings, more ...bootstrap.Option) (*bootstrap.App, error) {
	return bootstrap.Open(c.Context(), settings, c.options, buildVersion(), bootstrap.WithProfiles(profiles()), c.showLink(), bootstrap.Options(more...))
}

// showLink prints each link to the console on a line of its own.
func (c *call) showLink() bootstrap.Option {
	return bootstrap.WithConsoleLink(func(link string) { _ = c.print("console: %s\n", link) })
}

// openAny opens the book, which must exist: only serve and migrate up create one. A
// command that has no --as changes nothing, verify no more than its act, and --dry-run
// nothing. It
// settles and signs nothing in the background, and logs only warnings and errors.
// The book is closed when the command ends.
func (c *call) openAny() (err error) {
	settings := c.settings
	settings.Settlement.Enabled, settings.Trail.Interval = false, 0
	if settings.Log.Level != "error" {
		settings.Log.Level = "warn"
	}
	existing := bootstrap.WithExistingBook()
	if dry := c.Flag("dry-run"); c.Flag("as") == nil || c.Name() == "verify" || c.Name() == "settle" && dry != nil && dry.Changed {
		existing = bootstrap.WithBookAsItIs()
	}
	c.app, err = c.open(settings, existing)
	return err
}

// openBook is openAny for a book that must have the schema of this program.
func (c *call) openBook() (err error) {
	if err = c.openAny(); err == nil {
		c.office, err = c.app.Backoffice(c.Context())
	}
	if err == nil {
		c.manager, err = c.app.Manager(c.Context())
	}
	return err
}

// close closes the book, if it is open. After a signal it still closes in order.
// The settings limit how long that takes.
func (c *call) close() error {
	app := c.app
	if c.app = nil; app == nil {
		return nil
	}
	reason := "a listener failed"
	if cause := context.Cause(c.Context()); cause != nil {
		reason = cause.Error() // names the signal
	}
	return app.CloseBecause(context.WithoutCancel(c.Context()), reason)
}

// print writes data to standard output.
func (c *call) print(format string, args ...any) error {
	_, err := fmt.Fprintf(c.OutOrStdout(), format, args...)
	return err
}

// tell writes to standard error what is no data.
func (c *call) tell(format string, args ...any) { fmt.Fprintf(c.ErrOrStderr(), format, args...) }

// who is the person who runs the command, for the audit: --as, or else the system user.
func (c *call) who() audit.Who {
	who := audit.Who{SystemUser: fmt.Sprintf("uid %d", os.Getuid())} // in a container without /etc/passwd
	if current, err := user.Current(); err == nil {
		who.SystemUser = current.Username
	}
	who.Origin, _ = os.Hostname()
	who.Actor = who.SystemUser
	if flag := c.Flag("as"); flag != nil && flag.Value.String() != "" {
		who.Actor = flag.Value.String()
	}
	if reason := c.Flag("reason"); reason != nil {
		who.Reason = reason.Value.String()
	}
	return who
}

// addActor adds the flag --as to a command that changes something.
func addActor(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().String("as", "", "your `NAME`, for the audit (default: the system user)")
	return cmd
}

// addOptionalReason is addActor for a command that may have a --reason.
func addOptionalReason(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().String("reason", "", "why, in your `words`, for the audit")
	return addActor(cmd)
}

// addReason is addActor for a command that is refused without a --reason.
func addReason(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().String("reason", "", "why, in your `words`: required")
	return addActor(needs(cmd, "reason"))
}

// required marks flags that a command is refused without.
const required = "required"

// needs makes the command fail without each of the flags.
func needs(cmd *cobra.Command, names ...string) *cobra.Command {
	for _, name := range names {
		cmd.Flags().Lookup(name).Annotations = map[string][]string{required: nil}
	}
	return cmd
}

// checkFlags returns an error if a required flag is missing.
func checkFlags(cmd *cobra.Command) (err error) {
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		_, is := flag.Annotations[required]
		switch {
		case err != nil || !is || flag.Changed && flag.Value.String() != "":
		case flag.Name == "reason":
			err = wrongUsef("--reason is missing: say why, for the audit")
		default:
			err = wrongUsef("--%s is missing", flag.Name)
		}
	})
	return err
}

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

func isSetting(flag *pflag.Flag) bool {
	_, ok := flag.Value.(*settingValue)
	return ok
}

// complete registers the values of a flag for shell completion.
func complete(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was renamed
	}
}

// choice is the value of a flag that has one of a few values. The first is the default.
type choice struct {
	value string
	of    []string
}

func (v *choice) String() string { return v.value }
func (v *choice) Type() string   { return strings.Join(v.of, "|") }

func (v *choice) Set(text string) error {
	if !slices.Contains(v.of, text) {
		return errors.New("must be " + either(v.of))
	}
	v.value = text
	return nil
}

// either is "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// addChoice adds a flag that has one of a few values.
func addChoice(cmd *cobra.Command, name, usage string, values ...string) *cobra.Command {
	cmd.Flags().Var(&choice{values[0], values}, name, usage)
	complete(cmd, name, values...)
	return cmd
}

// addFormat adds the flag --format, which write obeys.
func addFormat(cmd *cobra.Command) *cobra.Command {
	return addChoice(cmd, "format", "text, or json for programs", "text", "json")
}

// format is the value of --format.
func (c *call) format() string { return c.Flag("format").Value.String() }

// openInput opens a file, or standard input for -. The size is 0 if it is unknown.
func (c *call) openInput(name string) (io.ReadCloser, int64, error) {
	if name == "-" {
		return io.NopCloser(c.InOrStdin()), 0, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return file, 0, nil //nolint:nilerr // a pipe or a device
	}
	return file, info.Size(), nil
}

// readInput reads a whole file, or standard input for -.
func (c *call) readInput(name string) ([]byte, error) {
	file, _, err := c.openInput(name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(file)
	return content, errors.Join(err, file.Close())
}
