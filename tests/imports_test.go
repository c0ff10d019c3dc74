package tests

import (
	"os/exec"
	"strings"
	"testing"
)

// TestImports checks which package imports which, and some habits that only the source can show.
func TestImports(t *testing.T) {
	for _, f := range projectSource(t) {
		for _, b := range bans {
			for _, found := range b.find(f) {
				t.Errorf("%s: %s\n\tban: %s\n\tbecause %s.", f.line(found.pos), found.what, b.name, b.why)
			}
		}
	}
}

// clouds reports whether a package is one of the large ones, or links them.
func clouds(p string) bool {
	return withinAny(p, module+"/cmd/adapters", module+"/coordinator/discovery/xdsserver", "github.com/envoyproxy",
		"github.com/aws", "github.com/gophercloud", "github.com/digitalocean/go-libvirt")
}

// TestImportsLinked checks what a program must not link, however many packages lie between.
func TestImportsLinked(t *testing.T) {
	root := projectRoot(t)
	for _, program := range []struct {
		path, why string
		refused   func(importPath string) bool
	}{
		{
			path: "./cmd/leasehold-agent",
			why: "the agent runs on every machine: it has no access to etcd and makes no machines, so it must carry " +
				"neither (size, attack surface, upgrades)",
			refused: func(p string) bool {
				return etcd(p) || adapter(p) != "" || within(p, module+"/coordinator")
			},
		},
		{
			path: "./cmd/leasehold",
			why: "operators and coordinators run it: load generators and a client that cuts corners are in leasehold-bench " +
				"(size, attack surface)",
			refused: func(p string) bool { return within(p, module+"/cmd/bench") },
		},
		{
			path: "./tests/stage/cast",
			why: "it is built twice, once with a library of Go that is changed for it, and all that it links is compiled " +
				"again for that: the clouds' modules alone take minutes",
			refused: clouds,
		},
		{
			path: "./cmd/cli",
			why: "tests of the command line are linked with it each time: package cmd/adapters, which cmd/leasehold alone " +
				"imports, has the large modules",
			refused: clouds,
		},
	} {
		list := exec.CommandContext(t.Context(), "go", "list", "-buildvcs=false", "-deps", program.path)
		list.Dir = root
		var problem strings.Builder
		list.Stderr = &problem
		out, err := list.Output()
		if err != nil {
			t.Errorf("list what %s links: %v\n%s", program.path, err, problem.String())
			continue
		}
		linked := strings.Fields(string(out))
		if len(linked) < 10 {
			t.Errorf("%s links %d packages only: nothing was looked at", program.path, len(linked))
		}
		for _, p := range linked {
			if program.refused(p) {
				t.Errorf("%s links %s\n\tbecause %s.\n\tnext: go list -deps -json %s, and look for who imports it",
					program.path, p, program.why, program.path)
			}
		}
	}
}
