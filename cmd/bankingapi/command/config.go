package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"bankingapi/bootstrap"
	"bankingapi/domain/fault"
)

type configCommand struct{ check bool }

func (o *configCommand) flags(f *flags) {
	f.json()
	f.set.BoolVar(&o.check, "check", false, "only check the settings, and look for what a service would complain about: in its TLS files and in its database")
}

// setting is a line of config.
type setting struct{ Setting, Value, Origin string }

func (o *configCommand) run(c *call) error {
	if o.check {
		c.cmd.PrintErrf("The settings are valid.\n")
		return inspect(c)
	}
	var list []setting
	for _, s := range c.loaded.Settings.All() {
		list = append(list, setting{s.Path, s.Value(), c.loaded.Origin(s.Path)})
	}
	return c.write("config", list)
}

// inspect prints what a service with these settings would warn of. The error says why the service
// would not be ready. If the database does not answer within 5 seconds, the settings are still
// valid.
func inspect(c *call) error {
	ctx, cancel := context.WithTimeout(c.cmd.Context(), 5*time.Second)
	defer cancel()
	found, err := bootstrap.Inspect(ctx, c.settings, c.program.options)
	if err != nil {
		c.cmd.PrintErrf("Warning: the database does not answer: %v\n", fault.Explain(err))
	}
	for _, sentence := range found.Warnings {
		c.cmd.PrintErrf("Warning: %s\n", sentence)
	}
	if len(found.Blockers) > 0 {
		return fmt.Errorf("the service would not be ready: %s", strings.Join(found.Blockers, " "))
	}
	return nil
}

type openAPICommand struct{ version, server string }

func (o *openAPICommand) flags(f *flags) {
	f.set.StringVar(&o.version, "version", "3.1", "`version` of OpenAPI: 3.0 or 3.1")
	f.complete("version", "3.0", "3.1")
	f.set.StringVar(&o.server, "server", "", "base `url` of the service, for gateways that import the document as a file")
}

func (o *openAPICommand) run(c *call) error {
	document, err := bootstrap.OpenAPIDocument(c.settings, o.version, o.server)
	if err != nil {
		return wrongUse{err}
	}
	return c.print("%s", document)
}
