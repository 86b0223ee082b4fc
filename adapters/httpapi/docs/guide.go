package docs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	htmltemplate "html/template"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/application/outcomes"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
)

// entry is one page in the navigation. Words are what readers also search for to find it.
type entry struct{ Slug, Link, Title, Words string }

var navigation = []entry{
	{"sandbox", "sandbox", "Your first hour", "test environment mock staging simulator demo"},
	{"index", "../docs", "Operations", "endpoint fields preview dry run simulate quote NAV net asset value"},
	{"recipes", "recipes", "Recipes", "sdk library code sample PHP Ruby Kotlin TypeScript Node .NET generated client retry backoff timeout"},
	{"repeats", "repeats", "Repeats", "idempotency idempotent duplicate retry correlation"},
	{"values", "values", "Amounts, prices, dates", "rounding NAV net asset value decimal currency time zone date format"},
	{"settled", "settled", "When is it settled?", "webhook callback notification polling events status refund reversal cancel holiday cut-off"},
	{"errors", "errors/", "Error codes", "exceptions failures reasons"},
	{"limits", "limits", "Limits", "throttling quota rate size timeout"},
	{"keys", "keys", "Keys", "authentication authorization credentials API key mTLS client certificate secret rotation"},
	{"versions", "versions", "Versions", "compatibility breaking change deprecation sunset"},
	{"changelog", "changelog", "Changelog", "release notes history"},
	{"try", "try", "Try it out", "playground console explorer Swagger Postman"},
}

// article is a page of the guide in Markdown, with its path below /docs/.
type article struct {
	slug string // errors/required
	text string
}

// guide returns the pages of the guide, as HTML and as Markdown.
func guide(o openapi.Guide) (map[string]http.Handler, error) {
	articles, err := write(o)
	if err != nil {
		return nil, err
	}
	layout, err := htmltemplate.ParseFS(files, "layout.html")
	if err != nil {
		return nil, fmt.Errorf("read the layout: %w", err)
	}
	pages := map[string]http.Handler{}
	var list, full bytes.Buffer // https://llmstxt.org; the search reads the second one
	list.WriteString("# Banking API\n\n> Store push messages that were sent, and sell a customer's fund.\n\n## Pages\n\n")
	for _, a := range articles {
		fmt.Fprintf(&list, "- [%s](%s.md)\n", a.title(), a.slug)
		fmt.Fprintf(&full, "Source: %s.md\n\n%s%s\n", a.slug, a.text, a.words())
		// Where the page is decides how it finds the others.
		places := map[string]string{"/docs/" + strings.TrimSuffix(a.slug, "index"): a.base()}
		switch a.slug { // readers leave the last slash out
		case "index":
			places["/docs"] = "docs/"
		case "errors/index":
			places["/docs/errors"] = ""
		}
		for at, base := range places {
			pages[at] = newPage("text/html", func() []byte { return a.html(layout, base, o.Sandbox) })
		}
		pages["/docs/"+a.slug+".md"] = newPage("text/markdown", a.markdown)
	}
	list.WriteString("\n## OpenAPI documents\n\n")
	documents := []struct{ title, path string }{{"OpenAPI 3.1", openapi.Path}, {"OpenAPI 3.0", openapi.Path30}}
	if o.Sandbox {
		documents = append(documents, struct{ title, path string }{"OpenAPI 3.1 of the sandbox's own endpoints", openapi.SandboxPath})
	}
	for _, document := range documents {
		fmt.Fprintf(&list, "- [%s](..%s)\n", document.title, document.path)
	}
	pages["/docs/llms.txt"] = newPage("text/plain", list.Bytes)
	pages["/docs/llms-full.txt"] = newPage("text/plain", full.Bytes)
	return pages, nil
}

// base is how the article finds those directly below /docs/.
func (a article) base() string { return strings.Repeat("../", strings.Count(a.slug, "/")) }

func (a article) title() string {
	title, _, _ := strings.Cut(strings.TrimPrefix(a.text, "# "), "\n")
	return title
}

// words returns the line of the search with what readers also call the page. It may be empty.
func (a article) words() string {
	for _, e := range navigation {
		if e.Words != "" && (e.Slug == a.slug || e.Slug+"/index" == a.slug) {
			return "\nAlso: " + e.Words + "\n"
		}
	}
	return ""
}

// html is the article as a page. The layout and the text are ours, and tests make every page. So an
// error is a mistake in this program.
func (a article) html(layout *htmltemplate.Template, base string, sandbox bool) []byte {
	section, _, _ := strings.Cut(a.slug, "/") // its page in the navigation
	content, err := markdown(a.text, func(target string) string { return linkTo(target, base, pageName) })
	if err != nil {
		panic(fmt.Sprintf("docs: page %s: %v", a.slug, err))
	}
	var out bytes.Buffer
	err = layout.Execute(&out, map[string]any{
		"Title": a.title(), "Slug": a.slug, "Section": section, "Root": base, "Nav": navigation,
		"Sandbox": sandbox, "Script": htmltemplate.JS(script), //nolint:gosec // it is ours
		"Content": content,
	})
	if err != nil {
		panic(fmt.Sprintf("docs: page %s: %v", a.slug, err))
	}
	return out.Bytes()
}

// linkTo makes a link of a page's source, which is a slug below /docs/, one that is
// relative to the page that shows it. name is how that page calls others.
func linkTo(target, base string, name func(slug string) string) string {
	slug, _, _ := strings.Cut(target, "#")
	if slug == "" || strings.Contains(target, "://") {
		return target
	}
	return base + name(slug) + target[len(slug):]
}

func pageName(slug string) string {
	if slug == "index" {
		return "../docs"
	}
	return slug
}

func markdownName(slug string) string {
	switch {
	case strings.HasSuffix(slug, "/"):
		return slug + "index.md"
	case !strings.HasPrefix(slug, "../"):
		return slug + ".md"
	}
	return slug
}

var link = regexp.MustCompile(`\]\([^)]+\)`)

// markdown is the article with links to other Markdown pages.
func (a article) markdown() []byte {
	return []byte(link.ReplaceAllStringFunc(a.text, func(text string) string {
		return "](" + linkTo(text[2:len(text)-1], a.base(), markdownName) + ")"
	}))
}

// write fills the templates of all pages.
func write(o openapi.Guide) ([]article, error) {
	var contract contract
	if err := json.Unmarshal(openapi.Document(), &contract); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	later, err := day.Parse(cmp.Or(o.Day, "2027-05-20"))
	if err != nil {
		return nil, fmt.Errorf("the day of examples: %w", err)
	}
	contract.days = strings.NewReplacer(
		`"DAY`, `"`+later.String(), "DAY+1", later.Plus(1).String(),
		"CLOSED+1", later.Plus(21).String(), "CLOSED", later.Plus(20).String(),
		"TODAY in the time zone UTC", later.Plus(-180).String()+" in the time zone "+cmp.Or(o.TimeZone, "Europe/Istanbul"),
	)
	functions := template.FuncMap{
		"schemas": contract.schemas,
		"codes":   contract.codes,
		"recipe":  func(name string) string { return strings.TrimSpace(string(read("recipes/" + name))) },
		"answer":  bodyOf,
	}
	templates, err := template.New("").Funcs(functions).ParseFS(files, "pages/*.md.tmpl", "CHANGELOG.md")
	if err != nil {
		return nil, fmt.Errorf("read the pages: %w", err)
	}
	limits := map[string]any{
		"Body":       grouped(cmp.Or(o.BodyLimit, 4<<20)),
		"Parameters": grouped(int64(cmp.Or(o.ParametersLimit, 1000))),
		"TimeZone":   cmp.Or(o.TimeZone, "Europe/Istanbul"),
		"Waits":      strconv.Itoa(outcomes.MaxWaits),
		"Sandbox":    o.Sandbox,
	}
	var articles []article
	add := func(slug, file string, data any) {
		var out strings.Builder
		e := templates.ExecuteTemplate(&out, file, data)
		if e != nil && err == nil {
			err = fmt.Errorf("write %s: %w", file, e)
		}
		text := blankLines.ReplaceAllString(strings.TrimSpace(out.String()), "\n\n") + "\n"
		articles = append(articles, article{slug, text})
	}
	for _, e := range navigation {
		if e.Slug != "errors" {
			add(e.Slug, strings.Replace(e.Slug+".md.tmpl", "changelog.md.tmpl", "CHANGELOG.md", 1), limits)
		}
	}
	add("errors/index", "errors.md.tmpl", nil)
	for _, code := range fault.Codes() {
		add("errors/"+code.Name, "error.md.tmpl", contract.code(code))
	}
	return articles, err
}

// blankLines are more than one. No code in the pages has them.
var blankLines = regexp.MustCompile(`\n\n\n+`)

// grouped writes 1048576 as 1,048,576.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
