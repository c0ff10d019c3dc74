package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// The fate of an instance, and the reason, can be explained long after it is gone.
//
// proves REC-15
func TestExplainSaysWhyAnInstanceIsGone(t *testing.T) {
	inShard(t, named("web", 3), func(w *shard) {
		lost := w.ids()[1]
		w.loses(lost)
		w.explains(lost, lost+" is RUNNING since", "but it is LOST", "its replacement web-1-", "Next decision")
		w.until("it is gone", func() bool { return !strings.Contains(strings.Join(w.ids(), " "), lost) })
		out := w.explains(lost, lost+" was DELETED ", " because it was LOST; web-1-", " took slot 1",
			// one instant, in the order in which it was decided
			"requested", "provider mem is asked", "machine exists", "agent registered", "healthy",
			"its stream was lost", "DET-3", "DET-17", "\tlost\t", "replacement web-1-", "HEAL-2", "gone",
			"It would have been kept if its agent had reported before", "(HEAL-2).")
		if strings.Contains(out, "Why not yet") {
			t.Errorf("nothing is held for what is gone:\n%s", out)
		}
		next := w.ids()[1]
		out = w.explains(next, next+" is RUNNING and healthy since", lost, "replacement "+next+" requested",
			"Next decision: none due")
		if strings.Contains(out, "It would have been kept") {
			t.Errorf("another's end is taken for its own:\n%s", out)
		}
		w.explains("web", "web is STARTED, 3 of 3 healthy: there is nothing to do", "Last decisions", "gone")
		w.pass(26 * time.Hour)
		w.explains(lost, lost+" was DELETED 01-01 ")
	})
}

// Why not yet: what is held, by which rule, and what would free it.
//
// proves REC-15
func TestExplainSaysWhyNotYet(t *testing.T) {
	one := named("web", 1)
	for name, test := range map[string]struct {
		group store.Group
		test  func(w *shard, id string)
	}{
		"no budget": {with(one, func(g *store.Group) { g.Budget.MaxExpansion = 0 }), func(w *shard, id string) {
			w.falls(id, "it feels unwell")
			w.held("web", "HEAL-2")
			blocked := []string{
				"Why not yet",
				"replacement of " + id + " (HEAL-2): max_expansion and max_unavailable are 0",
				"freed when: one of them is raised",
			}
			out := w.explains("web",
				append([]string{"web is STARTED, 0 of 1 healthy: 1 unhealthy; 1 thing is held back"}, blocked...)...)
			if strings.Contains(out, "computed here") {
				t.Errorf("what the leader says already is computed once more:\n%s", out)
			}
			w.explains(id, append([]string{id + " is RUNNING since", "but it is UNHEALTHY: it feels unwell"},
				blocked...)...)
		}},
		"budget used up": {named("web", 3), func(w *shard, id string) {
			ids := w.ids()
			w.sick = func(other string) string {
				if other == ids[2] {
					return ""
				}
				return "it feels unwell"
			}
			w.say(id, w.boot(id), store.StreamOpen)
			w.say(ids[1], w.boot(ids[1]), store.StreamOpen)
			w.until("a replacement is not healthy yet",
				func() bool { return w.status("web").Phases[store.Checking] == 1 })
			w.held("web", "HEAL-2")
			w.explains("web", "web is STARTED, 1 of 3 healthy: 2 unhealthy; 3 things are held back",
				"Why not yet", "health of web-0-", " (DET-10): it feels unwell",
				"removal of "+id+" (HEAL-2): its replacement web-0-", " is checking",
				"replacement of "+ids[1]+" (HEAL-2): max_expansion 1 (1 in use)",
				"freed when: another replacement is complete")
			w.explains(ids[1], ids[1]+" is RUNNING since", "but it is UNHEALTHY: it feels unwell", "Why not yet",
				"replacement of "+ids[1]+" (HEAL-2): max_expansion 1 (1 in use)",
				// who has the room that it waits for
				"Next decision: ", " web-0-", " has failed, unless it is healthy (DET-10)")
			w.explains(id, "; its replacement web-0-", " is checking", "Why not yet", "removal of "+id, "Next decision: ",
				"has failed, unless it is healthy (DET-10)")
		}},
		"flapping wait": {one, func(w *shard, id string) {
			for range 3 {
				w.until("it runs", func() bool { return w.status("web").Healthy == 1 })
				w.provider.Crash(w.running(), "exit 1")
				w.until("it does not", func() bool { return w.status("web").Healthy == 0 })
			}
			w.held("web", "FLAP-2")
			w.explains("web", "1 slot waits after repeated failures", "slot 0: flapping: 3 failures, tried again in ",
				"Why not yet", "filling slot 0 (FLAP-2): slot 0 flaps: 3 failures", "freed when: its wait of ",
				"Next decision: ", "slot 0 is tried again (FLAP-2)")
		}},
		"storm": {named("web", 6), func(w *shard, id string) {
			w.loses(w.ids()[:4]...)
			w.held("web", "SAFE-2")
			w.explains("web",
				"web is STARTED, 2 of 6 healthy: a STORM: 4 of 6 lost at its peak, and not replaced",
				"a probe replacement in ",
				"Why not yet", "replacement of "+id+", ", " (SAFE-2): a storm: 4 of 6 lost",
				"freed when: losses stay few for 1m0s, a probe of it succeeds, or leasehold group override-storm web",
				"Next decision: ", "one lost instance is replaced, as a probe (SAFE-2)",
				"next: leasehold group override-storm web")
			w.explains(id, "but it is LOST", "Why not yet", "replacement of "+id+" (SAFE-2): a storm")
		}},
		"hold": {one, func(w *shard, id string) {
			w.run("hold", "the disks are moved")
			w.held("web", "SAFE-12")
			w.falls(id, "it feels unwell")
			w.explains("web", "the shard is ON HOLD by eve@desk: the disks are moved", "Why not yet",
				"all changes (SAFE-12): the shard is on hold since", "freed when: the hold is released",
				"Next decision: when the shard's hold is released; until then it is only observed (SAFE-12)")
			w.explains(id, id+" is RUNNING", "Why not yet", "all changes (SAFE-12)",
				"Next decision: when the shard's hold is released")
		}},
		"pause": {drains(one), func(w *shard, id string) {
			w.run("instance", "drain", id, "--confirm="+id)
			w.until("it drains", func() bool { return w.status("web").Phases[store.Draining] == 1 })
			w.run("group", "pause", "web")
			w.held("web", "REC-13")
			w.explains("web", "web is PAUSED, 0 of 1 healthy: nothing is created, healed or deleted in it",
				"Why not yet", "all changes (REC-13): the group is paused", "freed when: leasehold group resume web",
				// and not when the drain's time is over
				"Next decision: when the group is resumed; until then it is only observed (REC-13)")
		}},
		"protected": {one, func(w *shard, id string) {
			w.run("instance", "protect", id, "--from-heal")
			w.until("it is protected", func() bool {
				_, out, _ := w.run("instance", "show", id)
				return strings.Contains(out, "protected")
			})
			w.falls(id, "it feels unwell")
			w.held("web", "REC-13")
			w.explains(id, "protected from scale-down, age limits and rolls, and not healed (REC-13)", "Why not yet",
				"replacement of "+id+" (REC-13): it is protected from healing, and it feels unwell",
				"freed when: leasehold instance protect "+id+" --off")
		}},
		"capacity": {one, func(w *shard, id string) {
			w.provider.Inject(fake.Fault{Call: fake.CallCreate, Err: provider.ErrCapacity})
			w.run("group", "scale", "web", "2")
			w.held("web", "HEAL-12")
			w.explains("web", "Why not yet", "creating of web-1-", " (HEAL-12): out of capacity",
				"freed when: the provider is asked again")
			w.explains(w.ids()[1], " is being CREATED since ", "Why not yet", "(HEAL-12): out of capacity")
		}},
		"not healthy yet": {one, func(w *shard, id string) {
			w.sick = func(other string) string {
				if other != id {
					return "http:8081 refused"
				}
				return ""
			}
			w.run("group", "scale", "web", "2")
			w.held("web", "DET-10")
			w.explains(w.ids()[1], " is CHECKING since ", ": not healthy yet: http:8081 refused", "Why not yet",
				"health of web-1-", " (DET-10): http:8081 refused",
				"freed when: it passes its checks, or fails after 10m0s", "Next decision: ",
				"has failed, unless it is healthy (DET-10)")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inShard(t, test.group, func(w *shard) { test.test(w, w.ids()[0]) })
		})
	}
}

func with(g store.Group, change func(*store.Group)) store.Group {
	change(&g)
	return g
}

// The first sentence has the reason, whichever it was.
//
// proves REC-15
func TestExplainSaysWhyInTheFirstSentence(t *testing.T) {
	three := named("web", 3)
	gone := func(w *shard, id string) {
		w.until(id+" is gone", func() bool { return !slices.Contains(w.ids(), id) })
	}
	for name, test := range map[string]struct {
		group store.Group
		test  func(w *shard, id string)
	}{
		"dead": {three, func(w *shard, id string) {
			w.provider.Crash(id, "exit 1")
			gone(w, id)
			w.until("another runs in its place", func() bool { return w.status("web").Healthy == 3 })
			w.explains(id, id+" was DELETED ", "because it was DEAD; web-0-", " took slot 0",
				"the provider says crashed (exit 1)", "It would have been kept if the provider had reported it running (DET-4)")
		}},
		"smaller": {three, func(w *shard, id string) {
			w.run("group", "scale", "web", "2", "--confirm=web")
			w.until("two are left", func() bool { return len(w.ids()) == 2 })
			w.explains(id, id+" was DELETED ",
				"because its group got smaller: 1 slot above size 2, and it is the oldest of its zone",
				"It would have been kept if size had not been lowered, or if it were protected (HEAL-9)")
		}},
		"ordered": {three, func(w *shard, id string) {
			w.run("instance", "delete", id, "--confirm="+id)
			gone(w, id)
			w.until("another runs in its place", func() bool { return w.status("web").Healthy == 3 })
			w.explains(id, id+" was DELETED ", "because it was ordered by eve@desk; web-0-", " took slot 0", "REC-16")
		}},
		"outdated": {three, func(w *shard, id string) {
			g := w.spec("web")
			g.Template.InstanceType = "large"
			w.put(store.KindGroups, "web", g)
			w.until("the roll begins", func() bool { return w.status("web").Rollout != nil })
			w.explains("web", "web is STARTED, 3 of 3 healthy: rolling, 0 of 3 done", "roll: 0 of 3 on ", "Why not yet",
				"replacement of web-", "(ROLL-1): max_expansion 1 (1 in use)",
				"If nothing else happens (computed from revision ",
				"recreate 2 one at a time; never below 3 healthy; at rest in ~",
				"the roll is stalled, unless one more instance is done (ROLL-4)")
			gone(w, id)
			w.explains(id, id+" was DELETED ", "because it is outdated; web-0-", " took slot 0", "(ROLL-1)")
		}},
		"stopped": {three, func(w *shard, id string) {
			w.run("group", "stop", "web", "--confirm=web")
			gone(w, id)
			w.explains(id, id+" was DELETED ", "because the group is stopped",
				"It would have been kept if the group had not been stopped (REC-11)")
			w.explains("web", "web is STOPPED, 0 of 3 healthy")
		}},
		"draining": {
			with(three, func(g *store.Group) { g.Drain.Hook = []string{"./drain"} }),
			func(w *shard, id string) {
				w.run("instance", "drain", id, "--confirm="+id)
				w.until("it drains", func() bool { return w.status("web").Phases[store.Draining] == 1 })
				w.explains(id, id+" is DRAINING since ", ", until ",
					" at the latest, because it was ordered by eve@desk",
					"drain: REC-16: ", "Why not yet", "removal of "+id+" (DRAIN-1): it drains",
					"freed when: its hook ends, 5m0s is over, or leasehold instance drained "+id, "Next decision: ",
					id+" has reached its drain limit, and is removed (DRAIN-1)")
				w.explains("web", id+" drains because it was ordered by eve@desk; ends in ")
				w.run("instance", "drained", id)
				gone(w, id)
				w.explains(id, id+" was DELETED ", "because it was ordered by eve@desk; web-0-", " has slot 0",
					"acknowledged by eve@desk")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inShard(t, test.group, func(w *shard) { test.test(w, w.ids()[0]) })
		})
	}
}

// When the group is gone, it and its instances are explained from the journal.
func TestExplainOfAGroupThatIsGone(t *testing.T) {
	inShard(t, named("web", 1), func(w *shard) {
		id := w.ids()[0]
		w.run("group", "delete", "web", "--confirm=web")
		w.until("nothing is left", func() bool { return len(w.list(store.KindStatus)) == 0 })
		w.explains(id, id+" was DELETED ", "because the group is being deleted",
			"It would have been kept if the group had not been deleted (REC-7)")
		w.explains("web", "web is gone; the last of it, ", ": group deleted: its last instance is gone")
	})
}

// Orders for an unknown instance make no instance of it.
func TestExplainOfAnInstanceThatNeverWas(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.journal(time.Minute, store.JournalEntry{
		Rule: "REC-16", Instance: "web-9-zz", What: "order to adopt refused",
		Why: "no machine of this name is known",
	})
	out := w.must("explain", "web-9-zz")
	if !strings.HasPrefix(out, "there is no instance web-9-zz, and the journal has no entries about it\n") ||
		!strings.HasSuffix(out, "next: leasehold instance list\n") {
		t.Errorf("got\n%s", out)
	}
	w.journal(30*time.Second, store.JournalEntry{
		Rule: "REC-8", Instance: "web-9-zz", What: "adopted",
		To: store.Booting,
	})
	if out := w.must("explain", "web-9-zz"); !strings.HasPrefix(out,
		"web-9-zz is gone; the journal does not say why\n") {
		t.Errorf("got\n%s", out)
	}
}

// A client that gives an instance's name without proof has no part in its story, and makes no
// instance of a name.
//
// proves SEC-1, SEC-2
func TestExplainKeepsClaimsApart(t *testing.T) {
	w := newWorld(t)
	w.serve()
	slot := 0
	claim := store.JournalEntry{
		Rule: "SEC-2", Instance: "web-0-a", Claimed: true, What: "join refused",
		Why: "token unknown or expired",
	}
	w.journal(time.Hour, store.JournalEntry{
		Rule: "REC-3", Group: "web", Instance: "web-0-a", Slot: &slot,
		What: "requested", To: store.Pending,
	})
	w.journal(50*time.Minute, store.JournalEntry{
		Rule: "REC-9", Group: "web", Instance: "web-0-a", Slot: &slot,
		What: "scaled down", To: store.Deleting,
	})
	for i := range 5 {
		w.journal(time.Duration(5-i)*time.Minute, claim)
	}
	out := w.must("explain", "web-0-a")
	story, claims, apart := strings.Cut(out,
		"Refused requests under this name, which any client can give; they had no effect (the last 3; "+
			"2 before: leasehold events -i web-0-a)\n")
	if !apart || !strings.HasPrefix(story, "web-0-a was DELETED ") || strings.Contains(story, "join refused") ||
		strings.Count(claims, "join refused") != 3 ||
		!strings.Contains(out, "next: leasehold explain web\n") {
		t.Errorf("got\n%s", out)
	}
	if out := w.must("events", "-i", "web-0-a"); strings.Count(out, "\tweb-0-a?\tjoin refused") != 5 ||
		strings.Count(out, "\tweb-0-a\t") != 2 {
		t.Errorf("events are\n%s", out)
	}
	claim.Instance = "web-9-zz"
	w.journal(time.Minute, claim)
	if out := w.must("explain", "web-9-zz"); !strings.HasPrefix(out,
		"there is no instance web-9-zz, and the journal has no entries about it\n") ||
		!strings.Contains(out, "Refused requests under this name") {
		t.Errorf("got\n%s", out)
	}
}

// What a gateway hears is decided on no cache: no revision is shown for it.
func TestWhatWasHeardHasNoRevision(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.terminal = true
	w.journal(time.Minute, store.JournalEntry{
		Rule: "DET-19", Group: "web", Instance: "web-0-a", What: "workload ended",
		Why: "exit code 1", Workload: &store.WorkloadExit{Code: 1},
	})
	for _, args := range [][]string{{"explain", "web-0-a"}, {"events", "-o", "wide"}} {
		if out := w.must(args...); strings.Contains(out, "rev 0") || !strings.Contains(out, "workload ended") {
			t.Errorf("%v:\n%s", args, out)
		}
	}
}

// While an upgrade of agents or a roll proves a version there is something to do: explain says what
// it waits for, and until when.
//
// proves REC-15, PROV-7, ROLL-5
func TestExplainOfAGroupThatProvesAVersion(t *testing.T) {
	rests := store.Timer{Start: noon, For: store.Duration(3 * time.Minute)}
	for name, c := range map[string]struct {
		status  func(*store.Status)
		upgrade *store.AgentUpgrade // of its first agent
		answer  string
		next    string
	}{
		"agents": {
			func(st *store.Status) { st.Agents = &store.AgentWave{Version: "v2", Done: 1, Of: 3} },
			&store.AgentUpgrade{
				Version: "v2", Installed: true, Within: store.Duration(2 * time.Minute),
				Timer: store.Timer{Start: noon, For: store.Duration(5 * time.Minute)},
			},
			"1 of 3 agents is of v2, the next follows when the one before it has proved the version",
			"the agent of web-0-a has proved v2, if it stays connected and healthy (PROV-7)",
		},
		"canaries": {
			func(st *store.Status) {
				st.Rollout = &store.Rollout{Template: "t2", Done: 1, Total: 3, Canary: 1, Canaries: []int{0}, Rests: &rests}
			}, nil,
			"rolling, 1 of 3 done: its canaries are to stay healthy for another 3m", "the roll goes on",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.serve()
			st := statusOf(webGroup(3), w.put(store.KindGroups, "web", webGroup(3)), 3)
			c.status(&st)
			w.put(store.KindStatus, "web", st)
			w.put(store.KindInstances, "web-0-a", store.Instance{
				Schema: store.Schema, ID: "web-0-a", Group: "web", Managed: true, Phase: store.Running, Since: noon,
				Created: noon, Spec: webGroup(3).InstanceSpec(), Upgrade: c.upgrade,
			})
			out := w.must("explain", "web")
			if !strings.Contains(out, c.answer) || !strings.Contains(out, c.next) || strings.Contains(out, "nothing to do") {
				t.Errorf("explain says:\n%s", out)
			}
		})
	}
}

// An instance that was deleted on purpose after the leader last counted, or that was adopted under
// another name than its group's, is not taken for a lost record.
//
// proves SAFE-15, REC-15
func TestExplainMissesOnlyLostRecords(t *testing.T) {
	const id, adopted = "web-1-abcdef", "ip-10-0-0-3"
	for name, c := range map[string]struct {
		deleted, there, group string // an instance with a note, one with a record, and the group of both
		missed                bool
	}{
		"lost":                          {missed: true},
		"deleted":                       {deleted: id, group: "web"},
		"adopted":                       {there: adopted, group: "web"},
		"adopted and deleted":           {deleted: adopted, group: "web"},
		"adopted by another group":      {there: adopted, group: "db", missed: true},
		"deleted, and of another group": {deleted: adopted, group: "db", missed: true},
	} {
		w := newWorld(t)
		w.serve()
		g := webGroup(1)
		at := w.put(store.KindGroups, "web", g)
		w.put(store.KindInstances, "web-0-abcdef", instanceOf(g, 0, "web-0-abcdef", store.Running))
		status := statusOf(g, at, 1)
		status.Records, status.Counted = new(2), at
		w.put(store.KindStatus, "web", status)
		if c.deleted != "" {
			w.put(store.KindGone, "instances/"+c.deleted,
				store.Gone{Schema: store.Schema, Instance: c.deleted, Group: c.group})
		}
		if c.there != "" {
			rec := instanceOf(g, 1, c.there, store.Running)
			rec.Group = c.group
			w.put(store.KindInstances, c.there, rec)
		}
		_, out, _ := w.run("explain", "web")
		if missed := strings.Contains(out, "SAFE-15"); missed != c.missed {
			t.Errorf("%s: missed %t:\n%s", name, missed, out)
		}
	}
}
