// Command detect measures how long it takes from harm done to a machine until it is suspected,
// judged and its replacement is requested: with real programs, real agents in network namespaces of
// their own, and etcd's own watch as the witness.
//
//	main.go       the command line; builds the programs, and ends everything
//	apart.go      the namespaces in which all of it runs, and their first process
//	bench.go      etcd, the coordinator, the groups; who is harmed when
//	machine.go    the network of a machine, and what can be done to it
//	ledger.go     what etcd tells, and when
//	scenarios.go  each kind of harm, with what must come of it and how soon
//	result.go     figures, the table, JSON
//
// # Invariants
//
//   - All runs in process, mount and network namespaces of its own. When their first process ends,
//     by Ctrl-C, by SIGKILL or because the program that started it is gone, the kernel ends all the
//     others and removes every network: nothing is left.
//   - One clock: the process that does the harm is the one that reads the watch. The clock starts
//     before the harm is done.
//   - The replacement is requested when the transaction that records it is seen. What the provider
//     then takes to make it is not in the figures.
//   - A replaced instance that was not harmed, and every trial that does not end by the rule that
//     it should, is a failure of the run.
//   - Settings are the defaults, but for budget.max_expansion (no trial may wait for another's
//     replacement) and, in the group whose agents never register, registration_timeout.
//
// # What it does not do
//
// It does not measure storms or flapping: victims are few enough at once, and in slots of their
// own, to be neither.
package main
