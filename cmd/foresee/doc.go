// Package foresee tells what the planner would do with a group's records if nothing else happened:
// now, and on the way to where the group comes to rest. It serves dry runs and explanations.
//
//	foresee.go   the records, and the planner's next step on them
//	ahead.go     one step after the other, in virtual time
//	machines.go  what simulated machines and agents do
//	course.go    what happened on the way, counted
//	start_time.go  how long instances of the group take to start
//
// It is the coordinator's own planner, and its own evidence, on what etcd says. What only a
// coordinator knows is taken to be in order: the provider has every machine that it was asked for,
// has room, and makes and removes machines without fail; new instances get healthy. There is no
// grace: agents had their time to return.
//
// coordinator/sim plays a shard in which calls take their time, fail and get lost, from its
// first election on. Here a group goes on from records that are there, with whatever is under way
// in them, and is followed for as long as one command may take: what the two have in common is the
// evidence, the planner and store.Condition.Holds.
//
// It writes nothing, and never waits: all of its time is simulated.
package foresee
