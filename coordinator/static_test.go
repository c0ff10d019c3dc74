package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A group of the shard's file is made as the file says; what is set beside it overrides its size
// and vars, and nothing else: an override that says more is refused, and what was in force stays.
//
// proves REC-6
// proves SAFE-10
func TestStaticGroupAndItsOverride(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.leads(time.Second, "one")
		w.start("two")
		g := w.serving(2)
		w.put(w.keys.Static("web"), store.Encode(g))
		w.up(2)
		override := store.Override{
			Schema: store.Schema, Name: "web", Size: ptr(3),
			Vars: map[string]string{"greeting": "hi"},
		}
		w.put(w.keys.Group("web"), store.Encode(override))
		w.until(5*time.Minute, "the override is in force",
			func() bool { return w.settled(3) && w.status("web").Rollout == nil })
		for _, in := range w.instances() {
			if in.Record.Spec.Vars["greeting"] != "hi" || in.Record.Spec.Workload.Run[0] != "serve" {
				t.Errorf("%s is made from %+v", in.Record.ID, in.Record.Spec)
			}
		}
		more := strings.Replace(string(store.Encode(override)), `"name"`, `"stop_timeout":"1s","name"`, 1)
		rev := w.put(w.keys.Group("web"), []byte(more))
		w.pass(5 * time.Minute)
		st := w.status("web")
		if st.Invalid == nil || st.Invalid.Revision != rev || !strings.Contains(st.Invalid.Why, "only size") ||
			!w.settled(3) {
			t.Errorf("status says %+v of an override that says too much", st.Invalid)
		}
		w.put(w.keys.Group("web"), store.Encode(override))
		w.until(time.Minute, "the override is taken up again", func() bool { return w.status("web").Invalid == nil })
		w.remove(w.keys.Group("web"))
		w.pass(10 * time.Minute)
		if st := w.status("web"); st.Invalid == nil ||
			!strings.Contains(st.Invalid.Why, "leasehold group scale web 3") || !w.settled(3) {
			t.Errorf("status says %+v of an override that vanished; %d machines were made", st.Invalid, w.made())
		}
		one.stop() // the next leader knows it too
		g.StopTimeout = store.Duration(7 * time.Second)
		w.put(w.keys.Static("web"), store.Encode(g))
		w.pass(10 * time.Minute)
		if st := w.status("web"); st.Invalid == nil || !w.settled(3) {
			t.Errorf("status says %+v, after the file changed, of an override that vanished; %d machines were made",
				st.Invalid, w.made())
		}
		w.put(w.keys.Group("web"), store.Encode(store.Override{Schema: store.Schema, Name: "web"}))
		w.until(5*time.Minute, "the file alone is in force, as ordered",
			func() bool { return w.settled(2) && w.status("web").Rollout == nil && w.status("web").Invalid == nil })
		if w.made() != 3 || w.instances()[0].Record.Spec.Vars["greeting"] != "hello" {
			t.Errorf("%d machines were made; %v", w.made(), w.instances()[0].Record.Spec.Vars)
		}
		w.remove(w.keys.Static("web"))
		w.pass(10 * time.Minute)
		if st := w.status("web"); st.Invalid == nil || !w.settled(2) {
			t.Errorf("a group whose key vanished has changed: %+v", st.Invalid)
		}
	})
}
