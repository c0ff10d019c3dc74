package faults

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/leasehold/leasehold/tests/stage"
)

// atOnce is how many runs are played at the same time: most of the time they wait.
const atOnce = "8"

// built are the programs.
var built *stage.Programs

// programsFlag has a run be played with programs that somebody else has built: with a mistake in them, say.
var programsFlag = flag.String("programs", "", "a directory with the programs; none: they are built")

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", atOnce); err != nil {
			panic(err)
		}
	}
	if *programsFlag != "" {
		built = stage.Built(*programsFlag)
		os.Exit(m.Run())
	}
	code := 1
	var err error
	if built, err = stage.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
		if err := built.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}
