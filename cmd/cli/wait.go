package cli

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// awaited is a spec that a command waits for.
type awaited struct {
	spec  store.Group
	since store.Revision // revision of the spec
	// Journal entries after this revision, of the command's own write, are shown; 0: nothing was
	// written, and entries from now on are shown.
	after store.Revision
	begun time.Time     // when the command began: what follows from its write is in the journal from then on
	limit time.Duration // how long to wait; 0: as the flags say
}

// interrupted returns what remains when an operator stops waiting: the write is not undone.
func (a awaited) interrupted() error {
	name, stays := a.spec.Name, "keeps its spec"
	if a.spec.Deleting {
		stays = "is still being deleted"
	}
	return failure(Interrupted, "leasehold events -g "+name+" --follow",
		"stopped waiting: group %s %s (revision %d), and work in progress continues", name, stays, a.since)
}

// wait returns when the group matches the spec of this revision: accepted, every slot running on
// its template, and no surplus; or empty, or gone. It fails as soon as the group cannot get there
// without an operator, and when the limit has passed.
func (inv *Invocation) wait(ctx context.Context, a awaited) error {
	spec := a.spec
	limit := a.limit
	if limit <= 0 {
		limit = inv.waitLimit()
	}
	now, err := inv.list(ctx, inv.keys().Group(spec.Name), 0)
	if err != nil && ctx.Err() != nil {
		return a.interrupted()
	}
	if err != nil {
		return err // etcd must answer once before there is anything to wait for
	}
	if a.after == 0 {
		a.after = now.Revision
	}
	w := newWaiting(inv.keys(), a)
	following, stop := context.WithCancel(ctx)
	var follower sync.WaitGroup
	follower.Go(func() {
		// It ends only with its context, and reports errors on the way.
		_ = store.Follow(following, inv.st, inv.keys().Prefix(), w.wanted(inv.env.Now().Add(limit)), w)
	})
	defer follower.Wait()
	defer stop()

	inv.note("waiting for %s: %s, at most %s", spec.Name, w.goal(inv.env.Now()), output.Span(limit))
	line := progressLine{to: inv.aside(), rewrite: inv.env.StderrTerminal}
	defer line.clear()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	start := inv.env.Now()
	for {
		now := inv.env.Now()
		view := w.assess(now)
		for _, e := range view.events {
			line.clear()
			_, _ = fmt.Fprint(inv.env.Stderr, eventLine(inv.journalScreen(), e, now, false))
		}
		if view.over {
			line.clear()
			if view.err == nil {
				inv.note("%s %s after %s%s", inv.aside().Good("done:"), view.text, output.Span(now.Sub(start)), view.rest)
			}
			return view.err
		}
		line.show(fmt.Sprintf("[gives up in %s | %s | %s so far]", output.Span(start.Add(limit).Sub(now)), view.text,
			output.Span(now.Sub(start))))
		select {
		case <-ctx.Done():
			return a.interrupted()
		case <-deadline.C:
			return failure(TimedOut, "leasehold group show "+spec.Name, "gave up after %s: %s", output.Span(limit),
				view.text)
		case <-w.changed:
		case <-tick.C:
		}
	}
}

// journalScreen returns the form of journal entries among the progress: readable anywhere, and
// folded where a terminal would cut words.
func (inv *Invocation) journalScreen() output.Screen {
	scr := output.Screen{Terminal: true, Colour: inv.aside().Colour}
	if inv.env.StderrTerminal {
		scr.Width = inv.env.Columns
	}
	return scr
}

func (inv *Invocation) waitLimit() time.Duration {
	if inv.flags.Timeout > 0 {
		return inv.flags.Timeout
	}
	return waitTimeout
}

// progressLine is one line that is rewritten, on a terminal only. The terminal cuts it at its width
// instead of wrapping it, because a wrapped line could not be rewritten.
type progressLine struct {
	to      output.Screen
	rewrite bool
	shown   string
}

// Escape sequences that make a terminal cut lines at its width, and wrap them again.
const (
	noWrap = "\x1b[?7l"
	wrap   = "\x1b[?7h"
)

func (l *progressLine) show(text string) {
	if !l.rewrite || text == l.shown {
		return
	}
	l.clear()
	fmt.Fprint(l.to.W, noWrap+output.OneLine(text)+wrap)
	l.shown = text
}

func (l *progressLine) clear() {
	if l.shown != "" {
		fmt.Fprint(l.to.W, "\r\x1b[K")
		l.shown = ""
	}
}

// waiting is what is known of the awaited group. store.Follow updates it.
type waiting struct {
	awaited
	keys     store.Keys
	template string
	changed  chan struct{} // holds a value after a change
	parts    []store.KV    // incomplete listing

	mu        sync.Mutex
	known     bool // the first listing came
	broken    error
	keyed     store.Revision // of groups/<name>; 0: absent
	static    store.Revision // of static/<name>; 0: absent
	status    store.Status
	instances map[string]store.Instance
	reports   map[string]store.Report
	leaders   map[string]bool
	events    []store.JournalEntry
	// keys of the entries that were handled: after an interruption they are listed again
	taken   map[string]bool
	errored time.Time // since when the group has been errored; zero: it is not
	halted  time.Time // since when the roll has been halted that auto_rollback ends; zero: it is not
	// back is the coordinator's rollback of the awaited change; nil: there was none
	back *store.JournalEntry
}

// rollbackWithin is how long after the end of a roll the coordinator's rollback is waited for. It
// follows in its next transaction.
const rollbackWithin = 10 * time.Second

// erroredFor is how long a group must be errored before the wait fails: a change may give its slots
// a fresh start.
const erroredFor = 3 * time.Second

func newWaiting(keys store.Keys, a awaited) *waiting {
	return &waiting{
		awaited: a, keys: keys, template: a.spec.InstanceSpec().TemplateHash(),
		changed: make(chan struct{}, 1), taken: map[string]bool{},
	}
}

// How far the clocks of journal writers may differ from ours.
const (
	clocksBehind = 5 * time.Minute
	clocksAhead  = time.Hour
)

// wanted returns the prefixes to watch until the given time. The journal is watched by the hour,
// because older entries do not matter here.
func (w *waiting) wanted(until time.Time) []string {
	prefixes := []string{
		w.keys.Group(w.spec.Name), w.keys.Static(w.spec.Name), w.keys.Status(w.spec.Name),
		w.keys.Of(store.KindInstances) + w.spec.Name + "-",
		w.keys.Of(store.KindReports) + w.spec.Name + "-", w.keys.Of(store.KindLeader),
	}
	for t := w.begun.UTC().Add(-clocksBehind).Truncate(time.Hour); !t.After(until.Add(clocksAhead)); t = t.Add(time.Hour) {
		prefixes = append(prefixes, w.keys.Of(store.KindEvents)+t.Format("20060102T15"))
	}
	return prefixes
}

// Part keeps a part of a listing until it is complete.
func (w *waiting) Part(kvs []store.KV) { w.parts = append(w.parts, kvs...) }

// Reset applies a complete listing.
func (w *waiting) Reset(store.Revision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known, w.broken, w.keyed, w.static, w.status = true, nil, 0, 0, store.Status{}
	w.instances, w.reports, w.leaders = map[string]store.Instance{}, map[string]store.Report{}, map[string]bool{}
	for _, kv := range w.parts {
		w.take(store.Event{KV: kv})
	}
	w.parts = nil
	w.signal()
}

// Apply applies changes.
func (w *waiting) Apply(b store.Batch) {
	if len(b.Events) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range b.Events {
		w.take(e)
	}
	w.signal()
}

// Interrupted records that the present state is unknown.
func (w *waiting) Interrupted(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken, w.parts = err, nil
	w.signal()
}

func (w *waiting) signal() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// present returns the revision of a key, or 0 if it is absent.
func present(e store.Event) store.Revision {
	if e.Deleted {
		return 0
	}
	return e.KV.Modified
}

// current returns the revision of the present spec; 0: it is gone.
func (w *waiting) current() store.Revision { return max(w.keyed, w.static) }

// take applies one key. A value that cannot be read is ignored: status shows it, and it is no
// reason to stop waiting.
func (w *waiting) take(e store.Event) {
	kind, name, _ := w.keys.Split(e.KV.Key)
	switch {
	case kind == store.KindGroups && name == w.spec.Name:
		w.keyed = present(e)
	case kind == store.KindStatic && name == w.spec.Name:
		w.static = present(e)
	case kind == store.KindStatus && name == w.spec.Name:
		v, err := store.Decode[store.Status](e.KV)
		if w.status = v.Record; e.Deleted || err != nil {
			w.status = store.Status{}
		}
	case kind == store.KindInstances:
		v, err := store.Decode[store.Instance](e.KV)
		if e.Deleted || err != nil || v.Record.Group != w.spec.Name {
			delete(w.instances, name)
			return
		}
		w.instances[name] = v.Record
	case kind == store.KindReports:
		v, err := store.Decode[store.Report](e.KV)
		if w.reports[name] = v.Record; e.Deleted || err != nil {
			delete(w.reports, name)
		}
	case kind == store.KindLeader:
		if w.leaders[name] = true; e.Deleted {
			delete(w.leaders, name)
		}
	case kind == store.KindEvents && !e.Deleted && e.KV.Modified > w.after && !w.taken[e.KV.Key]:
		w.taken[e.KV.Key] = true
		v, err := store.Decode[store.JournalEntry](e.KV)
		if err == nil && v.Record.Group == w.spec.Name {
			w.events = append(w.events, v.Record)
			if w.endsChange(v.Record) {
				w.back = &v.Record
			}
		}
	}
}

// endsChange reports whether an entry is the coordinator's rollback of the awaited spec, and of no
// other one. The release before did not record which spec it ended.
func (a awaited) endsChange(e store.JournalEntry) bool {
	if e.Effect.Kind != store.EffectRollBack {
		return false
	}
	i := slices.IndexFunc(e.Facts, func(f store.Fact) bool { return f.Kind == store.FactSpec })
	return i < 0 || e.Facts[i].Rev == a.since
}
