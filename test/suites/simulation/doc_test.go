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
// A failed check ends the run. Its text says how to repeat the run.
package simulation
