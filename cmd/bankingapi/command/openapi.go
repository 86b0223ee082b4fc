package command

import (
	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

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
