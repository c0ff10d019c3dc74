package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// parted is an etcd that lists in parts of two keys, and takes its time for each.
type parted struct {
	store.Store
	each  time.Duration
	parts map[string]int // how many of each prefix were asked for
	early func()         // called before the second part
}

func (p *parted) ListPart(ctx context.Context, prefix, from string, most int, at store.Revision) (store.Part, error) {
	p.parts[prefix]++
	if p.early != nil && from != "" {
		p.early()
		p.early = nil
	}
	select {
	case <-time.After(p.each):
	case <-ctx.Done():
		return store.Part{}, ctx.Err()
	}
	if most == 0 {
		most = 2
	}
	return p.Store.ListPart(ctx, prefix, from, min(most, 2), at)
}

// large returns a shard of three groups, in an etcd that takes so long for each part of a list.
func large(t *testing.T, each time.Duration) (*world, *parted) {
	t.Helper()
	w := newWorld(t)
	for _, name := range []string{"api", "web", "web-a"} {
		g := webGroup(3)
		g.Name = name
		w.put(store.KindStatus, name, statusOf(g, w.put(store.KindGroups, name, g), 3))
		for slot := range 3 {
			id := fmt.Sprintf("%s-%d-x", name, slot)
			w.put(store.KindInstances, id, instanceOf(g, slot, id, store.Running))
		}
	}
	p := &parted{Store: w.db.Connect(), each: each, parts: map[string]int{}}
	w.st = p
	return w, p
}

func rows(out string) int { return strings.Count(out, "\n") - 1 }

// A large shard is read though all of it takes longer than one answer may; one answer that takes
// too long is given up.
func TestEachPartOfALargeShardHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := large(t, 4*time.Second)
		w.terminal, w.limit = true, 0
		code, out, stderr := w.run("instance", "list")
		if code != Done || rows(out) != 9 || p.parts[w.keys.Of(store.KindInstances)] != 5 {
			t.Errorf("exit %d after %v parts: %s%s", code, p.parts, out, stderr)
		}
		if strings.Count(stderr, "waiting for etcd") != 1 {
			t.Errorf("the wait is announced once, not %q", stderr)
		}
		p.each = 6 * time.Second
		if code, _, stderr := w.run("instance", "list"); code != Unreachable ||
			!strings.Contains(stderr, "no answer in 5s") {
			t.Errorf("exit %d: %s", code, stderr)
		}
	})
}

// All parts are of one revision; if that is compacted meanwhile, everything is read again.
func TestPartsAreOfOneRevision(t *testing.T) {
	w, p := large(t, 0)
	added := func() { w.put(store.KindInstances, "zzz-0-x", instanceOf(webGroup(1), 0, "zzz-0-x", store.Running)) }
	p.early = added
	if code, out, stderr := w.run("instance", "list"); code != Done || rows(out) != 9 {
		t.Errorf("exit %d, with one that was added meanwhile: %s%s", code, out, stderr)
	}
	p.early = func() {
		rev := w.put(store.KindInstances, "zzz-1-x", instanceOf(webGroup(1), 0, "zzz-1-x", store.Running))
		if err := w.db.Faults().Compact(rev); err != nil {
			t.Error(err)
		}
	}
	if code, out, stderr := w.run("instance", "list"); code != Done || rows(out) != 11 {
		t.Errorf("exit %d after a compaction: %s%s", code, out, stderr)
	}
}

// A group's instances are read alone, unless it has some that are not named after it.
func TestAGroupIsListedWithoutTheOthers(t *testing.T) {
	w, p := large(t, 0)
	all := w.keys.Of(store.KindInstances)
	code, out, stderr := w.run("instance", "list", "-g", "web")
	if code != Done || rows(out) != 3 || p.parts[all] != 0 {
		t.Errorf("exit %d, all was asked for %d times: %s%s", code, p.parts[all], out, stderr)
	}
	g := webGroup(3)
	st := statusOf(g, w.put(store.KindGroups, "web", g), 3)
	st.OnDemand = 1
	w.put(store.KindStatus, "web", st)
	w.put(store.KindInstances, "legacy", instanceOf(g, -1, "legacy", store.Running))
	code, out, stderr = w.run("instance", "list", "-g", "web")
	if code != Done || rows(out) != 4 || !strings.Contains(out, "legacy") {
		t.Errorf("exit %d, one was adopted: %s%s", code, out, stderr)
	}
}

// Some instances of a large shard can be listed without reading the others, whose number is shown.
func TestAListEndsAtItsLimit(t *testing.T) {
	w, p := large(t, 0)
	for _, id := range []string{"api-0-x", "api-2-x", "web-1-x", "web-a-0-x"} {
		w.put(store.KindAlive, id, store.Alive{
			Schema: store.Schema, Instance: id, State: store.StreamOpen,
			Since: noon,
		})
	}
	g := webGroup(1)
	w.keys = store.KeysOf("other")
	w.put(store.KindInstances, "web-0-y", instanceOf(g, 0, "web-0-y", store.Running))
	w.keys = store.KeysOf("default")
	for _, test := range []struct {
		args  string
		ids   string // that are shown, those with a session with a star
		parts int    // of two keys, that were asked for
		note  string
	}{
		{"--limit 1", "api-0-x*", 1, "1 of 9 instances, by name; more: a larger --limit, or -g GROUP\n"},
		{
			"--limit 3", "api-0-x* api-1-x api-2-x*", 2,
			"3 of 9 instances, by name; more: a larger --limit, or -g GROUP\n",
		},
		{
			"--limit 4", "api-0-x* api-1-x api-2-x* web-0-x", 2,
			"4 of 9 instances, by name; more: a larger --limit, or -g GROUP\n",
		},
		{"--limit 9", "api-0-x* api-1-x api-2-x* web-0-x web-1-x* web-2-x web-a-0-x* web-a-1-x web-a-2-x", 5, ""},
		{"--limit 100", "api-0-x* api-1-x api-2-x* web-0-x web-1-x* web-2-x web-a-0-x* web-a-1-x web-a-2-x", 5, ""},
		{"-g web --limit 2", "web-0-x web-1-x*", 1, "2 of 3 instances, by name; more: a larger --limit\n"},
		{"-g web --limit 3", "web-0-x web-1-x* web-2-x", 2, ""},
		{"-g web-a --limit 2", "web-a-0-x* web-a-1-x", 1, "2 of 3 instances, by name; more: a larger --limit\n"},
		{
			"--all-shards --limit 9", "api-0-x* api-1-x api-2-x* web-0-x web-1-x* web-2-x web-a-0-x* web-a-1-x web-a-2-x",
			5, "9 of 10 instances, by name; more: a larger --limit, or -g GROUP\n",
		},
		{
			"--all-shards --limit 10",
			"api-0-x* api-1-x api-2-x* web-0-x web-1-x* web-2-x web-a-0-x* web-a-1-x web-a-2-x web-0-y", 5, "",
		},
	} {
		clear(p.parts)
		code, out, stderr := w.run(append([]string{"instance", "list"}, strings.Fields(test.args)...)...)
		var ids []string
		for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
			id, _, _ := strings.Cut(line, "\t")
			if strings.Contains(line, "\topen\t") {
				id += "*"
			}
			ids = append(ids, id)
		}
		asked := p.parts[w.keys.Of(store.KindInstances)] + p.parts[w.keys.Of(store.KindInstances)+"web-"] +
			p.parts[w.keys.Of(store.KindInstances)+"web-a-"]
		if got := strings.Join(ids, " "); code != Done || got != test.ids || asked != test.parts ||
			stderr != test.note {
			t.Errorf("%s: exit %d after %d parts: %s, %q; want %s, %q after %d", test.args, code, asked, got, stderr,
				test.ids, test.note, test.parts)
		}
	}
	if code, out, stderr := w.run("instance", "list", "--limit", "2", "-o", "json"); code != Done ||
		strings.Count(out, `"id"`) != 2 || !strings.HasPrefix(stderr, "2 of 9 instances") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	if code, _, stderr := w.run("instance", "list", "--limit=-1"); code != Usage ||
		!strings.Contains(stderr, "--limit: -1: must be at least 1, or 0 for all") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// The journal is read further and further back only until the beginning of an instance is found,
// nothing of it twice; and it is said where that ended before.
func TestExplainReadsNoMoreOfTheJournalThanItNeeds(t *testing.T) {
	w, p := large(t, 0)
	events := w.keys.Of(store.KindEvents)
	lives := func(id string, made time.Duration) {
		i := instanceOf(webGroup(3), 0, id, store.Running)
		i.Created = noon.Add(-made)
		w.put(store.KindInstances, id, i)
		w.journal(made, store.JournalEntry{
			Rule: "REC-3", Group: "web", Instance: id, What: "requested",
			To: store.Pending,
		})
		w.journal(made-time.Minute, store.JournalEntry{
			Rule: "DET-5", Group: "web", Instance: id, What: "running",
			To: store.Running,
		})
		w.journal(30*time.Minute, store.JournalEntry{
			Rule: "DET-6", Group: "web", Instance: id, What: "suspect",
			Verdict: store.Suspect,
		})
	}
	lives("web-0-young", time.Hour)
	lives("web-0-older", 20*time.Hour)
	lives("web-0-week", 6*24*time.Hour)
	lives("web-0-old", 9*24*time.Hour)
	for h := range 10 * 24 {
		w.journal(time.Duration(h)*time.Hour,
			store.JournalEntry{Rule: "REC-3", Group: "web", Instance: "web-0-young-not", What: "something"})
	}
	// in parts of two entries, with the four entries above and what is read behind a part
	hours := func(n int) int { return n/2 + 10 }
	for _, test := range []struct {
		id      string
		entries int // that are shown
		most    int // parts of the journal
		stopped bool
	}{
		{"web-0-young", 3, hours(2), false},
		{"web-0-older", 3, hours(24), false},
		{"web-0-week", 3, hours(7 * 24), false},
		{"web-0-old", 1, hours(7 * 24), true},
	} {
		clear(p.parts)
		code, out, stderr := w.run("explain", test.id)
		told := 0
		for _, line := range strings.Split(out, "\n") {
			if strings.Contains(line, "\t"+test.id+"\t") {
				told++
			}
		}
		const stopped = "The journal was read from 02-22 12:00:00 on, which does not include its creation; " +
			"older entries: leasehold events -i web-0-old --since 672h\n"
		if code != Done || told != test.entries || p.parts[events] > test.most ||
			strings.Contains(out, stopped) != test.stopped ||
			strings.Contains(out, "The journal was read") != test.stopped {
			t.Errorf("%s: exit %d, %d entries, %d parts of the journal, want %d in %d at most: %s%s", test.id, code,
				told, p.parts[events], test.entries, test.most, out, stderr)
		}
	}
	clear(p.parts)
	if code, out, stderr := w.run("explain", "web-0-old", "-o", "json"); code != Done ||
		!strings.Contains(out, `"stopped": "The journal was read`) {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}
