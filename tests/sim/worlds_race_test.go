//go:build race

package sim_test

// worldsByDefault: a world is for one goroutine, so that the race detector, which makes it ten times slower, sees little
// in it. scripts/test.sh plays them all without it.
const worldsByDefault = 24
