// Package fake is a cloud in memory, for the simulator, the benches and the tests. It behaves as
// provider.Provider promises, and misbehaves on demand.
//
// [Cloud] is the cloud itself: zones, machines, calls that take time, faults, and Lists that lie.
// Its clock and its chance come from outside, so that a run in virtual time is the same each time.
// [Provider] puts it on the time package and behind provider.Provider. What runs in its machines is
// the caller's ([Inside]): real agents, for example.
//
//	cloud.go    zones, machines, the calls
//	machine.go  a machine and its boots
//	fate.go     how long a call takes, and whether it goes wrong
//	fault.go    calls that are made to go wrong
//	lie.go      Lists that are wrong
//	provider.go provider.Provider on a Cloud
//	inside.go   what runs in a Provider's machines
//	ledger.go   what happened under each instance ID, to prove that no second machine was made, none
//	            leaked, and no two calls for one ID overlapped (SAFE-8)
//	console.go  what machines print
//
// # Invariants
//
//   - A Cloud has no goroutine, no lock and no clock of its own, and depends on no map's order.
//   - A Provider works in a testing/synctest bubble: no lock is held while waiting. Close ends and
//     awaits what it has started.
//   - At most one machine is ever made for an ID. One that was deleted is remembered forever,
//     unless the cloud is configured to forget.
//
// # What it does not do
//
// It validates no templates beyond zones, and keeps nothing when the program ends.
package fake
