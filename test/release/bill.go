package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
)

// bill is the software bill of materials of a program, in CycloneDX 1.6.
func bill(p program, at time.Time) ([]byte, error) {
	type licenceChoice struct {
		Expression string `json:"expression"`
	}
	type hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	type property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	type component struct {
		Ref        string          `json:"bom-ref"`
		Type       string          `json:"type"`
		Name       string          `json:"name"`
		Version    string          `json:"version"`
		Hashes     []hash          `json:"hashes,omitempty"`
		Licences   []licenceChoice `json:"licenses"`
		PackageURL string          `json:"purl"`
		Properties []property      `json:"properties,omitempty"`
	}
	type dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
	type metadata struct {
		Timestamp time.Time `json:"timestamp"`
		Component component `json:"component"`
	}
	root := component{
		Ref: packageURL("golang", name, p.version()), Type: "application", Name: name, Version: p.version(),
		Hashes:     []hash{{"SHA-256", p.sum()}},
		Licences:   []licenceChoice{{"MIT"}},
		PackageURL: packageURL("golang", name, p.version()),
	}
	for _, s := range p.info.Settings {
		root.Properties = append(root.Properties, property{"go:build:" + s.Key, s.Value})
	}
	edges := []dependency{{Ref: root.Ref}}
	var components []component
	for _, m := range p.modules {
		url := packageURL(m.ecosystem, m.path, m.version)
		c := component{
			Ref: url, Type: "library", Name: m.path, Version: m.version,
			Licences: []licenceChoice{{m.licence}}, PackageURL: url,
		}
		if m.sum != "" {
			// The sum of go.sum is over the module's files, not over an
			// archive, so it is no "hash" of this format.
			c.Properties = []property{{"go:sum", m.sum}}
		}
		components = append(components, c)
		edges[0].DependsOn = append(edges[0].DependsOn, url)
		edges = append(edges, dependency{Ref: url})
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		SerialNumber string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}{
		"http://cyclonedx.org/schema/bom-1.6.schema.json", "CycloneDX", "1.6",
		"urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, []byte(root.Ref+"#"+p.sum())).String(), 1,
		metadata{at, root}, components, edges,
	})
	return b.Bytes(), err
}

// packageURL is a purl, which spells Go's module paths in small letters.
func packageURL(ecosystem, path, version string) string {
	return "pkg:" + ecosystem + "/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
}
