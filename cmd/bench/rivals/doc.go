// Package rivals compares Leasehold with the usual way to detect failures with etcd alone: every
// agent is an etcd client with a lease of its own and puts its reports, and a detector watches for
// deleted keys. `leasehold-bench compare` shows the result.
//
//	contest.go    the measurements of every contender
//	everyday.go   the cost of normal operation
//	rival.go      a contender made of etcd clients
//	agents.go     its agents
//	detector.go   its detector of dead agents
//	process.go    runs agents and detector in processes of their own
//	table.go      figures side by side, as ratios, and the verdict
//
// # Invariants
//
//   - Every contender has an etcd of its own that begins empty, and has the machine to itself.
//   - No agent ever fails. An agent that is declared dead was alive: a false positive.
//   - Every wait has a limit. What a contender did not complete is missing in its figures, with the
//     reason, and the next one begins.
//   - A rival follows etcd's documentation and is treated fairly: it gets a new lease after a loss,
//     spreads its reports, and is not
//     encrypted.
package rivals
