//go:build race

package coordinator_test

// boundariesApart: the race detector's own bookkeeping gives out after some minutes of a busy process, so that with it the
// leader dies at every fifth boundary only. `make test` plays them all without it.
const boundariesApart = 5
