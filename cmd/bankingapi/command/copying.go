package command

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

func copyCommand(p program) *cobra.Command {
	var to string
	cmd := p.command(described("copy"), func(c *call) error { return copyBook(c, to) })
	cmd.Flags().StringVar(&to, "to", "", "Postgres `URL` or SQLite file of the copy")
	return needs(cmd, "to")
}

func copyBook(c *call, to string) error {
	target := c.settings
	target.Storage.DSN = bootstrap.Secret(to)
	scheme, _, isURL := strings.Cut(to, "://")
	switch {
	case isURL && (scheme == "postgres" || scheme == "postgresql"):
		target.Storage.Driver = bootstrap.Postgres
	case isURL || strings.Contains(to, "dbname=") || strings.Contains(to, "host="):
		return wrongUsef("--to must be a URL like postgres://user@host/database, or a SQLite file")
	default:
		target.Storage.Driver = bootstrap.SQLite
	}
	if target.Storage == c.settings.Storage {
		return wrongUsef("--to names the book itself")
	}
	if err := c.openAny(); err != nil {
		return err
	}
	keyFile := ""
	if keeper, err := c.app.Trail(); err == nil {
		keyFile = keeper.KeyFile()
	}
	if err := c.close(); err != nil {
		return err
	}
	work := startProgress(c.ErrOrStderr(), "copying", 0)
	defer work.stop()
	rows, err := bootstrap.Copy(c.Context(), c.settings, target, bootstrap.CopyWatch{
		Phase: work.enter,
		Row:   func(n int64) { work.rows.Add(n) },
	}, c.options)
	if errors.Is(err, bootstrap.ErrTarget) {
		return wrongUsef("--to: %v. Nothing was copied", bootstrap.ErrTarget)
	}
	if err != nil {
		return err
	}
	work.printf("Copied %s. The copy has the same rows as the book.\n\nTo go on with the copy, set:\n  storage.driver: %s\n", counted(rows, "row"), target.Storage.Driver)
	if isURL {
		work.printf("  storage.dsn: the URL of --to\n")
	} else {
		work.printf("  storage.dsn: %s\n", to)
	}
	if keyFile != "" {
		if absolute, err := filepath.Abs(keyFile); err == nil {
			keyFile = absolute
		}
		work.printf("  trail.key_file: %s\nTake this file along, and the checkpoints: the file trail.checkpoints of the book, and those that you saved.\n", keyFile)
	}
	work.printf("Then run 'bankingapi verify', start the service, and never start it on the old book again.\n")
	return nil
}
