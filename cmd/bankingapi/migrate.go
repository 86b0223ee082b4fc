package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
	"bankingapi/bootstrap/engines"
)

func (p program) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate COMMAND",
		Short: "Bring the schema of the database up or down, or show it",
		Long: `The schema is versioned SQL that is part of the program. serve and every other command bring a
SQLite file up to date by themselves; on Postgres serve does so with storage.migrate only.`,
		Example: `  bankingapi migrate status
  bankingapi migrate up`,
		Args:        cobra.ArbitraryArgs,
		Annotations: mentionSettings(),
		RunE:        chooseCommand,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:         "up",
			Short:       "Bring the schema up to what this program needs",
			Example:     "  bankingapi migrate up",
			Args:        named(),
			Annotations: mentionSettings(),
			RunE: func(cmd *cobra.Command, _ []string) error {
				loaded, err := p.load(cmd)
				if err != nil {
					return err
				}
				applied, err := bootstrap.MigrateUp(cmd.Context(), loaded.Settings, engines.All())
				for _, m := range applied {
					fmt.Fprintf(cmd.ErrOrStderr(), "applied %d %s\n", m.Version, m.Name)
				}
				if err == nil && len(applied) == 0 {
					fmt.Fprintln(cmd.ErrOrStderr(), "The schema is up to date.")
				}
				return err
			},
		},
		&cobra.Command{
			Use:   "down",
			Short: "Undo the newest migration",
			Long: `Undoes the newest migration, with the data that it made room for: undoing the first one
empties the database. Back up before.`,
			Example:     "  bankingapi migrate down",
			Args:        named(),
			Annotations: mentionSettings(),
			RunE: func(cmd *cobra.Command, _ []string) error {
				loaded, err := p.load(cmd)
				if err != nil {
					return err
				}
				undone, err := bootstrap.MigrateDown(cmd.Context(), loaded.Settings, engines.All())
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "undone %d %s\n", undone.Version, undone.Name)
				return nil
			},
		},
		&cobra.Command{
			Use:         "status",
			Short:       "Show which migrations the database has",
			Example:     "  bankingapi migrate status",
			Args:        named(),
			Annotations: mentionSettings(),
			RunE: func(cmd *cobra.Command, _ []string) error {
				loaded, err := p.load(cmd)
				if err != nil {
					return err
				}
				schema, err := bootstrap.SchemaStatus(cmd.Context(), loaded.Settings, engines.All())
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
					fmt.Fprintf(cmd.ErrOrStderr(), "The schema is of version %d, newer than this program, which knows %d: use a newer program.\n", schema.Version, schema.Wanted)
				}
				return table.Flush()
			},
		},
	)
	return cmd
}
