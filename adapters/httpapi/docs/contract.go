package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/domain/fault"
)

// contract is the part of the OpenAPI document that the pages show.
type contract struct {
	Components struct {
		Schemas map[string]schema
	}
	// days replaces the names of days in requests of examples.
	days *strings.Replacer
}

type schema struct {
	Description string
	Required    []string
	Properties  members
	Ref         string `json:"$ref"`
	Type        typeName
	Enum        []int64
	Names       []string `json:"x-enum-varnames"`
	MinLength   int
	MaxLength   int
	MaxItems    int
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

// typeName is the type of a value, without "null".
type typeName string

// UnmarshalJSON reads "string" and ["string", "null"].
func (n *typeName) UnmarshalJSON(text []byte) error {
	var names []string
	if json.Unmarshal(text, &names) != nil {
		names = make([]string, 1)
		if err := json.Unmarshal(text, &names[0]); err != nil {
			return err
		}
	}
	*n = typeName(names[0])
	return nil
}

func readContract() (contract, error) {
	var c contract
	if err := json.Unmarshal(openapi.Document(), &c); err != nil {
		return c, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	return c, nil
}

// fields writes a table of the members of schemas.
func (c contract) fields(names ...string) string {
	var out strings.Builder
	for _, name := range names {
		fmt.Fprintf(&out, "### %s {#%s}\n\n| Field | Type | Limits | Meaning |\n|---|---|---|---|\n", name, name)
		of := c.Components.Schemas[name]
		for _, m := range of.Properties {
			kind := string(m.Type)
			if m.Ref != "" {
				kind = "object"
			}
			if slices.Contains(of.Required, m.Name) {
				kind += ", required"
			}
			limits, meaning := m.describe()
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", m.Name, kind, limits, meaning)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// describe returns the limits of a value, and the first paragraph of its description.
func (s *schema) describe() (limits, meaning string) {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return "", "See [" + name + "](#" + name + ")."
	}
	meaning, _, _ = strings.Cut(s.Description, "\n\n")
	meaning = strings.Join(strings.Fields(meaning), " ")
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
	return strings.Join(all, ", "), meaning
}

// codePage is what the page of an error code says.
type codePage struct {
	fault.Code
	Status, State, RepeatText, Request, Answer string
}

var repeats = map[fault.Repeat]string{
	fault.RepeatFails:         "Yes, but it fails in the same way.",
	fault.RepeatAnswersAgain:  "Yes, with the same CallerId: it gets the same answer. Without a CallerId it is a new sale.",
	fault.RepeatIsSafe:        "Yes, with or without a CallerId. It may succeed.",
	fault.RepeatNeedsCallerID: "Only with the same CallerId. A sale that is sent again without one may happen twice.",
}

var statusLine = regexp.MustCompile(`^HTTP/1\.1 ([0-9]{3})`)

func (c contract) code(of fault.Code) codePage {
	request, answer := exampleOf(of.Name)
	request = c.days.Replace(request)
	page := codePage{Code: of, RepeatText: repeats[of.Repeat()], State: "absent: ask again with the same CallerId", Request: request, Answer: answer}
	if status := statusLine.FindStringSubmatch(answer); status != nil {
		page.Status = status[1]
	}
	if page.Status == "200" || page.Status == "400" {
		page.State = "8: the operation has had no effect"
		switch of.Name {
		case fault.TooMany:
			page.State += ". Absent if `Parameters` alone has too many: the limit may have been higher before"
		case fault.Required:
			page.State += ". Absent if `CallerId` alone is missing: it may have been optional before"
		}
	}
	return page
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

// group is the codes of one chapter of the catalogue.
type group struct {
	Title, Anchor string
	Codes         []codePage
}

// groups orders the codes by who must act.
func (c contract) groups() []group {
	all := []group{
		{Title: "The request breaks a rule", Anchor: "fix-request"},
		{Title: "The bank refuses the sale", Anchor: "refused"},
		{Title: "The subscription", Anchor: "subscription"},
		{Title: "Not now", Anchor: "retry"},
		{Title: "The outcome is not known", Anchor: "check-outcome"},
	}
	of := map[fault.Remedy]int{fault.FixRequest: 0, fault.NewOperation: 1, fault.ChangeSubscription: 2, fault.Retry: 3, fault.CheckOutcome: 4}
	for _, code := range fault.Codes() {
		g := &all[of[code.Remedy]]
		g.Codes = append(g.Codes, c.code(code))
	}
	return all
}
