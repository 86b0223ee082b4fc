package command

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bankingapi/adapters/settings"
	"bankingapi/bootstrap"
	"bankingapi/domain/fund"
)

type serveCommand struct {
	demo, sandbox bool
	rules         fund.RulesFields // of a new book
}

func (o *serveCommand) flags(f *flags) {
	f.set.BoolVar(&o.demo, "demo", false, "load the demo book into an empty store, create a key, print curl commands to try")
	f.set.BoolVar(&o.sandbox, "sandbox", false, "run a sandbox for partners, with its own book, clock and faults")
	f.newRules(&o.rules)
}

func (o *serveCommand) run(c *call) error {
	signal.Ignore(syscall.SIGHUP) // before listen the service has nothing to reload
	c.settings.Rules = o.rules
	switch {
	case o.demo && o.sandbox:
		return wrongUsef("use --demo or --sandbox, not both")
	case o.demo || o.sandbox:
		enableConsole(c)
	}
	if o.sandbox {
		return serveSandbox(c)
	}
	var err error
	if c.app, err = bootstrap.Open(c.cmd.Context(), c.settings, c.serviceOptions(), bootstrap.WithListeners()); err != nil {
		return err
	}
	if !o.demo {
		return listen(c, nil)
	}
	guide, err := c.app.LoadDemo(c.cmd.Context())
	if err != nil {
		return fmt.Errorf("load the demo book: %w", err)
	}
	return listen(c, &guide)
}

// enableConsole enables the console with the demo book or the sandbox. It does
// nothing if the settings configure the console, or if anyone could sign in.
func enableConsole(c *call) {
	enabled := c.settings
	enabled.Console.Enabled = true
	if c.loaded.Origin("console.enabled") == settings.ByDefault && enabled.Validate() == nil {
		c.settings = enabled
	}
}

func serveSandbox(c *call) error {
	if c.loaded.Origin("storage.dsn") == settings.ByDefault && c.settings.Storage.Driver == bootstrap.SQLite {
		c.settings.Storage.DSN = bootstrap.SandboxDSN()
	}
	app, err := bootstrap.OpenSandbox(c.cmd.Context(), c.settings, c.serviceOptions(), bootstrap.WithListeners())
	if err != nil {
		return fmt.Errorf("open the sandbox: %w", err)
	}
	c.app = app.App
	return listen(c, &app.Guide)
}

// listening is what serve prints when it accepts requests.
type listening struct {
	URL, Ops string
	Docs     bool
	Guide    *bootstrap.Demo
}

// listen serves until the context ends. It prints the guide unless it is nil.
func listen(c *call, guide *bootstrap.Demo) error {
	app := c.app
	ctx := c.cmd.Context()
	hangUp := make(chan os.Signal, 1)     // registered before the service is announced
	signal.Notify(hangUp, syscall.SIGHUP) // to the end: while the service stops, SIGHUP must not kill it
	if err := app.Start(ctx); err != nil {
		return err
	}
	if guide != nil && guide.Key == "" {
		c.cmd.PrintErrf("The demo book was not loaded: the book has data already, and no key of a demo is known.\n")
	}
	_ = c.print("%s", screen("listening", listening{app.URL(), app.OpsAddress(), c.settings.HTTP.Docs, guide})) // one write, because the log may go to the same file. Its reader may have exited
	if err := tellSupervisor(ctx, c.program.environment); err != nil {
		c.cmd.PrintErrf("The supervisor does not know that the service has started: %v.\n", err)
	}
	for {
		select {
		case <-hangUp:
			app.Reload(func() (bootstrap.Settings, error) {
				err := c.load()
				return c.settings, err
			})
			continue
		case <-ctx.Done():
		case err := <-app.ListenerErrors():
			return err
		}
		if isTerminal(c.cmd.ErrOrStderr()) { // after the ^C
			fmt.Fprintln(c.cmd.ErrOrStderr(), "\nStopping: running requests are finished first. Press Ctrl-C again to stop at once.")
		}
		return nil
	}
}

// tellSupervisor tells systemd that the service accepts requests, if the unit has Type=notify. A
// command after systemctl start then finds the service, and no systemctl reload comes before it.
func tellSupervisor(ctx context.Context, environment []string) error {
	for _, variable := range environment {
		socket, isSocket := strings.CutPrefix(variable, "NOTIFY_SOCKET=")
		if !isSocket || socket == "" {
			continue
		}
		supervisor, err := new(net.Dialer).DialContext(ctx, "unixgram", socket)
		if err != nil {
			return err
		}
		defer supervisor.Close()
		_, err = supervisor.Write([]byte("READY=1"))
		return err
	}
	return nil
}

// maxProfile is the maximum time of a profile or trace.
const maxProfile = time.Minute

// profiles serves what net/http/pprof serves, except the command line, which may
// contain secrets.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A profile costs the service time as long as it runs.
		text := r.FormValue("seconds")
		if text != "" {
			if seconds, err := strconv.ParseFloat(text, 64); err != nil || !(seconds > 0 && seconds <= maxProfile.Seconds()) {
				http.Error(w, "seconds must be a number, at most 60.", http.StatusBadRequest)
				return
			}
		}
		// A recording may take longer than the read timeout. net/http/pprof extends only the
		// write deadline.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		mux.ServeHTTP(w, r)
	})
}
