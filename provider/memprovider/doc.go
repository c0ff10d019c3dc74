// Package memprovider is a provider in memory, for tests: it behaves as provider.Provider promises,
// and misbehaves on demand.
//
// Machines take time to boot, crash and vanish when told to, and may hold something that runs while
// they do ([Config].Run: for example an agent). Calls can be made to fail, to hang, to take effect
// though their answer is lost, or to take effect long after they were given up ([Fault]). List can
// lag behind, as far as Capabilities says, or be made to lie.
//
// Every machine that ever was is in the ledger ([Provider.Ledger]), with the calls that were made
// for it. So a test can prove that no second machine was made, none leaked, and no two calls for
// one ID overlapped (SAFE-8).
//
// # Invariants
//
//   - It works in a testing/synctest bubble: time is the time package's, and no lock is held while
//     waiting.
//   - Without Run and late effects it starts no goroutine. Close ends and awaits those that it did
//     start.
//   - At most one machine is ever made for an ID; one that was deleted is remembered for good.
//
// # What it does not do
//
// It validates no templates beyond zones, and keeps nothing when the program ends.
package memprovider
