package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// A quota of one type of machine keeps no other type from being made.
//
// proves PROV-5
func TestAQuotaIsOfOneType(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.provider.Inject(fake.Fault{
			Call: fake.CallCreate, Instance: "", Times: 1,
			Err: &provider.Error{Kind: provider.Quota, Scope: "large"},
		})
		large := w.group("large", 1)
		large.Template.InstanceType = "large"
		w.apply(large)
		w.until(10*time.Second, "it is refused", func() bool {
			b := w.status("large").Blocked
			return len(b) == 1 && b[0].Rule == "PROV-5"
		})
		small := w.group("small", 2)
		w.apply(small)
		w.until(10*time.Second, "the others are made", func() bool { return w.made() == 2 })
		if b := w.status("large").Blocked; len(b) != 1 {
			t.Errorf("blocked: %+v", b)
		}
		w.until(time.Minute, "it is tried again", func() bool { return w.made() == 3 })
	})
}

// A template that the provider refuses is a problem of its group that says which setting it is, and
// what to do.
//
// proves PROV-5
func TestWhatIsWrongWithATemplateIsSaid(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		heal := w.provider.Inject(fake.Fault{
			Call: fake.CallCreate,
			Err:  &provider.Error{Kind: provider.Invalid, Scope: "settings.image", Message: "there is no image debian-9"},
		})
		w.apply(w.group("web", 2))
		w.until(time.Minute, "it is said", func() bool {
			b := w.status("web").Blocked
			return len(b) > 0 && b[0].Of.Flag
		})
		found := story.GroupProblems(story.Known{
			Name: "web", Stored: store.KV{Modified: 1}, Spec: w.group("web", 2),
			Status: store.Versioned[store.Status]{Modified: 1, Record: w.status("web")},
		}, true, time.Now())
		if len(found) != 1 || found[0].About != "web" || found[0].Remedies.String() != "leasehold group edit web" ||
			!strings.Contains(found[0].What, "invalid template: settings.image: there is no image debian-9") {
			t.Errorf("problems: %+v", found)
		}
		heal()
		w.until(2*time.Minute, "they are made", func() bool { return w.made() == 2 && len(w.status("web").Blocked) == 0 })
	})
}

// While a provider refuses to list its machines, what it says is in etcd for operators, and no
// longer.
//
// proves PROV-5
func TestWhyAProviderDoesNotListIsSaid(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		why := func() (said []store.Silent) {
			for _, kv := range w.list(w.keys.Served()) {
				said = decoded[store.Served](w, kv).Record.Silent
			}
			return said
		}
		heal := w.provider.Inject(fake.Fault{
			Call: fake.CallList, Err: &provider.Error{Kind: provider.Credentials, Message: "wrong password"},
		})
		w.start("one")
		w.apply(w.group("web", 1))
		w.until(time.Minute, "it is said", func() bool {
			said := why()
			return len(said) == 1 && said[0].Provider != "" && strings.Contains(said[0].Why, "wrong password")
		})
		heal()
		w.until(time.Minute, "it lists, and makes the machine", func() bool { return len(why()) == 0 && w.made() == 1 })
	})
}
