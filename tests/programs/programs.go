// Package programs gives tests the programs of the project, built without the race detector even
// where the tests have it: what is tested is what is shipped, and many agents have to fit on a
// machine.
//
// scripts/test.sh builds them once for all packages and names their directory in
// LEASEHOLD_TEST_PROGRAMS. A package that is tested by hand builds its own.
package programs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

// EnvShared names the directory with the programs that are built already.
const EnvShared = "LEASEHOLD_TEST_PROGRAMS"

// The packages of programs.
const (
	module    = "github.com/leasehold/leasehold/"
	Leasehold = module + "cmd/leasehold"
	Agent     = module + "cmd/leasehold-agent"
	Cast      = module + "tests/stage/cast" // the parts of a stage
	DetectWeb = module + "tests/detect/web" // the workload of bench-detect
)

// Build puts programs into a directory, each under the last element of its package's path. It uses
// the shared ones, and builds the others.
func Build(dir string, packages ...string) error {
	var missing []string
	for _, p := range packages {
		there, err := Link(filepath.Join(dir, path.Base(p)), path.Base(p))
		if err != nil {
			return err
		}
		if !there {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	// With these flags the compiled packages are the same as in make build and
	// scripts/test.sh.
	cmd := exec.Command("go", append([]string{
		"build", "-trimpath", "-buildvcs=false", "-o",
		dir + string(filepath.Separator),
	}, missing...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %v: %w\n%s", missing, err, out)
	}
	return nil
}

// Link puts a shared program at a path, and reports whether there is one of that name. It makes a
// link or a copy, so that the test may remove it, and the program finds in its directory only what
// the test puts there.
func Link(at, name string) (there bool, err error) {
	dir := os.Getenv(EnvShared)
	if dir == "" {
		return false, nil
	}
	from := filepath.Join(dir, name)
	if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if os.Link(from, at) == nil {
		return true, nil
	}
	return true, clone(from, at) // another file system, for example
}

func clone(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
