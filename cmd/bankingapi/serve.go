package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

func (p program) serveCommand() *cobra.Command {
	var demo bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the API",
		Long: `Runs the API until SIGTERM or SIGINT: then it stops being ready, waits shutdown.delay, takes no
more, finishes all it has taken and ends. A second signal ends it at once.

A SQLite file and its folder are made at the first start. On Postgres the service is not ready
until the schema fits: run 'bankingapi migrate up', or set storage.migrate.`,
		Example: `  bankingapi serve --demo
  bankingapi serve --config bankingapi.yaml
  BANKINGAPI_STORAGE__DSN_FILE=/run/secrets/dsn bankingapi serve --storage.driver postgres`,
		Args:        named(),
		Annotations: listSettings(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := p.load(cmd)
			if err != nil {
				return err
			}
			return open(cmd, loaded.Settings, func(app *bootstrap.App) error { return serve(cmd, app, demo) })
		},
	}
	cmd.Flags().BoolVar(&demo, "demo", false, "load the demo book into an empty store, make a key, print curl lines to try")
	return cmd
}

func serve(cmd *cobra.Command, app *bootstrap.App, demo bool) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	var guide bootstrap.Demo
	if demo {
		var err error
		if guide, err = app.LoadDemo(ctx); err != nil {
			return fmt.Errorf("load the demo book: %w", err)
		}
	}
	if err := app.Start(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "Listening on %s\n", app.URL())
	if demo {
		fmt.Fprintf(out, "Subscription key %s\nTry it, from this folder:\n", guide.Key)
		for _, command := range guide.Commands(app.URL()) {
			fmt.Fprintf(out, "\n%s\n", command)
		}
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-app.Failed():
		return err
	}
}
