package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// The verdict on an unhealthy instance is shown with its rule, its evidence, when it was made and
// on which revision, and when it may change by the passing of time alone.
//
// proves REC-15
func TestExplainShowsVerdictAndEvidence(t *testing.T) {
	for name, test := range map[string]struct {
		befalls func(w *shard, id string)
		says    string // the verdict and what it rests on; * is a time, a revision or more words
		look    string
	}{
		"overdue": {
			func(w *shard, id string) { w.say(id, w.boot(id), store.StreamOverdue) },
			"suspect (DET-6, recorded *, rev *): its report is overdue\nevidence: stream overdue since rev *, " +
				"epoch 1 at coord-a; provider: running",
			"in 8s: by then the lease (17s) of ID has ended, unless its agent reports; it is lost once " +
				"that is confirmed and no grace runs (DET-17)",
		},
		"stream lost": {
			func(w *shard, id string) { w.say(id, w.boot(id), store.StreamLost) },
			"suspect (DET-3, recorded *, rev *): its stream was lost: connection reset\nevidence: " +
				"stream lost since rev *, epoch 1 at coord-a; provider: running",
			"in 16s: by then the lease (17s) of ID has ended, unless its agent reports; it is lost once " +
				"that is confirmed and no grace runs (DET-17)",
		},
		"lease ended under an open stream": {
			func(w *shard, id string) { w.drop(id) },
			"suspect (DET-17, recorded *, rev *): its lease ended; to be confirmed for 17s\nevidence: " +
				"alive absent, last state open; provider: running",
			"in 16s: by then it is confirmed that the lease of ID has ended, unless its agent reports; " +
				"it is lost then if no grace runs (DET-17)",
		},
		"lease ended after a disturbance": {
			func(w *shard, id string) {
				w.say(id, w.boot(id), store.StreamLost)
				w.put(store.KindReplicas, "coord-b",
					store.Replica{
						Schema: 1, ID: "coord-b", Disturbances: 1,
						Last: &store.Disturbance{At: time.Now().UTC(), What: "etcd changed its leader"},
					})
				w.pass(17 * time.Second)
				w.drop(id)
			},
			"suspect (SAFE-1, recorded *, rev *): its lease ended, but agents have time to return: *\nevidence: " +
				"alive absent, last state lost; provider: running",
			": by then agents have had time to return, unless there is another disturbance; " +
				"ID is lost if its agent has not (SAFE-1)",
		},
		"the provider says that it crashed, and its stream is open": {
			func(w *shard, id string) {
				w.provider.Crash(id, "exit 1")
				w.until("it is suspect", func() bool { return w.status("web").Verdicts[store.Suspect] == 1 })
			},
			"suspect (DET-4, recorded *, rev *): *\nevidence: provider: crashed*; stream open since rev *, epoch 1 at coord-a",
			": by then the provider has been asked about ID once more (DET-12)",
		},
		"unhealthy": {
			func(w *shard, id string) { w.run("group", "pause", "web"); w.falls(id, "it feels unwell") },
			"unhealthy (DET-9, recorded *, rev *): it feels unwell\nevidence: stream open since rev *, epoch 1 at coord-a",
			"Next decision: when the group is resumed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inShard(t, named("web", 3), func(w *shard) {
				id := w.ids()[1]
				test.befalls(w, id)
				w.pass(time.Second)
				parts := strings.FieldsFunc(test.says, func(r rune) bool { return r == '\n' || r == '*' })
				w.explains(id, append(append([]string{
					id + " is RUNNING since", "state: etcd at ", ", rev ",
					"verdict: ",
				}, parts...), strings.ReplaceAll(test.look, "ID", id))...)
				kind, rest, _ := strings.Cut(parts[0], " ")
				w.explains("web", "state: etcd at ", id+" is "+strings.ToUpper(kind)+" "+rest,
					strings.ReplaceAll(test.look, "ID", id))
			})
		})
	}
}

// What it says is in its JSON too, with who judged.
func TestExplainHasTheVerdictInJSON(t *testing.T) {
	inShard(t, named("web", 1), func(w *shard) {
		id := w.ids()[0]
		for _, overdue := range []bool{false, true} {
			if overdue {
				w.say(id, w.boot(id), store.StreamOverdue)
				w.pass(time.Second)
			}
			var story instanceStory
			if err := json.Unmarshal([]byte(w.must("explain", id, "-o", "json")), &story); err != nil {
				t.Fatal(err)
			}
			v := story.Verdict
			switch {
			case v == nil:
				w.t.Error("there is no verdict")
			case !overdue && (v.Verdict != store.Live || v.Journaled != nil || v.Revision != story.Revision):
				w.t.Errorf("healthy: %+v", v)
			case overdue && (v.Verdict != store.Suspect || v.Journaled == nil || v.Revision == 0 || len(v.Evidence) != 2 ||
				story.NextDecision == nil):
				w.t.Errorf("overdue: %+v, next decision %v", v, story.NextDecision)
			}
		}
	})
}

// A verdict that was taken back has no "would have been kept": the instance was kept.
//
// proves DET-15
func TestExplainOfOneThatCameBack(t *testing.T) {
	inShard(t, drains(named("web", 1)), func(w *shard) {
		id := w.ids()[0]
		boot := w.boot(id)
		w.loses(id)
		w.until("it drains", func() bool { return w.status("web").Phases[store.Draining] == 1 })
		w.explains(id, id+" is DRAINING since ", "because it was LOST",
			"It would have been kept if its agent had reported before",
			"Next decision: ")
		w.say(id, boot, store.StreamOpen)
		w.until("it is back", func() bool { return w.running() == id })
		if out := w.explains(id, id+" is RUNNING and healthy since", "came back", "DET-15"); strings.Contains(out,
			"It would have been kept") {
			w.t.Errorf("it was kept:\n%s", out)
		}
	})
}

// An instance that must leave its zone is shown as doomed, though it is healthy.
//
// proves DRAIN-3
func TestExplainOfAnEvacuatedZone(t *testing.T) {
	inEmptyShard(t, fake.Config{Zones: fake.Zones("a")}, func(w *shard) {
		g := named("web", 1)
		g.Provider = "mem"
		w.put(store.KindGroups, "web", g)
		w.until("it runs", func() bool { return w.status("web").Healthy == 1 })
		w.must("evacuate", "a", "--confirm=a")
		w.held("web", "DRAIN-3")
		id := w.ids()[0]
		w.explains(id, id+" is RUNNING and healthy since", "; it is DOOMED: zone a is evacuated by eve@desk since ",
			"doomed: DRAIN-3: zone a is evacuated", "Why not yet", "all zones of the group are evacuated")
	})
}
