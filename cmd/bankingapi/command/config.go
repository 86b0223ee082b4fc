package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

func configCommand(p program) *cobra.Command {
	var check bool
	cmd := listSettings(p.command(described("config"), func(c *call) error {
		if check {
			c.tell("The settings are valid.\n")
			c.warnOfRisks()
			return nil
		}
		list := table{columns: []string{"Setting", "Value", "Origin"}}
		for _, v := range c.loaded.Values() {
			list.add(v.Path, cell{oneWord(v.Text), v.Text}, raw(v.Origin))
		}
		return c.write("", document{tables: []table{list}})
	}))
	cmd.Flags().BoolVar(&check, "check", false, "only check the settings, and warn of risks of the database")
	return addFormat(cmd)
}

// warnOfRisks writes what may lose data. A database that cannot be asked within 5
// seconds makes no setting invalid.
func (c *call) warnOfRisks() {
	ctx, cancel := context.WithTimeout(c.Context(), 5*time.Second)
	defer cancel()
	risks, err := bootstrap.Risks(ctx, c.settings, c.options)
	if err != nil {
		c.tell("Warning: the database cannot be asked for its settings: %v\n", err)
	}
	for _, r := range risks {
		c.tell("Warning: %s\n", r)
	}
}

func openapiCommand(p program) *cobra.Command {
	var version, server string
	cmd := p.command(described("openapi"), func(c *call) error {
		document, err := bootstrap.OpenAPIDocument(c.settings, version, server)
		if err != nil {
			return wrongUsef("%v", err)
		}
		_, err = c.OutOrStdout().Write(document)
		return err
	})
	cmd.Flags().StringVar(&version, "version", "3.1", "`version` of OpenAPI: 3.0 or 3.1")
	cmd.Flags().StringVar(&server, "server", "", "base `url` of the service, for gateways that import the document as a file")
	complete(cmd, "version", "3.0", "3.1")
	return cmd
}
