package command

import (
	"bankingapi/bootstrap"
	"bankingapi/domain/fund"
)

type migrateCommand struct{ rules fund.RulesFields }

func (o *migrateCommand) flags(f *flags) {
	f.as()
	f.newRules(&o.rules)
}

func (o *migrateCommand) run(c *call) error {
	c.settings.Rules = o.rules
	applied, err := bootstrap.MigrateUp(c.cmd.Context(), c.settings, c.program.options)
	for _, m := range applied {
		c.cmd.PrintErrf("applied %d %s\n", m.Version, m.Name)
	}
	if err != nil {
		return err
	}
	if len(applied) == 0 {
		c.cmd.PrintErrf("The schema is up to date.\n")
	}
	return nil
}

// migration is a line of migrate status.
type migration struct {
	Version int64
	Name    string
	Applied *moment
}

func migrateStatus(c *call) error {
	schema, err := bootstrap.SchemaStatus(c.cmd.Context(), c.settings, c.program.options, bootstrap.WithBookAsItIs())
	if err != nil {
		return err
	}
	list := []migration{}
	for _, m := range schema.Migrations {
		list = append(list, migration{m.Version, m.Name, instant(m.Applied)})
	}
	if schema.Version > schema.Wanted {
		c.cmd.PrintErrf("The database has schema version %d, but this program only knows version %d: use a newer program.\n", schema.Version, schema.Wanted)
	}
	if err := inspect(c); err != nil {
		c.cmd.PrintErrf("Warning: %v\n", err)
	}
	return c.write("migrate status", list)
}
