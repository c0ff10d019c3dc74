//go:build !race

// The race detector would make these many times slower, and sees the same code in other tests.

package coordinator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// A quota that is used up and credentials that are refused are one problem of the group and no
// failure of any slot. While they last the provider is asked rarely, and all goes on soon after
// they are mended.
//
// proves PROV-5
func TestAProviderThatRefusesAll(t *testing.T) {
	for name, refusal := range map[string]error{
		"quota":       &provider.Error{Kind: provider.Quota, Scope: "instances", Message: "50 of 50 are used"},
		"credentials": &provider.Error{Kind: provider.Credentials, Message: "the token has expired"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				w.start("one")
				const missing = 50
				mend := w.provider.Inject(fake.Fault{Call: fake.CallCreate, Err: refusal})
				g := w.group("web", missing)
				g.MaxChecking = store.Duration(2 * time.Minute) // after which a creation that fails is withdrawn
				w.apply(g)
				w.until(time.Minute, "all are wanted", func() bool { return len(w.instances()) == missing })
				w.pass(time.Minute)
				ids := strings.Join(w.ids(), " ")
				calls := func() (n int) {
					for _, id := range w.ids() {
						n += w.provider.Life(id).Calls[fake.CallCreate]
					}
					return n
				}
				before := calls()
				w.always(20*time.Minute, "the same instances wait", func() bool { return strings.Join(w.ids(), " ") == ids })
				if asked := calls() - before; asked < 20 || asked > 62 {
					t.Errorf("the provider was asked %d times in 20 minutes, want one each 20s", asked)
				}
				status := w.status("web")
				if b := status.Blocked; len(b) != 1 || b[0].Rule != "PROV-5" || b[0].Of.Count != missing ||
					!strings.Contains(b[0].Why, refusal.Error()) {
					t.Errorf("blocked: %+v", b)
				}
				for _, s := range records[store.Slot](w, store.KindSlots) {
					if len(s.Record.Failures) > 0 || s.Record.Errored != "" {
						t.Errorf("slot %d has failed: %+v", s.Record.Number, s.Record)
					}
				}
				mend()
				w.until(time.Minute, "all are made", func() bool { return w.settled(missing) })
				if b := w.status("web").Blocked; len(b) != 0 || w.made() != missing {
					t.Errorf("%d made; blocked: %+v", w.made(), b)
				}
			})
		})
	}
}

// problems returns what status lists about providers that refuse something.
func (w *world) problems(groups ...string) (found []story.Problem) {
	st := &story.Shard{Name: "test", Leads: true}
	for _, kv := range w.list(w.keys.Served()) {
		st.Served = decoded[store.Served](w, kv)
	}
	for _, name := range groups {
		g := story.Known{Name: name, Stored: w.list(w.keys.Group(name))[0]}
		g.Read()
		for _, kv := range w.list(w.keys.Status(name)) {
			g.ReadStatus(kv)
		}
		st.Groups = append(st.Groups, g)
	}
	for _, p := range story.Problems(st, time.Now()) {
		if p.Rule == "PROV-5" {
			found = append(found, p)
		}
	}
	return found
}

// What a provider refuses to several groups is one problem, also if it lists no machines for the
// same reason. Running instances stay, and the missing ones are made soon after it is mended.
//
// proves PROV-5
func TestARefusalIsOneProblemOfAllGroups(t *testing.T) {
	quota := &provider.Error{Kind: provider.Quota, Scope: "instances", Message: "54 of 54 are used"}
	expired := &provider.Error{Kind: provider.Credentials, Message: "the token has expired"}
	for name, test := range map[string]struct {
		refusal error
		of      []fake.Call
		says    string
	}{
		"quota": {quota, []fake.Call{fake.CallCreate}, "creation of the missing instances of web, db: provider mem: " +
			"quota used up: instances: 54 of 54 are used (50 machines wait)"},
		"credentials to create": {expired, []fake.Call{fake.CallCreate}, "creation of the missing instances of web, db: " +
			"provider mem: credentials refused: the token has expired (50 machines wait)"},
		"credentials": {expired, []fake.Call{fake.CallCreate, fake.CallList}, "this provider does not list its machines, " +
			"so nothing is known of them: credentials refused: the token has expired; 50 machines wait to be created " +
			"in web, db"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				w.start("one")
				const small, large = 2, 27
				for _, group := range []string{"web", "db"} {
					w.apply(w.group(group, small))
				}
				w.until(time.Minute, "the groups are complete", func() bool { return w.settled(2 * small) })
				before := w.ids()
				var mend []func()
				for _, call := range test.of {
					mend = append(mend, w.provider.Inject(fake.Fault{Call: call, Err: test.refusal}))
				}
				for _, group := range []string{"web", "db"} {
					w.apply(w.group(group, large))
				}
				w.until(time.Minute, "it is said once", func() bool {
					found := w.problems("web", "db")
					return len(found) == 1 && found[0].About == "mem" && strings.HasPrefix(found[0].What, test.says)
				})
				w.always(3*time.Minute, "it is one problem", func() bool { return len(w.problems("web", "db")) == 1 })
				now := w.ids()
				for _, id := range before {
					if !slices.Contains(now, id) {
						t.Errorf("%s was removed", id)
					}
				}
				for _, s := range records[store.Slot](w, store.KindSlots) {
					if len(s.Record.Failures) > 0 || s.Record.Errored != "" {
						t.Errorf("slot %d has failed: %+v", s.Record.Number, s.Record)
					}
				}
				for _, m := range mend {
					m()
				}
				w.until(time.Minute, "all are made", func() bool {
					return w.settled(2*large) && len(w.problems("web", "db")) == 0
				})
				if w.made() != 2*large {
					t.Errorf("%d machines were made, want %d", w.made(), 2*large)
				}
			})
		})
	}
}
