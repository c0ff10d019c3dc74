package plan

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A replacement that has proved nothing yet is lost in a storm, while the machine that it is for
// has only just fallen silent: it is kept, as all that are lost in a storm are. When it is over,
// and none is back, it goes.
//
// proves SAFE-2
func TestStormKeepsALostReplacement(t *testing.T) {
	s := newStory(t)
	s.play("group type=small size=6 probe_after=0s\nsettle\nsick small\nunhealthy 0a\nrun " +
		"20s\ncut-off 0b 1a 2a\nrun 10s\ncut-off 0a\nrun 10s")
	st := read[store.Status](s.world, s.keys.Status(s.group)).Record
	judged := Compute(s.snapshot(), s.now).Judgments
	if in := s.instance(s.id("0b")); in.Record.Phase != store.Checking {
		t.Fatalf("in the storm the lost replacement is %q:\n%s", in.Record.Phase, s.named(s.out.String()))
	}
	if st.Storm == nil || judged.Of(s.id("0b")).Verdict != store.Lost || judged.Of(s.id("0a")).Verdict != store.Suspect {
		t.Fatalf("the storm is %+v, the replacement %s, the one that it is for %s", st.Storm,
			judged.Of(s.id("0b")).Verdict, judged.Of(s.id("0a")).Verdict)
	}
	held := false
	for _, b := range st.Blocked {
		held = held || b.Rule == "SAFE-2" && strings.Contains(b.What, s.id("0b"))
	}
	if !held {
		t.Errorf("nothing says that the storm keeps it: %+v", st.Blocked)
	}
	s.play("order override-storm\nrun 2m")
	if in := s.instance(s.id("0b")); in.Present() && in.Record.Phase == store.Checking {
		t.Errorf("the storm is over, and it is still kept:\n%s", s.named(s.out.String()))
	}
}
