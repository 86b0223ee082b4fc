package fund_test

import (
	"strconv"
	"testing"

	"bankingapi/domain/fund"
)

// BenchmarkSettle is what the rules cost: a batch of sales by many customers,
// from the loaded book to what is to be written.
func BenchmarkSettle(b *testing.B) {
	const sales = 256
	bank := newBank()
	batch := make([]*fund.Operation, sales)
	for i := range batch {
		customer := strconv.Itoa(2000 + i)
		by := func(f *fund.SaleFields) {
			f.CustomerNo, f.DestinationAccount.CustomerNo = number(customer), number(customer)
		}
		batch[i] = named(byte(i), "order-"+customer, sale(selling("1"), by))
		terms := batch[i].Sales[0].Terms()
		bank.holdings[terms.Holding] = unitsOf("1")
		bank.accounts[terms.Account] = bank.accounts[accountIn("TRY")]
	}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		book := bank.load(batch, on(friday))
		b.StartTimer()
		book.Settle(batch, now, on(friday))
		if len(book.Changes().Sales) != sales {
			b.Fatal("not all were sold")
		}
	}
}
