package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
	"bankingapi/bootstrap/engines"
)

// withApp opens the service by the settings of the command line, lets do work
// with it, and closes it. A command that ends by itself leaves the background
// to those that serve, and says only what went wrong.
func (p program) withApp(cmd *cobra.Command, do func(*bootstrap.App) error) error {
	loaded, err := p.load(cmd)
	if err != nil {
		return err
	}
	return open(cmd, inForeground(loaded.Settings), do)
}

func inForeground(settings bootstrap.Settings) bootstrap.Settings {
	settings.Settlement.Enabled = false
	if settings.Log.Level != "error" {
		settings.Log.Level = "warn"
	}
	return settings
}

func open(cmd *cobra.Command, settings bootstrap.Settings, do func(*bootstrap.App) error) error {
	app, err := bootstrap.Open(cmd.Context(), settings, engines.All(), buildVersion())
	if err != nil {
		return err
	}
	// A command that was told to end still closes in order: the settings bound
	// how long that takes.
	return errors.Join(do(app), app.Close(context.WithoutCancel(cmd.Context())))
}
