package command

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

func (p program) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate COMMAND",
		Short: "Migrate the database schema, or show its version",
		Long: `The program contains the schema as versioned SQL. It migrates SQLite files automatically. On
Postgres, serve migrates only if storage.migrate is true.`,
		Example: `  bankingapi migrate status
  bankingapi migrate up`,
		Args:        cobra.ArbitraryArgs,
		Annotations: mentionSettings(),
		RunE:        chooseCommand,
	}
	var dropData bool
	down := &cobra.Command{
		Use:   "down",
		Short: "Undo the newest migration",
		Long: `Undoes the newest migration and deletes the data in its tables. Undoing the first migration empties
the database. It fails while a service uses the database. It fails if the book has data, unless
--drop-data is given: make a backup first.`,
		Example: `  bankingapi migrate down
  bankingapi migrate down --drop-data`,
		Args:        named(),
		Annotations: mentionSettings(),
		RunE: p.withSettings(func(cmd *cobra.Command, _ []string, loaded bootstrap.Loaded) error {
			options := []bootstrap.Option{p.options, bootstrap.WithExistingBook()}
			if dropData {
				options = append(options, bootstrap.WithDropData())
			}
			undone, err := bootstrap.MigrateDown(cmd.Context(), loaded.Settings, options...)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "undone %d %s\n", undone.Version, undone.Name)
			return nil
		}),
	}
	down.Flags().BoolVar(&dropData, "drop-data", false, "undo the migration although data are deleted")
	cmd.AddCommand(
		down,
		addActor(&cobra.Command{
			Use:         "up",
			Short:       "Migrate the schema to the version of this program",
			Example:     "  bankingapi migrate up",
			Args:        named(),
			Annotations: mentionSettings(),
			RunE: p.withSettings(func(cmd *cobra.Command, _ []string, loaded bootstrap.Loaded) error {
				applied, err := bootstrap.MigrateUp(cmd.Context(), loaded.Settings, p.options)
				for _, m := range applied {
					fmt.Fprintf(cmd.ErrOrStderr(), "applied %d %s\n", m.Version, m.Name)
				}
				if err == nil && len(applied) == 0 {
					fmt.Fprintln(cmd.ErrOrStderr(), "The schema is up to date.")
				}
				return err
			}),
		}),
		&cobra.Command{
			Use:         "status",
			Short:       "List the migrations and when they were applied",
			Example:     "  bankingapi migrate status",
			Args:        named(),
			Annotations: mentionSettings(),
			RunE: p.withSettings(func(cmd *cobra.Command, _ []string, loaded bootstrap.Loaded) error {
				schema, err := bootstrap.SchemaStatus(cmd.Context(), loaded.Settings, p.options, bootstrap.WithExistingBook())
				if err != nil {
					return err
				}
				table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(table, "VERSION\tNAME\tAPPLIED")
				for _, m := range schema.Migrations {
					applied := "pending"
					if !m.Applied.IsZero() {
						applied = m.Applied.UTC().Format(time.RFC3339)
					}
					fmt.Fprintf(table, "%d\t%s\t%s\n", m.Version, m.Name, applied)
				}
				if schema.Version > schema.Wanted {
					fmt.Fprintf(cmd.ErrOrStderr(), "The database has schema version %d, but this program only knows version %d: use a newer program.\n", schema.Version, schema.Wanted)
				}
				return table.Flush()
			}),
		},
	)
	return cmd
}
