package console

import (
	"html/template"
	"io/fs"
	"path"
	"strings"
)

// page is a page of the console. To add one, add a row to pages, a template and a handler.
type page struct {
	path  string // below /console/, a pattern of http.ServeMux
	Title string
	// Menu is the title of the menu entry: the page itself, if it has that title.
	Menu string
	// Refresh is how often the page refreshes itself, in seconds. 0 means never.
	Refresh int
	// memory means that the page reads the database itself, and is shown without it too.
	memory bool
	// personal pages show numbers or texts: views are recorded. narrow is for slow pages.
	personal bool
	narrow   string
	// template is a file of the folder pages. A row without a template shows no page.
	template string
	// show answers GET, and post a form. export answers GET below the page with a file.
	show, post, export handler
}

// handler returns the data for the template of its page, or another answer: see response.
type handler func(*request) (any, error)

// pages returns all pages, in the order of the menu.
func pages() []*page {
	return []*page{
		{path: "{$}", Title: "Today", Menu: "Today", Refresh: 5, memory: true, template: "today", show: showToday},
		sales.page("Sales", "Sales"),
		{path: "sales/many", Title: "Correct many", Menu: "Sales", personal: true, template: "many", show: showMany, post: once(correctMany)},
		{path: "sale/{id}", Title: "Sale", Menu: "Sales", personal: true, template: "sale", show: showOperation, post: once(correctOperation)},
		{path: "sale/{id}/proof", Title: "Sale", personal: true, show: downloadProof},
		refusals.page("Refusals", "Sales"),
		notifications.page("Notifications", "Notifications"),
		requests.page("Requests", "Requests"),
		{path: "due", Title: "Due", Menu: "Due", personal: true, template: "due", show: showDue, export: exportDue},
		{path: "prices", Title: "Prices", Menu: "Prices", template: "prices", show: showPrices, export: exportPrices},
		{path: "subscriptions", Title: "Subscriptions", Menu: "Subscriptions", template: "subscriptions", show: showSubscriptions, post: once(changeSubscription), export: exportSubscriptions},
		{path: "subscription", Title: "Subscription", Menu: "Subscriptions", template: "subscription", show: showSubscription, post: once(changeSubscription)},
		{path: "proof", Title: "Proof", Menu: "Proof", template: "proof", show: showProof, post: once(startProof), export: exportProof},
		acts.page("Audit", "Audit"),
		{path: "search", Title: "Search", template: "search", show: showSearch, post: search},
		{path: "customer/{ref}", Title: "Customer", personal: true, template: "customer", show: showCustomer, export: exportStatement},
		{path: "reveal", Title: "Reveal", post: reveal},
		{path: "leave", Title: "Leave", post: leave},
		{path: "health", Title: "Bar", memory: true, show: showHealth},
	}
}

func (l list[T]) page(title, menu string) *page {
	return &page{path: l.path, Title: title, Menu: menu, personal: true, narrow: "Filter the list: by days, a customer or a user.",
		template: l.path, show: l.show, post: l.narrow, export: l.export}
}

func (p *page) Address() string { return "/console/" + strings.TrimSuffix(p.path, "{$}") }

// parseTemplates returns the templates by their names. Each has the layout and the parts.
func parseTemplates() map[string]*template.Template {
	shared := template.Must(template.New("").Funcs(formats).ParseFS(files, "pages/layout.html", "pages/parts.html"))
	all := make(map[string]*template.Template)
	names, _ := fs.Glob(files, "pages/*.html") // the pattern is correct
	for _, file := range names {
		all[strings.TrimSuffix(path.Base(file), ".html")] = template.Must(template.Must(shared.Clone()).ParseFS(files, file))
	}
	return all
}
