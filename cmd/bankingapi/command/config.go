package command

import (
	"context"
	"time"

	"bankingapi/bootstrap"
)

func config(c *call) error {
	if c.is("check") {
		c.PrintErrf("The settings are valid.\n")
		warnOfRisks(c)
		return nil
	}
	var list []object
	for _, s := range c.loaded.Settings.All() {
		list = append(list, object{"Setting": s.Path, "Value": s.Value(), "Origin": c.loaded.Origin(s.Path)})
	}
	return c.write("config", list)
}

// warnOfRisks prints what may lose data. If the database does not respond within 5 seconds, the
// settings are still valid.
func warnOfRisks(c *call) {
	ctx, cancel := context.WithTimeout(c.Context(), 5*time.Second)
	defer cancel()
	risks, err := bootstrap.Risks(ctx, c.settings, c.options)
	if err != nil {
		c.PrintErrf("Warning: the database cannot be asked for its settings: %v\n", err)
	}
	for _, r := range risks {
		c.PrintErrf("Warning: %s\n", r)
	}
}

func printOpenAPI(c *call) error {
	document, err := bootstrap.OpenAPIDocument(c.settings, c.text("version"), c.text("server"))
	if err != nil {
		return wrongUse{err}
	}
	return c.print("%s", document)
}
