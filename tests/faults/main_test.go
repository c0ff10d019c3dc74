package faults

import (
	"flag"
	"os"
	"testing"

	"github.com/leasehold/leasehold/tests/stage"
)

// atOnce is how many runs are played at the same time: most of the time they wait. With more of
// them two processors are short of time for leases of seconds.
const atOnce = "8"

// built are the programs.
var built *stage.Programs

// programsFlag plays a run with given programs: with a mistake in them, say.
var programsFlag = flag.String("programs", "", "a directory with the programs; none: they are built")

func TestMain(m *testing.M) {
	flag.Parse()
	if *programsFlag != "" {
		built = stage.Built(*programsFlag)
	}
	os.Exit(stage.Main(m, atOnce, &built))
}
