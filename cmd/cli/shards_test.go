package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// proves ELECT-4
func TestCommandsSpeakOfOneShardOrOfAll(t *testing.T) {
	w := newWorld(t)
	for shard, size := range map[string]int{"default": 1, "default2": 2} {
		w.keys = store.KeysOf(shard)
		w.serve()
		web := webGroup(size)
		w.put(store.KindStatus, "web", statusOf(web, w.put(store.KindGroups, "web", web), size))
		for slot := range size {
			id := shard + "-web-" + string(rune('a'+slot))
			w.put(store.KindInstances, id, instanceOf(web, slot, id, store.Running))
		}
	}
	run := func(args ...string) string {
		t.Helper()
		code, out, errs := w.run(args...)
		if code != 0 {
			t.Fatalf("leasehold %s: exit %d, %s", strings.Join(args, " "), code, errs)
		}
		return out
	}
	records := func(args ...string) (n int) {
		t.Helper()
		var all []json.RawMessage
		if err := json.Unmarshal([]byte(run(append(args, "-o", "json")...)), &all); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return len(all)
	}

	for _, c := range []struct {
		args              []string
		groups, instances int
	}{
		{nil, 1, 1},
		{[]string{"--shard", "default2"}, 1, 2},
		{[]string{"--shard", "nowhere"}, 0, 0},
		{[]string{"--all-shards"}, 2, 3},
		{[]string{"--all-shards", "--shard", "default2"}, 2, 3},
	} {
		if n := records(append([]string{"group", "list"}, c.args...)...); n != c.groups {
			t.Errorf("group list %v shows %d groups, want %d", c.args, n, c.groups)
		}
		if n := records(append([]string{"instance", "list"}, c.args...)...); n != c.instances {
			t.Errorf("instance list %v shows %d instances, want %d", c.args, n, c.instances)
		}
	}
	for _, args := range [][]string{{"group", "list"}, {"instance", "list"}, {"status"}} {
		table := run(append(args, "--all-shards")...)
		for _, shard := range []string{"default", "default2"} {
			told := false
			for line := range strings.Lines(table) {
				for _, word := range strings.Fields(strings.ReplaceAll(line, "|", " ")) {
					told = told || word == shard
				}
			}
			if !told {
				t.Errorf("leasehold %s --all-shards does not name shard %s:\n%s", strings.Join(args, " "), shard, table)
			}
		}
	}

	// A change of one shard does not affect the other.
	before := w.all(store.KeysOf("default"))
	run("group", "scale", "web", "5", "--shard", "default2")
	run("hold", "moving etcd", "--shard", "default2")
	run("instance", "replace", "default2-web-a", "--shard", "default2")
	if now := w.all(store.KeysOf("default")); now != before {
		t.Errorf("shard default was\n%s\nand is\n%s", before, now)
	}
	w.keys = store.KeysOf("default2")
	if g := w.spec("web"); g.Size != 5 {
		t.Errorf("web in default2 has size %d", g.Size)
	}
	if code, _, _ := w.run("instance", "replace", "default2-web-b"); code != NotFound {
		t.Error("an instance of another shard is taken for one of this")
	}
}

// all returns all that a shard holds.
func (w *world) all(keys store.Keys) string {
	w.t.Helper()
	l, err := w.st.List(w.t.Context(), keys.Prefix(), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	var b strings.Builder
	for _, kv := range l.KVs {
		b.WriteString(kv.Key + " " + string(kv.Value) + "\n")
	}
	return b.String()
}
