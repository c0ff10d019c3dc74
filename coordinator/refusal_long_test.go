//go:build !race

// The race detector would make these many times slower, and sees the same code in other tests.

package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// A quota that is used up and credentials that are refused are one problem of the group and no
// failure of any slot. While they last the provider is asked rarely, and all goes on soon after they
// are mended.
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
