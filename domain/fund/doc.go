// Package fund has the rules of BuyFundFromCustomer (the contract, section 5): a
// customer sells units of a fund to the bank, and the bank credits the proceeds.
//
// # What a sale does
//
// A Sale takes units from a Holding and credits money to an Account, at the Price
// that the customer agreed to:
//
//	proceeds = units x price, rounded half away from zero to the currency's
//	minor unit, once per sale
//
// For example, 12.5 units at 1.23456789 TRY are 15.432098625, so 15.43 TRY. Two Postings record
// the units and the money. Each posting moves a quantity between the customer and the bank, so
// units and money always sum to zero.
//
// # How it is decided
//
// A Book holds the part of the bank's book that a batch of operations reads and changes.
// Book.Settle decides the operations in memory, in the order of their arrival. Storage then
// writes the Changes in one transaction. A refusal is an outcome and not an error. It changes
// nothing, so the operations of a batch do not affect each other.
//
// Either all sales of an operation take place, or no sale. Each sale sees the effect of the
// earlier ones. If a sale is refused, the sales after it are still checked, so that the caller
// gets all reasons at once. Then no sale takes place.
//
// # A later day
//
// A sale for a later day is recorded first. From its day on Book.Settle settles it, once its fund
// has a price whose ValidFrom is that very day, at this price. All sales of an operation have the
// same day.
package fund
