package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/application/subscriptions"
	"bankingapi/bootstrap"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
)

// call is one run of a command: its arguments and streams, the settings, and the
// book if the command works on one.
type call struct {
	cmd     *cobra.Command
	program program
	args    []string
	// as, reason, format and dryRun are the flags that many commands have. needed are the flags
	// that must be given. mayChange is true if the command has --as.
	as, reason, format string
	dryRun, mayChange  bool
	needed             []string

	settings bootstrap.Settings
	loaded   bootstrap.Loaded
	app      *bootstrap.App
	keeper   *trail.Keeper
	// office and manager need a book with the schema of this program.
	office  *backoffice.Office
	manager *subscriptions.Manager
}

// load reads the settings, and who runs the command. Its error is bootstrap.Problems.
func (c *call) load() (err error) {
	given := map[string]string{}
	c.cmd.Flags().Visit(func(flag *pflag.Flag) {
		if isSetting(flag) {
			given[flag.Name] = flag.Value.String()
		}
	})
	c.loaded, err = bootstrap.Load(bootstrap.Sources{
		File: c.cmd.Flag("config").Value.String(), DefaultFile: c.program.config, Environment: c.program.environment, Flags: given,
	}, c.program.options)
	c.settings = c.loaded.Settings
	c.cmd.SetContext(audit.By(c.cmd.Context(), c.who()))
	return err
}

// serviceOptions returns the options of the program and of each service. A link to the console
// is printed on its own line.
func (c *call) serviceOptions() bootstrap.Option {
	built := thisBuild()
	return bootstrap.Options(c.program.options, bootstrap.WithVersion(built.Version, built.Commit), bootstrap.WithProfiles(profiles()),
		bootstrap.WithConsoleLink(func(link string) { _ = c.print("console: %s\n", link) }))
}

// openAny opens the book. The book must exist: only serve and migrate up create books. A
// command that may change nothing, as with --dry-run, opens it as it is. openAny settles and
// signs nothing in the background, serves no pages, and logs only warnings and errors. The book is
// closed when the command ends.
func (c *call) openAny() (err error) {
	quiet := c.settings
	quiet.Settlement.Enabled = false
	quiet.HTTP.Docs = false // nobody asks a command for pages, and most commands take less time than to make them
	if quiet.Log.Level != "error" {
		quiet.Log.Level = "warn"
	}
	existing := bootstrap.WithExistingBook()
	if !c.mayChange || c.dryRun {
		existing = bootstrap.WithBookAsItIs()
	}
	c.app, err = bootstrap.Open(c.cmd.Context(), quiet, c.serviceOptions(), existing)
	if err != nil {
		return err
	}
	c.keeper, _ = c.app.Trail()
	return nil
}

// openBook calls openAny. The book must have the schema of this program.
func (c *call) openBook() (err error) {
	err = c.openAny()
	if err != nil {
		return err
	}
	c.office, err = c.app.Backoffice(c.cmd.Context())
	if err != nil {
		return err
	}
	c.manager, err = c.app.Manager(c.cmd.Context())
	return err
}

// zone returns the time zone of the bank. Before the book is open it is that of a new book.
func (c *call) zone() *time.Location {
	if c.app == nil {
		return fund.DefaultRules().In()
	}
	return c.app.Rules().In()
}

// close closes the book if it is open. It also closes in order after a signal. The settings
// limit how long this takes.
func (c *call) close() error {
	app := c.app
	c.app = nil
	if app == nil {
		return nil
	}
	reason := "a listener failed"
	cause := context.Cause(c.cmd.Context())
	if cause != nil {
		reason = cause.Error() // names the signal
	}
	return app.CloseBecause(context.WithoutCancel(c.cmd.Context()), reason)
}

// print writes data to standard output. Everything else goes to standard error (PrintErrf).
func (c *call) print(format string, args ...any) error {
	_, err := fmt.Fprintf(c.cmd.OutOrStdout(), format, args...)
	return err
}

// done prints on standard error what was done, unless it failed.
func (c *call) done(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	c.cmd.PrintErrf(format, args...)
	return nil
}

// who returns the person who runs the command, for the audit: --as, or the system user.
func (c *call) who() audit.Who {
	who := audit.Who{SystemUser: fmt.Sprintf("uid %d", os.Getuid()), Reason: c.reason} // in a container without /etc/passwd
	if current, err := user.Current(); err == nil {
		who.SystemUser = current.Username
	}
	who.Origin, _ = os.Hostname()
	who.Actor = cmp.Or(c.as, who.SystemUser)
	return who
}

// openInput opens a file. It reads standard input (-) and a named pipe until a signal arrives,
// because possibly no program writes to them. Without a writer, the pipe cannot even be opened.
func (c *call) openInput(name string) (io.ReadCloser, error) {
	if name != "-" {
		info, err := os.Stat(name)
		if err != nil || info.IsDir() || info.Mode().IsRegular() {
			return os.Open(name)
		}
	}
	r, w := io.Pipe()
	context.AfterFunc(c.cmd.Context(), func() { _ = w.CloseWithError(c.cmd.Context().Err()) })
	go func() { _ = w.CloseWithError(c.copyStream(w, name)) }()
	return r, nil
}

// copyStream copies standard input, or a file that has no end before its writer closes it.
func (c *call) copyStream(to io.Writer, name string) error {
	from := c.cmd.InOrStdin()
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		from = file
	}
	_, err := io.Copy(to, from)
	return err
}

// readInput reads the whole input of openInput.
func (c *call) readInput(name string) ([]byte, error) {
	file, err := c.openInput(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}
