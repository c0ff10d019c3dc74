package stage

import (
	"fmt"
	"os"
	"testing"

	"github.com/leasehold/leasehold/tests/tier"
)

// Main runs the tests of a package with shared programs, and returns the exit code. It builds the
// programs first, unless there are some already, and removes them afterwards. atOnce is how many
// tests run at the same time, unless -parallel was given; "": Go's default.
func Main(m *testing.M, atOnce string, programs **Programs) (code int) {
	if atOnce != "" {
		tier.AtOnce(atOnce)
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
