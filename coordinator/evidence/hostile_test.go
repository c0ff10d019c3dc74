//go:build !race

// Nothing runs at once here, and the race detector would make thousands of tries take a minute.

package evidence_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/tier"
)

// etcd may hold anything: a person's typing error, another program's bytes, what an attacker with
// an operator's rights has put there. None of it may bring a coordinator down (SEC-5, SAFE-10).

// fill gives everything in a record a value.
func fill(v reflect.Value, depth int) {
	if depth > 12 {
		return
	}
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(epoch))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("web-0")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	default:
	}
}

// full returns a record with a value everywhere, as JSON.
func full[T any](set func(*T)) any {
	var rec T
	fill(reflect.ValueOf(&rec).Elem(), 0)
	if set != nil {
		set(&rec)
	}
	var out any
	if err := json.Unmarshal(store.Encode(rec), &out); err != nil {
		panic(err)
	}
	return out
}

// stored are records of every kind, by their keys.
func stored() map[string]any {
	web := spec("web")
	out := map[string]any{
		keys.Shard():                  full[store.Shard](nil),
		keys.Served():                 full[store.Served](nil),
		keys.Replica("one"):           full[store.Replica](nil),
		keys.Group("web"):             full(func(g *store.Group) { *g = web }),
		keys.Static("web"):            full(func(g *store.Group) { *g = web }),
		keys.Status("web"):            full(func(s *store.Status) { s.Accepted = &web }),
		keys.Slot("web", 0):           full[store.Slot](nil),
		keys.Alive("web-0"):           full(func(a *store.Alive) { a.State = store.StreamOpen }),
		keys.Report("web-0"):          full[store.Report](nil),
		keys.Stray("web-9"):           full[store.Stray](nil),
		keys.Token("abc"):             full[store.JoinToken](nil),
		keys.Joined("web-0"):          full[store.Joined](nil),
		keys.Turn("web"):              map[string]any{"schema": 1},
		keys.Request("r"):             full(func(r *store.Request) { r.Group, r.Instance = "web", "" }),
		keys.Request("r2"):            full[store.Request](nil),
		keys.Leader(store.LeaseID(7)): full[store.Leader](nil),
	}
	for i, phase := range []store.Phase{
		store.Pending, store.Creating, store.Booting, store.Starting, store.Checking, store.Running, store.Draining,
		store.Stopping, store.Deleting,
	} {
		id := fmt.Sprintf("web-%d", i)
		out[keys.Instance(id)] = full(func(in *store.Instance) {
			in.ID, in.Group, in.Phase, in.Slot, in.Spec = id, "web", phase, i, web.InstanceSpec()
		})
	}
	return out
}

// onAll has a term plan on what is stored, and on what follows from it, for a while.
func onAll(t testing.TB, kvs map[string][]byte) (decided int) {
	t.Helper()
	w := &world{t: t, now: epoch, content: cache.NewContent()}
	for _, key := range slices.Sorted(maps.Keys(kvs)) {
		rev := w.content.Revision + 1
		w.content.Apply(keys, store.Event{KV: store.KV{Key: key, Value: kvs[key], Created: rev, Modified: rev}})
		w.content.Revision = rev
	}
	w.lead()
	for range 2 {
		groups := append(w.takeAll(), "web")
		slices.Sort(groups)
		p := plan.Compute(w.evidence.Snapshot(w.content, slices.Compact(groups)), w.now)
		decided += len(p.Actions) + len(p.Calls)
		w.evidence.NextDue()
		w.pass(10 * time.Minute)
	}
	return decided
}

// encoded are records as they stand in etcd.
func encoded(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for key, rec := range stored() {
		out[key] = raw(t, rec)
	}
	return out
}

func raw(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// hostileValues stand where another value should.
var hostileValues = []any{
	nil, json.Number("-9223372036854775808"), json.Number("9223372036854775807"), "", "../../etc/passwd",
	"-2562047h47m16s", "2562047h47m16s",
	"9999-12-31T23:59:59Z",
	[]any{nil, nil},
	map[string]any{"": nil},
}

// spoil calls do for each way to spoil one value within another, which is as before afterwards.
func spoil(v any, path string, put func(any), do func(path string, bad any)) {
	for _, bad := range hostileValues {
		put(bad)
		do(path, bad)
	}
	put(v)
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			spoil(v[k], path+"."+k, func(bad any) { v[k] = bad }, do)
		}
	case []any:
		for i := range v {
			spoil(v[i], fmt.Sprintf("%s[%d]", path, i), func(bad any) { v[i] = bad }, do)
		}
	}
}

// proves SEC-5, SAFE-10
func TestSpoiltRecordsBringNobodyDown(t *testing.T) {
	all, kvs := stored(), encoded(t)
	if decided := onAll(t, kvs); decided == 0 {
		t.Error("nothing is decided on records that are as they should be")
	}
	apart := tier.Pick(7, 1) // by day a seventh of all values, of which each place gets some
	ways, tries := 0, 0
	for _, key := range slices.Sorted(maps.Keys(all)) {
		good := kvs[key]
		root := []any{all[key]}
		spoil(root[0], key, func(bad any) { root[0] = bad }, func(path string, bad any) {
			if ways++; ways%apart != 0 {
				return
			}
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("%s = %.60v: %v\n%s", path, bad, p, debug.Stack())
				}
			}()
			kvs[key] = raw(t, root[0])
			onAll(t, kvs)
			tries++
		})
		kvs[key] = good
	}
	if tries < 1000 {
		t.Errorf("%d tries only", tries)
	}
}

// FuzzRecords puts anything in the place of one record.
//
// proves SEC-5, SAFE-10
func FuzzRecords(f *testing.F) {
	kvs := encoded(f)
	names := slices.Sorted(maps.Keys(kvs))
	for i, key := range names {
		f.Add(i, kvs[key])
		f.Add(i, []byte("{"))
		f.Add(i, []byte(`{"schema":2}`))
	}
	f.Fuzz(func(t *testing.T, i int, value []byte) {
		mine := maps.Clone(kvs)
		mine[names[((i%len(names))+len(names))%len(names)]] = value
		onAll(t, mine)
	})
}
