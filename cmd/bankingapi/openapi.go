package main

import (
	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

func openapiCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "openapi",
		Short:   "Print the OpenAPI 3.1 document of the API",
		Example: "  bankingapi openapi > openapi.json",
		Args:    named(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(bootstrap.OpenAPI())
			return err
		},
	}
}
