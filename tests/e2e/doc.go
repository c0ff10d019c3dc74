// Package e2e proves the promises on the real programs: leasehold and leasehold-agent as they are
// built, real machines of the process provider, and an etcd in a process of its own. Faults are
// what programs really suffer: SIGKILL, SIGSTOP and SIGTERM.
//
//	main_test.go      builds the programs once; runs etcd when this very binary is started for that
//	program_test.go   one running program and its output
//	guests_test.go    machines of imitated clouds, and the story of a group at any provider
//	history_test.go   every change in etcd, in order: the evidence of all tests
//	world_test.go     a directory, an etcd, programs and a history; the end of a test
//	cluster_test.go   an etcd, replicas of a coordinator and their machines
//
// Package tests/machines finds the processes of a shard's machines, by their environment.
//
// # Invariants
//
//   - What happened is read off etcd's own history, revision by revision, not off the clock. Where
//     the text of a rule gives a time, the time that it took is logged, and refused only when it is
//     several times too long; a time that must not be undercut is refused strictly.
//   - That nothing happened is followed by something that must happen, so that a dead system cannot
//     pass.
//   - A world that ends kills all it started, machines included, and fails if anything is left, or
//     if a process runs for an instance without a record.
//   - A world that failed keeps its directory and says where it is: the logs of all programs and
//     the whole history.
//
// # What it does not do
//
// It measures no speed and fakes nothing: groups report every second and have leases of five
// seconds, which is what they may.
package e2e
