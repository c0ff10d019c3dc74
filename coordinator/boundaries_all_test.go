//go:build !race

package coordinator_test

// boundariesApart: the leader dies at every boundary. With the race detector it is fewer, see there.
const boundariesApart = 1
