package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bankingapi/domain/fault"
)

// contract is the part of the OpenAPI document that the pages show.
type contract struct {
	Components struct {
		Schemas map[string]schema
	}
	// days replaces the names of days, and of the time zone, in examples.
	days *strings.Replacer
}

type schema struct {
	Description string
	Required    []string
	Properties  members
	Ref         string `json:"$ref"`
	// Type is a name such as "string", or a list with "null".
	Type      any
	Enum      []int64
	Names     []string `json:"x-enum-varnames"`
	MinLength int
	MaxLength int
	MaxItems  int
	// The limits of numbers, as the document has them.
	Minimum, Maximum *int64
	Above            *int64 `json:"exclusiveMinimum"`
}

// members are the properties of a schema in the order of the document.
type members []member

type member struct {
	Name string
	schema
}

// UnmarshalJSON keeps the order, which a map would not.
func (m *members) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		next := member{Name: fmt.Sprint(name)}
		if err := decoder.Decode(&next.schema); err != nil {
			return err
		}
		*m = append(*m, next)
	}
	return nil
}

// schemas are the schemas with these names, for the template "fields".
func (c contract) schemas(names ...string) (all []member) {
	for _, name := range names {
		all = append(all, member{name, c.Components.Schemas[name]})
	}
	return all
}

// Kind is the type of a value, without "null".
func (s *schema) Kind() string {
	if s.Ref != "" {
		return "object"
	}
	return strings.Fields(strings.Trim(fmt.Sprint(s.Type), "[]"))[0]
}

// Requires reports whether the member of an object is required.
func (s *schema) Requires(member string) bool { return slices.Contains(s.Required, member) }

// Meaning is the first paragraph of the description.
func (s *schema) Meaning() string {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return "See [" + name + "](#" + name + ")."
	}
	first, _, _ := strings.Cut(s.Description, "\n\n")
	return strings.Join(strings.Fields(first), " ")
}

// Limits are the limits of a value.
func (s *schema) Limits() string {
	var all []string
	for i, value := range s.Enum {
		all = append(all, strconv.FormatInt(value, 10)+" "+s.Names[i])
	}
	switch {
	case s.MaxLength > 0:
		all = append(all, fmt.Sprintf("%d to %s characters", s.MinLength, grouped(int64(s.MaxLength))))
	case s.MaxItems > 0:
		all = append(all, fmt.Sprintf("at most %s items", grouped(int64(s.MaxItems))))
	case s.Above != nil:
		all = append(all, "above "+grouped(*s.Above))
	case s.Minimum != nil:
		all = append(all, "from "+grouped(*s.Minimum))
	}
	if s.Maximum != nil {
		all = append(all, "to "+grouped(*s.Maximum))
	}
	return strings.Join(all, ", ")
}

// codePage is what the page of an error code says.
type codePage struct {
	fault.Code
	Status, Request, Answer string
}

func (c contract) code(of fault.Code) codePage {
	request, answer := exampleOf(of.Name)
	_, status, _ := strings.Cut(answer, " ") // HTTP/1.1 400 Bad Request
	status, _, _ = strings.Cut(status, " ")
	return codePage{of, status, c.days.Replace(request), c.days.Replace(answer)}
}

// codes are the codes after which the same side must act.
func (c contract) codes(remedy fault.Remedy) (all []codePage) {
	for _, code := range fault.Codes() {
		if code.Remedy == remedy {
			all = append(all, c.code(code))
		}
	}
	return all
}

// exampleOf is the recorded request and answer of a code.
func exampleOf(code string) (request, answer string) {
	request, answer, _ = strings.Cut(strings.TrimSpace(string(read("examples/"+code+".http"))), "\n\n\n")
	return request, answer
}

// bodyOf is the body of the recorded answer.
func bodyOf(code string) string {
	_, answer := exampleOf(code)
	_, body, _ := strings.Cut(answer, "\n\n")
	return body
}
