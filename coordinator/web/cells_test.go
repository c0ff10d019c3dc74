//go:build !race

package web_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/browser"
)

// mostTimes is how many times as long as in a group of 100 instances a change in a larger one may
// take, until it is laid out, and until a reader sees it: then the server has made the page again.
// The latter is judged by the time that passes or by the processor time of the server, whichever
// grows less: on a loaded machine a longer computation waits far longer for its turn, and tests
// beside this one use processor time, too.
var mostTimes = map[int]struct{ drawn, seen float64 }{1_000: {10, 10}, 10_000: {50, 100}}

// taken is how long a change took, in milliseconds: of several the shortest, since other processes
// only add to the work itself.
type taken struct {
	drawn float64 // by the script, with layout
	seen  float64 // from the write to etcd until it was on the screen
	spent float64 // processor time of this process, which serves the page, meanwhile
}

// takesUp changes instances of a new group, one after the other, while a browser shows it.
func (x *exhibit) takesUp(t *testing.T, b *browser.Browser, size, changes int) taken {
	t.Helper()
	group := fmt.Sprint("g", size)
	x.crowd(group, size)
	tab := b.Tab(t, browser.Look{Width: 1440, Height: 900})
	tab.Go(x.server.URL() + "/g/" + group)
	tab.Until("a live page", "stream?.readyState === 1")
	if n := browser.Eval[int](tab, "cells().length"); n < size {
		t.Fatalf("%d cells of %d", n, size)
	}
	browser.Eval[int](tab, `window.times = [], window.plain = apply, window.seen = performance.now(), window.apply = u => {
		const from = performance.now();
		plain(u);
		document.body.offsetHeight;
		times.push(performance.now() - from);
		requestAnimationFrame(() => setTimeout(() => { seen = performance.now(); }));
	}, 1`)
	best := taken{drawn: -1, seen: -1, spent: -1}
	least := func(a *float64, b float64) {
		if *a < 0 || b < *a {
			*a = b
		}
	}
	for n := range changes {
		tab.Until("the pause between two updates", "performance.now() - seen > 300")
		browser.Eval[int](tab, "times.length = 0, 1")
		slot := n + 1
		id := fmt.Sprintf("%s-%d-%06x", group, slot, slot*7919%(1<<24))
		from, used := float64(time.Now().UnixMicro())/1000, processorTime(t)
		x.put(map[string]any{x.keys.Instance(id): store.Instance{
			Schema: store.Schema, ID: id, Group: group, Slot: slot, Phase: store.Draining, Managed: true,
			Zone: fmt.Sprint("eu-", slot%3), Since: x.now, Created: x.now, Template: "t1b2c3d4e",
			Spec: store.InstanceSpec{Provider: "mem"},
		}})
		tab.Until("the change", fmt.Sprintf(
			`document.querySelector('#s-%d a')?.className === 'leaving' && performance.timeOrigin + seen > %f`, slot, from))
		least(&best.spent, float64((processorTime(t)-used).Microseconds())/1000)
		least(&best.drawn, browser.Eval[float64](tab, "Math.max(...times)"))
		least(&best.seen, browser.Eval[float64](tab, "performance.timeOrigin + seen")-from)
	}
	for _, e := range tab.Errors() {
		t.Error(e)
	}
	return best
}

// compare says how long changes take in groups of several sizes, and judges them by the first.
func (x *exhibit) compare(t *testing.T, b *browser.Browser, changes int, sizes ...int) {
	t.Helper()
	first := x.takesUp(t, b, sizes[0], changes)
	t.Logf("%d instances: a change is drawn in %.1f ms, and seen after %.0f ms, for %.0f ms of a processor", sizes[0],
		first.drawn, first.seen, first.spent)
	for _, size := range sizes[1:] {
		took, most := x.takesUp(t, b, size, changes), mostTimes[size]
		drawn, seen, spent := took.drawn/first.drawn, took.seen/first.seen, took.spent/first.spent
		t.Logf("%d instances: a change is drawn in %.1f ms, %.1f times as long, and seen after %.0f ms, %.1f times, "+
			"for %.0f ms of a processor, %.1f times", size, took.drawn, drawn, took.seen, seen, took.spent, spent)
		if drawn > most.drawn || min(seen, spent) > most.seen {
			t.Errorf("%d instances: %.1f and %.1f times as long as in a group of %d, at most %.0f and %.0f are right", size,
				drawn, min(seen, spent), sizes[0], most.drawn, most.seen)
		}
	}
}
