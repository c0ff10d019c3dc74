// Package storetest is the one suite that every [store.Store] passes: each sentence of the contract
// that a client can observe, and random transactions against a model that is too simple to be
// wrong.
//
// # Invariants
//
//   - A test uses keys below a prefix of its own and assumes nothing of the revision, so that the
//     stores under test may be clients of one database that holds other things.
//   - Nothing depends on speed: a test waits for what must happen, up to a minute, and measures
//     time only where the contract forbids that something happens too early.
//
// # What it does not do
//
// It injects no faults: what a store makes of lost connections, lost answers and stalled servers is
// tested with each store, as only that knows how to cause them.
package storetest
