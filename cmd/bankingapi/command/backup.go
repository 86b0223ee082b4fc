package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"bankingapi/application/backoffice"
	"bankingapi/bootstrap"
)

func (p program) backupCommand() *cobra.Command {
	return p.command(&cobra.Command{
		Use:   "backup FILE",
		Short: "Copy a SQLite book to a new file, while the service runs",
		Long: `Writes a consistent copy of the SQLite book to FILE, which must not exist, and then checks the copy as
verify does. Sales may continue. A book with an older schema is copied and not checked. For Postgres
use pg_dump, or a base backup with WAL archiving.`,
		Example: "  bankingapi backup /backup/bank-2026-11-20.db",
		Args:    named("FILE"),
	}, func(c *call) error {
		app, err := c.book()
		if err != nil {
			return err
		}
		settings := &c.loaded.Settings
		if keeper, err := app.Trail(); err == nil {
			settings.Trail.KeyFile = keeper.KeyFile()
		}
		if err := app.Backup(c.Context(), c.args[0]); err != nil {
			return exists(c.args[0], err)
		}
		if err := c.close(); err != nil {
			return err
		}
		settings.Storage.DSN = bootstrap.Secret(c.args[0])
		schema, err := bootstrap.SchemaStatus(c.Context(), *settings, c.options, bootstrap.WithBookAsItIs())
		if err == nil && schema.Version > 0 && schema.Version < schema.Wanted {
			c.tell("Copied to %s. The copy has the older schema version %d and was not checked. restore migrates and checks it; verify of the older program checks it as it is.\n",
				c.args[0], schema.Version)
			return nil
		}
		office, err := c.office()
		if err != nil {
			return err
		}
		proof, err := office.Verify(c.Context(), nil, backoffice.Watch{})
		if err != nil {
			return fmt.Errorf("the copy was written, but could not be checked: %w", err)
		}
		if proof.Findings > 0 {
			return fmt.Errorf("the copy was written, but the book has %s: run verify", counted(proof.Findings, "error"))
		}
		c.tell("Copied to %s: %s. The copy is correct.\n", c.args[0], proof.Checked())
		return nil
	})
}
