package bootstrap

import (
	"fmt"
	"maps"
	"net/http"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/docs"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/adapters/sandbox"
	"bankingapi/adapters/settings"
)

// OpenAPI is the API's contract as an OpenAPI 3.1 document, in JSON.
func OpenAPI() []byte { return openapi.Document() }

// OpenAPIDocument returns the API's contract in a version of OpenAPI, 3.0 or
// 3.1, with the contact and the terms of the settings. server is the base URL
// of the service in the document. If it is empty, it is http.public_url. If
// that is empty too, the document is for the service that it came from.
func OpenAPIDocument(s Settings, version, server string) ([]byte, error) {
	o := openAPIOptions(s)
	if server != "" {
		if !settings.IsHTTPURL(server) {
			return nil, fmt.Errorf("the server must be an http or https URL, like https://bank.example: %q", server)
		}
		o.Server = server
	}
	return o.Document(version)
}

func openAPIOptions(s Settings) openapi.Options {
	return openapi.Options{
		Server:      s.HTTP.PublicURL,
		ContactName: s.HTTP.ContactName, ContactURL: s.HTTP.ContactURL, ContactEmail: s.HTTP.ContactEmail,
		TermsURL: s.HTTP.TermsURL,
	}
}

// documents are the pages beside the operations, by path.
func documents(settings Settings, operations []httpapi.Descriptor) (map[string]http.Handler, error) {
	if !settings.HTTP.Docs {
		return nil, nil
	}
	described := openAPIOptions(settings)
	described.Posts = make(map[string]string)
	for _, o := range operations {
		if text := o.Description(); text != "" {
			described.Posts[httpapi.Path(o.OperationName())] = text
		}
	}
	pages, err := described.Pages()
	if err != nil {
		return nil, err
	}
	guide, err := docs.Pages(docs.Options{
		BodyLimit: int64(settings.HTTP.BodyLimit), ParametersLimit: settings.HTTP.ParametersLimit, TimeZone: settings.Bank.TimeZone,
		Faults: sandboxFaults(), Refusals: sandboxRefusals(),
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(pages, guide)
	return pages, nil
}

// sandboxFaults are the faults of a sandbox, as the guide shows them.
func sandboxFaults() []docs.SandboxFault {
	orders := sandbox.Orders()
	all := make([]docs.SandboxFault, len(orders))
	for i, o := range orders {
		all[i] = docs.SandboxFault(o)
	}
	return all
}

// sandboxRefusals are the refusals of a sandbox, as the guide shows them.
func sandboxRefusals() (all []docs.SandboxRefusal) {
	for _, r := range sandbox.RefusalTable() {
		all = append(all, docs.SandboxRefusal(r))
	}
	return all
}
