//go:build nightly && !race

package web_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/browser"
)

// mostTimes is how many times as long as a page of 100 instances a larger one may take for a
// change, layout included. A change is sent and drawn cell by cell.
var mostTimes = map[int]float64{1_000: 10, 10_000: 50}

// proves WEB-1: a page of 10,000 instances takes up changes, measured against one of 100
func TestManyCellsInABrowser(t *testing.T) {
	x := newExhibit(t)
	b := browser.Open(t)
	took := map[int]float64{}
	for _, size := range []int{100, 1_000, 10_000} {
		group := fmt.Sprint("g", size)
		x.crowd(group, size)
		tab := b.Tab(t, browser.Look{Width: 1440, Height: 900})
		tab.Go(x.server.URL() + "/g/" + group)
		tab.Until("a live page", "stream?.readyState === 1")
		if n := browser.Eval[int](tab, "cells().length"); n < size {
			t.Fatalf("%d cells of %d", n, size)
		}
		browser.Eval[int](tab, `window.times = [], window.plain = apply, window.apply = u => {
			const from = performance.now();
			plain(u);
			document.body.offsetHeight;
			times.push(performance.now() - from);
		}, 1`)
		for n := range 11 {
			id := fmt.Sprintf("%s-%d-%06x", group, n+1, (n+1)*7919%(1<<24))
			browser.Eval[int](tab, "times.length = 0, 1")
			x.put(map[string]any{x.keys.Instance(id): store.Instance{
				Schema: store.Schema, ID: id, Group: group, Slot: n + 1, Phase: store.Draining, Managed: true,
				Zone: fmt.Sprint("eu-", (n+1)%3), Since: x.now, Created: x.now, Template: "t1b2c3d4e",
				Spec: store.InstanceSpec{Provider: "mem"},
			}})
			tab.Until("the change", fmt.Sprintf(`document.querySelector('#s-%d a')?.className === 'leaving'`, n+1))
			browser.Eval[int](tab, "window.all = [...(window.all || []), Math.max(...times)], 1")
		}
		all := browser.Eval[[]float64](tab, "all")
		slices.Sort(all)
		took[size] = all[0] // the least is the work itself: other processes only add to it
		for _, e := range tab.Errors() {
			t.Error(e)
		}
	}
	for size, most := range mostTimes {
		times := took[size] / took[100]
		t.Logf("%d instances: %.1f ms for a change, %.1f times as long as 100 (%.1f ms)", size, took[size], times, took[100])
		if times > most {
			t.Errorf("%d instances: a change takes %.1f times as long as in a group of 100, at most %.0f is right", size, times,
				most)
		}
	}
}
