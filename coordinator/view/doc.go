// Package view derives what a person or a program is shown of a shard, a group, an instance and the
// journal, from what is in memory: the page renders it as HTML, leasehold top for a terminal, the
// API as JSON. It renders nothing itself, and says nothing that coordinator/story and
// coordinator/reason could.
//
//	source.go  what is read from the cache
//	shard.go, group.go, instance.go, events.go   a view each
//	units.go   an instance in a list: its kind, its sign, why it is so
//	cells.go   the slots of a group with their instances
//	past.go    a group as it was
//
// # Invariants
//
//   - A view depends on the cache, the journal and the time alone. etcd is asked for nothing.
//   - Nothing of a view refers to what the cache will change.
package view
