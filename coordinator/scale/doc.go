// Package scale decides how many instances a group's load asks for. It has no clock and no I/O:
// what is known of the load comes in as numbers, and since when anything holds is judged by who
// calls it.
//
//	wish.go   what load asks for, by target
//	step.go   how far the size goes towards it now
//
// # How it counts
//
// An instance is warm, missing or on the way. Warm ones have been healthy for scale.warmup and have
// a fresh number. The load of a group is the sum of the warm ones' numbers. The wish is that sum
// divided by the target, so it does not depend on the size: instances on the way are not in the
// sum, and a burst creates no more instances because they have not started yet.
//
// Unknown numbers are assumed to be unfavourable. For growth, missing instances have no load. For
// shrinking, each instance that is missing or on the way has the target as its load, and the load
// of draining instances counts. The load of instances that have just left counts, too, while the
// other instances report averages from before they took it over: it delays shrinking, and is not
// part of the wish.
//
// # What it does not do
//
// It does not know why a size must not shrink now: see coordinator/plan.
package scale
