package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"bankingapi/bootstrap"
	"bankingapi/domain/fault"
)

func config(c *call) error {
	if c.is("check") {
		c.PrintErrf("The settings are valid.\n")
		return inspect(c)
	}
	var list []object
	for _, s := range c.loaded.Settings.All() {
		list = append(list, object{"Setting": s.Path, "Value": s.Value(), "Origin": c.loaded.Origin(s.Path)})
	}
	return c.write("config", list)
}

// inspect prints what a service with these settings would warn of. The error says why the service
// would not be ready. If the database does not answer within 5 seconds, the settings are still
// valid.
func inspect(c *call) error {
	ctx, cancel := context.WithTimeout(c.Context(), 5*time.Second)
	defer cancel()
	found, err := bootstrap.Inspect(ctx, c.settings, c.options)
	if err != nil {
		c.PrintErrf("Warning: the database does not answer: %v\n", fault.Explain(err))
	}
	for _, sentence := range found.Warnings {
		c.PrintErrf("Warning: %s\n", sentence)
	}
	if len(found.Blockers) > 0 {
		return fmt.Errorf("the service would not be ready: %s", strings.Join(found.Blockers, " "))
	}
	return nil
}

func printOpenAPI(c *call) error {
	document, err := bootstrap.OpenAPIDocument(c.settings, c.text("version"), c.text("server"))
	if err != nil {
		return wrongUse{err}
	}
	return c.print("%s", document)
}
