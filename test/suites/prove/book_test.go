package prove_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"bankingapi/test/kit/payload"
	"bankingapi/test/kit/service"
)

// The book of these tests consists of independent groups. A group is two
// customers, each with a holding, and one account that receives the proceeds of
// both. So a group is small enough for the model, and all its callers compete
// for one row.
const (
	customersOfGroup = 2
	// opening is the number of units of a holding at the start. It is small
	// enough that some sales fail.
	opening = 60
	// perUnit is the price of a unit in minor units of the currency.
	perUnit = 125
)

func customer(group, of int) int { return 1000 + 10*group + of }

// user returns the receiver of a group's pushes.
func user(group int) string { return fmt.Sprintf("user-%d", group) }

// largeUser is the receiver of pushes that only use space.
const largeUser = "large"

// loadBook imports the book of the given number of groups and creates a
// subscription. It returns its key.
func loadBook(t testing.TB, b *service.Bank, groups int) string {
	t.Helper()
	b.Migrate(t)
	b.Load(t, "prices", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom",
		"1,AFA,Prove Portfoy,1.25,TRY,"+dayBefore(t, time.Now())) // due sales of histories are for yesterday
	holdings := []string{"CustomerNo,IMKBCode,HolderCorporationName,Units"}
	accounts := []string{"BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance"}
	for g := range groups {
		for c := range customersOfGroup + 1 {
			holdings = append(holdings, fmt.Sprintf("%d,AFA,Prove Portfoy,%d", customer(g, c), opening))
		}
		accounts = append(accounts, fmt.Sprintf("1,%d,1,TRY,0", customer(g, 0)), fmt.Sprintf("1,%d,1,TRY,0", customer(g, dueCustomer)))
	}
	b.Load(t, "holdings", holdings...)
	b.Load(t, "accounts", accounts...)
	return b.Subscribe(t, "prove")
}

// Paths of the two operations.
const (
	addPush = "/BankingApiV01/AddPushNotificationResponse"
	buyFund = "/BankingApiV01/BuyFundFromCustomer"
)

// part is one record of a sale: a number of units of one of the customers of
// the group.
type part struct{ of, units int }

// sale is a request to sell.
type sale struct {
	group int
	// caller is the number of the CallerId within the group, or -1 for a sale
	// without one.
	caller int
	// content is the number of the content among those sent under one CallerId.
	content int
	parts   []part
	// later records the sale for a day that does not come during the test. If due is
	// also set, its day has passed already.
	later, due bool
}

func (s *sale) callerID() string {
	if s.due {
		return fmt.Sprint("due-", s.caller)
	}
	return callerID(s.group, s.caller)
}

func callerID(group, caller int) string { return fmt.Sprintf("sale-%d-%d", group, caller) }

// body returns the body of the request. Its rows in the export have the id.
func (s *sale) body(id, laterDay string) string {
	header := fmt.Sprintf(`"ChannelRequestId":%q`, id)
	if s.caller >= 0 {
		header += "," + payload.CallerID(s.callerID())
	}
	day := ""
	if s.later {
		day = laterDay
	}
	paidTo := customer(s.group, 0)
	if s.due {
		paidTo = customer(s.group, dueCustomer)
	}
	records := make([]string, len(s.parts))
	for i, p := range s.parts {
		records[i] = payload.Sale{CustomerNo: customer(s.group, p.of), PaidTo: paidTo, Units: strconv.Itoa(p.units), Holder: "Prove Portfoy", PriceID: 1, Day: day}.String()
	}
	return payload.Request(header, records...)
}

// pushes is a request to store records. Records are numbered within the group.
type pushes struct {
	group   int
	records []int
}

func pushID(record int) string { return fmt.Sprintf("push-%d", record) }

func (p *pushes) body(id string) string {
	records := make([]string, len(p.records))
	for i, r := range p.records {
		records[i] = payload.Push("PROVE", user(p.group), pushID(r))
	}
	return payload.Request(fmt.Sprintf(`"ChannelRequestId":%q`, id), records...)
}
