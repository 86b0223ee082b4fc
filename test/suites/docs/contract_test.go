// Package docs_test compares what the pages of the repository say with what the
// program does: the contract's limits and codes, links, commands and figures.
package docs_test

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/adapters/settings"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/golden"
)

const root = "../../.."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(text)
}

func contract(t *testing.T) string { return read(t, "domain/README.md") }

// goFiles returns the paths of all Go files below the folders.
func goFiles(t *testing.T, folders ...string) []string {
	t.Helper()
	var paths []string
	for _, folder := range folders {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") {
				paths = append(paths, path)
			}
			return err
		}))
	}
	return paths
}

var (
	citation = regexp.MustCompile(`(?i)(?:contract(?:'s)?,? sections?|sections?) ([0-9]+(?:\.[0-9]+)?)((?:(?:, | and | to )[0-9]+(?:\.[0-9]+)?)*) ?(of the contract)?`)
	number   = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)?`)
	heading  = regexp.MustCompile(`(?m)^##+ ([0-9]+(?:\.[0-9]+)?)\.? `)
)

// citations returns the sections of the contract that a comment names.
func citations(comment string) []string {
	var sections []string
	for _, match := range citation.FindAllStringSubmatch(strings.Join(strings.Fields(comment), " "), -1) {
		if strings.HasPrefix(strings.ToLower(match[0]), "contract") || match[3] != "" {
			sections = append(sections, number.FindAllString(match[1]+match[2], -1)...)
		}
	}
	return sections
}

// TestEverySectionOfTheContractThatACommentCitesExists reads every comment of
// the repository.
func TestEverySectionOfTheContractThatACommentCitesExists(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"4", "6", "1", "2", "7", "8", "5.2", "6"}, citations(
		"the contract, sections\n4 to 6; (the contract, section 1); sections 2, 7 and 8 of the contract; RFC 1, section 3; the contract's section 5.2 and 6"))
	sections := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(contract(t), -1) {
		sections[match[1]] = true
	}
	for n := 1; n <= 10; n++ {
		require.Contains(t, sections, strconv.Itoa(n), "comments cite sections 1 to 10")
		require.Regexp(t, `(?m)^`+strconv.Itoa(n)+`\. \[.+\]\(#`+strconv.Itoa(n)+`-`, contract(t), "the page begins with a list of its sections")
	}
	cited := 0
	for _, path := range goFiles(t, "domain", "application", "adapters", "bootstrap", "cmd", "test") {
		if strings.HasSuffix(path, "docs/contract_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, comment := range file.Comments {
			for _, section := range citations(comment.Text()) {
				require.Contains(t, sections, section, "%s cites a section that domain/README.md does not have", files.Position(comment.Pos()))
				cited++
			}
		}
	}
	require.Greater(t, cited, 20)
}

// schema is a part of the OpenAPI document.
type schema struct {
	Required   []string
	Properties map[string]schema
	Type       any
	MinLength  *int
	MaxLength  *int
	MinItems   *int
	MaxItems   *int
	Enum       []any
}

func openAPI(t *testing.T) map[string]schema {
	t.Helper()
	var document struct {
		Components struct{ Schemas map[string]schema }
	}
	require.NoError(t, json.Unmarshal(openapi.Document(), &document))
	return document.Components.Schemas
}

// rows returns the cells of the tables whose header line is exactly head. The
// tables may be indented; groups are in the order of the page.
func rows(page, head string) (tables [][][]string) {
	inside := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case line == head:
			inside = true
			tables = append(tables, nil)
		case !strings.HasPrefix(line, "|"):
			inside = false
		case inside && !strings.HasPrefix(line, "|-"):
			var cells []string
			for cell := range strings.SplitSeq(strings.Trim(line, "|"), " | ") {
				cells = append(cells, strings.TrimSpace(cell))
			}
			tables[len(tables)-1] = append(tables[len(tables)-1], cells)
		}
	}
	return tables
}

var (
	characters = regexp.MustCompile(`(?:(1) to |at most )([0-9,]+) characters`)
	items      = regexp.MustCompile(`at most ([0-9,]+) items`)
	oneOf      = regexp.MustCompile(`^one of (.*)$`)
)

// limit reads a number that may have thousands separators.
func limit(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	require.NoError(t, err)
	return n
}

func value(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// TestFieldsOfTheContractAreThoseOfTheDocument: every field, whether it is
// required, its length, its items and its allowed values.
func TestFieldsOfTheContractAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	schemas := openAPI(t)
	tables := rows(contract(t), "| field | type | required | limit |")
	names := []string{"Header", "PushNotification", "TranDataItem", "FundSale", "DestinationAccount", "FundToProcess"}
	require.Len(t, tables, len(names), "each table of fields in domain/README.md has a schema: add its name to names in this test, in the order of the page")
	for i, name := range names {
		var fields, required []string
		for _, row := range tables[i] {
			field, rule := strings.Trim(row[0], "`"), row[3]
			fields = append(fields, field)
			if row[2] == "yes" {
				required = append(required, field)
			}
			of := schemas[name].Properties[field]
			about := fmt.Sprintf("%s.%s: %s", name, field, rule)
			least, most := 0, 0
			if match := characters.FindStringSubmatch(rule); match != nil {
				most = limit(t, match[2])
				if match[1] != "" {
					least = limit(t, match[1])
				}
			}
			require.Equal(t, least, value(of.MinLength), about)
			require.Equal(t, most, value(of.MaxLength), about)
			most = 0
			if match := items.FindStringSubmatch(rule); match != nil {
				most = limit(t, match[1])
			}
			require.Equal(t, most, value(of.MaxItems), about)
			var allowed []any
			if match := oneOf.FindStringSubmatch(rule); match != nil {
				for _, text := range regexp.MustCompile(`\b[0-9]+\b`).FindAllString(match[1], -1) {
					allowed = append(allowed, float64(limit(t, text)))
				}
			}
			require.Equal(t, allowed, of.Enum, about)
			if row[1] == "number" {
				require.Regexp(t, "integer|number", fmt.Sprint(of.Type), about)
			}
		}
		var documented []string
		for field := range schemas[name].Properties {
			documented = append(documented, field)
		}
		require.ElementsMatch(t, documented, fields, name)
		require.ElementsMatch(t, schemas[name].Required, required, name)
	}
	for _, name := range []string{"AddPushNotificationResponseRequest", "BuyFundFromCustomerRequest"} {
		parameters := schemas[name].Properties["Parameters"]
		require.Equal(t, 1, value(parameters.MinItems))
		require.Equal(t, settings.Default().HTTP.ParametersLimit, value(parameters.MaxItems))
	}
}

// TestLimitsOfTheContractAreTheDefaults: the limits that are settings.
func TestLimitsOfTheContractAreTheDefaults(t *testing.T) {
	t.Parallel()
	page, defaults := contract(t), settings.Default()
	require.Equal(t, 2, strings.Count(page, "`Parameters` has 1 to 1,000 "))
	require.Equal(t, 1000, defaults.HTTP.ParametersLimit)
	require.Contains(t, page, "within the byte limit, by default 4 MiB")
	require.EqualValues(t, 4<<20, defaults.HTTP.BodyLimit)
	require.Contains(t, page, "by default "+fund.DefaultRules().Fields().TimeZone)
	modes := rows(page, "| mode | meaning |")
	require.Len(t, modes, 1)
	var named []string
	for _, row := range modes[0] {
		named = append(named, strings.Trim(row[0], "`"))
	}
	require.ElementsMatch(t, []string{settings.TLSFiles, settings.TLSSelfSigned, settings.TLSProxy, settings.TLSOff}, named)
}

// TestCodesOfTheContractAreThoseOfTheProgram: the table of codes is made from
// the program's list of codes. The statuses are those of the OpenAPI document.
func TestCodesOfTheContractAreThoseOfTheProgram(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("| code | number | meaning | pointer of a refusal |\n|---|--:|---|---|\n")
	for _, c := range fault.Codes() {
		pointer := ""
		if c.Pointer != "" {
			pointer = "`" + c.Pointer + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %d | %s | %s |\n", c.Name, c.Number, c.Meaning, pointer)
	}
	page := contract(t)
	before, rest, found := strings.Cut(page, "<!-- codes: ")
	require.True(t, found)
	mark, rest, found := strings.Cut(rest, "-->\n")
	require.True(t, found)
	_, after, found := strings.Cut(rest, "<!-- end -->")
	require.True(t, found)
	want := before + "<!-- codes: " + mark + "-->\n" + table.String() + "<!-- end -->" + after
	if *golden.Update {
		golden.Write(t, filepath.Join(root, "domain/README.md"), want)
	} else {
		require.Empty(t, cmp.Diff(page, want), "make generate writes the table of codes (-want +got)")
	}

	tables := rows(page, "| status | codes |")
	require.Len(t, tables, 1)
	statuses := []string{"200", "400", "default"}
	for _, row := range tables[0] {
		statuses = append(statuses, row[0])
		for name := range strings.SplitSeq(row[1], ", ") {
			c, ok := fault.Describe(strings.Trim(name, "`"))
			require.True(t, ok, name)
			require.Empty(t, c.Pointer, name)
		}
	}
	var document struct {
		Paths map[string]struct {
			Get, Post struct{ Responses map[string]any }
		}
	}
	require.NoError(t, json.Unmarshal(openapi.Document(), &document))
	const cursorLost = "410" // only the outcomes have cursors
	require.Contains(t, statuses, cursorLost)
	require.Contains(t, document.Paths["/outcomes"].Get.Responses, cursorLost)
	statuses = slices.DeleteFunc(statuses, func(status string) bool { return status == cursorLost })
	for _, path := range []string{"/outcomes", "/quotes"} { // they are no operations
		require.Contains(t, document.Paths, path)
		delete(document.Paths, path)
	}
	require.Len(t, document.Paths, len(operation.Names))
	for path, item := range document.Paths {
		var documented []string
		for status := range item.Post.Responses {
			documented = append(documented, status)
		}
		require.ElementsMatch(t, documented, statuses, path)
	}
}
