package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
	"bankingapi/domain/audit"
)

func (p program) serveCommand() *cobra.Command {
	var demo, sandbox bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the API",
		Long: `Runs the API. On SIGTERM or SIGINT it reports not ready, waits for shutdown.delay, stops accepting
requests, finishes the running ones and exits. A second signal ends it at once.

The first start creates the SQLite file and its folder. On Postgres the service is not ready until
the schema is up to date: run 'bankingapi migrate up', or set storage.migrate.

With --sandbox it is a sandbox: a partner moves its clock, orders faults and resets its book. The
database must be empty or a sandbox already. Unless storage.dsn is set, it is ./sandbox/bankingapi.db.`,
		Example: `  bankingapi serve --demo
  bankingapi serve --sandbox
  bankingapi serve --config bankingapi.yaml
  BANKINGAPI_STORAGE__DSN_FILE=/run/secrets/dsn bankingapi serve --storage.driver postgres`,
		Args:        named(),
		Annotations: listSettings(),
		RunE: p.withSettings(func(cmd *cobra.Command, _ []string, loaded bootstrap.Loaded) error {
			cmd.SetContext(audit.By(cmd.Context(), whoRuns(""))) // for the demo book and migrations
			switch {
			case demo && sandbox:
				return wrongUsef("use --demo or --sandbox, not both")
			case sandbox:
				return p.serveSandbox(cmd, loaded)
			case demo:
				enableConsole(&loaded)
			}
			return p.open(cmd, loaded.Settings, func(app *bootstrap.App) error { return serve(cmd, app, demo) })
		}),
	}
	cmd.Flags().BoolVar(&demo, "demo", false, "load the demo book into an empty store, create a key, print curl commands to try")
	cmd.Flags().BoolVar(&sandbox, "sandbox", false, "run a sandbox for partners, with its own book, clock and faults")
	return cmd
}

// enableConsole enables the console with the demo book or the sandbox. It does
// nothing if the settings configure the console, or if anyone could sign in.
func enableConsole(loaded *bootstrap.Loaded) {
	for _, v := range loaded.Values() {
		if v.Path == "console.enabled" && v.Origin != "default" {
			return
		}
	}
	enabled := loaded.Settings
	enabled.Console.Enabled = true
	if enabled.Validate() == nil {
		loaded.Settings = enabled
	}
}

// serveSandbox runs a sandbox until the context ends.
func (p program) serveSandbox(cmd *cobra.Command, loaded bootstrap.Loaded) error {
	enableConsole(&loaded)
	settings := loaded.Settings
	for _, value := range loaded.Values() {
		if value.Path == "storage.dsn" && value.Origin == "default" && settings.Storage.Driver == bootstrap.SQLite {
			settings.Storage.DSN = bootstrap.SandboxDSN()
		}
	}
	app, err := bootstrap.OpenSandbox(cmd.Context(), settings, p.options, buildVersion(), showLinks(cmd))
	if err != nil {
		return fmt.Errorf("open the sandbox: %w", err)
	}
	guide := app.Guide()
	return errors.Join(listen(cmd, app.App, &guide), app.Close(context.WithoutCancel(cmd.Context())))
}

func serve(cmd *cobra.Command, app *bootstrap.App, demo bool) error {
	if !demo {
		return listen(cmd, app, nil)
	}
	guide, err := app.LoadDemo(cmd.Context())
	if err != nil {
		return fmt.Errorf("load the demo book: %w", err)
	}
	return listen(cmd, app, &guide)
}

// listen serves until the context ends. It prints the guide if there is one.
func listen(cmd *cobra.Command, app *bootstrap.App, guide *bootstrap.Demo) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if err := app.Start(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "Listening on %s\n", app.URL())
	if guide != nil {
		if app.HasDocs() {
			fmt.Fprintf(out, "Documentation %s/docs\n", app.URL())
		}
		if address := app.OpsAddress(); address != "" {
			fmt.Fprintf(out, "Health and metrics http://%s/readyz?verbose and /metrics\n", address)
		}
		fmt.Fprintf(out, "Subscription key %s\nTry it, from this folder:\n", guide.Key)
		for _, command := range guide.Commands(app.URL()) {
			fmt.Fprintf(out, "\n%s\n", command)
		}
	}
	select {
	case <-ctx.Done():
		if isTerminal(cmd.ErrOrStderr()) { // after the ^C
			fmt.Fprintln(cmd.ErrOrStderr(), "\nStopping: running requests are finished first. Press Ctrl-C again to stop at once.")
		}
		return nil
	case err := <-app.Failed():
		return err
	}
}
