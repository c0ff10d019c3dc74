//go:build !race

package coordinator_test

// boundariesApart: the leader dies at every boundary. With the race detector it is fewer, see there.
const boundariesApart = 1

// manyFailures is how many machines fail at once, where it is to be many.
const manyFailures = 1000
