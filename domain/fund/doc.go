// Package fund sells a customer's fund holding to the bank and credits the
// proceeds: the rules of BuyFundFromCustomer (the contract, section 5).
//
// # What a sale does
//
// A Sale takes units out of a Holding and puts money into an Account, at the
// Price the customer agreed to:
//
//	proceeds = units x price, rounded half away from zero to the currency's
//	minor unit, once per sale
//
// 12.5 units at 1.23456789 TRY are 15.432098625, so 15.43 TRY. Two Postings
// say where units and money went; each moves a quantity between the customer
// and the bank, so that units and money sum to zero by their very shape.
//
// # How it is decided
//
// A Book holds the part of the bank's book that a batch of operations
// touches. Book.Settle decides the operations in the order of their arrival,
// in memory; whoever loaded the book then writes its Changes in one
// transaction. A refusal is an outcome and not an error: it leaves nothing
// behind, so that neighbours in a batch never hurt each other.
//
// The sales of one operation are all or nothing. Each sees what the earlier
// ones did; one that is refused is treated as if it were not there, so that
// the caller learns all reasons at once, and then none of them takes place.
//
// # A later day
//
// A sale for a later day is recorded, and settled by the same Book.Settle once
// its day has come, at the price that is current on that day. All sales of an
// operation share one day.
package fund
