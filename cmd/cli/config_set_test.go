package cli

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// Another change of the shard's record, such as a hold, is kept; the settings do not overwrite it.
//
// proves REC-20
func TestConfigSetLosesToAnotherEdit(t *testing.T) {
	w := newWorld(t)
	w.serve()
	shard := func() store.Shard {
		t.Helper()
		kv, err := w.st.Get(t.Context(), w.keys.Shard())
		if err != nil {
			t.Fatal(err)
		}
		v, err := store.Decode[store.Shard](kv)
		if err != nil {
			t.Fatal(err)
		}
		return v.Record
	}
	held := shard()
	held.Hold = &store.Hold{By: "coord-a", Why: "4 extra machines", At: noon}
	w.race(func() { w.put(store.KindShard, "", held) })
	if code, out, stderr := w.run("config", "set", "create_rate=5"); code != Conflict ||
		!strings.Contains(stderr, "its record was changed in the meantime; nothing was written") ||
		strings.Contains(out, "changed") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	if s := shard(); s.Hold == nil || s.Settings.CreateRate != 10 {
		t.Errorf("the record is %+v", s)
	}
	w.must("config", "set", "create_rate=5", "compact_after=0")
	if s := shard(); s.Hold == nil || s.Settings.CreateRate != 5 || *s.Settings.CompactAfter != 0 || s.ID != held.ID {
		t.Errorf("the record is %+v", s)
	}
}
