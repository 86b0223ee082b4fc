package docs

import (
	"html"
	"html/template"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// markdown turns the Markdown that our pages use into HTML: headings with
// anchors, paragraphs, lists, tables, fenced code, and inline code, bold text
// and links. Everything else is text and is escaped. link rewrites the target
// of each link.
func markdown(source string, link func(string) string) template.HTML {
	r := renderer{link: link}
	lines := strings.Split(source, "\n")
	for i := 0; i < len(lines); {
		i += r.block(lines[i:])
	}
	return template.HTML(r.out.String()) //nolint:gosec // text is escaped in inline
}

type renderer struct {
	out  strings.Builder
	link func(string) string
	// section is the text of the last heading, which names a table.
	section string
}

func (r *renderer) write(parts ...string) {
	for _, part := range parts {
		r.out.WriteString(part)
	}
}

// block writes the block that begins with the first line, and returns how many
// lines it has.
func (r *renderer) block(lines []string) int {
	first := lines[0]
	switch {
	case first == "":
		return 1
	case strings.HasPrefix(first, "#"):
		r.heading(first)
		return 1
	case strings.HasPrefix(first, "```"):
		return r.code(lines)
	case strings.HasPrefix(first, "| "):
		return r.table(lines)
	case strings.HasPrefix(first, "- "):
		return r.list("ul", "- ", lines)
	case strings.HasPrefix(first, "1. "):
		return r.list("ol", "1. ", lines)
	}
	n := until(lines, func(line string) bool { return line == "" || strings.HasPrefix(line, "```") })
	r.write("<p>", r.inline(strings.Join(lines[:n], " ")), "</p>\n")
	return n
}

// until counts the lines before the next one that ends a block.
func until(lines []string, ends func(string) bool) int {
	if i := slices.IndexFunc(lines[1:], ends); i >= 0 {
		return 1 + i
	}
	return len(lines)
}

var (
	anchorMark = regexp.MustCompile(` \{#([A-Za-z0-9-]+)\}$`)
	notAnchor  = regexp.MustCompile(`[^a-z0-9]+`)
)

// heading writes "## Title" or "## Title {#anchor}". Without an anchor of its
// own, a heading has one made from its text.
func (r *renderer) heading(line string) {
	text := strings.TrimLeft(line, "#")
	level := strconv.Itoa(len(line) - len(text))
	text = strings.TrimSpace(text)
	anchor := strings.Trim(notAnchor.ReplaceAllString(strings.ToLower(text), "-"), "-")
	if mark := anchorMark.FindStringSubmatch(text); mark != nil {
		anchor, text = mark[1], strings.TrimSuffix(text, mark[0])
	}
	r.section = strings.ReplaceAll(text, "`", "")
	r.write("<h", level, ` id="`, anchor, `">`, r.inline(text))
	if level != "1" {
		r.write(` <a class="anchor" href="#`, anchor, `" aria-label="Link to: `, html.EscapeString(r.section), `">#</a>`)
	}
	r.write("</h", level, ">\n")
}

func (r *renderer) code(lines []string) int {
	n := until(lines, func(line string) bool { return strings.HasPrefix(line, "```") })
	// What scrolls must be reachable by keyboard.
	r.write(`<pre tabindex="0" data-language="`, html.EscapeString(lines[0][3:]), `"><code>`, html.EscapeString(strings.Join(lines[1:n], "\n")), "</code></pre>\n")
	return n + 1
}

func (r *renderer) list(tag, mark string, lines []string) int {
	r.write("<", tag, ">\n")
	n := until(lines, func(line string) bool { return line == "" })
	for _, line := range lines[:n] {
		r.write("<li>", r.inline(strings.TrimPrefix(line, mark)), "</li>\n")
	}
	r.write("</", tag, ">\n")
	return n
}

func (r *renderer) table(lines []string) int {
	r.write(`<div class="table" role="region" tabindex="0" aria-label="Table: `, html.EscapeString(r.section), `"><table>`, "\n")
	var columns []string // their titles, which are plain text
	n := until(lines, func(line string) bool { return !strings.HasPrefix(line, "|") })
	for row, line := range lines[:n] {
		if row == 1 {
			continue // |---|---|
		}
		line = strings.ReplaceAll(strings.ReplaceAll(line, "| |", "|  |"), "| |", "|  |") // empty cells
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
		r.write("<tr>")
		for i, cell := range cells {
			cell = r.inline(strings.TrimSpace(cell))
			if row == 0 {
				columns = append(columns, cell)
				r.write(`<th scope="col">`, cell, "</th>")
			} else {
				r.write(`<td data-column="`, columns[min(i, len(columns)-1)], `">`, cell, "</td>")
			}
		}
		r.write("</tr>\n")
	}
	r.write("</table></div>\n")
	return n
}

var span = regexp.MustCompile("`([^`]+)`" + `|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)]+)\)`)

// inline escapes a text, with its code, bold text and links as HTML.
func (r *renderer) inline(text string) string {
	var out strings.Builder
	end := 0
	for _, m := range span.FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(html.EscapeString(text[end:m[0]]))
		end = m[1]
		switch {
		case m[2] >= 0:
			out.WriteString("<code>" + html.EscapeString(text[m[2]:m[3]]) + "</code>")
		case m[4] >= 0:
			out.WriteString("<strong>" + r.inline(text[m[4]:m[5]]) + "</strong>")
		default:
			out.WriteString(`<a href="` + html.EscapeString(r.link(text[m[8]:m[9]])) + `">` + r.inline(text[m[6]:m[7]]) + "</a>")
		}
	}
	out.WriteString(html.EscapeString(text[end:]))
	return out.String()
}
