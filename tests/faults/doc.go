// Package faults proves Leasehold by fire: a whole cluster of real processes is killed, paused,
// cut, starved and edited, as a seed says, and a judge looks at all that was seen of it from
// outside. docs/reliability.md has what it showed.
//
//	seeds_test.go      runs of ten troubles each, chosen and ordered by a seed (make faults)
//	scenarios_test.go  named ones, with troubles in a fixed order
//	upgrade_test.go    programs of the release before, and of this one, side by side
//	failover_nightly_test.go   the leader killed again and again under load (make failover)
//	soak_nightly_test.go       an hour of churn, in which nothing may grow (make soak)
//	mutants_nightly_test.go    deliberate faults in the product, all to be caught (make mutants)
//	cluster/           everybody who takes part, and the network between them
//	trouble/           what can be done to them, and the plan that a seed gives
//	history/, witness/ what was seen
//	judge/             what must not have been
//	growth/            whether a number has grown, or only varies
//	cloud/, network/, disk/, etcdops/, mutants/, previous/   what all of it is made of
//
// A run that failed says its seed, keeps its history, journal, logs and a snapshot of its etcd, and
// tells the command that plays it again.
package faults
