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

func (p *parted) ListPart(ctx context.Context, prefix, from string, most int, at store.Revision) (part store.Listing, next string, err error) {
	p.parts[prefix]++
	if p.early != nil && from != "" {
		p.early()
		p.early = nil
	}
	select {
	case <-time.After(p.each):
	case <-ctx.Done():
		return part, "", ctx.Err()
	}
	if most == 0 {
		most = 2
	}
	return p.Store.ListPart(ctx, prefix, from, min(most, 2), at)
}

// large is a shard of three groups, in an etcd that takes so long for each part of a list.
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

// A large shard is read though all of it takes longer than one answer may; one answer that takes too long is given up.
func TestEachPartOfALargeShardHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := large(t, 4*time.Second)
		w.terminal = true
		code, out, stderr := w.run("instance", "list")
		if code != Done || rows(out) != 9 || p.parts[w.keys.Of(store.KindInstances)] != 5 {
			t.Errorf("exit %d after %v parts: %s%s", code, p.parts, out, stderr)
		}
		if strings.Count(stderr, "waiting for etcd") != 1 {
			t.Errorf("one who waits is told so once, not %q", stderr)
		}
		p.each = 6 * time.Second
		if code, _, stderr := w.run("instance", "list"); code != Unreachable || !strings.Contains(stderr, "no answer in 5s") {
			t.Errorf("exit %d: %s", code, stderr)
		}
	})
}

// All parts are of one revision; where that is compacted meanwhile all is read anew.
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
