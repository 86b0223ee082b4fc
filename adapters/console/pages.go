package console

import (
	"html/template"
	"io/fs"
	"path"
	"strings"
)

// page is a page of the console. To add one, add a row to pages, a template, and a
// function that returns what the template shows.
type page struct {
	path  string // below /console/, as http.ServeMux matches it
	title string
	// menu is the title of the entry of the menu that leads to the page. A page with
	// that title is the entry itself.
	menu string
	// refresh is how often the page refreshes itself, in seconds. 0 means never.
	refresh int
	// memory says that the page reads the database by itself, and is shown without it.
	memory bool
	// personal says that the page shows numbers or texts, so that looks at it are
	// recorded. narrow is what to do if it takes too long.
	personal bool
	narrow   string
	// template is a file of the folder pages. A row without one answers with files or
	// leads to other pages.
	template string
	// show answers GET. ask answers a form that changes nothing, and act one of an
	// operator that changes something, once.
	show, ask, act handler
}

// handler returns what the template of its page shows, or another answer: see response.
type handler func(*request) (any, error)

// pages are all pages. Their order is that of the menu.
func pages(sandbox bool) []page {
	const narrow = "Narrow the page: by days, a customer or a user."
	all := []page{
		{path: "{$}", title: "Today", menu: "Today", refresh: 5, memory: true, template: "today", show: showToday},
		{path: "sales", title: "Sales", menu: "Sales", personal: true, narrow: narrow, template: "sales", show: sales.show, ask: sales.narrow},
		{path: "sales/export", title: "Sales", show: sales.export},
		{path: "sale/{id}", title: "Sale", menu: "Sales", personal: true, template: "sale", show: showOperation, act: correctOperation},
		{path: "sale/{id}/proof", title: "Sale", personal: true, show: downloadProof},
		{path: "refusals", title: "Refusals", menu: "Sales", personal: true, narrow: narrow, template: "refusals", show: refusals.show, ask: refusals.narrow},
		{path: "refusals/export", title: "Refusals", show: refusals.export},
		{path: "notifications", title: "Notifications", menu: "Notifications", personal: true, narrow: narrow, template: "notifications", show: notifications.show, ask: notifications.narrow},
		{path: "notifications/export", title: "Notifications", show: notifications.export},
		{path: "due", title: "Due", menu: "Due", personal: true, template: "due", show: showDue},
		{path: "due/export", title: "Due", show: exportDue},
		{path: "subscriptions", title: "Subscriptions", menu: "Subscriptions", template: "subscriptions", show: showSubscriptions, act: changeSubscription},
		{path: "subscriptions/export", title: "Subscriptions", show: exportSubscriptions},
		{path: "subscription", title: "Subscription", menu: "Subscriptions", template: "subscription", show: showSubscription, act: changeSubscription},
		{path: "proof", title: "Proof", menu: "Proof", template: "proof", show: showProof, act: startProof},
		{path: "proof/export", title: "Proof", show: exportProof},
		{path: "audit", title: "Audit", menu: "Audit", personal: true, narrow: narrow, template: "audit", show: acts.show, ask: acts.narrow},
		{path: "audit/export", title: "Audit", show: acts.export},
		{path: "search", title: "Search", template: "search", show: showSearch, ask: search},
		{path: "find/{id...}", title: "Search", template: "search", show: func(q *request) (any, error) { return searchFor(q, q.r.PathValue("id")) }},
		{path: "customer/{ref}", title: "Customer", personal: true, template: "customer", show: showCustomer},
		{path: "customer/{ref}/export", title: "Customer", show: exportStatement},
		{path: "reveal", title: "Reveal", ask: reveal},
		{path: "leave", title: "Leave", ask: leave},
	}
	if sandbox {
		all = append(all, page{path: "sandbox", title: "Sandbox", menu: "Sandbox", refresh: 2, template: "sandbox", show: showSandbox, act: useSandbox})
	}
	return all
}

func (p *page) isEntry() bool { return p.menu == p.title && p.template != "" }

func (p *page) address() string { return "/console/" + strings.TrimSuffix(p.path, "{$}") }

func (p *page) handlePost() handler {
	if p.act != nil {
		return once(p.act)
	}
	return p.ask
}

// entry is an entry of the menu.
type entry struct{ Title, Path string }

// parseTemplates returns the templates by their names. Each has the layout and the
// parts, but for the page of those who are not signed in.
func parseTemplates() map[string]*template.Template {
	parse := func(base *template.Template, names ...string) *template.Template {
		return template.Must(template.Must(base.Clone()).ParseFS(files, names...))
	}
	empty := template.New("signin.html").Funcs(formats)
	shared := parse(empty, "pages/layout.html", "pages/parts.html")
	all := make(map[string]*template.Template)
	names, _ := fs.Glob(files, "pages/*.html") // the pattern is correct
	for _, file := range names {
		all[strings.TrimSuffix(path.Base(file), ".html")] = parse(shared, file)
	}
	all["signin"] = parse(empty, "pages/signin.html")
	return all
}
