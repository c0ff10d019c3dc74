package tier

import (
	"flag"

	_ "pgregory.net/rapid" // it defines the flag
)

// everydaySeed is the seed of every property in the everyday tier, so that two runs of the same
// source agree. The nightly tier draws a new seed each time, and a seed that fails there becomes a
// test of its own.
const everydaySeed = "20261"

func init() { //nolint:gochecknoinits // the seed must be set before any test, whichever packages import this
	if Nightly {
		return
	}
	if err := flag.Set("rapid.seed", everydaySeed); err != nil {
		panic(err)
	}
}
