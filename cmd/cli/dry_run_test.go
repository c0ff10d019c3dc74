package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/cmd/foresee"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// A coordinator does what a dry run has predicted.
//
// proves ROLL-2
func TestDryRunForeseesWhatACoordinatorDoes(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, file := range map[string]string{
		"grow.yaml":   "name: web\nprovider: mem\nsize: 5\nworkload: {run: [./web]}\n",
		"shrink.yaml": "name: web\nprovider: mem\nsize: 1\nworkload: {run: [./web]}\n",
		"roll.yaml":   "name: web\nprovider: mem\nsize: 5\nworkload: {run: [./web]}\ntemplate: {instance_type: large}\n",
		"roll-two.yaml": "name: web\nprovider: mem\nsize: 3\nworkload: {run: [./web]}\ntemplate: " +
			"{instance_type: large}\nbudget: {max_expansion: 2}\n",
		"remove.yaml": "name: web\nprovider: mem\nsize: 3\nworkload: {run: [./web]}\ntemplate: " +
			"{instance_type: large}\nbudget: {max_expansion: 0, max_unavailable: 1}\n",
		"no-budget.yaml": "name: web\nprovider: mem\nsize: 3\nworkload: {run: [./web]}\ntemplate: " +
			"{instance_type: large}\nbudget: {max_expansion: 0}\n",
	} {
		if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]struct {
		plan string
		made int // machines beside the first three
		rest int // instances in the end
		held string
	}{
		"grow.yaml":      {"create 2; never below 3 healthy", 2, 5, ""},
		"shrink.yaml":    {"remove 2; never below 1 healthy", 0, 1, ""},
		"roll.yaml":      {"create 2, recreate 3 one at a time; never below 3 healthy", 5, 5, ""},
		"roll-two.yaml":  {"recreate 3 two at a time; never below 3 healthy", 3, 3, ""},
		"remove.yaml":    {"recreate 3 one at a time; never below 2 healthy", 3, 3, ""},
		"no-budget.yaml": {"nothing to do", 0, 3, "max_expansion and max_unavailable are 0"},
	} {
		t.Run(strings.TrimSuffix(file, ".yaml"), func(t *testing.T) {
			inShard(t, with(named("web", 3), func(g *store.Group) { g.Provider = "mem" }), func(w *shard) {
				rev := w.revision()
				code, out, problem := w.run("group", "apply", "-f", file, "--dry-run", "-o", "json")
				var doc dryRunDocument
				if err := json.Unmarshal([]byte(out), &doc); code != Done || err != nil || len(doc.Groups) != 1 {
					t.Fatalf("exit %d, %v\n%s%s", code, err, out, problem)
				}
				g := doc.Groups[0]
				if g.Plan != want.plan {
					t.Errorf("plan %q, want %q", g.Plan, want.plan)
				}
				if held := len(g.Course.Held) > 0 &&
					strings.Contains(g.Course.Held[0].Why, want.held); held != (want.held != "") {
					t.Errorf("held %+v, want %q", g.Course.Held, want.held)
				}
				if after := w.revision(); after != rev {
					t.Errorf("the dry run wrote: revision %d, was %d", after, rev)
				}
				args := append(strings.Fields(strings.TrimPrefix(doc.Apply, "leasehold ")), "--confirm=web")
				if code, out, problem := w.run(args...); code != Done {
					t.Fatalf("%s: exit %d\n%s%s", doc.Apply, code, out, problem)
				}
				least, begun, rests := 3, time.Now(), time.Time{}
				for time.Since(begun) < 2*time.Minute {
					w.pass(100 * time.Millisecond)
					st := w.status("web")
					least = min(least, st.Healthy)
					if rests.IsZero() && st.Healthy == want.rest && len(w.ids()) == want.rest && st.Outdated == 0 {
						rests = time.Now()
					}
				}
				made := -3
				for _, l := range w.provider.Ledger() {
					made += l.Made
				}
				if made != want.made || len(w.ids()) != want.rest {
					t.Errorf("%d machines were made and %d instances are there, want %d and %d", made, len(w.ids()),
						want.made, want.rest)
				}
				if least < g.Course.Healthy {
					t.Errorf("only %d were healthy, %d at least were foreseen", least, g.Course.Healthy)
				}
				// Each removal is seen in the next list of the provider, 5s apart, which no
				// estimate knows.
				if took := rests.Sub(begun); want.made > 0 &&
					(took < g.Takes.D()/2 || took > g.Takes.D()+30*time.Second) {
					t.Errorf("it took %s, and %s was foreseen (median start %s)", took, g.Takes, g.Start)
				}
				if code, _, _ := w.run(args...); code != Conflict {
					t.Errorf("%s, once more: exit %d, want %d", doc.Apply, code, Conflict)
				}
			})
		})
	}
}

// A large change is counted in full, and its estimate respects the shard's create_rate.
func TestDryRunOfALargeChangeIsCountedAndBounded(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("large.yaml", []byte("name: web\nprovider: mem\nsize: 7000\nworkload: {run: [./web]}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	inShard(t, with(named("web", 3), func(g *store.Group) { g.Provider = "mem" }), func(w *shard) {
		_, out, problem := w.run("group", "apply", "-f", "large.yaml", "--dry-run")
		for _, want := range []string{
			"plan: create 6997; never below 3 healthy", "estimate ~12m (median start ",
			"; at most 10 creations a second; computed, not followed to the end)",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is not in\n%s%s", want, out, problem)
			}
		}
	})
	inEmptyShard(t, fake.Config{}, func(w *shard) {
		_, out, problem := w.run("group", "apply", "-f", "large.yaml", "--dry-run")
		want := "estimate more than 12m (at most 10 creations a second; no instance of this group has started yet)"
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s%s", want, out, problem)
		}
	})
}

// A change that agents take up, or that needs a restart, is foreseen as that.
//
// proves ROLL-2
func TestDryRunSaysWhatEachFieldForces(t *testing.T) {
	before := with(webGroup(3), func(g *store.Group) {
		g.Workload.Run = []string{"./web", "${port}"}
		g.Vars = map[string]string{"port": "80", "greeting": "hello"}
	})
	after := with(before, func(g *store.Group) {
		g.Vars = map[string]string{"port": "81", "greeting": "ciao"}
		g.Workload.Run = []string{"./web", "${port}", "-v"}
		g.Template.InstanceType, g.Size = "large", 4
	})
	for path, want := range map[string]string{
		"vars.greeting": store.ActionLiveUpdate, "vars.port": store.ActionRestart,
		"workload.run[2]":        store.ActionRestart,
		"template.instance_type": store.ActionRecreate, "size": "", "report.interval": "",
	} {
		if got := forcedBy(path, before, after); got != want {
			t.Errorf("%s forces %q, want %q", path, got, want)
		}
	}
	after.Rollout.MinimalAction = store.ActionRecreate
	if got := forcedBy("vars.greeting", before, after); got != store.ActionRecreate {
		t.Errorf("with minimal_action recreate a variable forces %q", got)
	}
}

func TestExplainInAShardWithoutRoomKeepsTheProvidersWord(t *testing.T) {
	inEmptyShard(t, fake.Config{}, func(w *shard) {
		w.provider.Inject(fake.Fault{Call: fake.CallCreate, Err: provider.ErrCapacity})
		g := named("web", 1)
		g.Provider = "mem"
		w.put(store.KindGroups, "web", g)
		w.held("web", "HEAL-12")
		synctest.Wait()
		w.explains("web", "web is STARTED, 0 of 1 healthy", "(HEAL-12): out of capacity",
			"Next decision: within a minute or so, when the provider is queried again (HEAL-12)")
	})
}

func (w *shard) revision() store.Revision {
	w.t.Helper()
	kv, err := w.st.Get(w.t.Context(), w.keys.Group("web"))
	if err != nil {
		w.t.Fatal(err)
	}
	return kv.Modified
}

// Where instances run, a dry run does not say that none has started.
func TestDryRunWithoutAKnownStart(t *testing.T) {
	for before, want := range map[int]string{
		0: "no estimate: no instance of this group has started yet",
		2: "no estimate: no instance shows how long a start takes",
	} {
		f := foreseenChange{Course: foresee.Course{Create: 1, Before: before}}
		if text := f.text(output.Screen{}); !strings.Contains(text, want) {
			t.Errorf("%d healthy before: %q is not in\n%s", before, want, text)
		}
	}
}
