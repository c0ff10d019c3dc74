package stage

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// Main runs the tests of a package with programs that they share, and returns with what the process
// has to exit. They are built before, unless there are some already, and removed afterwards. Up to
// so many tests run at the same time, unless -parallel was given; "": as many as Go has.
func Main(m *testing.M, atOnce string, programs **Programs) (code int) {
	flag.Parse()
	chosen := atOnce == ""
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", atOnce); err != nil {
			panic(err)
		}
	}
	if *programs != nil {
		return m.Run()
	}
	built, err := Build()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*programs = built
	code = m.Run()
	if err := built.Remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}
