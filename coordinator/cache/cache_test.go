package cache_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

var keys = store.KeysOf("test")

// world is a cache of a database, in a synctest bubble.
type world struct {
	t        *testing.T
	db       *memstore.Database
	store    *memstore.Store // the test's own
	followed *memstore.Store // the cache's
	*cache.Cache
}

func inWorld(t *testing.T, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, db: memstore.New(memstore.Config{}), Cache: cache.New(keys)}
		w.store, w.followed = w.db.Connect(), w.db.Connect()
		defer w.db.Close()
		ctx, cancel := context.WithCancel(context.Background())
		var following sync.WaitGroup
		defer following.Wait()
		defer cancel()
		w.instance("web-0", store.Running)
		w.put("/leasehold/test2/instances/foreign", "{}")
		following.Go(func() {
			if err := w.Run(ctx, w.followed); !errors.Is(err, context.Canceled) {
				t.Errorf("run: %v", err)
			}
		})
		synctest.Wait()
		test(w)
	})
}

func (w *world) commit(write store.Write) store.Revision {
	w.t.Helper()
	rev, err := w.store.Commit(w.t.Context(), store.Txn{Writes: []store.Write{write}})
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
	return rev
}

func (w *world) put(key, value string) store.Revision {
	w.t.Helper()
	return w.commit(store.Put(key, []byte(value)))
}

func (w *world) instance(id string, phase store.Phase) store.Revision {
	w.t.Helper()
	return w.put(keys.Instance(id),
		string(store.Encode(store.Instance{Schema: store.Schema, ID: id, Group: "web", Phase: phase})))
}

// equalsListing checks that the content, changed step by step, equals a new listing.
func (w *world) equalsListing() {
	w.t.Helper()
	l, err := w.store.List(w.t.Context(), keys.Prefix(), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	w.View(func(c *cache.Content) {
		if got, want := shown(c), shown(cache.FromListing(keys, l)); got != want {
			w.t.Errorf("content is\n%s, a listing shows\n%s", got, want)
		}
	})
}

// shown returns all that a content shows to others.
func shown(c *cache.Content) string {
	var text strings.Builder
	v := reflect.ValueOf(*c)
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() {
			fmt.Fprintf(&text, "%s: %+v\n", f.Name, v.Field(i))
		}
	}
	return text.String()
}

func TestContentIsThatOfTheStoreAtEveryRevision(t *testing.T) {
	inWorld(t, func(w *world) {
		rec := func(v any) string { return string(store.Encode(v)) }
		for _, write := range []store.Write{
			store.Put(keys.Shard(), []byte(rec(store.Shard{Schema: 1, ID: "s"}))),
			store.Put(keys.Served(), []byte(rec(store.Served{Schema: 1, Replica: "one"}))),
			store.Put(keys.Leader(5), []byte(rec(store.Leader{Schema: 1, Replica: "one"}))),
			store.Put(keys.Replica("one"), []byte(rec(store.Replica{Schema: 1, ID: "one"}))),
			store.Put(keys.Group("web"), []byte("any text")),
			store.Put(keys.Static("web"), []byte("any text")),
			store.Put(keys.Status("web"), []byte(rec(store.Status{Schema: 1, Group: "web"}))),
			store.Put(keys.Slot("web", 3), []byte(rec(store.Slot{Schema: 1, Group: "other", Number: 9}))),
			store.Put(keys.Instance("web-1"), []byte(rec(store.Instance{Schema: 1, ID: "other", Group: "web"}))),
			store.Put(keys.Instance("web-1"), []byte(rec(store.Instance{Schema: 1, ID: "web-1", Group: "moved"}))),
			store.Put(keys.Instance("web-3"), []byte(rec(store.Instance{Schema: 1, ID: "web-3", Group: "moved"}))),
			store.Put(keys.Instance("web-2"), []byte(rec(store.Instance{Schema: 1, ID: "web-2", Group: "moved"}))),
			store.Put(keys.Alive("web-1"), []byte(rec(store.Alive{Schema: 1, Instance: "web-1"}))),
			store.Put(keys.Report("web-1"), []byte(rec(store.Report{Schema: 1, Instance: "web-1"}))),
			store.Put(keys.Request("r"), []byte(rec(store.Request{Schema: 1, ID: "r", Instance: "web-1"}))),
			store.Put(keys.Request("q"), []byte(rec(store.Request{
				Schema: 1, ID: "q", Instance: "web-1",
				Group: "web",
			}))),
			store.Put(keys.Request("g"), []byte(rec(store.Request{Schema: 1, ID: "g", Group: "web"}))),
			store.Put(keys.Request("z"), []byte(rec(store.Request{Schema: 1, ID: "z", Zone: "a"}))),
			store.Put(keys.Request("z"), []byte(rec(store.Request{Schema: 1, ID: "z", Group: "api"}))),
			store.Put(keys.Token("hash"), []byte(rec(store.JoinToken{Schema: 1, Instance: "web-1"}))),
			store.Put(keys.Joined("web-1"), []byte(rec(store.Joined{Schema: 1, Instance: "web-1", Token: "hash"}))),
			store.Put(keys.Stray("x"), []byte(rec(store.Stray{Schema: 1, Instance: "x"}))),
			store.Put(keys.Backup(), []byte(rec(store.Backup{Schema: 1, By: "ada"}))),
			store.Put(keys.Webhook("chat"), []byte(rec(store.Webhook{Schema: 1, Name: "other"}))),
			store.Put(keys.Webhook("chat"), []byte("nonsense")),
			store.Put(keys.Webhook("mail"), []byte(rec(store.Webhook{Schema: 1, Name: "mail"}))),
			store.Put(keys.Extra("web-9"), []byte(rec(store.Extra{Schema: 1, Instance: "other"}))),
			store.Put(keys.Event(time.Now(), "e"), []byte("{}")),
			store.Put(keys.Prefix()+"slots/web/x", []byte("{}")),
			store.Put(keys.Prefix()+"unknown/x", []byte("{}")),
		} {
			w.commit(write)
			w.equalsListing()
		}
		l, err := w.store.List(w.t.Context(), keys.Prefix(), 0)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, kv := range l.KVs {
			w.commit(store.Delete(kv.Key))
			w.equalsListing()
		}
		w.View(func(c *cache.Content) {
			if len(c.Instances)+len(c.ByGroup)+len(c.ToGroup)+len(c.ToInstance)+len(c.Static)+len(c.Slots)+
				len(c.Tokens)+len(c.Joined)+len(c.Unreadable)+len(c.Webhooks)+len(c.Extras) != 0 ||
				c.Shard.Present() || c.Backup.Present() {
				t.Errorf("something is left: %+v", c)
			}
		})
	})
}

// A record of a newer schema, or a torn one, is reported as unreadable, both as a change and in a
// listing; neither forgets its former value.
//
// proves SAFE-3, SAFE-16
func TestUnreadableRecordsAreNotAbsent(t *testing.T) {
	inWorld(t, func(w *world) {
		w.put(keys.Instance("web-0"), `{"schema": 2}`)
		w.put(keys.Slot("web", 0), `{"sche`)
		check := func() {
			t.Helper()
			w.View(func(c *cache.Content) {
				if !strings.Contains(c.Unreadable[keys.Instance("web-0")], "newer schema") ||
					c.Unreadable[keys.Slot("web", 0)] == "" {
					t.Errorf("unreadable: %v", c.Unreadable)
				}
				if _, there := c.Instances["web-0"]; !there {
					t.Errorf("instances: %+v", c.Instances)
				}
			})
		}
		check()
		w.followed.Faults().StallWatches()
		<-time.After(5 * time.Second) // silence: everything is listed again
		w.followed.Faults().ReleaseWatches()
		<-time.After(time.Second)
		check()
		w.instance("web-0", store.Checking)
		w.commit(store.Delete(keys.Slot("web", 0)))
		w.View(func(c *cache.Content) {
			if len(c.Unreadable) != 0 || c.Instances["web-0"].Record.Phase != store.Checking {
				t.Errorf("unreadable %v, instances %+v", c.Unreadable, c.Instances)
			}
		})
	})
}

// listener records its calls.
type listener struct {
	name string
	mu   *sync.Mutex
	told *[]string
}

func (l listener) tell(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*l.told = append(*l.told, l.name+" "+what)
}

func (l listener) Listed(c *cache.Content) { l.tell(fmt.Sprintf("listed %d", len(c.Instances))) }
func (l listener) Changed(_ *cache.Content, changes []cache.Change) {
	for _, c := range changes {
		what := fmt.Sprintf("%s/%s of %s", c.Kind, c.Name, c.Group)
		if c.Deleted {
			what += " deleted"
		}
		if c.Alive != nil {
			what += " was " + string(c.Alive.State)
		}
		l.tell(what)
	}
}
func (l listener) Interrupted(error) { l.tell("interrupted") }

func TestListenersHearEverythingInOrder(t *testing.T) {
	inWorld(t, func(w *world) {
		var mu sync.Mutex
		var told []string
		hears := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(told, want) {
				t.Errorf("told %q, want %q", told, want)
			}
			told = nil
		}
		defer w.Listen(listener{"a", &mu, &told})()
		stop := w.Listen(listener{"b", &mu, &told})
		hears("a listed 1", "b listed 1")
		w.instance("web-1", store.Pending)
		hears("a instances/web-1 of web", "b instances/web-1 of web")
		stop()
		w.put(keys.Alive("web-1"), `{"state": "open"}`)
		w.put(keys.Alive("web-1"), `{"state": "lost"}`)
		w.commit(store.Delete(keys.Alive("web-1")))
		w.put(keys.Request("r"), `{"instance": "web-1"}`)
		w.put(keys.Slot("web", 1), `{}`)
		w.put(keys.Event(time.Now(), "e"), `{}`)
		w.commit(store.Delete(keys.Instance("web-1")))
		hears("a alive/web-1 of web", "a alive/web-1 of web was open", "a alive/web-1 of web deleted was lost",
			"a requests/r of web", "a slots/web/1 of web", "a instances/web-1 of web deleted")

		// Compacted while it was not listening: interrupted, then everything is listed again.
		w.followed.Faults().StallWatches()
		w.instance("web-2", store.Pending)
		w.instance("web-3", store.Pending)
		if err := w.db.Faults().Compact(0); err != nil {
			w.t.Fatal(err)
		}
		w.followed.Faults().ReleaseWatches()
		<-time.After(time.Second)
		hears("a interrupted", "a listed 3")
		w.equalsListing()
	})
}

// Numbers alone are no news; health, a boot, and what the agent has done or received are. So is a
// workload that becomes idle: planned work waits for it.
//
// proves BUSY-1
func TestReportsThatSayNothingNew(t *testing.T) {
	c := cache.NewContent()
	idle := func(now bool) store.CheckReport {
		return store.CheckReport{Name: store.IdleCheck, Optional: true, Healthy: now}
	}
	last := store.Report{
		Schema: store.Schema, Instance: "web-0", BootID: "b", Checks: []store.CheckReport{idle(false)},
		Notice: &store.Notice{Kind: "spot", At: time.Unix(9, 0), In: 9},
	}
	put := func(r store.Report) bool {
		change, ok := c.Apply(keys, store.Event{KV: store.KV{Key: keys.Report("web-0"), Value: store.Encode(r)}})
		return ok && change.Same
	}
	if put(last) {
		t.Error("the first report is no news")
	}
	last.Sequence, last.Notice = 2, &store.Notice{Kind: "spot", At: time.Unix(9, 0), In: 8}
	if !put(last) {
		t.Error("numbers are news")
	}
	for what, change := range map[string]func(*store.Report){
		"health": func(r *store.Report) { r.Healthy = !r.Healthy }, "why": func(r *store.Report) { r.Why = "x" },
		"boot": func(r *store.Report) { r.BootID = "c" }, "config": func(r *store.Report) { r.Config = "x" },
		"restart": func(r *store.Report) { r.Restarted = "x" }, "drain": func(r *store.Report) { r.Drained = "x" },
		"no notice":      func(r *store.Report) { r.Notice = nil },
		"another notice": func(r *store.Report) { r.Notice = &store.Notice{Kind: "x"} },
		"idle":           func(r *store.Report) { r.Checks = []store.CheckReport{idle(true)} },
		"agent":          func(r *store.Report) { r.Agent = "v2" },
		"stopped":        func(r *store.Report) { r.Stopped = 7 },
	} {
		put(last)
		next := last
		change(&next)
		if put(next) {
			t.Errorf("%s is no news", what)
		}
	}
}

// Tokens and joins wake no planner.
func TestTokensAreNoNewsToTheLeader(t *testing.T) {
	c := cache.NewContent()
	for _, kv := range []store.KV{
		{Key: keys.Token("hash"), Value: store.Encode(store.JoinToken{Schema: store.Schema, Instance: "web-0"})},
		{Key: keys.Joined("web-0"), Value: store.Encode(store.Joined{Schema: store.Schema, Instance: "web-0"})},
	} {
		for _, deleted := range []bool{false, true} {
			if change, ok := c.Apply(keys, store.Event{KV: kv, Deleted: deleted}); !ok || !change.Same {
				t.Errorf("%s, deleted %v: %+v, %v", kv.Key, deleted, change, ok)
			}
		}
	}
}

// proves SAFE-3
func TestSilenceIsAnInterruption(t *testing.T) {
	inWorld(t, func(w *world) {
		<-time.After(time.Minute)
		if heard, err := w.Heard(); err != nil || time.Since(heard) > time.Second {
			t.Errorf("heard %s ago, %v: an idle store tells its progress", time.Since(heard), err)
		}
		w.followed.Faults().Cut()
		<-time.After(3*time.Second + time.Millisecond)
		if heard, err := w.Heard(); err == nil || time.Since(heard) < 2*time.Second {
			t.Errorf("heard %s ago, %v", time.Since(heard), err)
		}
		rev := w.instance("web-1", store.Pending)
		w.View(func(c *cache.Content) {
			if c.Revision >= rev {
				t.Errorf("the cache shows revision %d through a cut connection", c.Revision)
			}
		})
		w.followed.Faults().Mend()
		if err := w.WaitFor(w.t.Context(), rev); err != nil {
			t.Error(err)
		}
		if _, err := w.Heard(); err != nil {
			t.Errorf("still interrupted: %v", err)
		}
		w.equalsListing()
	})
}

func TestWaitForARevision(t *testing.T) {
	inWorld(t, func(w *world) {
		next := w.instance("web-1", store.Pending) + 1
		reached := make(chan error, 1)
		go func() { reached <- w.WaitFor(context.Background(), next) }()
		synctest.Wait()
		select {
		case err := <-reached:
			w.t.Fatalf("revision %d is not there yet: %v", next, err)
		default:
		}
		w.instance("web-2", store.Pending)
		if err := <-reached; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := w.WaitFor(ctx, next+100); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for what never comes: %v", err)
		}
	})
}

func TestThereIsNothingToViewBeforeTheFirstListing(t *testing.T) {
	p := cache.New(keys)
	if p.View(func(*cache.Content) { t.Error("a content is shown") }) {
		t.Error("there is a content")
	}
}

// A setting beyond its range leaves the last good one in force, also after another listing.
//
// proves REC-20
func TestTheLastGoodSettingsStay(t *testing.T) {
	inWorld(t, func(w *world) {
		holds := func(when, poll, refused string) {
			w.t.Helper()
			w.View(func(c *cache.Content) {
				s := c.Shard.Record.Settings
				var names []string
				for _, e := range s.Refused {
					names = append(names, e.Path)
				}
				if s.ProviderPoll.String() != poll || strings.Join(names, " ") != refused ||
					s.OrphanGrace.D() < time.Second {
					w.t.Errorf("%s: %+v", when, s)
				}
			})
		}
		w.put(keys.Shard(), `{"schema":1,"id":"s","settings":{"provider_poll":"7s"}}`)
		holds("good", "7s", "")
		w.put(keys.Shard(), `{"schema":1,"id":"s","settings":{"provider_poll":"0s","orphan_grace":"soon"}}`)
		holds("beyond its range", "7s", "orphan_grace provider_poll")
		w.put(keys.Shard(), `{"schema":1,"id":"s","settings":{"provider_poll":"1000h","create_rate":-1}}`)
		holds("beyond its range in another way", "7s", "create_rate provider_poll")
		w.followed.Faults().StallWatches()
		w.instance("web-2", store.Pending)
		w.instance("web-3", store.Pending)
		if err := w.db.Faults().Compact(0); err != nil {
			w.t.Fatal(err)
		}
		w.followed.Faults().ReleaseWatches()
		<-time.After(time.Second)
		holds("read again", "7s", "create_rate provider_poll")
		w.commit(store.Delete(keys.Shard()))
		w.put(keys.Shard(), `{"schema":1,"id":"s","settings":{"provider_poll":"-1s"}}`)
		holds("gone meanwhile", "7s", "provider_poll")
		w.put(keys.Shard(), `{"schema":1,"id":"s","settings":{}}`)
		holds("absent", "5s", "")
	})
}
