// Package simulation plays whole weeks of the bank in milliseconds: the real
// use cases with their group commit, their book and their settlement, over the
// in-memory store of package fake, on a clock of its own. Callers ask, get
// impatient and ask again, replicas crash and come back, the store is slow and
// fails before, during and after its commits, clocks step, midnights pass.
//
// # One seed, one run
//
// A run is decided by its seed to the byte. All goroutines of a run live in a
// bubble of testing/synctest and stop at points that the world holds: a caller
// in the lane, a transaction at each of its moments, a settlement round before
// each of its batches. The world (world.go) is a loop that picks, by the seed,
// the one thing that happens next, lets it happen, and waits until everybody
// stands still again. So there is never more than one thing on its way, and
// every order of events that matters is an order that the seed chose.
//
// # What is held against what
//
//   - bank.go is a naive bank: maps, one operation after the other, days as
//     texts, proceeds in big numbers. After every transaction it decides the
//     same operations again, in the order of their arrival; every answer and
//     every position has to agree with it.
//   - audit.go believes neither side. It reads the rows, and the answers that
//     callers got, and asks for what has to be true of any bank: sums, one
//     effect per CallerId, no sale before its day, nothing without a row.
//   - Plant is how the checks are checked: a mistake is put between the use
//     cases and the store, and has to be found.
//
// What is found ends the run, and its text says how to see it again.
package simulation
