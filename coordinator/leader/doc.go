// Package leader holds what a leader decides between the planner and the world: when it lists a provider's machines, which provider
// calls it begins and when, what it writes before a call, and what the outcome of a transaction means.
//
// The types are state machines without goroutines, clocks or I/O: every method takes the time, and says what to do next and when. Two
// shells drive them: the coordinator, on etcd and real providers, and coordinator/imagined, in virtual time. What a simulation shows
// is therefore what the coordinator does.
//
//	lists.go   when a provider's machines are listed
//	calls.go   which provider calls begin, and when; pace.go is the rate of creations
//
// The types are not safe for concurrent use. A shell with goroutines holds a lock, or gives each to one goroutine.
package leader
