package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/api"
	"github.com/leasehold/leasehold/store"
)

// eva is an operator who uses the API of a coordinator.
func (w *world) eva() *userOfAPI {
	env := w.env(&bytes.Buffer{}, &bytes.Buffer{})
	return &userOfAPI{
		process: &Invocation{env: env, flags: &Globals{Shard: "default", Timeout: time.Minute}}, st: w.st, name: "eva",
		password: "secret",
	}
}

// basedOn is an edit that is based on a revision.
func basedOn(rev store.Revision) api.Edit { return api.Edit{If: &rev} }

// refusedByAPI checks why a request was refused.
func refusedByAPI(t *testing.T, what string, err error, status int, says string) {
	t.Helper()
	var p *api.Problem
	if !errors.As(err, &p) || p.Status != status || !strings.Contains(p.Detail+strings.Join(p.Errors, " "), says) {
		t.Errorf("%s: %+v, want %d and %q", what, err, status, says)
	}
}

// planOf is the prediction of a dry run.
func planOf(t *testing.T, r api.Result) (plan string) {
	t.Helper()
	var f struct{ Plan string }
	if err := json.Unmarshal(r.Plan, &f); err != nil {
		t.Fatalf("plan %s: %v", r.Plan, err)
	}
	return f.Plan
}

// A dry run of a size says what follows, for a group and for a static one, and changes nothing.
//
// proves WEB-4
func TestAPIForeseesASize(t *testing.T) {
	w := staticWorld(t)
	jobs := webGroup(2)
	jobs.Name = "jobs"
	w.put(store.KindGroups, "jobs", jobs)
	eva, ctx := w.eva(), t.Context()
	for name, rev := range map[string]store.Revision{
		"jobs": w.revision(store.KindGroups, "jobs"), "web": w.revision(store.KindStatic, "web"),
	} {
		edit := basedOn(rev)
		edit.DryRun = true
		before, err := w.st.Vitals(ctx)
		if err != nil {
			t.Fatal(err)
		}
		r, err := eva.Scale(ctx, name, 9, edit)
		if err != nil || r.Changed || r.Revision != rev || !strings.Contains(planOf(t, r), "create") {
			t.Errorf("%s: a larger size: %+v, %v: %s", name, r, err, r.Plan)
		}
		_, err = eva.Scale(ctx, name, -1, edit)
		refusedByAPI(t, name+": a wrong size", err, http.StatusUnprocessableEntity, "size")
		edit.If = new(rev + 100)
		_, err = eva.Scale(ctx, name, 9, edit)
		refusedByAPI(t, name+": another revision", err, http.StatusPreconditionFailed, "nothing was changed")
		if after, err := w.st.Vitals(ctx); err != nil || after.Revision != before.Revision {
			t.Errorf("%s: dry runs have written: %d, %d, %v", name, before.Revision, after.Revision, err)
		}
	}
}

// The API edits a static group as the commands do: its size goes beside it, and what is its file's
// is refused.
//
// proves WEB-4, REC-6
func TestAPIEditsAStaticGroup(t *testing.T) {
	w := staticWorld(t)
	eva, ctx := w.eva(), t.Context()
	rev := w.revision(store.KindStatic, "web")
	file := func(change func(*store.Group)) []byte {
		g := w.inForce("web")
		change(&g)
		g.OperatorState = store.OperatorState{}
		var fields map[string]any
		if err := json.Unmarshal(store.Encode(g), &fields); err != nil {
			t.Fatal(err)
		}
		delete(fields, "schema")
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	r, err := eva.Scale(ctx, "web", 7, basedOn(rev))
	if err != nil || !r.Changed || w.inForce("web").Size != 7 {
		t.Fatalf("scale: %+v, %v", r, err)
	}
	_, err = eva.Scale(ctx, "web", 8, basedOn(rev))
	refusedByAPI(t, "an edit of an older revision", err, http.StatusPreconditionFailed, "nothing was changed")
	_, err = eva.Apply(ctx, "web", file(func(g *store.Group) { g.Workload.Run = []string{"other"} }), basedOn(r.Revision))
	refusedByAPI(t, "another workload", err, http.StatusUnprocessableEntity, "static")
	paused, err := eva.GroupAction(ctx, "web", "pause", basedOn(r.Revision))
	if err != nil || !w.inForce("web").Paused {
		t.Fatalf("pause: %+v, %v", paused, err)
	}
	_, err = eva.GroupAction(ctx, "web", "retry", basedOn(r.Revision))
	refusedByAPI(t, "an order on an older revision", err, http.StatusPreconditionFailed, "nothing was changed")
	if ordered, err := eva.GroupAction(ctx, "web", "retry", basedOn(paused.Revision)); err != nil || ordered.Order == "" {
		t.Errorf("an order: %+v, %v", ordered, err)
	}
}

// Holds, freezes, evacuations and protections are made on what was read, and on nothing else.
//
// proves WEB-4, SAFE-12, ROLL-6, DRAIN-3, REC-13
func TestAPIOrdersOnWhatWasRead(t *testing.T) {
	w := staticWorld(t)
	eva, ctx := w.eva(), t.Context()
	shard := func() (store.Shard, store.Revision) {
		kv, err := w.st.Get(ctx, w.keys.Shard())
		if err != nil {
			t.Fatal(err)
		}
		v, err := store.Decode[store.Shard](kv)
		if err != nil {
			t.Fatal(err)
		}
		return v.Record, v.Modified
	}
	_, rev := shard()
	_, err := eva.Hold(ctx, api.Hold{Why: "a try"}, basedOn(rev+100))
	refusedByAPI(t, "a hold on another revision", err, http.StatusPreconditionFailed, "nothing was changed")
	held, err := eva.Hold(ctx, api.Hold{Why: "a try"}, basedOn(rev))
	now, is := shard()
	if err != nil || held.Revision != is || now.Hold == nil || !strings.HasPrefix(now.Hold.By, "eva ") {
		t.Fatalf("hold: %+v, %v: %+v at %d", held, err, now.Hold, is)
	}
	_, err = eva.Hold(ctx, api.Hold{Why: "again"}, basedOn(held.Revision))
	refusedByAPI(t, "a second hold", err, http.StatusConflict, "already on hold")
	_, err = eva.Release(ctx, basedOn(rev))
	refusedByAPI(t, "a release on an older revision", err, http.StatusPreconditionFailed, "nothing was changed")
	look := basedOn(held.Revision)
	look.DryRun = true
	r, err := eva.Release(ctx, look)
	if err != nil || r.Changed || !strings.Contains(strings.Join(r.Said, " "), "release") {
		t.Errorf("look at a release: %+v, %v", r, err)
	}
	released, err := eva.Release(ctx, basedOn(held.Revision))
	if now, _ := shard(); err != nil || now.Hold != nil {
		t.Fatalf("release: %+v, %v", released, err)
	}

	_, err = eva.Freeze(ctx, &api.Freeze{Why: "sales", Until: noon.Add(-time.Hour)}, basedOn(released.Revision))
	refusedByAPI(t, "a freeze that is over", err, http.StatusUnprocessableEntity, "is in the past")
	frozen, err := eva.Freeze(ctx, &api.Freeze{Why: "sales", Until: noon.Add(time.Hour)}, basedOn(released.Revision))
	if now, _ := shard(); err != nil || now.Freeze == nil || !now.Freeze.To.Equal(noon.Add(time.Hour)) {
		t.Fatalf("freeze: %+v, %v", frozen, err)
	}
	thawed, err := eva.Freeze(ctx, nil, basedOn(frozen.Revision))
	if now, _ := shard(); err != nil || now.Freeze != nil {
		t.Fatalf("thaw: %+v, %v", thawed, err)
	}

	_, err = eva.Evacuate(ctx, "a", false, basedOn(rev))
	refusedByAPI(t, "an evacuation on an older revision", err, http.StatusPreconditionFailed, "nothing was changed")
	_, err = eva.Evacuate(ctx, "a", false, basedOn(thawed.Revision))
	refusedByAPI(t, "an evacuation without confirmation", err, http.StatusConflict, "must be confirmed")
	sure := basedOn(thawed.Revision)
	sure.Confirm = []string{"a"}
	if r, err := eva.Evacuate(ctx, "a", false, sure); err != nil || r.Order == "" || r.Revision != 0 {
		t.Errorf("evacuate: %+v, %v", r, err)
	}

	in := w.put(store.KindInstances, "web-0-x", store.Instance{
		Schema: store.Schema, ID: "web-0-x", Group: "web", Phase: store.Running, Managed: true, Since: noon, Created: noon,
	})
	_, err = eva.Protect(ctx, "web-0-x", &api.Protection{}, basedOn(in-1))
	refusedByAPI(t, "a protection on an older revision", err, http.StatusPreconditionFailed, "nothing was changed")
	r, err = eva.Protect(ctx, "web-0-x", &api.Protection{Why: "look", Until: noon.Add(time.Hour)}, basedOn(in))
	if err != nil || r.Order == "" {
		t.Fatalf("protect: %+v, %v", r, err)
	}
	order := w.ordered(ctx, r.Order)
	if order.Mode != store.ProtectRemoval || order.Why != "look" || order.For.D() != time.Hour ||
		order.Instance != "web-0-x" {
		t.Errorf("the order is %+v", order)
	}
	r, err = eva.Protect(ctx, "web-0-x", nil, basedOn(in))
	if err != nil || w.ordered(ctx, r.Order).Mode != store.ProtectOff {
		t.Errorf("end the protection: %+v, %v", r, err)
	}
	_, err = eva.InstanceAction(ctx, "web-0-x", "drained", api.Edit{})
	refusedByAPI(t, "the end of a drain that has not begun", err, http.StatusUnprocessableEntity, "does not drain")
}

// Drills, instances on demand and adoptions are ordered as the commands order them; the API follows
// nothing.
//
// proves WEB-4, DAY-6, REC-2, REC-8
func TestAPIOrdersDrillsAndInstances(t *testing.T) {
	w := staticWorld(t)
	eva, ctx := w.eva(), t.Context()
	for n, id := range []string{"web-0-x", "web-1-x"} {
		w.put(store.KindInstances, id, store.Instance{
			Schema: store.Schema, ID: id, Group: "web", Slot: n, Phase: store.Running, Managed: true, Since: noon,
			Created: noon.Add(time.Duration(-n) * time.Hour), Zone: []string{"a", "b"}[n],
		})
	}
	rev := w.revision(store.KindStatic, "web")
	sure := basedOn(rev)
	sure.Confirm = []string{"web"}
	_, err := eva.Drill(ctx, "web", api.Drill{Kind: "machine"}, basedOn(rev))
	refusedByAPI(t, "a drill without confirmation", err, http.StatusConflict, "must be confirmed")
	other := basedOn(rev + 100)
	other.Confirm = sure.Confirm
	_, err = eva.Drill(ctx, "web", api.Drill{Kind: "machine"}, other)
	refusedByAPI(t, "a drill on another revision", err, http.StatusPreconditionFailed, "nothing was changed")
	_, err = eva.Drill(ctx, "web", api.Drill{Kind: api.DrillOfZone, Zone: "c"}, sure)
	refusedByAPI(t, "a drill of a zone without instances", err, http.StatusNotFound, "no running instance in zone c")
	_, err = eva.Drill(ctx, "none", api.Drill{Kind: "agent"}, sure)
	refusedByAPI(t, "a drill in no group", err, http.StatusNotFound, "none")
	for kind, want := range map[string]store.Request{
		"machine":       {Kind: store.RequestDrill, Instance: "web-1-x"}, // the oldest
		"agent":         {Kind: store.RequestDrillAgent, Instance: "web-1-x"},
		"workload":      {Kind: store.RequestDrillWorkload, Instance: "web-1-x"},
		api.DrillOfZone: {Kind: store.RequestDrill, Group: "web", Zone: "a"},
	} {
		r, err := eva.Drill(ctx, "web", api.Drill{Kind: kind, Zone: want.Zone}, sure)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		got := w.ordered(ctx, r.Order)
		if got.Kind != want.Kind || got.Instance != want.Instance || got.Group != want.Group || got.Zone != want.Zone ||
			!strings.HasPrefix(got.By, "eva ") {
			t.Errorf("%s: the order is %+v", kind, got)
		}
	}

	r, err := eva.Create(ctx, "web", basedOn(rev))
	if err != nil || w.ordered(ctx, r.Order).Kind != store.RequestCreate {
		t.Errorf("create: %+v, %v", r, err)
	}
	_, err = eva.Create(ctx, "web", basedOn(rev+100))
	refusedByAPI(t, "an instance on another revision", err, http.StatusPreconditionFailed, "nothing was changed")

	slot := 4
	r, err = eva.Adopt(ctx, "web-4-z", api.Adoption{Group: "web", Slot: &slot}, api.Edit{})
	if err != nil {
		t.Fatalf("adopt: %v", err)
	}
	if got := w.ordered(ctx, r.Order); got.Kind != store.RequestAdopt || got.Instance != "web-4-z" || *got.Slot != 4 {
		t.Errorf("the order is %+v", got)
	}
	_, err = eva.Adopt(ctx, "web-0-x", api.Adoption{}, api.Edit{})
	refusedByAPI(t, "an adoption of a known instance", err, http.StatusUnprocessableEntity, "already has a record")
	_, err = eva.Adopt(ctx, "web-4-z", api.Adoption{Group: "none"}, api.Edit{})
	refusedByAPI(t, "an adoption into no group", err, http.StatusNotFound, "none")

	for _, name := range []string{"1a", "1b"} {
		leader := store.Delete(w.keys.Of(store.KindLeader) + name)
		if _, err := w.st.Commit(ctx, store.Txn{Writes: []store.Write{leader}}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = eva.Drill(ctx, "web", api.Drill{Kind: "machine"}, sure)
	refusedByAPI(t, "a drill without a coordinator", err, http.StatusUnprocessableEntity, "no coordinator is running")
}

// An order that a client sends again, since the answer was lost, is given once: while it waits,
// after it was carried out, and when both are on their way.
//
// proves WEB-4, REC-16
func TestAPIGivesAnOrderOnce(t *testing.T) {
	w := staticWorld(t)
	eva, ctx := w.eva(), t.Context()
	waiting := func() (ids []string) {
		l, err := w.st.List(ctx, w.keys.Of(store.KindRequests), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range l.KVs {
			_, id, _ := w.keys.Split(kv.Key)
			ids = append(ids, id)
		}
		return ids
	}
	edit := api.Edit{Once: "/api/v1/groups/web/instances\nk1"}
	var first, repeated atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			switch r, err := w.eva().Create(ctx, "web", edit); {
			case err != nil || r.Order == "":
				t.Errorf("create: %+v, %v", r, err)
			case r.Repeated:
				repeated.Add(1)
			default:
				first.Add(1)
			}
		})
	}
	all.Wait()
	ids := waiting()
	if len(ids) != 1 || first.Load() != 1 || repeated.Load() != 7 || !store.IsOnce(ids[0]) {
		t.Fatalf("%v wait; %d were the first, %d repetitions", ids, first.Load(), repeated.Load())
	}
	key := w.keys.Request(ids[0])
	if _, err := w.st.Commit(ctx, store.Txn{Writes: []store.Write{ // as the leader does
		store.Put(w.keys.Gone(key), store.Encode(store.Gone{Schema: store.Schema, Rule: "REC-2"})), store.Delete(key),
	}}); err != nil {
		t.Fatal(err)
	}
	stale := edit
	stale.If = new(store.Revision) // the first one may have changed what it was based on
	for _, e := range []api.Edit{edit, stale} {
		r, err := eva.Create(ctx, "web", e)
		if err != nil || !r.Repeated || r.Order != ids[0] || len(waiting()) != 0 {
			t.Errorf("again, after it was carried out: %+v, %v; %v wait", r, err, waiting())
		}
	}
	other := w.eva()
	other.name = "bob"
	for what, give := range map[string]func() (api.Result, error){
		"another key": func() (api.Result, error) {
			return eva.Create(ctx, "web", api.Edit{Once: "/api/v1/groups/web/instances\nk2"})
		},
		"another user": func() (api.Result, error) { return other.Create(ctx, "web", edit) },
		"no key":       func() (api.Result, error) { return eva.Create(ctx, "web", api.Edit{}) },
	} {
		before := len(waiting())
		if r, err := give(); err != nil || r.Repeated || len(waiting()) != before+1 {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
}

// ordered is an order that was given.
func (w *world) ordered(ctx context.Context, id string) store.Request {
	w.t.Helper()
	kv, err := w.st.Get(ctx, w.keys.Request(id))
	if err != nil {
		w.t.Fatalf("order %q: %v", id, err)
	}
	v, err := store.Decode[store.Request](kv)
	if err != nil {
		w.t.Fatal(err)
	}
	return v.Record
}
