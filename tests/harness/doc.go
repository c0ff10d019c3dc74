// Package harness starts programs for tests: each a process of its own, which tests read, pause and
// kill in one way.
//
//	process.go  a process: started, paused, ended
//	etcd.go     an etcd in the test's own process
//	output.go   what programs write, while they write it
//	await.go    waiting for what other processes do
//
// A process has a group of its own, so that a Ctrl-C reaches only the test. The test that starts
// one must end it.
package harness
