package previous

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/leasehold/leasehold/tests/programs"
)

// The programs of the release.
const (
	Leasehold = "leasehold"
	Agent     = "leasehold-agent"
	Cast      = "cast" // of its tests/stage
)

var packages = map[string]string{
	Leasehold: "./cmd/leasehold", Agent: "./cmd/leasehold-agent",
	Cast: "./tests/stage/cast",
}

//go:embed leasehold-*.tar.gz
var kept embed.FS

// maxFile bounds a file of the archive.
const maxFile = 16 << 20

// Version is the release's.
func Version() (string, error) {
	_, version, err := archive()
	return version, err
}

// Directory is where the release's programs are among those that packages of tests share (package
// programs).
const Directory = "previous"

// Install puts the release's programs into a directory: those that are shared, or else built again.
func Install(into string) error {
	for name := range packages {
		there, err := programs.Link(filepath.Join(into, name), filepath.Join(Directory, name))
		if err != nil {
			return err
		}
		if !there {
			return Build(into)
		}
	}
	return nil
}

// Build makes the release's programs in a directory, each under its name.
func Build(into string) (err error) {
	into, err = filepath.Abs(into)
	if err != nil {
		return err
	}
	source, err := os.MkdirTemp("", "leasehold-previous-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(source)) }()
	version, err := unpack(source)
	if err != nil {
		return err
	}
	for name, from := range packages {
		// Paths are left out, so that the next build finds this one's work in the cache. Optimised
		// and static, as what is shipped.
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+version,
			"-o", filepath.Join(into, name), from)
		cmd.Dir = filepath.Join(source, "leasehold-"+version)
		cmd.Env = append(os.Environ(), environment()...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s of release %s: %w\n%s", name, version, err, out)
		}
	}
	return nil
}

// environment keeps what is meant for the tree around us (a vendor directory, a workspace, another
// go.mod) from the release's. Proxy, cache and toolchain are the caller's.
func environment() []string {
	return []string{"GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0"}
}

// archive is the one that is kept.
func archive() (data []byte, version string, err error) {
	files, err := kept.ReadDir(".")
	if err != nil {
		return nil, "", err
	}
	if len(files) != 1 {
		return nil, "", fmt.Errorf("%d releases are kept, and there should be one: see scripts/keep-release.sh",
			len(files))
	}
	name := files[0].Name()
	data, err = kept.ReadFile(name)
	return data, strings.TrimSuffix(strings.TrimPrefix(name, "leasehold-"), ".tar.gz"), err
}

// unpack writes the source into a directory, in one that is named after the release.
func unpack(into string) (version string, err error) {
	data, version, err := archive()
	if err != nil {
		return "", err
	}
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", fmt.Errorf("unpack release %s: %w", version, err)
	}
	root, err := os.OpenRoot(into) // no name in the archive leads out of it
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for all := tar.NewReader(plain); ; {
		head, err := all.Next()
		switch {
		case errors.Is(err, io.EOF):
			return version, nil
		case err != nil:
			return "", fmt.Errorf("unpack release %s: %w", version, err)
		case head.Typeflag != tar.TypeReg || head.Size > maxFile:
			return "", fmt.Errorf("unpack release %s: %s is no file of source", version, head.Name)
		}
		text, err := io.ReadAll(all)
		if err == nil {
			err = root.MkdirAll(filepath.Dir(head.Name), 0o700)
		}
		if err == nil {
			err = root.WriteFile(head.Name, text, 0o600)
		}
		if err != nil {
			return "", fmt.Errorf("unpack release %s: %s: %w", version, head.Name, err)
		}
	}
}
