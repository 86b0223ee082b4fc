// Package payload writes the bodies of requests, for suites that send them over HTTP.
package payload

import (
	"fmt"
	"strings"
)

// Request returns a request with the members of its Header, and its records.
func Request(header string, records ...string) string {
	return `{"Header":{` + header + `},"Parameters":[` + strings.Join(records, ",") + `]}`
}

// CallerID returns the member of a Header.
func CallerID(id string) string { return fmt.Sprintf(`"CallerId":%q`, id) }

// Sale sells units of the fund AFA to the account 1-PaidTo-1 TRY.
type Sale struct {
	CustomerNo, PaidTo int
	Units              string
	Holder             string // the HolderCorporationName
	PriceID            int
	Day                string // SelectedTransactionDate
}

// Demo sells units of a customer of the demo book.
func Demo(customerNo int, units, day string) Sale {
	return Sale{CustomerNo: customerNo, PaidTo: customerNo, Units: units, Holder: "Demo Portfoy", PriceID: 1, Day: day}
}

// String returns the record.
func (s Sale) String() string {
	return fmt.Sprintf(`{"CustomerNo":%d,"TransactionType":2,"FundAmount":%s,`+
		`"DestinationAccount":{"BranchCode":1,"CustomerNo":%d,"AccountSuffix":1,"CurrencyCode":"TRY"},`+
		`"FundToProcess":{"IMKBCode":"AFA","HolderCorporationName":%q,"PriceID":%d},"SelectedTransactionDate":%q}`,
		s.CustomerNo, s.Units, s.PaidTo, s.Holder, s.PriceID, s.Day)
}

// Push returns the record of a push message with texts.
func Push(application, userID, pushID string) string {
	return fmt.Sprintf(`{"ExternalApplicationCode":%q,"UserId":%q,"PushId":%q,"Platform":65,`+
		`"Subject":"Hello","Content":"Your order was carried out.","SendStatus":1}`, application, userID, pushID)
}
