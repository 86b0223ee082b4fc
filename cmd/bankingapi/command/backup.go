package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

func (p program) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy a SQLite book to a new file, while the service runs",
		Long: `Writes a consistent copy of the SQLite book to FILE, which must not exist, and then checks the copy as
verify does. Sales may continue. For Postgres use pg_dump, or a base backup with WAL archiving.`,
		Example:     "  bankingapi backup /backup/bank-2026-11-20.db",
		Args:        named("FILE"),
		Annotations: mentionSettings(),
		RunE: p.withSettings(func(cmd *cobra.Command, args []string, loaded bootstrap.Loaded) error {
			err := p.openBook(cmd, loaded.Settings, func(app *bootstrap.App) error {
				if keeper, err := app.Trail(); err == nil {
					loaded.Settings.Trail.KeyFile = keeper.KeyFile()
				}
				return app.Backup(cmd.Context(), args[0])
			})
			if err != nil {
				return err
			}
			loaded.Settings.Storage.DSN = bootstrap.Secret(args[0])
			return p.openBook(cmd, loaded.Settings, func(app *bootstrap.App) error {
				proof, err := app.Verify(cmd.Context(), bootstrap.VerifyWatch{})
				if err != nil {
					return err
				}
				if proof.Findings > 0 {
					return fmt.Errorf("the copy was written, but the book has %d errors: run verify", proof.Findings)
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "Copied to %s: %s. The copy is correct.\n", args[0], proof.Checked())
				return nil
			})
		}),
	}
}
