// Package mutants is faults that are put into the product on purpose: each is a small mistake that
// a programmer could make, compiles, passes a glance, and breaks one promise. A run of tests/faults
// that never finds one of them proves nothing about that promise.
//
//	mutant.go    what a mutant is; its source, and the programs of a stage that are built from it
//	catalogue.go all of them
//	leader.go    mistakes in what a leader writes and asks of providers
//	planner.go   mistakes in what is decided
//	judgement.go mistakes in what is believed of machines
//	gateway.go   mistakes in agents' sessions and in the store's client
//
// # Invariants
//
//   - The source on disk is never touched: go build -overlay puts other texts in the place of
//     files.
//   - What an edit replaces stands exactly once in its file, and the changed package compiles; the
//     test says so within seconds, so that the author of a change in such a place learns that a
//     mutant lives there.
package mutants
