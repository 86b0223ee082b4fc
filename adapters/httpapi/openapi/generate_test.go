package openapi_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/golden"
)

// TestJSONIsMadeFromYAML makes both documents from openapi.yaml and the list of
// error codes.
func TestJSONIsMadeFromYAML(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("openapi.yaml")
	require.NoError(t, err)
	for version, file := range map[string]string{openapi.Version31: "openapi.json", openapi.Version30: "openapi-3.0.json"} {
		var root yaml.Node
		require.NoError(t, yaml.Unmarshal(source, &root))
		document := root.Content[0]
		walk(document, func(node *yaml.Node) { expand(t, node) })
		if version == openapi.Version30 {
			walk(document, downgrade)
		}
		var compact, indented bytes.Buffer
		writeJSON(t, &compact, document)
		require.NoError(t, json.Indent(&indented, compact.Bytes(), "", "  "))
		indented.WriteByte('\n')
		if *golden.Update {
			golden.Write(t, file, indented.String())
			continue
		}
		got, err := openapi.Options{}.Document(version)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(string(got), indented.String()), "%s is not what openapi.yaml and the list of codes say: make generate writes it", file)
	}
}

// walk calls visit for every node, parents first.
func walk(node *yaml.Node, visit func(*yaml.Node)) {
	visit(node)
	for _, child := range node.Content {
		walk(child, visit)
	}
}

// expand replaces the nodes with tags of our own.
func expand(t *testing.T, node *yaml.Node) {
	switch node.Tag {
	case "!codes":
		*node = yaml.Node{Kind: yaml.SequenceNode}
		for _, code := range fault.Codes() {
			node.Content = append(node.Content, scalar(code.Name))
		}
	case "!problem":
		var short struct {
			Status    int
			Stateless bool
			Errors    []map[string]string
		}
		require.NoError(t, node.Decode(&short))
		_, faults := member(node, "errors")
		*node = *problem(t, short.Status, short.Stateless, short.Errors, faults)
	case "!refused":
		var codes [][]string
		require.NoError(t, node.Decode(&codes))
		*node = *refused(t, codes...)
	}
	for i, child := range node.Content {
		if child.Tag == "!refusals" {
			node.Content = slices.Replace(node.Content, i-1, i+1, refusals(t)...)
			return
		}
	}
}

// refusals has an example of each code of a refusal, under its name.
func refusals(t *testing.T) (examples []*yaml.Node) {
	for _, code := range fault.Codes() {
		if code.Remedy != fault.NewOperation {
			continue
		}
		examples = append(examples, scalar(code.Name), mapping(
			"summary", scalar("8 Failed: "+code.Name),
			"description", scalar(code.Meaning+" "+code.Action),
			"value", refused(t, []string{code.Name}),
		))
	}
	return examples
}

// refused is what the service answers if it refuses the records for these codes.
func refused(t *testing.T, records ...[]string) *yaml.Node {
	outcome := operation.Outcome{State: operation.Failed}
	for i, codes := range records {
		for _, code := range codes {
			_, known := fault.Describe(code)
			require.True(t, known, "no code %s", code)
			outcome.Faults = append(outcome.Faults, operation.UnderParameter(i, []fault.Fault{fund.Refusal(code)})...)
		}
	}
	var body yaml.Node
	require.NoError(t, yaml.Unmarshal(httpapi.Answer(outcome, false), &body))
	return body.Content[0]
}

// problem is the body that the service answers (the contract, section 1).
func problem(t *testing.T, status int, stateless bool, errors []map[string]string, faults *yaml.Node) *yaml.Node {
	first, known := fault.Describe(errors[0]["code"])
	require.True(t, known, "no code %s", errors[0]["code"])
	message := errors[0]["detail"]
	if pointer := errors[0]["pointer"]; pointer != "" {
		message = pointer + ": " + message
	}
	detail := message
	if len(errors) > 1 {
		detail += " The request breaks " + strconv.Itoa(len(errors)) + " rules. All are listed in errors."
	}
	link := "/docs/errors/" + first.Name
	switch status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		link = "about:blank"
	}
	number := integer(status)
	body := mapping(
		"type", scalar(link),
		"title", scalar(http.StatusText(status)),
		"status", number,
		"detail", scalar(detail),
		"instance", scalar("urn:request:0197f6b1-6f0a-7c3e-9a4b-2f1d5c8e7a60"),
		"errors", faults,
		"statusCode", number,
		"message", scalar(message),
		"Error", mapping("Code", integer(first.Number), "Description", scalar(detail)),
	)
	if status == http.StatusBadRequest && !stateless {
		body.Content = append(body.Content, mapping("Data", mapping("State", integer(int(operation.Failed)))).Content...)
	}
	return body
}

func scalar(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: text, Tag: "!!str"}
}

func integer(n int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.Itoa(n), Tag: "!!int"}
}

func mapping(members ...any) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(members); i += 2 {
		node.Content = append(node.Content, scalar(members[i].(string)), members[i+1].(*yaml.Node))
	}
	return node
}

// member finds the key and the value of a member. Both are nil if there is none.
func member(node *yaml.Node, name string) (key, value *yaml.Node) {
	if node.Kind == yaml.MappingNode {
		for i := 0; i < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				return node.Content[i], node.Content[i+1]
			}
		}
	}
	return nil, nil
}

// downgrade turns what 3.0.3 does not have into what it has instead.
func downgrade(node *yaml.Node) {
	if _, version := member(node, "openapi"); version != nil {
		version.Value = "3.0.3"
	}
	// Only 3.1 has mutual TLS.
	drop(node, "clientCertificate")
	if _, security := member(node, "security"); security != nil {
		security.Content = security.Content[:1]
	}
	yes := &yaml.Node{Kind: yaml.ScalarNode, Value: "true", Tag: "!!bool"}
	// type: [string, "null"] is a type that is nullable.
	if _, types := member(node, "type"); types != nil && types.Kind == yaml.SequenceNode {
		i := slices.IndexFunc(types.Content, func(name *yaml.Node) bool { return name.Value != "null" })
		*types = *types.Content[i]
		node.Content = append(node.Content, scalar("nullable"), yes)
	}
	// exclusiveMinimum: 0 is a minimum that is exclusive.
	if key, _ := member(node, "exclusiveMinimum"); key != nil {
		key.Value = "minimum"
		node.Content = append(node.Content, scalar("exclusiveMinimum"), yes)
	}
	// A schema has one example; a media type has many, by name.
	if key, examples := member(node, "examples"); key != nil && examples.Kind == yaml.SequenceNode {
		key.Value = "example"
		*examples = *examples.Content[0]
	}
	// A license has a URL but no SPDX identifier.
	if key, identifier := member(node, "identifier"); key != nil {
		key.Value = "url"
		identifier.Value = "https://spdx.org/licenses/" + identifier.Value + ".html"
	}
}

// drop removes a member.
func drop(node *yaml.Node, name string) {
	for i := 0; node.Kind == yaml.MappingNode && i < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			node.Content = slices.Delete(node.Content, i, i+2)
			return
		}
	}
}

// writeJSON keeps the order of members and the digits of numbers, which a way
// through Go values would not.
func writeJSON(t *testing.T, out *bytes.Buffer, node *yaml.Node) {
	t.Helper()
	text := func(value string) {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		require.NoError(t, encoder.Encode(value))
	}
	switch node.Kind {
	case yaml.AliasNode:
		writeJSON(t, out, node.Alias)
	case yaml.MappingNode:
		out.WriteByte('{')
		for i := 0; i < len(node.Content); i += 2 {
			if i > 0 {
				out.WriteByte(',')
			}
			text(node.Content[i].Value)
			out.WriteByte(':')
			writeJSON(t, out, node.Content[i+1])
		}
		out.WriteByte('}')
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, item := range node.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			writeJSON(t, out, item)
		}
		out.WriteByte(']')
	default:
		if node.ShortTag() == "!!str" {
			text(node.Value)
			return
		}
		require.True(t, json.Valid([]byte(node.Value)), "line %d: %q is not JSON", node.Line, node.Value)
		out.WriteString(node.Value)
	}
}
