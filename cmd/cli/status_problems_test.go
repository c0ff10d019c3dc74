package cli

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// heldWorld has a group in which this is held.
func heldWorld(t *testing.T, blocked ...store.Blocked) *world {
	w := newWorld(t)
	w.serve()
	g := webGroup(3)
	st := statusOf(g, w.put(store.KindGroups, "web", g), 1)
	st.Blocked = blocked
	w.put(store.KindStatus, "web", st)
	return w
}

// Work that is held for several instances for one reason is one problem, with the command that
// frees it as the next step.
func TestProblemsAreListedOnce(t *testing.T) {
	held := func(id string) store.Blocked {
		return store.Blocked{
			Rule: "DET-10", Kind: store.BlockedByChecks, Work: store.WorkHealth, Instance: id,
			Of: store.BlockedFacts{Text: "workload ended with exit code 1"},
		}
	}
	for name, test := range map[string]struct {
		blocked []store.Blocked
		want    []string
	}{
		"of several": {
			[]store.Blocked{held("web-0-a"), held("web-1-b")},
			[]string{
				"web", "DET-10",
				"health of web-0-a, web-1-b: workload ended with exit code 1; until it passes its checks",
				"leasehold instance show web-0-a",
			},
		},
		"that does not name them": {
			[]store.Blocked{
				{Rule: "HEAL-2", What: "replacement", Why: "no room", Instance: "web-0-a"},
				{Rule: "HEAL-2", What: "replacement", Why: "no room", Instance: "web-1-b"},
			},
			[]string{"web", "HEAL-2", "web-0-a, web-1-b: replacement: no room", "leasehold instance show web-0-a"},
		},
		"of the group": {
			[]store.Blocked{{
				Rule: "REC-13", Kind: store.BlockedByPause, Work: store.WorkAll, Of: store.BlockedFacts{Group: "web"},
			}},
			[]string{
				"web", "REC-13", "all changes: the group is paused",
				"leasehold group resume web",
			},
		},
	} {
		st, err := stateOf(t, heldWorld(t, test.blocked...))
		if err != nil {
			t.Fatal(err)
		}
		found := story.Problems(&st.Shard, noon)
		if len(found) != 1 || !slices.Equal([]string{
			found[0].About, found[0].Rule, found[0].What, found[0].Remedies.String(),
		}, test.want) {
			t.Errorf("%s: got %+v, want %q", name, found, test.want)
		}
	}
}

// The end of the agents' authority is reported while there is time to replace it. Once it is over,
// it is a replica's only problem.
//
// proves SEC-3
func TestTheEndOfTheAuthorityIsAProblem(t *testing.T) {
	for name, test := range map[string]struct {
		left time.Duration
		want string
	}{
		"far":  {60 * 24 * time.Hour, ""},
		"near": {20 * 24 * time.Hour, "ends on "},
		"over": {-time.Hour, "has ended on "},
	} {
		w := newWorld(t)
		w.serve()
		r := store.Replica{Schema: store.Schema, ID: "coord-a", IssuerEnds: noon.Add(test.left)}
		if test.left < 0 {
			r.Last = &store.Disturbance{At: noon.Add(-time.Second), What: "agents cannot be served"}
		}
		w.put(store.KindReplicas, "coord-a", r)
		st, err := stateOf(t, w)
		if err != nil {
			t.Fatal(err)
		}
		found := story.Problems(&st.Shard, noon)
		if test.want == "" && len(found) == 0 {
			continue
		}
		if len(found) != 1 || found[0].About != "coord-a" || !strings.Contains(found[0].What, test.want) ||
			!strings.HasPrefix(found[0].Remedies.String(), "leasehold pki rotate") {
			t.Errorf("%s: got %+v", name, found)
		}
	}
}

// An etcd that is not compacted is a problem, with what an operator can do about it.
func TestHistoryThatNobodyCompactsIsAProblem(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.put(store.KindServed, "", store.Served{
		Schema: store.Schema, At: noon, Replica: "coord-a",
		Uncompacted: "only root may",
	})
	out := w.must("status")
	for _, want := range []string{
		"1 problem\n", "its database grows until it is full: only root may",
		"--auto-compaction-retention=1h0m0s",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not told:\n%s", want, out)
		}
	}
	// History that is kept on purpose is no setting of etcd's.
	w.put(store.KindServed, "", store.Served{
		Schema: store.Schema, At: noon, Replica: "coord-a",
		Uncompacted: "a record is lost", KeptForRepair: true,
	})
	out = w.must("status")
	if !strings.Contains(out, "leasehold repair") || strings.Contains(out, "--auto-compaction") {
		t.Errorf("damage:\n%s", out)
	}
}

// A hold of the shard is reported for the shard, and not for each group as well.
func TestAHoldIsListedOnce(t *testing.T) {
	w := heldWorld(t, store.Blocked{
		Rule: "SAFE-12", What: "all changes", Why: "the shard is on hold",
		Until: "the hold is released",
	})
	w.must("hold", "a drill")
	out := w.must("status")
	if strings.Count(out, "SAFE-12:") != 1 || !strings.Contains(out, "1 problem\n") ||
		!strings.Contains(out, "held by SAFE-12") {
		t.Errorf("got\n%s", out)
	}
	if out := w.must("group", "show", "web"); !strings.Contains(out, "SAFE-12: all changes: the shard is on hold") {
		t.Errorf("the group alone says nothing of the hold:\n%s", out)
	}
}

func stateOf(t *testing.T, w *world) (shardState, error) {
	t.Helper()
	inv := &Invocation{env: w.env(nil, nil), flags: &Globals{Shard: "default", Endpoints: []string{"127.0.0.1:2379"}}}
	defer inv.end()
	return inv.readState(t.Context(), "default")
}

// A group whose spec is lost: the status names what is left of it, and the spec that takes them up
// again must not take some of them away unasked.
//
// proves SAFE-10, REC-7
func TestAGroupWithoutKeyAndStatus(t *testing.T) {
	w := newWorld(t)
	w.serve()
	const why = "the group's key is missing; 3 instances are left as they are: web-0-a, web-1-b, web-2-c"
	w.put(store.KindStatus, "web", store.Status{
		Schema: store.Schema, Group: "web", State: store.GroupRefused, Invalid: &store.InvalidSpec{Why: why},
		Phases: map[store.Phase]int{store.Running: 3, store.Deleting: 1},
	})
	st, err := stateOf(t, w)
	if err != nil {
		t.Fatal(err)
	}
	want := []problem{{
		About: "web", Rule: "SAFE-10", What: why,
		Remedies: story.Run("leasehold group apply -f web.yaml"),
	}}
	if found := story.Problems(&st.Shard, noon); !reflect.DeepEqual(found, want) {
		t.Errorf("got %+v", found)
	}
	t.Chdir(t.TempDir())
	write(t, "web.yaml", "name: web\nprovider: process\nsize: 2\n")
	if code, _, stderr := w.run("group", "apply", "-f", "web.yaml"); code != Usage ||
		!strings.Contains(stderr, "has 3 instances left and shrinks to 2 instances") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	w.must("group", "apply", "-f", "web.yaml", "--confirm=web")
}

// Coordinators that each see other machines of one provider are a problem, if a group uses it.
func TestMachinesAtSeveralSitesAreAProblem(t *testing.T) {
	for name, test := range map[string]struct {
		sites [2]string
		used  bool
		want  bool
	}{
		"one site":        {[2]string{"a", "a"}, true, false},
		"none":            {[2]string{}, true, false},
		"two sites":       {[2]string{"a", "b"}, true, true},
		"two, not in use": {[2]string{"a", "b"}, false, false},
	} {
		w := newWorld(t)
		w.serve()
		for i, id := range []string{"coord-a", "coord-b"} {
			w.put(store.KindReplicas, id, store.Replica{
				Schema: store.Schema, ID: id,
				Capabilities: map[string]store.ProviderCapabilities{"process": {Site: test.sites[i]}},
			})
		}
		st, err := stateOf(t, w)
		if err != nil {
			t.Fatal(err)
		}
		if test.used {
			st.Groups = []group{{Name: "web", Spec: store.Group{Provider: "process"}}}
		}
		found := story.SiteProblems(&st.Shard)
		if !test.want && len(found) == 0 {
			continue
		}
		if len(found) != 1 || !strings.Contains(found[0].What, "a (coord-a), b (coord-b)") ||
			!strings.Contains(found[0].What, "group web") {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
