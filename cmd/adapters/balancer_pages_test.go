package adapters

import (
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
)

// The examples on the pages of load balancers work unchanged: each file is read, its balancer is
// opened, and every setting that it has is in a table.
//
// proves LB-1, SEC-7
func TestThePagesOfBalancers(t *testing.T) {
	for page, fields := range map[string][]string{
		"haproxy":       {"sockets", "backend", "server", "slots", "timeout"},
		"target-groups": {"region", "arns", "secrets", "endpoint", "calls_per_minute", "call_timeout", "consistency"},
		"exec":          nil, // its program is not here
	} {
		path := "../../docs/balancers/" + page + ".md"
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files := 0
		for _, block := range blocksIn(string(text), "yaml") {
			if !strings.Contains(block, "balancers:\n") {
				continue // of a group
			}
			files++
			entries, err := All().Kinds.ReadBalancers(write(t, block))
			if err != nil || len(entries) != 1 {
				t.Fatalf("%s: %v, %v", page, entries, err)
			}
			if fields == nil {
				continue
			}
			if _, err := entries[0].Open(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
		if files == 0 {
			t.Errorf("%s shows no file", page)
		}
		for _, f := range fields {
			if !strings.Contains(string(text), "\n| `"+f+"` |") {
				t.Errorf("%s: no table has %s", page, f)
			}
		}
	}
}

// The policy on the page of target groups is JSON, and allows what is called.
func TestThePolicyOfTargetGroups(t *testing.T) {
	var policy struct {
		Statement []struct{ Action []string }
	}
	rights := blocks(t, "../../docs/balancers/target-groups.md", "json")
	if len(rights) != 1 {
		t.Fatalf("%d policies", len(rights))
	}
	if err := json.Unmarshal([]byte(rights[0]), &policy); err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, s := range policy.Statement {
		actions = append(actions, s.Action...)
	}
	for _, needed := range []string{
		"DescribeTargetGroups", "DescribeTargetHealth", "RegisterTargets",
		"DeregisterTargets",
	} {
		if !slices.Contains(actions, "elasticloadbalancing:"+needed) {
			t.Errorf("the policy does not allow %s", needed)
		}
	}
}
