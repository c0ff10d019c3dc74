package discovery_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/discovery"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
	_ "github.com/leasehold/leasehold/tests/tier" // one seed every day
)

// played is a shard of two groups in a database in memory, a directory that follows it, and who
// must be in service: kept by hand, from what a test did.
type played struct {
	t         *testing.T
	store     *memstore.Store
	replica   *memstore.Store
	db        *memstore.Database
	directory *discovery.Directory
	phase     map[string]store.Phase // the last readable record, until it is deleted on purpose
	ill       map[string]bool        // by the last readable report
	told      map[string]bool        // groups that were said to have changed
}

func (p *played) commit(writes ...store.Write) {
	if _, err := p.store.Commit(context.Background(), store.Txn{Writes: writes}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *played) revision(key string) store.Revision {
	kv, err := p.store.Get(context.Background(), key)
	if err != nil {
		return 0
	}
	return kv.Modified
}

func group(id string) string { return id[:strings.LastIndex(id, "-")] }

// wanted returns what must be in service, as shown prints it.
func (p *played) wanted(of string) string {
	var all []string
	for id, phase := range p.phase {
		if group(id) == of && phase == store.Running && !p.ill[id] {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (p *played) shown(of string) string {
	g, there := p.directory.Find(of)
	if !there {
		return "no such group"
	}
	var all []string
	for _, e := range g.Endpoints {
		all = append(all, e.Instance)
	}
	return strings.Join(all, " ")
}

// proves LB-4, SAFE-18: for any events in any order, an instance is in service if the last readable
// record says that it runs and the last readable report does not say that it is unhealthy; a
// directory that follows changes shows that, and reports each change
func TestOnlyEvidenceTakesOut(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// all of them first: a bubble ends by itself
		events := rapid.SliceOfN(rapid.Custom(drawEvent), 30, 80).Draw(rt, "events")
		var problem string
		synctest.Test(t, func(t *testing.T) { problem = play(t, events) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

// event is something that happens to an instance, or to the shard.
type event struct {
	ID    string
	What  string
	Phase store.Phase // of a record
}

func drawEvent(rt *rapid.T) event {
	return event{
		ID: rapid.SampledFrom([]string{"db-0", "web-0", "web-1"}).Draw(rt, "instance"),
		What: rapid.SampledFrom([]string{
			"record", "record", "record", "record", "unhealthy", "unhealthy", "healthy", "gone", "gone", // evidence
			"record lost", "record lost", "record spoiled", "report lost", "report spoiled", "lease lost", "storm", "hold",
			"spec lost", "status lost", "cut", "mended", "a minute",
		}).Draw(rt, "what"),
		Phase: rapid.SampledFrom([]store.Phase{
			store.Running, store.Running, store.Checking, store.Draining, store.Stopping, store.Deleting,
		}).Draw(rt, "phase"),
	}
}

// play has events happen, and returns what went wrong after one of them.
func play(t *testing.T, events []event) string {
	p := &played{
		t: t, db: memstore.New(memstore.Config{}), phase: map[string]store.Phase{}, ill: map[string]bool{},
		told: map[string]bool{},
	}
	defer p.db.Close()
	p.store, p.replica = p.db.Connect(), p.db.Connect()
	c := cache.New(keys)
	p.directory = discovery.NewDirectory(c)
	p.directory.OnChange(func(groups []string) {
		for _, g := range groups {
			p.told[g] = true
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	groups := []string{"db", "web"}
	p.commit(store.Put(keys.Shard(), store.Encode(store.Shard{
		Schema: 1, ID: "s",
		Settings: store.DefaultShardSettings(),
	})))
	for _, g := range groups {
		p.commit(store.Put(keys.Status(g), store.Encode(store.Status{Schema: 1, Group: g, Records: new(0)})))
	}
	running.Go(func() { _ = c.Run(ctx, p.replica) })
	running.Go(func() { p.directory.Run(ctx) })
	synctest.Wait()

	cut := false
	before := map[string]string{}
	check := func(what string) string {
		synctest.Wait()
		for _, g := range groups {
			is := p.shown(g)
			if !cut && is != p.wanted(g) {
				return fmt.Sprintf("after %s: %s has %q in service, want %q", what, g, is, p.wanted(g))
			}
			if cut && is != before[g] {
				return fmt.Sprintf("after %s, cut off: %s has %q in service, and had %q", what, g, is, before[g])
			}
			if is != before[g] && !p.told[g] {
				return fmt.Sprintf("after %s: the change of %s was not announced", what, g)
			}
			before[g] = is
		}
		p.told = map[string]bool{}
		return ""
	}
	if problem := check("the beginning"); problem != "" {
		return problem
	}
	for _, e := range events {
		id := e.ID
		_, there := p.phase[id]
		lost := there && p.revision(keys.Instance(id)) == 0
		switch e.What {
		case "record":
			p.phase[id] = e.Phase
			p.commit(store.Put(keys.Instance(id), store.Encode(store.Instance{
				Schema: 1, ID: id, Group: group(id), Phase: e.Phase, Address: "10.0.0.1:80",
			})))
		case "unhealthy", "healthy":
			p.ill[id] = e.What == "unhealthy"
			p.commit(store.Put(keys.Report(id), store.Encode(store.Report{
				Schema: 1, Instance: id, BootID: "b", Healthy: e.What == "healthy",
			})))
		case "gone": // by the leader, which leaves a note
			key := keys.Instance(id)
			switch {
			case lost: // it was lost before, and is given up now
				delete(p.phase, id)
				p.commit(store.Put(keys.Gone(key), store.Encode(store.Gone{Schema: 1, Instance: id, Group: group(id)})))
			case there:
				delete(p.phase, id)
				p.commit(store.Delete(key), store.Put(keys.Gone(key), store.Encode(store.Gone{
					Schema: 1, Revision: p.revision(key), Instance: id, Group: group(id),
				})))
			}
		case "record lost":
			if !cut { // one that comes and goes unwatched has never been seen
				p.commit(store.Delete(keys.Instance(id)))
			}
		case "record spoiled":
			if there && !lost && !cut {
				p.commit(store.Put(keys.Instance(id), []byte("garbage")))
			}
		case "report lost":
			if !cut {
				delete(p.ill, id)
				p.commit(store.Delete(keys.Report(id)))
			}
		case "report spoiled":
			if !cut {
				p.commit(store.Put(keys.Report(id), []byte("garbage")))
			}
		case "lease lost":
			p.commit(store.Delete(keys.Alive(id)))
		case "storm":
			p.commit(store.Put(keys.Status(group(id)), store.Encode(store.Status{
				Schema: 1, Group: group(id), Records: new(3), Storm: &store.Storm{},
			})))
		case "hold":
			p.commit(store.Put(keys.Shard(), store.Encode(store.Shard{
				Schema: 1, ID: "s", Settings: store.DefaultShardSettings(), Hold: &store.Hold{By: "ann"},
			})))
		case "spec lost":
			p.commit(store.Delete(keys.Group(group(id))), store.Delete(keys.Static(group(id))))
		case "status lost":
			if !cut {
				p.commit(store.Delete(keys.Status(group(id))))
			}
		case "cut":
			p.replica.Faults().Cut()
			cut = true
		case "mended":
			p.replica.Faults().Mend()
			cut = false
			<-time.After(time.Minute) // virtual: the cache comes back
		case "a minute":
			<-time.After(time.Minute)
		}
		if problem := check(e.What + " of " + id); problem != "" {
			return problem
		}
	}
	return ""
}

// proves LB-4: only groups with changes are computed and reported
func TestOnlyChangedGroupsAreAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New(memstore.Config{})
		defer db.Close()
		s, c := db.Connect(), cache.New(keys)
		put := func(id string, phase store.Phase, address string) {
			rec := store.Instance{Schema: 1, ID: id, Group: group(id), Phase: phase, Address: address}
			if _, err := s.Commit(t.Context(), store.Txn{Writes: []store.Write{store.Put(keys.Instance(id),
				store.Encode(rec))}}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		d := discovery.NewDirectory(c)
		var told []string
		d.OnChange(func(groups []string) { told = append(told, strings.Join(groups, "+")) })
		if d.Ready() {
			t.Error("it is ready before it has read anything")
		}
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { _ = c.Run(ctx, db.Connect()) })
		running.Go(func() { d.Run(ctx) })
		synctest.Wait()
		if _, there := d.Find("web"); there || !d.Ready() {
			t.Error("an empty shard has a group, or is not ready")
		}
		put("web-0", store.Running, "10.0.0.1:80")
		put("db-0", store.Checking, "10.0.0.2:80")
		web, _ := d.Find("web")
		put("db-0", store.Running, "10.0.0.2:80")
		put("db-0", store.Running, "10.0.0.2:80")
		put("db-0", store.Running, "10.0.0.3:80")
		if again, _ := d.Find("web"); again != web {
			t.Error("a group without changes was made again")
		}
		if got := strings.Join(told, " "); got != " web db db db" {
			t.Errorf("told %q", got)
		}
	})
}

// A replica that starts after records were lost does not know whose they were. It has no answer for
// such a group until the records are back, an operator has accepted the loss, or the leader has
// noted that they are gone.
//
// proves LB-4, SAFE-18
func TestNewReplicaWithholdsDamagedGroups(t *testing.T) {
	instance := func(id string) store.Write {
		return store.Put(keys.Instance(id), store.Encode(store.Instance{
			Schema: 1, ID: id, Group: group(id), Phase: store.Running, Address: "10.0.0.1:80",
		}))
	}
	status := func(records int, damaged ...store.Damaged) store.Write {
		return store.Put(keys.Status("web"), store.Encode(store.Status{
			Schema: 1, Group: "web", Records: &records, Counted: 1, Damaged: damaged,
		}))
	}
	shard := func(reviewed store.Revision) store.Write {
		s := store.Shard{Schema: 1, ID: "s", Settings: store.DefaultShardSettings()}
		if reviewed > 0 {
			s.Reviewed = &store.Reviewed{Seen: reviewed}
		}
		return store.Put(keys.Shard(), store.Encode(s))
	}
	lost := store.Damaged{Key: keys.Instance("web-0"), Instance: "web-0", What: store.DamageLost, Last: 3, Seen: 5}
	gone := func(id string) store.Write {
		return store.Put(keys.Gone(keys.Instance(id)), store.Encode(store.Gone{Schema: 1, Instance: id, Group: group(id)}))
	}
	const both = "web-0 web-1"
	for name, test := range map[string]struct {
		damage, mend []store.Write
		mended       string
	}{
		"one is counted and not there": {
			[]store.Write{status(2), instance("web-1")}, []store.Write{instance("web-0")}, both,
		},
		"all are": {
			[]store.Write{status(2)}, []store.Write{instance("web-0"), instance("web-1")}, both,
		},
		"a leader has named it": {
			[]store.Write{status(1, lost), instance("web-1")}, []store.Write{instance("web-0")}, both,
		},
		"it is declared gone": {
			[]store.Write{status(2, lost), instance("web-1")}, []store.Write{gone("web-0")}, "web-1",
		},
		"the loss is accepted": {
			[]store.Write{status(2, lost), instance("web-1")}, []store.Write{shard(5)}, "web-1",
		},
		"it cannot be read": {
			[]store.Write{status(2), instance("web-1"), store.Put(keys.Instance("web-0"), []byte("garbage"))},
			[]store.Write{instance("web-0")},
			both,
		},
		"it cannot be read, and is deleted on purpose": {
			[]store.Write{status(2), instance("web-1"), store.Put(keys.Instance("web-0"), []byte("garbage"))},
			[]store.Write{gone("web-0"), store.Delete(keys.Instance("web-0"))},
			"web-1",
		},
		"the status cannot be read": {
			[]store.Write{store.Put(keys.Status("web"), []byte("garbage")), instance("web-1")},
			[]store.Write{status(1)},
			"web-1",
		},
		"an agent claims to be of it, and there is no status": {
			[]store.Write{store.Put(keys.Group("web"), []byte("{}")), store.Put(keys.Stray("web-0"),
				store.Encode(store.Stray{Schema: 1, Instance: "web-0", Claim: &store.Claim{Instance: "web-0", Group: "web"}}))},
			[]store.Write{store.Delete(keys.Stray("web-0"))},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &played{t: t, db: memstore.New(memstore.Config{}), told: map[string]bool{}}
				defer p.db.Close()
				p.store, p.replica = p.db.Connect(), p.db.Connect()
				p.commit(append(test.damage, shard(0), instance("db-0"), store.Put(keys.Status("db"),
					store.Encode(store.Status{Schema: 1, Group: "db", Records: new(1)})))...)
				c := cache.New(keys)
				p.directory = discovery.NewDirectory(c)
				p.directory.OnChange(func(groups []string) {
					for _, g := range groups {
						p.told[g] = true
					}
				})
				ctx, cancel := context.WithCancel(context.Background())
				var running sync.WaitGroup
				defer running.Wait()
				defer cancel()
				running.Go(func() { _ = c.Run(ctx, p.replica) })
				running.Go(func() { p.directory.Run(ctx) })
				synctest.Wait()
				if g, there := p.directory.Find("web"); !there || !g.Withheld || p.told["web"] {
					t.Errorf("it answers with %+v, announced: %t", g, p.told["web"])
				}
				if got := p.shown("db"); got != "db-0" || !p.told["db"] {
					t.Errorf("another group has %q", got)
				}
				p.commit(test.mend...)
				synctest.Wait()
				if g, _ := p.directory.Find("web"); g.Withheld || p.shown("web") != test.mended || !p.told["web"] {
					t.Errorf("afterwards it has %q, want %q; withheld %t, announced %t", p.shown("web"), test.mended, g.Withheld,
						p.told["web"])
				}
				p.commit(status(9)) // a replica that has known all of them keeps its answer
				synctest.Wait()
				if g, _ := p.directory.Find("web"); g.Withheld || p.shown("web") != test.mended {
					t.Errorf("later it has %q, withheld: %t", p.shown("web"), g.Withheld)
				}
			})
		})
	}
}
