// Package parts has everything that plugs into the service. A host that wants some of it
// hands that to bootstrap itself, and links nothing else.
package parts

import (
	"bankingapi/adapters/console"
	"bankingapi/adapters/httpapi/docs"
	"bankingapi/adapters/sandbox"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/engines"
)

// All plugs in all engines, the console, the sandbox and the documentation.
func All() bootstrap.Option {
	return bootstrap.Options(engines.All(), bootstrap.WithConsole(console.Open), bootstrap.WithSandbox(sandbox.Open), bootstrap.WithDocs(docs.Pages))
}
