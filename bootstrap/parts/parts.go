// Package parts has all optional parts of the service. A host that wants only some of them
// passes these to bootstrap itself, and links no others.
package parts

import (
	"bankingapi/adapters/console"
	"bankingapi/adapters/httpapi/docs"
	"bankingapi/adapters/sandbox"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/engines"
)

// All adds all engines, the console, the sandbox and the documentation.
func All() bootstrap.Option {
	return bootstrap.Options(engines.All(), bootstrap.WithConsole(console.Open), bootstrap.WithSandbox(sandbox.Open), bootstrap.WithDocs(docs.Pages))
}
