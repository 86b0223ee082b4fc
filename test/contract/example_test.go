package contract_test

import (
	"testing"

	"bankingapi/domain/fund"
	"bankingapi/test/contract"
	"bankingapi/test/fake"
)

// The test of a storage hands in its port, and functions that fill and read it. Without
// Disconnect, FailCommit and LoseRace the tests of these troubles do nothing.
func ExampleBooks() {
	// func TestBooks(t *testing.T) { ... }
	_ = func(t *testing.T) {
		contract.Books(t, func(*testing.T) contract.BooksUnderTest {
			store := fake.NewStore() // each test opens an empty storage
			return contract.BooksUnderTest{
				Books: store.Books(nil),
				Seed: func(_ *testing.T, s contract.Seed) {
					store.PutPrices(s.Prices...)
					store.PutHoldings(s.Holdings...)
					store.PutAccounts(s.Accounts...)
				},
				Holdings: func(*testing.T) []fund.Holding { return store.Holdings() },
				Accounts: func(*testing.T) []fund.Account { return store.Accounts() },
				Sales:    func(*testing.T) []fund.SaleEntry { return store.Sales() },
				Postings: func(*testing.T) []fund.Posting { return store.Postings() },
			}
		})
	}
}
