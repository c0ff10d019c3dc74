// Package autoscale compares how the size of a group follows its load: as Leasehold does it, as
// AWS documents target tracking, and as Kubernetes' HorizontalPodAutoscaler does it with its
// defaults. All get the same load, the same target and machines that start equally slowly.
//
//	curves.go  the loads; unseen_nightly_test.go has random ones
//	rivals.go  models of the two others
//	run.go     all of it, and the table
//
// # Invariants
//
//   - Leasehold's own planner and leader run, in virtual time; the others are models of their
//     documentation. Where that leaves something open, a model gets what is better for it.
//   - Nothing depends on the machine that it runs on: the same version has the same table.
package autoscale
