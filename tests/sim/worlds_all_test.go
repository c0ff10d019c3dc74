//go:build !race

package sim_test

// worldsByDefault is how many worlds are played. With the race detector it is fewer, see there.
const worldsByDefault = 2000
