package client

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"sync/atomic"

	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// BuyFund is one BuyFundFromCustomer operation: up to 1,000 sales that are all carried
// out, in this order, or none. Do not change it after the first call.
type BuyFund struct {
	// Header has the CallerId that NewBuyFund made. The other fields may be set before the
	// first call. With another CallerId the operation is one of ResumeBuyFund.
	Header operation.Header
	Sales  []fund.Sale

	made  string // the CallerId that NewBuyFund made
	calls calls
}

// isResumed reports whether another process may have sent the operation: its CallerId is not new.
func (o *BuyFund) isResumed() bool { return o.Header.CallerID != o.made }

// calls counts the calls of one operation that may have had an effect, with those that still run.
type calls struct{ n int32 } // no atomic.Int32: a program may copy its operations

// begin counts a call and reports whether an earlier one may have had an effect.
func (c *calls) begin() bool { return atomic.AddInt32(&c.n, 1) > 1 }

// forget takes back the last begin, because its call had no effect.
func (c *calls) forget() { atomic.AddInt32(&c.n, -1) }

// NewBuyFund returns an operation with a new CallerId of 130 random bits.
func NewBuyFund(sales ...fund.Sale) *BuyFund {
	id := rand.Text()
	return &BuyFund{Header: operation.Header{CallerID: id}, Sales: sales, made: id}
}

// ResumeBuyFund returns an operation with a CallerId that was stored before an earlier attempt,
// perhaps by another process. Its sales must be the sales of that attempt. Until an answer is
// certain, its outcome is Unknown, even if nothing could be sent this time.
func ResumeBuyFund(callerID string, sales ...fund.Sale) *BuyFund {
	return &BuyFund{Header: operation.Header{CallerID: callerID}, Sales: sales}
}

// Sale is a fund sale as plain values.
type Sale struct {
	CustomerNo int64
	Units      string // the units to sell, such as "12.5"
	// IMKBCode and HolderCorporationName name the fund. PriceID is the price that
	// the customer agreed to.
	IMKBCode, HolderCorporationName string
	PriceID                         int64
	// BranchCode, AccountCustomerNo, AccountSuffix and CurrencyCode name the account
	// that gets the proceeds. AccountCustomerNo 0 means CustomerNo.
	BranchCode, AccountCustomerNo, AccountSuffix int64
	CurrencyCode                                 string

	Amount string // what the proceeds must be, such as "15.63"; it may be empty
	Day    string // the day of the sale as YYYY-MM-DD; empty means today
}

// NewSales checks plain values. The error is an *Error with all faults, whose
// pointers start with /Parameters.
func NewSales(sales ...Sale) ([]fund.Sale, error) { return checkSales(sales, fund.NewSale) }

// checkSales checks plain values with check, which is fund.NewSale or fund.NewQuotedSale.
func checkSales(sales []Sale, check func(fund.SaleFields) (fund.Sale, []fault.Fault)) ([]fund.Sale, error) {
	checked := make([]fund.Sale, len(sales))
	var all []fault.Fault
	for i, s := range sales {
		fields, faults := s.fields()
		if len(faults) == 0 {
			checked[i], faults = check(fields)
		}
		all = append(all, operation.UnderParameter(i, faults)...)
	}
	if len(all) > 0 {
		return nil, &Error{Faults: all}
	}
	return checked, nil
}

// fields returns the sale as it is sent, or the faults of texts that are no numbers.
func (s Sale) fields() (fund.SaleFields, []fault.Fault) {
	units, unitFaults := parseNumber("/FundAmount", s.Units)
	amount, amountFaults := parseNumber("/Amount", s.Amount)
	return fund.SaleFields{
		CustomerNo: decimal.Int(s.CustomerNo), TransactionType: decimal.Int(fund.SaleTransaction), FundAmount: units,
		DestinationAccount: &fund.AccountFields{
			BranchCode: decimal.Int(s.BranchCode), CustomerNo: decimal.Int(cmp.Or(s.AccountCustomerNo, s.CustomerNo)),
			AccountSuffix: decimal.Int(s.AccountSuffix), CurrencyCode: s.CurrencyCode,
		},
		FundToProcess: &fund.FundFields{IMKBCode: s.IMKBCode, HolderCorporationName: s.HolderCorporationName, PriceID: decimal.Int(s.PriceID)},
		Amount:        amount, SelectedTransactionDate: s.Day,
	}, append(unitFaults, amountFaults...)
}

// parseNumber reads a number. An empty text is absent.
func parseNumber(pointer, text string) (decimal.Decimal, []fault.Fault) {
	if text == "" {
		return decimal.Decimal{}, nil
	}
	d, err := decimal.Parse(text)
	if err != nil {
		return d, []fault.Fault{{Pointer: pointer, Code: fault.InvalidFormat, Detail: "Must be a number like 12.5."}}
	}
	return d, nil
}

// AddPush is one AddPushNotificationResponse operation: up to 1,000
// notifications that are all stored, or none.
type AddPush struct {
	Header        operation.Header
	Notifications []push.Notification

	calls calls
}

// NewAddPush returns an operation with a new CallerId.
func NewAddPush(notifications ...push.Notification) *AddPush {
	return &AddPush{Header: operation.Header{CallerID: rand.Text()}, Notifications: notifications}
}

func (o *BuyFund) faults() []fault.Fault {
	for i, s := range o.Sales { // fund.RestoreSale checks nothing
		if _, faults := fund.NewSale(s.Terms().Fields()); len(faults) > 0 {
			return operation.UnderParameter(i, faults)
		}
	}
	return nil
}

func (o *AddPush) faults() []fault.Fault {
	for i := range o.Notifications {
		if _, faults := push.FromValues(*o.Notifications[i].Values()); len(faults) > 0 {
			return operation.UnderParameter(i, faults)
		}
	}
	return nil
}

// records are the Parameters of the request. Amounts are json.Number: their digits are sent
// unchanged and are never converted to a float.
func (o *BuyFund) records() any { return saleRecords(o.Sales) }

func saleRecords(sales []fund.Sale) []map[string]any {
	records := make([]map[string]any, len(sales))
	for i, sale := range sales {
		records[i] = saleRecord(sale.Terms())
	}
	return records
}

func saleRecord(t fund.Terms) map[string]any {
	toProcess := map[string]any{"IMKBCode": t.Holding.IMKBCode, "HolderCorporationName": t.Holding.HolderCorporationName}
	if t.PriceID != 0 { // a quote takes the current price
		toProcess["PriceID"] = t.PriceID
	}
	record := map[string]any{
		"CustomerNo":      t.Holding.CustomerNo,
		"TransactionType": fund.SaleTransaction,
		"FundAmount":      json.Number(t.Units.String()),
		"DestinationAccount": map[string]any{
			"BranchCode": t.Account.BranchCode, "CustomerNo": t.Account.CustomerNo,
			"AccountSuffix": t.Account.AccountSuffix, "CurrencyCode": t.Account.Currency.Code(),
		},
		"FundToProcess": toProcess,
	}
	if t.ControlTotal != 0 {
		record["Amount"] = json.Number(decimal.FormatFixed(t.ControlTotal, t.Account.Currency.Decimals()))
	}
	if !t.SelectedDay.IsNone() {
		record["SelectedTransactionDate"] = t.SelectedDay.String()
	}
	return record
}

func (o *AddPush) records() any {
	records := make([]map[string]any, len(o.Notifications))
	for i := range o.Notifications {
		r := o.Notifications[i].Values()
		records[i] = make(map[string]any, len(push.Members)+1)
		for _, m := range push.Members {
			switch value := m.Value(r); {
			case value == "": // absent
			case m.Kind == push.Number:
				records[i][m.Name] = json.Number(value)
			default:
				records[i][m.Name] = value
			}
		}
		if len(r.TranData) > 0 {
			records[i]["TranData"] = r.TranData
		}
	}
	return records
}

func encode(h operation.Header, records any) ([]byte, error) {
	header := map[string]string{
		"AppKey": h.AppKey, "Channel": h.Channel, "TellerName": h.TellerName, "CallerId": h.CallerID,
		"ChannelSessionId": h.ChannelSessionID, "ChannelRequestId": h.ChannelRequestID,
	}
	maps.DeleteFunc(header, func(_, value string) bool { return value == "" })
	body, err := json.Marshal(map[string]any{"Header": header, "Parameters": records})
	if err != nil {
		return nil, fmt.Errorf("encode the operation: %w", err)
	}
	return body, nil
}
