package command

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

type serveOptions struct{ demo, sandbox bool }

func serveCommand(p program) *cobra.Command {
	var o serveOptions
	cmd := listSettings(p.command(described("serve"), o.run))
	cmd.Flags().BoolVar(&o.demo, "demo", false, "load the demo book into an empty store, create a key, print curl commands to try")
	cmd.Flags().BoolVar(&o.sandbox, "sandbox", false, "run a sandbox for partners, with its own book, clock and faults")
	return cmd
}

func (o *serveOptions) run(c *call) error {
	signal.Ignore(syscall.SIGPIPE) // whoever reads the log may end
	switch {
	case o.demo && o.sandbox:
		return wrongUsef("use --demo or --sandbox, not both")
	case o.sandbox:
		return c.serveSandbox()
	case o.demo:
		c.enableConsole()
	}
	var err error
	if c.app, err = c.open(c.settings); err != nil {
		return err
	}
	if !o.demo {
		return c.listen(nil)
	}
	guide, err := c.app.LoadDemo(c.Context())
	if err != nil {
		return fmt.Errorf("load the demo book: %w", err)
	}
	return c.listen(&guide)
}

// isDefault reports whether nothing sets the setting.
func (c *call) isDefault(path string) bool {
	return slices.ContainsFunc(c.loaded.Values(), func(v bootstrap.Value) bool { return v.Path == path && v.Origin == "default" })
}

// enableConsole enables the console with the demo book or the sandbox. It does
// nothing if the settings configure the console, or if anyone could sign in.
func (c *call) enableConsole() {
	enabled := c.settings
	enabled.Console.Enabled = true
	if c.isDefault("console.enabled") && enabled.Validate() == nil {
		c.settings = enabled
	}
}

// serveSandbox runs a sandbox until the context ends.
func (c *call) serveSandbox() error {
	c.enableConsole()
	if c.isDefault("storage.dsn") && c.settings.Storage.Driver == bootstrap.SQLite {
		c.settings.Storage.DSN = bootstrap.SandboxDSN()
	}
	app, err := bootstrap.OpenSandbox(c.Context(), c.settings, c.options, buildVersion(), bootstrap.WithProfiles(profiles()), c.showLink())
	if err != nil {
		return fmt.Errorf("open the sandbox: %w", err)
	}
	c.app = app.App
	guide := app.Guide()
	return c.listen(&guide)
}

// listen serves until the context ends. It prints the guide if there is one.
func (c *call) listen(guide *bootstrap.Demo) error {
	app, ctx := c.app, c.Context()
	hangUp := make(chan os.Signal, 1) // before anybody knows that the service runs
	signal.Notify(hangUp, syscall.SIGHUP)
	defer signal.Stop(hangUp)
	if err := app.Start(ctx); err != nil {
		return err
	}
	var told strings.Builder // one write: the log may go to the same file
	fmt.Fprintf(&told, "Listening on %s\n", app.URL())
	if guide != nil {
		if c.settings.HTTP.Docs {
			fmt.Fprintf(&told, "Documentation %s/docs%s\n", app.URL(), guide.Page)
		}
		if address := app.OpsAddress(); address != "" {
			fmt.Fprintf(&told, "Health and metrics http://%s/readyz?verbose and /metrics\n", address)
		}
		if guide.About != "" {
			fmt.Fprintln(&told, guide.About)
		}
		if guide.Key == "" {
			c.tell("The demo book was not loaded: the book has data already, and no key of a demo is known.\n")
		} else {
			fmt.Fprintf(&told, "Subscription key %s\nTry it, from this folder:\n", guide.Key)
			for _, command := range guide.Commands(app.URL()) {
				fmt.Fprintf(&told, "\n%s\n", command)
			}
		}
	}
	_ = c.print("%s", told.String()) // whoever reads it may have ended
	for {
		select {
		case <-hangUp:
			app.Reload(func() (bootstrap.Settings, error) {
				err := c.load()
				return c.settings, err
			})
			continue
		case <-ctx.Done():
		case err := <-app.Failed():
			return err
		}
		if isTerminal(c.ErrOrStderr()) { // after the ^C
			fmt.Fprintln(c.ErrOrStderr(), "\nStopping: running requests are finished first. Press Ctrl-C again to stop at once.")
		}
		return nil
	}
}

// profiles serves what net/http/pprof serves, except the command line, which may
// contain secrets.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A recording may take longer than reading a request may. net/http/pprof
		// extends only the other deadline.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		mux.ServeHTTP(w, r)
	})
}
