package docs

import (
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	table "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// pages reads Markdown with tables, and headings like "## Title {#anchor}".
var pages = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithHeadingAttribute()))

// notAnchor is what the anchor of a heading has not, unless it is written beside it.
var notAnchor = regexp.MustCompile(`[^a-z0-9]+`)

// markdown turns a page into HTML. link rewrites the target of each link. What scrolls
// can be reached by keyboard, and a table is named by the heading above it.
func markdown(source string, link func(string) string) (template.HTML, error) {
	content := []byte(source)
	page := pages.Parser().Parse(text.NewReader(content))
	section := ""
	var next ast.Node
	for block := page.FirstChild(); block != nil; block = next {
		next = block.NextSibling()
		switch block := block.(type) {
		case *ast.Heading:
			section = addAnchor(block, string(block.Lines().Value(content)))
		case *ast.FencedCodeBlock:
			code := strings.TrimSuffix(string(block.Lines().Value(content)), "\n")
			page.ReplaceChild(page, block, literal(`<pre tabindex="0" data-language="%s"><code>%s</code></pre>`+"\n", string(block.Language(content)), code))
		case *table.Table:
			page.InsertBefore(page, block, literal(`<div class="table" role="region" tabindex="0" aria-label="Table: %s">`, section))
			page.InsertAfter(page, block, literal("</div>\n"))
			nameColumns(block, content)
		}
	}
	err := ast.Walk(page, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if found, ok := node.(*ast.Link); ok && entering {
			found.Destination = []byte(link(string(found.Destination)))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = pages.Renderer().Render(&out, content, page)
	return template.HTML(out.String()), err //nolint:gosec // goldmark escapes what is no Markdown
}

// literal is HTML with escaped texts.
func literal(format string, texts ...any) ast.Node {
	for i, text := range texts {
		texts[i] = html.EscapeString(fmt.Sprint(text))
	}
	node := ast.NewString(fmt.Appendf(nil, format, texts...))
	node.SetCode(true) // it is not escaped again
	return node
}

// addAnchor gives a heading an anchor and a link to it, and returns its plain text.
func addAnchor(heading *ast.Heading, source string) string {
	id, ok := heading.AttributeString("id")
	if !ok {
		id = []byte(strings.Trim(notAnchor.ReplaceAllString(strings.ToLower(source), "-"), "-"))
		heading.SetAttributeString("id", id)
	}
	plain := strings.ReplaceAll(source, "`", "")
	if heading.Level > 1 {
		heading.AppendChild(heading, literal(` <a class="anchor" href="#%s" aria-label="Link to: %s">#</a>`, string(id.([]byte)), plain))
	}
	return plain
}

// nameColumns gives each cell the title of its column, which is plain text.
func nameColumns(of *table.Table, source []byte) {
	var titles [][]byte
	for row := of.FirstChild(); row != nil; row = row.NextSibling() {
		column := 0
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			if row.Kind() == table.KindTableHeader {
				titles = append(titles, cell.Lines().Value(source))
				cell.SetAttributeString("scope", []byte("col"))
			} else {
				cell.SetAttributeString("data-column", titles[column])
			}
			column++
		}
	}
}
