package cli

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A group is known as long as anything of it is there, and its name alone counts, not what begins
// with it.
func TestAGroupIsKnownByWhateverIsLeftOfIt(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(w *world)
		code  Code
	}{
		{"spec", func(w *world) { w.put(store.KindGroups, "web", "nonsense") }, Done},
		{"status", func(w *world) { w.put(store.KindStatus, "web", statusOf(webGroup(1), 5, 1)) }, Done},
		{"instance", func(w *world) {
			w.put(store.KindInstances, "web-0-a", instanceOf(webGroup(1), 0, "web-0-a", store.Deleting))
		}, Done},
		{"instance of web-x", func(w *world) {
			i := instanceOf(webGroup(1), 0, "web-x-0-a", store.Running)
			i.Group = "web-x"
			w.put(store.KindInstances, "web-x-0-a", i)
		}, NotFound},
		{"nothing", func(*world) {}, NotFound},
	} {
		for _, args := range []string{"instance list -g web", "events -g web"} {
			w := newWorld(t)
			c.begin(w)
			if code, _, stderr := w.run(strings.Fields(args)...); code != c.code {
				t.Errorf("%s: %s: exit %d: %s", c.name, args, code, stderr)
			}
		}
	}
}
