//go:build !race

package web_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/browser"
)

// The pages in a real browser. They share one, since starting it costs more than they do.
//
// proves WEB-1, WEB-2
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.group("web", 12)
	x.changing("api")
	x.tell(-time.Minute, store.JournalEntry{
		Rule: "DET-17", What: "lost", Why: "its lease (17s) ran out", Group: "web", Instance: "web-0-a",
		Kind: store.EntryVerdict, Verdict: store.Lost, Evidence: []string{"alive absent since 14:03"},
	})
	x.tell(-time.Second, store.JournalEntry{
		Rule: "REC-3", What: "deleting", Why: "it was LOST", Group: "web", Instance: "web-9-z", To: store.Deleting,
		Verdict: store.Lost, Replacement: "web-9-y",
	})
	slot := 2
	for n, e := range []store.JournalEntry{
		{
			Rule: "DAY-6", What: "drill", Cause: store.Cause{Kind: store.CauseOrder, By: "ada"},
			Facts: []store.Fact{{Kind: store.FactRequest, Name: "order1", Text: string(store.DrillAgent)}},
		},
		{Kind: store.EntryVerdict, Rule: "DET-3", What: "suspect", Verdict: store.Suspect},
		{Kind: store.EntryVerdict, Rule: "DET-5", What: "live", Verdict: store.Live},
	} {
		e.Group, e.Instance, e.Slot = "web", "web-2-a", &slot
		x.tell(time.Duration(n-30)*time.Second, e)
	}
	x.tell(-20*time.Second, store.JournalEntry{Rule: "SAFE-1", What: "no instance is judged lost", Cause: store.Cause{
		Kind: store.CauseDisturbed, Text: "etcd changed its leader", For: store.Duration(10 * time.Second),
	}})
	x.server.Views().Sample(x.now.Add(-2 * time.Minute))
	x.server.Views().Sample(x.now)
	x.shows("/events", "web-9-y")
	b := browser.Open(t)
	wide := browser.Look{Width: 1440, Height: 900}

	t.Run("each page is accessible, in both schemes, on screens and phones", func(t *testing.T) {
		for _, look := range []browser.Look{wide, {Width: 390, Height: 844, Dark: true}} {
			tab := b.Tab(t, look)
			for _, path := range []string{
				"/", "/g/web", "/g/api", "/g/web?show=lost", "/i/web-0-a", "/i/web-1-a", "/i/web-9-z",
				"/events?rule=DET", "/report", "/report?group=web", "/g/web?at=" + url.QueryEscape(x.now.Format(time.RFC3339Nano)),
				"/i/web-9-z?at=" + url.QueryEscape(x.now.Format(time.RFC3339Nano)),
			} {
				tab.Go(x.server.URL() + path)
				tab.Until("a page that is live, or of the past", "stream?.readyState === 1 || main.dataset.live === ''")
				for _, violation := range tab.Audit() {
					t.Errorf("%s, %d wide, dark %v: %s", path, look.Width, look.Dark, violation)
				}
				if over := browser.Eval[int](tab, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
					t.Errorf("%s, %d wide: it is %d pixels too wide", path, look.Width, over)
				}
				for _, e := range tab.Errors() {
					t.Errorf("%s: %s", path, e)
				}
			}
		}
	})

	t.Run("no column is cut off on a narrow screen", func(t *testing.T) {
		g := store.DefaultGroup()
		g.Name, g.Provider, g.Size = "narrow", "mem", 3
		g.Windows = []store.Window{{From: "22:00", For: store.Duration(time.Hour)}}
		g.Complete()
		x.crowd("narrow", 3)
		x.put(map[string]any{x.keys.Status("narrow"): store.Status{
			Schema: store.Schema, Group: "narrow", Accepted: &g, AcceptedRevision: 1 << 40, State: store.GroupStarted,
			Since: x.now, Rollout: &store.Rollout{Template: "t2", Since: x.now, Progress: x.now, Done: 1, Total: 3},
		}})
		tab := b.Tab(t, browser.Look{Width: 500, Height: 900})
		for path, needs := range map[string]string{
			"/": "#groups", "/g/web": ".events", "/g/narrow": ".zones:not(.calendar)", "/g/narrow?show=all": ".calendar",
			"/i/web-0-a": ".events", "/report": ".stack",
		} {
			tab.Go(x.server.URL() + path)
			tab.Until("the tables of "+path, "!!document.querySelector('"+needs+"')")
			if cut := browser.Eval[string](tab, "[...document.querySelectorAll('.wide:has(table)')].filter("+
				"e => e.scrollWidth > e.clientWidth).map(e => e.firstChild.className).join()"); cut != "" {
				t.Errorf("%s: columns of %s are cut off", path, cut)
			}
		}
	})

	t.Run("changes are seen without loading the page again", func(t *testing.T) {
		tab := b.Tab(t, wide)
		tab.Go(x.server.URL() + "/g/web")
		tab.Until("a live page", "stream?.readyState === 1")
		browser.Eval[int](tab, "window.kept = 1")
		browser.Eval[int](tab, `document.querySelector('#s-3 a').focus(), 1`)
		x.phase("web", 3, store.Draining)
		tab.Until("the change of a cell", `document.querySelector('#s-3 a')?.className === 'leaving'`)
		x.tell(0, store.JournalEntry{Rule: "REC-3", What: "asked to drain", Group: "web", Instance: "web-3-a"})
		tab.Until("the entry of the journal", `document.querySelector('#recent').innerText.includes('asked to drain')`)
		if browser.Eval[int](tab, "window.kept || 0") != 1 {
			t.Error("the page was loaded again")
		}
		if at := browser.Eval[string](tab, "document.activeElement.closest('li')?.id || "+
			"document.activeElement.tagName"); at != "s-3" {
			t.Errorf("the focus went to %s", at)
		}
		x.phase("web", 3, store.Running)
		for _, e := range tab.Errors() {
			t.Error(e)
		}
	})

	t.Run("a storm and a failover are seen while they happen", func(t *testing.T) {
		group, shard := b.Tab(t, wide), b.Tab(t, wide)
		group.Go(x.server.URL() + "/g/web")
		shard.Go(x.server.URL() + "/")
		for _, tab := range []*browser.Tab{group, shard} {
			tab.Until("a live page", "stream?.readyState === 1")
		}
		lead := func(replica string) {
			key := x.keys.Of(store.KindLeader) + "a"
			x.put(map[string]any{key: store.Leader{Schema: store.Schema, Replica: replica, Since: x.now}})
			for _, tab := range []*browser.Tab{group, shard} {
				tab.Until("that "+replica+" leads", `document.querySelector('#truth').innerText.includes('leader `+replica+`')`)
			}
		}
		lead("coord-a")
		lead("coord-b")
		x.storm("web", 12, &store.Storm{Since: x.now.Add(-time.Minute), Lost: 6, Of: 12})
		group.Until("the storm", `document.querySelector('#standing').innerText.includes('SAFE-2')`)
		shard.Until("the storm among the problems", `document.querySelector('#problems').innerText.includes('SAFE-2')`)
		x.storm("web", 12, nil)
		group.Until("its end", `!document.querySelector('#standing').innerText.includes('SAFE-2')`)
		shard.Until("its end", `!document.querySelector('#problems').innerText.includes('SAFE-2')`)
		for _, e := range append(group.Errors(), shard.Errors()...) {
			t.Error(e)
		}
	})

	t.Run("a page that is cut off says so, and comes back", func(t *testing.T) {
		tab := b.Tab(t, wide)
		tab.Go(x.server.URL() + "/")
		tab.Until("a live page", "stream?.readyState === 1 && !root.classList.contains('stale')")
		x.st.Faults().Cut()
		tab.Until("that it is old", "root.classList.contains('stale')")
		x.st.Faults().Mend()
		tab.Until("that it is new again", "!root.classList.contains('stale')")
		browser.Eval[int](tab, "heard = Date.now() - 60000, close(), clock(), 1")
		tab.Until("that its server is silent", "root.classList.contains('stale') && "+
			"document.body.innerText.includes('cut off')")
		browser.Eval[int](tab, "open(), 1")
		tab.Until("that it is heard again", "!root.classList.contains('stale')")
	})

	t.Run("a change among 1,000 instances is seen as soon as among 100, nearly", func(t *testing.T) {
		x.compare(t, b, 5, 100, 1_000)
	})

	t.Run("the seventh tab is live too", func(t *testing.T) {
		var tabs []*browser.Tab
		for range 7 {
			tab := b.Tab(t, wide)
			tab.Go(x.server.URL() + "/g/web")
			tabs = append(tabs, tab)
		}
		x.phase("web", 5, store.Draining)
		for n, tab := range tabs {
			tab.Until(fmt.Sprintf("the change in tab %d", n+1), `document.querySelector('#s-5 a')?.className === 'leaving'`)
		}
		x.phase("web", 5, store.Running)
	})

	t.Run("by keyboard alone", func(t *testing.T) {
		tab := b.Tab(t, wide)
		tab.Go(x.server.URL() + "/g/web")
		tab.Until("its script", "typeof settle === 'function'")
		if n := browser.Eval[int](tab, `document.querySelectorAll('.cells a[tabindex="0"]').length`); n != 1 {
			t.Errorf("the grid has %d tab stops", n)
		}
		tab.Press("g")
		tab.Press(browser.Right)
		if at := browser.Eval[string](tab, "document.activeElement.closest('li')?.id || ''"); at != "s-3" {
			t.Errorf("the second cell of the band is s-3, and the focus is at %q", at)
		}
		tab.Press("?")
		if !browser.Eval[bool](tab, "document.activeElement.tagName === 'SUMMARY' && document.getElementById('help').open") {
			t.Error("? does not open the signs and keys")
		}
		tab.Press("n")
		if at := browser.Eval[string](tab, "document.activeElement.getAttribute('href')"); at != "/i/web-0-a" {
			t.Errorf("the next problem is %q", at)
		}
		tab.Press("g")
		tab.Press(browser.Enter)
		tab.Until("the page of the instance", `location.pathname.startsWith('/i/web-')`)
	})

	t.Run("by keyboard alone, Tab reaches all that can be used, on every page", func(t *testing.T) {
		tab := b.Tab(t, wide)
		for _, path := range []string{"/", "/g/web", "/g/api", "/i/web-0-a", "/events", "/report", "/report?group=web"} {
			tab.Go(x.server.URL() + path)
			tab.Until("a page that does not change", "typeof settle === 'function' && (close(), document.hasFocus())")
			browser.Eval[int](tab, `window.usable = [...document.querySelectorAll('a[href], input, button, summary, [tabindex="0"]')]
				.filter(e => e.tabIndex >= 0 && e.checkVisibility({visibilityProperty: true})).length,
				window.reached = new Set(), window.unseen = 0, document.addEventListener('focusin', e => {
					reached.add(e.target);
					if (getComputedStyle(e.target).outlineStyle === 'none') unseen++;
				}), 1`)
			usable := browser.Eval[int](tab, "usable")
			for range usable {
				tab.Press(browser.Tabulator)
			}
			if n := browser.Eval[int](tab, "reached.size"); n != usable || usable < 5 {
				t.Errorf("%s: Tab reaches %d of %d", path, n, usable)
			}
			if n := browser.Eval[int](tab, "unseen"); n > 0 {
				t.Errorf("%s: the focus is not seen %d times", path, n)
			}
		}
	})

	t.Run("a heal and a roll are seen while they happen", func(t *testing.T) {
		x.stalled("roll")
		tab := b.Tab(t, wide)
		tab.Go(x.server.URL() + "/g/roll")
		tab.Until("a live page", "stream?.readyState === 1")
		tab.Press("n")
		if at := browser.Eval[string](tab, "document.activeElement.getAttribute('href')"); at != "/i/roll-1-a" {
			t.Errorf("the first problem leads to %q", at)
		}
		x.replace("roll", 0)
		tab.Until("two instances in one cell", "document.querySelectorAll('#s-0 a').length === 2")
		tab.Until("the new one in the table", "document.querySelector('#r-roll-0-b')")
		x.rolls("roll", 2)
		tab.Until("the progress of the roll", `document.querySelector('#standing progress').value === 2`)
		x.rolls("roll", 0)
		tab.Until("its end", `!document.querySelector('#standing progress')`)
		for _, e := range tab.Errors() {
			t.Error(e)
		}
	})

	t.Run("with forced colours each cell has a sign and a border, and nothing moves", func(t *testing.T) {
		tab := b.Tab(t, browser.Look{Width: 1440, Height: 900, Forced: true})
		tab.Go(x.server.URL() + "/g/web")
		tab.Until("a live page", "stream?.readyState === 1")
		if !browser.Eval[bool](tab, "matchMedia('(forced-colors: active)').matches") {
			t.Fatal("colours are not forced")
		}
		if n := browser.Eval[int](tab, `[...document.querySelectorAll('.cells li > *')].filter(e =>
			!e.textContent.trim() || getComputedStyle(e).borderLeftStyle !== 'solid').length`); n > 0 {
			t.Errorf("%d cells lack a sign or a border", n)
		}
		if n := browser.Eval[int](tab, "document.getAnimations().length"); n > 0 {
			t.Errorf("%d animations run", n)
		}
		for _, violation := range tab.Audit() {
			t.Error(violation)
		}
	})

	t.Run("without scripts", func(t *testing.T) {
		tab := b.Tab(t, browser.Look{Width: 1440, Height: 900, NoScripts: true})
		tab.Go(x.server.URL() + "/g/web")
		for _, e := range tab.Errors() {
			t.Error(e)
		}
		_, body, _ := x.get("/g/web")
		if !regexp.MustCompile(`data-age>2h[0-9ms]*</time>`).MatchString(body) {
			t.Error("ages are not in the document itself")
		}
	})

	t.Run("hostile text does nothing", func(t *testing.T) {
		const evil = `"><img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`
		x.tell(0, store.JournalEntry{
			Rule: evil, What: evil, Why: evil, Group: "web", Instance: evil,
			Evidence: []string{evil},
		})
		tab := b.Tab(t, wide)
		for _, path := range []string{"/", "/g/web", "/events", "/i/" + url.PathEscape(evil), "/events?text=" +
			url.QueryEscape(evil)} {
			tab.Go(x.server.URL() + path)
			tab.Until("a live page", "stream?.readyState === 1")
			if title := browser.Eval[string](tab, "document.title"); strings.Contains(title, "owned") && title == "owned" {
				t.Errorf("%s: the text ran", path)
			}
			for _, e := range tab.Errors() {
				t.Errorf("%s: %s", path, e)
			}
		}
	})
}

// replace adds an instance to a slot, in the place of the one that is there.
func (x *exhibit) replace(group string, slot int) {
	x.t.Helper()
	id := fmt.Sprintf("%s-%d-b", group, slot)
	x.put(map[string]any{x.keys.Instance(id): store.Instance{
		Schema: store.Schema, ID: id, Group: group, Slot: slot, Phase: store.Running, Managed: true, Zone: "a",
		Since: x.now, Created: x.now, Replaces: fmt.Sprintf("%s-%d-a", group, slot),
		Spec: store.InstanceSpec{Provider: "mem"}, Template: "t1",
	}})
}

// rolls sets how far the roll of a group of three is; 0: there is none.
func (x *exhibit) rolls(group string, done int) {
	x.t.Helper()
	st := store.Status{
		Schema: store.Schema, Group: group, State: store.GroupStarted, Health: 100, Healthy: 3, Since: x.now,
	}
	if done > 0 {
		st.Rollout = &store.Rollout{Template: "t2", Since: x.now, Progress: x.now, Done: done, Total: 3}
	}
	x.put(map[string]any{x.keys.Status(group): st})
}

// phase puts the instance in a slot into a phase.
func (x *exhibit) phase(group string, slot int, phase store.Phase) {
	x.t.Helper()
	id := fmt.Sprintf("%s-%d-a", group, slot)
	x.put(map[string]any{x.keys.Instance(id): store.Instance{
		Schema: store.Schema, ID: id, Group: group, Slot: slot, Phase: phase, Managed: true, Zone: string(rune('a' + slot%3)),
		Since: x.now, Created: x.now.Add(-2 * time.Hour), Spec: store.InstanceSpec{Provider: "mem"}, Template: "t1",
	}})
}
