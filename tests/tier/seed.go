package tier

import (
	"flag"

	_ "pgregory.net/rapid" // it has the flag
)

// everydaySeed is what properties draw from every day, so that a run of the everyday tier says the same of the same source twice. At night,
// and where -rapid.seed says otherwise, they draw from a seed of their own each time; one that fails becomes a test of its own.
const everydaySeed = "20261"

func init() {
	if Nightly {
		return
	}
	if err := flag.Set("rapid.seed", everydaySeed); err != nil {
		panic(err)
	}
}
