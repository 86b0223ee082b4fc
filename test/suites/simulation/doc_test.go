// Package simulation runs weeks of the bank in milliseconds. It runs the real use
// cases with their group commit, book and settlement on the in-memory store of
// package fake, with a simulated clock. Callers send requests, lose patience and
// retry. Replicas crash and restart. The store is slow and fails before, during
// and after its commits. Clocks step, and days pass.
//
// # One seed, one run
//
// The seed decides every detail of a run. All goroutines of a run live in a
// bubble of testing/synctest. They stop at points that the world controls: a
// caller in the queue, a transaction at each of its moments, a settlement round
// before each of its batches. The world (world_test.go) is a loop. It uses the seed to
// choose the next event, lets it happen, and waits until all goroutines are
// blocked again. So only one thing runs at a time, and the seed chooses the order
// of all events.
//
// # What is compared
//
//   - bank_test.go is a naive bank: maps, one operation after the other, days as
//     texts, proceeds in big numbers. After every transaction it decides the
//     same operations again, in the order of their arrival. Every answer and
//     every position must agree with it.
//   - audit_test.go trusts neither side. It reads the rows and the answers that
//     callers got, and checks what must be true of any bank: sums, one effect
//     per CallerId, no sale before its day, a row for every effect.
//   - outcomes_test.go has partners who read outcomes all the time, each from its
//     last cursor. At the end each has every outcome once, in one order.
//   - Mutant tests the checks: it puts a mistake between the use cases and the
//     store, and a run must find it.
//
// # Why this bank is not the model of package domain/fund
//
// domain/fund has a model of its own (model_test.go), and suite prove a third one
// (history_test.go). They are not joined, because they answer different questions:
//
//   - The model of domain/fund decides what the book decides, in the values of that
//     package and in numbers without limits. So it can be given the largest amounts.
//     It knows no time of day, no calendar, no pushes and no rows.
//   - The bank here decides what a caller is answered, from the text of a request, with
//     days as texts, and predicts each row. So it also finds a mistake in the types of the
//     domain, which the first model uses, and in all that is between a request and the book.
//   - The model of prove sees only what a caller and an export see. The checker tries many
//     orders of the same requests on it, so its state is small, and it has one price.
//
// A change of a rule of sales is made in the first two. Package httpapi has no model: its
// tests run the real use cases on the in-memory store of package fake.
//
// A failed check ends the run. Its text says how to repeat the run.
package simulation
