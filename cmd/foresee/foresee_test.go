package foresee_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/foresee"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	keys = store.KeysOf("default")
)

// group is one whose instances take variables from their command lines, and others not.
func group(size int) store.Group {
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Size = "web", "process", size
	g.Workload.Run = []string{"./web", "${port}"}
	g.Vars = map[string]string{"port": "80", "greeting": "hello"}
	g.Complete()
	return g
}

// records returns a group whose instances all run; each took 30s to start.
func records(g store.Group, change func(i int, in *store.Instance, a *store.Alive, r *store.Report)) store.Listing {
	l := store.Listing{Revision: 100}
	put := func(key string, record any) {
		l.KVs = append(l.KVs, store.KV{
			Key: key, Value: store.Encode(record), Created: 10,
			Modified: 10 + store.Revision(len(l.KVs))%90,
		})
	}
	put(keys.Shard(), store.Shard{Schema: 1, ID: "x", Settings: store.DefaultShardSettings()})
	put(keys.Served(), store.Served{Schema: 1, At: noon})
	put(keys.Group(g.Name), g)
	for i := range g.Size {
		id := fmt.Sprintf("%s-%d-a", g.Name, i)
		in := store.Instance{
			Schema: 1, ID: id, Group: g.Name, Slot: i, Phase: store.Running, Managed: true, Called: true,
			Created: noon.Add(-time.Hour), Since: noon.Add(-time.Hour + 30*time.Second),
			Spec: g.InstanceSpec(), Template: g.InstanceSpec().TemplateHash(), Config: g.InstanceSpec().ConfigHash(),
			Zone: "a", Relaunch: g.Relaunch.Number,
		}
		a := store.Alive{
			Schema: 1, Instance: id, BootID: "b1", Epoch: 1, State: store.StreamOpen,
			Since: noon.Add(-time.Hour),
		}
		r := store.Report{Schema: 1, Instance: id, BootID: "b1", Healthy: true, Config: in.Config}
		if change != nil {
			change(i, &in, &a, &r)
		}
		put(keys.Instance(id), in)
		put(keys.Slot(g.Name, i), store.Slot{Schema: 1, Group: g.Name, Number: i})
		if a.State != "" {
			put(keys.Alive(id), a)
			put(keys.Report(id), r)
		}
	}
	return l
}

func edit(g store.Group, change func(*store.Group)) []store.Write {
	change(&g)
	return []store.Write{store.Put(keys.Group(g.Name), store.Encode(g))}
}

func TestAheadInWords(t *testing.T) {
	type instance = store.Instance
	for name, test := range map[string]struct {
		before func(*store.Group)
		edit   func(*store.Group)
		change func(i int, in *instance, a *store.Alive, r *store.Report)
		words  string
		took   time.Duration
		held   string // why it is stuck at the end; "": it is stable
	}{
		"nothing": {words: "nothing to do"},
		"grow": {
			edit: func(g *store.Group) { g.Size = 8 }, words: "create 2; never below 6 healthy",
			took: 30 * time.Second,
		},
		"shrink": {
			edit: func(g *store.Group) { g.Size = 2 }, words: "remove 4; never below 2 healthy",
			took: time.Second,
		},
		"stop": {
			edit: func(g *store.Group) { g.Stopped = true }, words: "remove 6; never below 0 healthy",
			took: time.Second,
		},
		// each waits until the last one's machine is gone
		"grow, roll": {
			edit:  func(g *store.Group) { g.Size, g.Template.InstanceType = 8, "large" },
			words: "create 2, recreate 6 one at a time; never below 6 healthy", took: 185 * time.Second,
		},
		"live update": {
			edit:  func(g *store.Group) { g.Vars = map[string]string{"port": "80", "greeting": "ciao"} },
			words: "update 6 live one at a time; never below 6 healthy", took: 5 * time.Second,
		},
		"restart": {
			edit:  func(g *store.Group) { g.Vars = map[string]string{"port": "81", "greeting": "hello"} },
			words: "restart 6 one at a time; never below 5 healthy", took: 180 * time.Second,
		},
		"a workload that ended": {
			change: func(i int, in *instance, _ *store.Alive, r *store.Report) {
				if i == 0 {
					in.Phase, in.Since = store.Checking, noon.Add(-time.Minute)
					r.Healthy, r.Why, r.Workload = false, "exit code 1", &store.WorkloadExit{Code: 1}
				}
			},
			// it has failed already: no wait for DET-10
			words: "heal 1; never below 5 healthy", took: 31 * time.Second,
		},
		"restart two at a time": {
			edit: func(g *store.Group) {
				g.Workload.Run, g.Budget.MaxUnavailable = []string{"./web2"}, new(store.Amount(2))
			},
			words: "restart 6 two at a time; never below 4 healthy", took: 90 * time.Second,
		},
		"drained first": {
			before: func(g *store.Group) { g.Drain.Hook = []string{"./drain"} },
			edit: func(g *store.Group) {
				g.Template.InstanceType, g.Budget.MaxExpansion, g.Budget.MaxUnavailable = "large", 0, new(store.Amount(1))
			},
			words: "recreate 6 one at a time; never below 5 healthy", took: 191 * time.Second,
		},
		"opportunistic": {edit: func(g *store.Group) {
			g.Template.InstanceType, g.Rollout.Strategy = "large", "opportunistic"
		}, words: "nothing to do"},
		"one protected": {
			edit: func(g *store.Group) { g.Template.InstanceType = "large" },
			change: func(i int, in *instance, _ *store.Alive, _ *store.Report) {
				in.Protected = map[bool]string{true: store.ProtectRemoval}[i == 3]
			},
			words: "recreate 5 one at a time; never below 6 healthy", took: 150 * time.Second, held: "it is protected",
		},
		"no budget": {
			edit:  func(g *store.Group) { g.Template.InstanceType, g.Budget.MaxExpansion = "large", 0 },
			words: "nothing to do", held: "max_expansion and max_unavailable are 0",
		},
		"paused": {
			edit: func(g *store.Group) { g.Paused, g.Size = true, 8 }, words: "nothing to do",
			held: "the group is paused",
		},
		"one unhealthy": {
			change: func(i int, _ *instance, _ *store.Alive, r *store.Report) { r.Healthy = i != 2 },
			words:  "heal 1; never below 5 healthy", took: 30 * time.Second,
		},
		"one silent": {
			change: func(i int, _ *instance, a *store.Alive, _ *store.Report) {
				if i == 2 {
					a.State = ""
				}
			},
			words: "heal 1; never below 5 healthy", took: 47 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := group(6)
			if test.before != nil {
				test.before(&g)
			}
			listing, edits := records(g, test.change), []store.Write(nil)
			if test.edit != nil {
				edits = edit(g, test.edit)
			}
			w := foresee.New(keys, "web", listing, edits, noon)
			pace, known := w.StartTime()
			if !known || pace != 30*time.Second {
				t.Errorf("pace %s, %v, want 30s", pace, known)
			}
			c := w.Ahead(pace)
			if got := c.Words(); got != test.words {
				t.Errorf("%q, want %q", got, test.words)
			}
			if c.Took < test.took || c.Took > test.took+5*time.Second {
				t.Errorf("took %s, want about %s", c.Took, test.took)
			}
			if c.Rests != (test.held == "") || test.held != "" &&
				(len(c.Held) == 0 || !strings.Contains(c.Held[0].Why, test.held)) {
				t.Errorf("rests %v, held %+v, want %q", c.Rests, c.Held, test.held)
			}
			if again := foresee.New(keys, "web", listing, edits, noon).Ahead(pace); !reflect.DeepEqual(again, c) {
				t.Errorf("the same records are foreseen otherwise the second time: %+v, then %+v", c, again)
			}
		})
	}
}

// A group that is not there yet, in a shard in which no coordinator ever was.
func TestAheadOfANewGroup(t *testing.T) {
	g := group(3)
	w := foresee.New(keys, "web", store.Listing{Revision: 7},
		[]store.Write{store.Put(keys.Group("web"), store.Encode(g))}, noon)
	if pace, known := w.StartTime(); known {
		t.Errorf("there is a pace of %s without instances", pace)
	}
	if c := w.Ahead(10 * time.Second); c.Words() != "create 3" || !c.Rests || c.Took < 10*time.Second ||
		c.Took > 15*time.Second {
		t.Errorf("%q %+v", c.Words(), c)
	}
}

// A large roll is not followed to its end: the work is bounded.
func TestAheadIsBounded(t *testing.T) {
	g := group(2000)
	c := foresee.New(keys, "web", records(g, nil), edit(g, func(g *store.Group) { g.Template.InstanceType = "large" }),
		noon).Ahead(30 * time.Second)
	if c.Seen == 0 || c.Seen > 1000 || c.Recreate != 2000 || c.AtOnce != 1 || c.Took < 990*time.Minute ||
		c.Took > 1100*time.Minute {
		t.Errorf("%s in %s: %+v", c.Words(), c.Took, c)
	}
}

// Plan says what would be decided now, and changes nothing: asked twice it says the same.
func TestPlanOnTheRecords(t *testing.T) {
	w := foresee.New(keys, "web", records(group(3), nil), edit(group(3), func(g *store.Group) { g.Size = 5 }), noon)
	first, second := w.Plan(), w.Plan()
	requested := 0
	for _, a := range first.Actions {
		if a.To == store.Pending {
			requested++
		}
	}
	if requested != 2 || !reflect.DeepEqual(first, second) {
		t.Errorf("%d instances are requested, want 2; then\n%+v\n%+v", requested, first, second)
	}
}

// What other groups use of a limit counts.
//
// proves CAP-1
func TestAheadKeepsToLimits(t *testing.T) {
	g := group(3)
	all := records(g, nil)
	shard := store.Shard{Schema: 1, ID: "x", Settings: store.DefaultShardSettings()}
	shard.Settings.LimitInstances = 10
	all.KVs[0].Value = store.Encode(shard)
	for used, want := range map[int]string{0: "create 3", 6: "create 1", 7: "nothing to do"} {
		w := foresee.New(keys, "web", all, edit(g, func(g *store.Group) { g.Size = 6 }), noon)
		w.Beside([]plan.Limit{{Name: "limit_instances", Most: 10, Used: 3 + used}})
		c := w.Ahead(10 * time.Second)
		held := slices.ContainsFunc(c.Held, func(b store.Blocked) bool { return b.Kind == store.BlockedByLimit })
		if !strings.HasPrefix(c.Words(), want) || held != (used > 4) {
			t.Errorf("%d used elsewhere: %q, held %+v", used, c.Words(), c.Held)
		}
	}
}

// What planned work waits for as configured is part of the prediction, with the time until then.
//
// proves ROLL-5, ROLL-6, ROLL-8
func TestAheadSaysWhatPlannedWorkWaitsFor(t *testing.T) {
	for name, test := range map[string]struct {
		change func(g *store.Group)
		kinds  []store.BlockedKind
		least  time.Duration
	}{
		"nothing": {func(*store.Group) {}, nil, 0},
		"window": {func(g *store.Group) {
			g.Windows = []store.Window{{From: "22:00", For: store.Duration(time.Hour), TimeZone: "UTC"}}
		}, []store.BlockedKind{store.BlockedByWindow}, 10 * time.Hour},
		"freeze": {func(g *store.Group) {
			g.Freeze = store.FreezeSpec{To: noon.Add(2 * time.Hour).Format(time.RFC3339), Why: "holidays"}
		}, []store.BlockedKind{store.BlockedByFreeze}, 2 * time.Hour},
		"canaries": {func(g *store.Group) {
			d := store.Duration(15 * time.Minute)
			g.Rollout.Canary, g.Rollout.CanaryDuration = 1, &d
		}, []store.BlockedKind{store.BlockedByCanary}, 15 * time.Minute},
	} {
		g := group(3)
		edited := edit(g, func(g *store.Group) {
			g.Workload.Run = []string{"./other"}
			test.change(g)
		})
		c := foresee.New(keys, "web", records(g, nil), edited, noon).Ahead(30 * time.Second)
		var kinds []store.BlockedKind
		for _, b := range c.Waits {
			kinds = append(kinds, b.Kind)
		}
		if !slices.Equal(kinds, test.kinds) || c.Restart != 3 || c.Took < test.least || len(c.Held) > 0 {
			t.Errorf("%s: %q waits for %v, takes %s: %+v", name, c.Words(), kinds, c.Took, c)
		}
	}
}

// A removed machine is seen to be gone, also where only its own coordinator lists it: a smaller
// group comes to rest.
func TestAheadSeesRemovalsAtASite(t *testing.T) {
	g := group(3)
	for _, site := range []string{"", "host-a"} {
		listing := records(g, func(_ int, in *store.Instance, _ *store.Alive, _ *store.Report) { in.Site = site })
		c := foresee.New(keys, "web", listing, edit(g, func(g *store.Group) { g.Size = 2 }), noon).Ahead(time.Second)
		if !c.Rests || c.Remove != 1 {
			t.Errorf("site %q: %q, rests %v", site, c.Words(), c.Rests)
		}
	}
}
