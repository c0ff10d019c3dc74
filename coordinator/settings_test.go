package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A setting beyond its range is told in the journal, and the last good value stays in force; for a
// replica that never saw one, the default.
//
// proves REC-20
func TestSettingsBeyondTheirRangeAreRefused(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		one := w.start("one")
		w.leads(time.Minute, "one")
		w.editShard(func(s *store.Shard) { s.Settings.CreateBurst = 3 })
		w.pass(time.Second)
		told := func() (all []string) {
			for _, e := range w.journal() {
				if e.Record.Rule == "REC-20" {
					all = append(all, e.Record.Why)
				}
			}
			return all
		}
		if all := told(); len(all) != 0 {
			t.Errorf("told %q of settings that are good", all)
		}
		key := w.keys.Shard()
		bad := strings.Replace(string(w.list(key)[0].Value), `"create_burst":3`, `"create_burst":-1`, 1)
		w.put(key, []byte(bad))
		w.until(time.Minute, "the journal tells of it", func() bool { return len(told()) == 1 })
		if why := told()[0]; !strings.Contains(why, "create_burst: -1: must be 1 to 1000 (REC-3); 3 is in force") {
			t.Errorf("told %q", why)
		}
		w.apply(w.group("web", 1))
		w.up(1)
		w.pass(5 * time.Minute)
		if all := told(); len(all) != 1 {
			t.Errorf("told %d times", len(all))
		}
		one.stop()
		w.start("one")
		w.until(time.Minute, "the next leader tells of it, too", func() bool { return len(told()) == 2 })
		if why := told()[1]; !strings.Contains(why, "10 is in force") {
			t.Errorf("told %q", why)
		}
		if now := string(w.list(key)[0].Value); now != bad {
			t.Errorf("the shard's record was changed: %s, was %s", now, bad)
		}
	})
}
