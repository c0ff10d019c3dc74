//go:build nightly

package e2e

import (
	"path/filepath"
	"testing"
)

// A newcomer has an LXD, the page of a provider of their own, and the example in Python. They make
// a network and an image, test the program, keep a group with it, end a container and freeze
// another one, and remove the group.
//
// proves PROV-1, PROV-2, DET-4, DET-7
func TestFromThePythonExampleToAHealingGroup(t *testing.T) {
	example, err := filepath.Abs("../../docs/providers/examples/lxd.py")
	if err != nil {
		t.Fatal(err)
	}
	lxdPage{
		page: "providers/exec.md", heading: "### Containers, in Python", host: "[fd42:ac3e::1]", size: 2,
		edits: map[string]string{
			"/opt/leasehold/docs/providers/examples/lxd.py": example,
			"--alias agent": "--alias newcomer", // tests share this LXD
			"image: agent":  "image: newcomer",
		},
	}.heals(t)
}
