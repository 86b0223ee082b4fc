package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"bankingapi/application/backoffice"
	"bankingapi/bootstrap"
	"bankingapi/domain/audit"
)

func backupCommand(p program) *cobra.Command {
	return p.command(described("backup"), backup)
}

func backup(c *call) error {
	if err := c.openAny(); err != nil {
		return err
	}
	if keeper, err := c.app.Trail(); err == nil {
		c.settings.Trail.KeyFile = keeper.KeyFile()
	}
	file := c.args[0]
	if err := c.app.Backup(c.Context(), file); err != nil {
		return exists(file, err)
	}
	if err := c.close(); err != nil {
		return err
	}
	c.settings.Storage.DSN = bootstrap.Secret(file)
	schema, err := bootstrap.SchemaStatus(c.Context(), c.settings, c.options, bootstrap.WithBookAsItIs())
	if err == nil && schema.Version > 0 && schema.Version < schema.Wanted {
		c.tell("Copied to %s. The copy has the older schema version %d and was not checked. restore migrates and checks it; verify of the older program checks it as it is.\n",
			file, schema.Version)
		return nil
	}
	if err := c.openBook(); err != nil {
		return err
	}
	proof, err := c.office.Verify(audit.By(c.Context(), audit.Who{}), nil, backoffice.Watch{}) // the copy stays as it is
	if err != nil {
		return fmt.Errorf("the copy was written, but could not be checked: %w", err)
	}
	if proof.Findings > 0 {
		return fmt.Errorf("the copy was written, but the book has %s: run verify", counted(proof.Findings, "error"))
	}
	c.tell("Copied to %s: %s. The copy is correct.\n", file, proof.Checked())
	return nil
}
