package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/cloud"
	"github.com/leasehold/leasehold/tests/faults/history"
	"github.com/leasehold/leasehold/tests/stage"
	"github.com/leasehold/leasehold/tests/stage/swarm"
)

// Group is what the operators of a cluster want of a group.
type Group struct {
	Name    string
	Size    int
	Checked bool     // it has a check, so that its machines can become unhealthy
	Served  bool     // its machines are behind the load balancer, and have files
	More    []string // further lines of its file

	edits map[string]int // how often each part was edited
}

// Usual returns the groups of a run.
func Usual() []Group {
	return []Group{
		{Name: "web", Size: 12, More: []string{"budget: {max_expansion: 2}"}},
		{
			Name: "db", Size: 6, Checked: true, Served: true,
			More: []string{"budget: {max_expansion: 1, max_unavailable: 1, max_creating: 3, max_deleting: 2}"},
		},
		{Name: "one", Size: 1},
	}
}

// text returns the group's file.
func (g *Group) text(c *Cluster) string {
	lines := []string{
		"name: " + g.Name, fmt.Sprintf("size: %d", g.Size), "provider: swarm",
		fmt.Sprintf("template: {zones: [%s], settings: {edition: \"%d\"}}", strings.Join(zones, ", "),
			g.edits["template"]),
		fmt.Sprintf(`workload: {run: [sleep, "%d"]}`, 1_000_000+g.edits["run"]),
		fmt.Sprintf("vars: {edition: \"%d\"}", g.edits["vars"]),
		fmt.Sprintf("report: {interval: %s, lease_ttl: %s}", c.Interval, c.TTL),
		"stop_timeout: 2s", "registration_timeout: 20s", "max_checking_health_duration: 20s",
		"flap: {failures: 3, window: 1m, min_delay: 1s, max_delay: 6s, noise: 0s, reset: 30s}",
		"storm: {window: 10s, cooldown: 5s, probe_after: 0s}",
	}
	if g.Checked {
		// Not fewer than four: where eight clusters share two processors, a probe that only starts
		// a program has taken longer than its second twice in a row.
		lines = append(lines, "checks:",
			`- {name: well, exec: {run: [test, "!", -e, sick]}, interval: 2s, timeout: 1s, unhealthy_threshold: `+
				fmt.Sprint(4+g.edits["check"]%2)+"}")
	}
	if g.Served {
		lines = append(lines, "load_balancers: [{name: "+swarm.BalancerTarget+"}]", "drain: {timeout: 6s, hook: [\"true\"]}",
			"files:", fmt.Sprintf("- {path: \"${dir}/%s/%s\", template: %q}", cloud.Managed, fileOfVars,
				varsTemplate(g.edits["vars"])),
			fmt.Sprintf("- {path: \"${dir}/%s/%s\", template: %q, settle: 1s}", cloud.Managed, fileOfPeers, peersTemplate),
			certificateFile(g.Name))
	}
	return strings.Join(append(append(lines, g.More...), ""), "\n")
}

// want creates a group without waiting for it.
func (c *Cluster) want(g Group) {
	c.T.Helper()
	g.edits = map[string]int{}
	c.mu.Lock()
	c.groups[g.Name] = &g
	c.mu.Unlock()
	if err := c.ApplyAgain(g.Name); err != nil {
		c.T.Fatal(err)
	}
}

// Wanted returns the sizes that groups should have in the end.
func (c *Cluster) Wanted() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int{}
	for name, g := range c.groups {
		out[name] = g.Size
	}
	return out
}

// Checked returns the groups with a check.
func (c *Cluster) Checked() []string {
	return c.groupsThat(func(g *Group) bool { return g.Checked })
}

// Served returns the groups behind the load balancer.
func (c *Cluster) Served() []string {
	return c.groupsThat(func(g *Group) bool { return g.Served })
}

func (c *Cluster) groupsThat(are func(*Group) bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.groups)) {
		if are(c.groups[name]) {
			out = append(out, name)
		}
	}
	return out
}

// GroupOf returns the group of an instance, by its name.
func (c *Cluster) GroupOf(instance string) string {
	for name := range c.Wanted() {
		if strings.HasPrefix(instance, name+"-") {
			return name
		}
	}
	return ""
}

// file writes a group's file.
func (c *Cluster) file(name string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	path := filepath.Join(c.Dir, name+".yaml")
	return path, os.WriteFile(path, []byte(c.groups[name].text(c)), 0o600)
}

// Edit changes a part of a group's file and applies it, once.
func (c *Cluster) Edit(ctx context.Context, name, part string) error {
	c.mu.Lock()
	g := c.groups[name]
	before := maps.Clone(g.edits)
	g.edits[part]++
	c.mu.Unlock()
	path, err := c.file(name)
	if err == nil {
		err = c.Operator(ctx, "group", "apply", "-f", path, "--confirm", name)
	}
	if err != nil { // it may have been applied: the next edit contains the same
		c.mu.Lock()
		g.edits = before
		c.mu.Unlock()
	}
	return err
}

// MakeAgain creates a deleted group again, once it is gone. One that still exists, because the
// order was lost, is left alone.
func (c *Cluster) MakeAgain(name string) error {
	late := time.NewTimer(stage.Longest)
	defer late.Stop()
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		kv, err := c.Store.Get(c.T.Context(), c.Keys.Group(name))
		if errors.Is(err, store.ErrNotFound) {
			return c.ApplyAgain(name)
		}
		if err == nil {
			spec, err := store.Decode[store.Group](kv)
			if err != nil || !spec.Record.Deleting {
				return err
			}
		}
		select {
		case <-late.C:
			return fmt.Errorf("group %s was deleted, and is still there", name)
		case <-again.C:
		}
	}
}

// ApplyAgain applies a group's file until that succeeds.
func (c *Cluster) ApplyAgain(name string) error {
	path, err := c.file(name)
	if err != nil {
		return err
	}
	return c.OperatorMust("group", "apply", "-f", path, "--confirm", name)
}

// Operator runs a command and records the result.
func (c *Cluster) Operator(ctx context.Context, args ...string) error {
	c.mu.Lock()
	c.orders++
	o := history.Order{ID: c.orders, Command: args}
	c.mu.Unlock()
	c.Log.Add(history.Event{Order: &o})
	out, err := c.Try(args...)
	ended := o
	ended.Ended = true
	if err != nil {
		err = fmt.Errorf("leasehold %s: %w: %s", strings.Join(args, " "), err, out)
		ended.Err = err.Error()
	}
	c.Log.Add(history.Event{Order: &ended})
	return errors.Join(err, ctx.Err())
}

// OperatorMust repeats a command until it succeeds, for example while etcd does not answer.
func (c *Cluster) OperatorMust(args ...string) error {
	late := time.NewTimer(stage.Longest)
	defer late.Stop()
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		err := c.Operator(c.T.Context(), args...)
		if err == nil || c.T.Context().Err() != nil {
			return err
		}
		select {
		case <-late.C:
			return err
		case <-again.C:
		}
	}
}

// SpoilSpec removes a group's key by hand, or overwrites it with garbage. back restores it.
func (c *Cluster) SpoilSpec(ctx context.Context, name string, remove bool) (back func() error, err error) {
	key := c.Keys.Group(name)
	kv, err := c.Store.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	w := store.Put(key, []byte(`{"schema":1,"name":"`+name+`","size":"many"}`))
	if remove {
		w = store.Delete(key)
	}
	if _, err = c.Store.Commit(ctx,
		store.Txn{Conditions: []store.Condition{store.Unchanged(kv)}, Writes: []store.Write{w}}); err != nil &&
		!errors.Is(err, store.ErrUnknown) {
		return nil, err
	}
	return func() error {
		return c.insist(func(ctx context.Context) error {
			_, err := c.Store.Commit(ctx, store.Txn{Writes: []store.Write{store.Put(key, kv.Value)}})
			return err
		})
	}, nil
}

// insist retries until it succeeds.
func (c *Cluster) insist(do func(context.Context) error) error {
	return c.Patiently(func(ctx context.Context) error {
		again := time.NewTicker(500 * time.Millisecond)
		defer again.Stop()
		for {
			attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
			err := do(attempt)
			cancel()
			if err == nil {
				return nil
			}
			select {
			case <-ctx.Done():
				return err
			case <-again.C:
			}
		}
	})
}

// complete returns the first group that is not complete; "" if all are.
func (c *Cluster) complete() string {
	for name, size := range c.Wanted() {
		if !c.Complete(name, size) {
			return name
		}
	}
	return ""
}
