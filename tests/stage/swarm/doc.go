// Package swarm is many machines in one process: each has a real agent, of package agent, with a
// stream of its own over TCP, and nothing else. So a thousand of them fit into a test, and what a
// coordinator hears and does not hear of them is real.
//
// The process that holds them serves the calls of a provider on a socket ([Serve]); a coordinator
// in another process makes them through [Provider]. A test can make the provider lie and the
// machines crash through [Control].
//
// The agents of some machines may be programs, of another release say: then each is a process of
// its own ([Control.RunAgents]).
//
// # Invariants
//
//   - The machines live and die with their process, and not with a coordinator.
//   - What a coordinator learns of a machine it learns by List or from the agent, never from the
//     test.
//
// # What it does not do
//
// Machines run no workload, and do not measure their host: that is the same one for all.
package swarm
