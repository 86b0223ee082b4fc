package prove_test

import (
	"fmt"
	"strings"
	"testing"

	"bankingapi/test/service"
)

// The book of these tests falls into groups that have nothing to do with each
// other: two customers, each with a holding, who are both paid into one
// account. So a group is small enough for the model, and has a row that all
// its callers want.
const (
	customersOfGroup = 2
	// opening is how many units a holding begins with: some sales have to find
	// too few.
	opening = 60
	// perUnit is the price of a unit in minor units of the currency.
	perUnit = 125
)

func customer(group, of int) int { return 1000 + 10*group + of }

// user is the receiver of a group's pushes.
func user(group int) string { return fmt.Sprintf("user-%d", group) }

// largeUser is the receiver of pushes that only take space.
const largeUser = "large"

// loadBook imports the book of so many groups, and makes a subscription, whose
// key it returns.
func loadBook(t testing.TB, b *service.Bank, groups int) string {
	t.Helper()
	b.Migrate(t)
	b.Load(t, "prices", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom",
		"1,AFA,Prove Portfoy,1.25,TRY,2020-01-01")
	holdings := []string{"CustomerNo,IMKBCode,HolderCorporationName,Units"}
	accounts := []string{"BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance"}
	for g := range groups {
		for c := range customersOfGroup {
			holdings = append(holdings, fmt.Sprintf("%d,AFA,Prove Portfoy,%d", customer(g, c), opening))
		}
		accounts = append(accounts, fmt.Sprintf("1,%d,1,TRY,0", customer(g, 0)))
	}
	b.Load(t, "holdings", holdings...)
	b.Load(t, "accounts", accounts...)
	return b.Subscribe(t, "prove")
}

// The two operations, as paths.
const (
	addPush = "/BankingApiV01/AddPushNotificationResponse"
	buyFund = "/BankingApiV01/BuyFundFromCustomer"
)

// part is one record of a sale: so many units of one of the group's customers.
type part struct{ of, units int }

// sale is a request to sell.
type sale struct {
	group int
	// caller numbers the CallerIds of a group; -1 is none.
	caller int
	// content tells the contents sent under one CallerId apart.
	content int
	parts   []part
	// later records the sale for a day that does not come within the test.
	later bool
}

func callerID(group, caller int) string { return fmt.Sprintf("sale-%d-%d", group, caller) }

// body is the request on the wire; id finds its rows again in the export.
func (s *sale) body(id, laterDay string) string {
	header := fmt.Sprintf(`"ChannelRequestId":%q`, id)
	if s.caller >= 0 {
		header += fmt.Sprintf(`,"CallerId":%q`, callerID(s.group, s.caller))
	}
	day := ""
	if s.later {
		day = laterDay
	}
	records := make([]string, len(s.parts))
	for i, p := range s.parts {
		records[i] = fmt.Sprintf(`{"CustomerNo":%d,"TransactionType":2,"FundAmount":%d,`+
			`"DestinationAccount":{"BranchCode":1,"CustomerNo":%d,"AccountSuffix":1,"CurrencyCode":"TRY"},`+
			`"FundToProcess":{"IMKBCode":"AFA","HolderCorporationName":"Prove Portfoy","PriceID":1},`+
			`"SelectedTransactionDate":%q}`, customer(s.group, p.of), p.units, customer(s.group, 0), day)
	}
	return fmt.Sprintf(`{"Header":{%s},"Parameters":[%s]}`, header, strings.Join(records, ","))
}

// pushes is a request to store records, by their number within the group.
type pushes struct {
	group   int
	records []int
}

func pushID(record int) string { return fmt.Sprintf("push-%d", record) }

func (p *pushes) body(id string) string {
	records := make([]string, len(p.records))
	for i, r := range p.records {
		records[i] = fmt.Sprintf(`{"ExternalApplicationCode":"PROVE","UserId":%q,"PushId":%q,"Platform":65,`+
			`"Subject":"Hello","Content":"Your order was carried out.","SendStatus":1}`, user(p.group), pushID(r))
	}
	return fmt.Sprintf(`{"Header":{"ChannelRequestId":%q},"Parameters":[%s]}`, id, strings.Join(records, ","))
}
