// Package rivals holds Leasehold against what people do today with etcd alone: every agent is a
// client of etcd with a lease of its own and puts what it reports, and a client that wants to know
// which are dead watches for keys that are deleted. It is what `leasehold-bench compare` shows.
//
//	contest.go    what every contender goes through
//	everyday.go   what it costs that all are well
//	rival.go      a contender that is made of clients of etcd
//	agents.go     its agents
//	detector.go   who tells which of them are dead
//	process.go    agents and detector in processes of their own
//	table.go      figures side by side, as ratios, and the verdict
//
// # Invariants
//
//   - Every contender has an etcd of its own that begins empty, and has the machine to itself.
//   - No agent ever fails. An agent that is declared dead was alive: a false positive.
//   - Nothing is waited for without end. What a contender did not come to is missing among its figures, with the reason, and the next one begins.
//   - A rival is written as etcd's documentation has it, and not against itself: it takes its lease up again when that was lost, spreads its reports, and is not
//     encrypted.
package rivals
