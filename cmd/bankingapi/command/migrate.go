package command

import (
	"time"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

func migrateCommand(p program) *cobra.Command {
	var dropData bool
	down := p.command(described("migrate down"), func(c *call) error {
		options := []bootstrap.Option{c.options, bootstrap.WithExistingBook()}
		if dropData {
			options = append(options, bootstrap.WithDropData())
		}
		undone, err := bootstrap.MigrateDown(c.Context(), c.settings, options...)
		if err == nil {
			c.tell("undone %d %s\n", undone.Version, undone.Name)
		}
		return err
	})
	down.Flags().BoolVar(&dropData, "drop-data", false, "undo the migration although data are deleted")
	return group(described("migrate"), down, addActor(p.command(described("migrate up"), migrateUp)), addFormat(p.command(described("migrate status"), migrateStatus)))
}

func migrateUp(c *call) error {
	applied, err := bootstrap.MigrateUp(c.Context(), c.settings, c.options)
	for _, m := range applied {
		c.tell("applied %d %s\n", m.Version, m.Name)
	}
	if err == nil && len(applied) == 0 {
		c.tell("The schema is up to date.\n")
	}
	return err
}

func migrateStatus(c *call) error {
	schema, err := bootstrap.SchemaStatus(c.Context(), c.settings, c.options, bootstrap.WithBookAsItIs())
	if err != nil {
		return err
	}
	list := table{columns: []string{"Version", "Name", "Applied"}}
	for _, m := range schema.Migrations {
		var applied any = cell{"pending", nil}
		if !m.Applied.IsZero() {
			applied = m.Applied
		}
		list.add(m.Version, m.Name, applied)
	}
	if schema.Version > schema.Wanted {
		c.tell("The database has schema version %d, but this program only knows version %d: use a newer program.\n", schema.Version, schema.Wanted)
	}
	c.warnOfRisks()
	return c.write(time.RFC3339, document{tables: []table{list}})
}
