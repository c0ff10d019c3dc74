//go:build race

package coordinator_test

// boundariesApart: under the race detector, which makes each walk many times slower, the leader dies at every tenth
// boundary only. scripts/test.sh plays them all without it.
const boundariesApart = 10

// manyFailures is fewer for the same reason.
const manyFailures = 200
