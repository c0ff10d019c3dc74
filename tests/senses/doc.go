// Package senses proves that Leasehold raises no false alarm: whatever happens to coordinators, to
// etcd, to a provider's answers, to clocks and to the network, no instance is created, moved or
// destroyed for it. docs/false-positives.md lists what was tried.
//
//	main_test.go          how many agents there are; the stage is in tests/stage
//	coordinators_nightly_test.go  replicas killed, away, cut off from etcd
//	etcd_test.go          etcd down, frozen, forgetful, on a disk that stalls
//	provider_test.go      a provider that lies
//	clocks_test.go        wall clocks that jump
//	network_nightly_test.go       agents cut off, storms, a slow network
//	healing_test.go       what must be healed all the same
//
// # Invariants
//
//   - Every process is a real one, on the loopback address: an etcd, replicas wired as leasehold
//     coordinator is, and a swarm of real agents. They are killed, stopped and cut off from one
//     another, and nothing in them is replaced but the provider.
//   - What was done is counted from etcd's records and its journal. The count must be zero at any
//     speed.
//   - That nothing happened is followed by something that must happen, so that a dead system cannot
//     pass.
//   - A scenario that failed keeps its directory (journal, logs of all programs), and says which
//     command repeats it.
//
// # What it does not do
//
// It measures no speed: that is for tests/detect. Machines of its own for each agent would not fit;
// tests/e2e has those.
package senses
