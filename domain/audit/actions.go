package audit

import "slices"

// The actions of acts. An action that a command carries out has the words of the command, joined by
// dots. The action is in the leaf of the act, so it never changes.
const (
	ImportPrices   = "import.prices"
	ImportHoldings = "import.holdings"
	ImportAccounts = "import.accounts"
	ImportCalendar = "import.calendar"

	AdjustHolding      = "adjust.holding"
	AdjustAccount      = "adjust.account"
	SalesCancel        = "sales.cancel"
	SalesReverse       = "sales.reverse"
	PricesWithdraw     = "prices.withdraw"
	NotificationsErase = "notifications.erase"
	Settle             = "settle"

	SubscriptionsCreate     = "subscriptions.create"
	SubscriptionsChange     = "subscriptions.change"
	SubscriptionsRegenerate = "subscriptions.regenerate"
	SubscriptionsSuspend    = "subscriptions.suspend"
	SubscriptionsActivate   = "subscriptions.activate"
	SubscriptionsCancel     = "subscriptions.cancel"

	RulesBegin   = "rules.begin" // the first start of a book, by the service
	RulesChange  = "rules.change"
	MigrateUp    = "migrate.up"
	Verify       = "verify"
	TrailAdopt   = "trail.adopt"
	TrailRekey   = "trail.rekey"
	CopyTo       = "copy.to"   // kept by the book that was copied
	CopyFrom     = "copy.from" // kept by its copy
	CopyTakeBack = "copy.take-back"
	DemoLoad     = "demo.load" // serve --demo

	CommandShow     = "command.show"     // a person saw data of customers
	CommandExport   = "command.export"   // an export of data of customers began
	CommandExported = "command.exported" // and ended
	ConsoleSignIn   = "console.signin"
	ConsoleStolen   = "console.stolen" // somebody else used the session
	ConsoleSearch   = "console.search"
	ConsoleView     = "console.view"
	ConsoleReveal   = "console.reveal"
	ConsoleExport   = "console.export"
	ConsoleExported = "console.exported"
)

// Actions returns all actions of this program, sorted. A host may have its own.
func Actions() []string {
	all := []string{
		ImportPrices, ImportHoldings, ImportAccounts, ImportCalendar,
		AdjustHolding, AdjustAccount, SalesCancel, SalesReverse, PricesWithdraw, NotificationsErase, Settle,
		SubscriptionsCreate, SubscriptionsChange, SubscriptionsRegenerate, SubscriptionsSuspend, SubscriptionsActivate, SubscriptionsCancel,
		RulesBegin, RulesChange, MigrateUp, Verify, TrailAdopt, TrailRekey, CopyTo, CopyFrom, CopyTakeBack, DemoLoad,
		CommandShow, CommandExport, CommandExported,
		ConsoleSignIn, ConsoleStolen, ConsoleSearch, ConsoleView, ConsoleReveal, ConsoleExport, ConsoleExported,
	}
	slices.Sort(all)
	return all
}
