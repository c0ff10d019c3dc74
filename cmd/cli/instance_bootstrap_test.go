package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// bootstrapWorld has a replica that serves agents.
func bootstrapWorld(t *testing.T, test func(w *world)) {
	waitWorld(t, func(w *world) {
		w.put(store.KindReplicas, "a", store.Replica{Schema: 1, ID: "a", Address: "10.0.0.1:7420", CA: "PEM"})
		test(w)
	})
}

// orderOf returns the order that waits for a leader; false if there is none.
func orderOf(w *world) (store.Request, bool) {
	l, err := w.st.List(w.t.Context(), w.keys.Of(store.KindRequests), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(l.KVs) == 0 {
		return store.Request{}, false
	}
	v, err := store.Decode[store.Request](l.KVs[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return v.Record, true
}

// ended removes an order, as a leader does that has carried it out or refused it.
func (w *world) ended(r store.Request) {
	w.t.Helper()
	if _, err := w.st.Commit(w.t.Context(), store.Txn{
		Writes: []store.Write{store.Delete(w.keys.Request(r.ID))},
	}); err != nil {
		w.t.Fatal(err)
	}
}

// The script is printed once the leader has made the record. Its token is not in etcd, only the
// hash.
//
// proves PROV-9, SEC-2
func TestAScriptForAMachineSetUpByHand(t *testing.T) {
	bootstrapWorld(t, func(w *world) {
		r := w.start("instance bootstrap --new -g web --zone r1 --valid 2h")
		order, there := orderOf(w)
		if !there || order.Kind != store.RequestBootstrap || !store.IsTokenHash(order.Token) ||
			order.Valid.D() != 2*time.Hour || order.Zone != "r1" || order.Group != "web" {
			t.Fatalf("ordered %+v", order)
		}
		w.put(store.KindInstances, "web-x-other", store.Instance{
			Schema: 1, ID: "web-x-other", Group: "web",
			Token: "another",
		})
		rec := store.Instance{Schema: 1, ID: "web-x-a", Group: "web", Slot: -1, Token: order.Token, Created: w.now()}
		rec.Spec.RegistrationTimeout = order.Valid
		w.put(store.KindInstances, rec.ID, rec)
		w.ended(order)
		r.expect(Done, "instance web-x-a of group web awaits its machine until", "no coordinator serves the agent")
		script := r.out.String()
		_, after, _ := strings.Cut(script, `"join_token":"`)
		token, _, _ := strings.Cut(after, `"`)
		if store.TokenHash(token) != order.Token || !strings.HasPrefix(script, "#!/bin/sh") ||
			!strings.Contains(script, "10.0.0.1:7420") || strings.Contains(script, "web-x-other") {
			t.Errorf("token %q in\n%s", token, script)
		}
		l, err := w.st.List(t.Context(), w.keys.Prefix(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range l.KVs {
			if strings.Contains(string(kv.Value), token) {
				t.Errorf("%s has the token", kv.Key)
			}
		}
	})
}

// What no leader carries out is taken back, since its token is lost with the command. A leader that
// is faster than that wins.
//
// proves PROV-9
func TestAnOrderToBootstrapThatNoLeaderCarriesOut(t *testing.T) {
	bootstrapWorld(t, func(w *world) {
		w.start("instance bootstrap --new -g web --timeout 3s").expect(TimedOut, "it was withdrawn, and nothing was made")
		if r, there := orderOf(w); there {
			t.Errorf("the order waits still: %+v", r)
		}
	})
	bootstrapWorld(t, func(w *world) {
		st := w.db.Connect()
		other := *w
		other.st = w.db.Connect()
		w.st = st
		r := w.start("instance bootstrap --new -g web --timeout 3s")
		order, _ := orderOf(&other)
		st.Faults().Cut() // the command does not hear of it
		other.put(store.KindInstances, "web-x-a", store.Instance{Schema: 1, ID: "web-x-a", Group: "web", Token: order.Token})
		other.ended(order)
		st.Faults().Mend()
		r.expect(Done, "instance web-x-a")
	})
}

// An operator who does not wait takes the order back.
//
// proves PROV-9
func TestBootstrapIsInterrupted(t *testing.T) {
	bootstrapWorld(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.t.Context())
		time.AfterFunc(time.Second, cancel)
		code, out, stderr := w.runCtx(ctx, "instance", "bootstrap", "--new", "-g", "web")
		w.expect(code, out, stderr, Interrupted, "2>stopped waiting: the order was withdrawn")
		if r, there := orderOf(w); there {
			t.Errorf("the order waits still: %+v", r)
		}
	})
}

// proves PROV-9: a refusal is said with its reason, and what cannot work is not ordered
func TestARefusalToBootstrap(t *testing.T) {
	bootstrapWorld(t, func(w *world) {
		r := w.start("instance bootstrap --new -g web")
		order, _ := orderOf(w)
		entry := store.JournalEntry{
			Schema: 1, At: w.now(), Rule: "REC-16", Kind: store.EntryRefusal, Group: "web", Why: "the group is stopped",
		}
		for _, id := range []string{"another", order.ID} {
			entry.Evidence = []string{"request " + id + " by ann"}
			w.put(store.KindEvents, strings.TrimPrefix(w.keys.Event(w.now(), id), w.keys.Of(store.KindEvents)), entry)
		}
		w.ended(order)
		r.expect(Failed, "the leader refused: the group is stopped")
	})
	for args, want := range map[string]string{
		"-g web --valid 1s":             "must be 1m to 720h0m0s",
		"-g web --cloud-config -o yaml": "--cloud-config and -o yaml exclude each other",
		"-g nosuch":                     "no group",
		"-g web --valid 1mo":            "valid",
	} {
		bootstrapWorld(t, func(w *world) {
			code, _, stderr := w.run(strings.Fields("instance bootstrap --new " + args)...)
			if _, there := orderOf(w); code == Done || there || !strings.Contains(stderr, want) {
				t.Errorf("%s: exit %d, ordered %t: %s", args, code, there, stderr)
			}
		})
	}
	for want, replica := range map[string]store.Replica{
		"no coordinator serves agents": {Schema: 1, ID: "a", CA: "PEM"},
		"no certificate authority":     {Schema: 1, ID: "a", Address: "10.0.0.1:7420"},
	} {
		w := newWorld(t)
		w.put(store.KindShard, "", store.Shard{Schema: 1, ID: "x1", Name: "default", Settings: store.DefaultShardSettings()})
		w.put(store.KindGroups, "web", webGroup(1))
		w.put(store.KindReplicas, "a", replica)
		code, _, stderr := w.run("instance", "bootstrap", "--new", "-g", "web")
		if _, there := orderOf(w); code != Failed || there || !strings.Contains(stderr, want) {
			t.Errorf("exit %d, ordered %t: %s", code, there, stderr)
		}
	}
}

// proves PROV-9, PROV-10: only a machine that no coordinator could see ends by an operator's word
func TestDeleteGone(t *testing.T) {
	for name, c := range map[string]struct {
		provider, site string
		replicas       map[string]string // the sites of provider old, by coordinator
		want           Code
	}{
		"set up by hand":        {store.ProviderNone, "", map[string]string{"a": ""}, Done},
		"a coordinator has it":  {"old", "", map[string]string{"a": "", "b": ""}, Usage},
		"at its site":           {"old", "berlin", map[string]string{"a": "madrid", "b": "berlin"}, Usage},
		"at another site":       {"old", "berlin", map[string]string{"a": "madrid"}, Done},
		"no coordinator has it": {"other", "", map[string]string{"a": ""}, Done},
		"no coordinator runs":   {"old", "", nil, Done},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for id, site := range c.replicas {
				w.put(store.KindReplicas, id, store.Replica{
					Schema: 1, ID: id, Providers: []string{"old"},
					Capabilities: map[string]store.ProviderCapabilities{"old": {Site: site}},
				})
			}
			rec := instanceOf(webGroup(0), -1, "web-x-a", store.Deleting)
			rec.Spec.Provider, rec.Site = c.provider, c.site
			w.put(store.KindInstances, rec.ID, rec)
			code, _, stderr := w.run("instance", "delete", "--gone", rec.ID, "--confirm", rec.ID)
			order, there := orderOf(w)
			if code != c.want || there != (c.want == Done) || there && order.Kind != store.RequestGone {
				t.Errorf("exit %d, order %+v: %s", code, order, stderr)
			}
			if _, err := w.st.Get(t.Context(), w.keys.Instance(rec.ID)); errors.Is(err, store.ErrNotFound) {
				t.Error("the command deletes the record itself")
			}
		})
	}
}

// An order that etcd has refused made nothing: there is nothing to withdraw, and no doubt.
//
// proves PROV-9
func TestAnOrderThatIsRefusedLeavesNoDoubt(t *testing.T) {
	bootstrapWorld(t, func(w *world) {
		st := &denying{Store: w.st}
		w.st = st
		code, stdout, stderr := w.run("instance", "bootstrap", "-g", "web")
		if code != Failed || stdout != "" || strings.Contains(stderr, "not known whether") || st.writes != 1 {
			t.Errorf("exit %d, after %d writes: %s%s", code, st.writes, stdout, stderr)
		}
	})
}

// denying permits no writes, as etcd to a viewer.
type denying struct {
	store.Store
	writes int
}

func (d *denying) Commit(context.Context, store.Txn) (store.Revision, error) {
	d.writes++
	return 0, store.ErrDenied
}
