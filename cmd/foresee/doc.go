// Package foresee predicts what the planner would do with a group's records if nothing else
// happened: now, and until the group comes to rest. Dry runs and explanations use it.
//
//	foresee.go   the records, and the planner's next step on them
//	ahead.go     one step after the other, in virtual time
//	lead.go      drives coordinator/leader, and does what that commands
//	machines.go  what simulated machines and agents do
//	course.go    counts what happened on the way
//	start_time.go  how long instances of the group take to start
//
// It runs the coordinator's own leader, planner and evidence on the records in etcd. What only a
// coordinator knows is assumed to be in order: the provider has every requested machine, has
// capacity, and creates and removes machines without errors; new instances become healthy. There is
// no grace period: agents had their time to return.
//
// coordinator/sim drives the same leader in a shard from its first election on, in which calls are
// slow, fail and get lost. Here a group continues from existing records, with the work in progress,
// for as long as one command may take.
//
// It writes nothing, and never waits: all of its time is simulated.
package foresee
