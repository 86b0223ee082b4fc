package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"bankingapi/application/backoffice"
	"bankingapi/bootstrap"
)

// withApp opens the service with the settings of the command line, calls do, and
// closes the service. It settles and signs nothing in the background, and logs
// only warnings and errors.
func (p program) withApp(cmd *cobra.Command, do func(*bootstrap.App) error) error {
	loaded, err := p.load(cmd)
	if err != nil {
		return err
	}
	return p.openBook(cmd, loaded.Settings, do)
}

// openBook opens a book that exists. Only serve and migrate up create one.
func (p program) openBook(cmd *cobra.Command, settings bootstrap.Settings, do func(*bootstrap.App) error) error {
	return p.open(cmd, inForeground(settings), do, bootstrap.WithExistingBook())
}

// withOffice is withApp for the use cases of people.
func (p program) withOffice(cmd *cobra.Command, do func(*backoffice.Office) error) error {
	return p.withApp(cmd, func(app *bootstrap.App) error {
		office, err := app.Backoffice(cmd.Context())
		if err != nil {
			return err
		}
		return do(office)
	})
}

func inForeground(settings bootstrap.Settings) bootstrap.Settings {
	settings.Settlement.Enabled = false
	settings.Trail.Interval = 0
	if settings.Log.Level != "error" {
		settings.Log.Level = "warn"
	}
	return settings
}

func (p program) open(cmd *cobra.Command, settings bootstrap.Settings, do func(*bootstrap.App) error, more ...bootstrap.Option) error {
	app, err := bootstrap.Open(cmd.Context(), settings, p.options, buildVersion(), showLinks(cmd), bootstrap.Options(more...))
	if err != nil {
		return err
	}
	// After a signal the service still closes in order. The settings limit how
	// long that takes.
	return errors.Join(do(app), app.Close(context.WithoutCancel(cmd.Context())))
}

// showLinks prints each link to the console on a line of its own.
func showLinks(cmd *cobra.Command) bootstrap.Option {
	return bootstrap.WithConsoleLink(func(link string) { fmt.Fprintf(cmd.OutOrStdout(), "console: %s\n", link) })
}
