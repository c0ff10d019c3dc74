package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// In a storm one lost instance at a time is replaced, also when etcd refuses to note which one it
// is and takes the rest of the plan.
//
// proves SAFE-2
func TestProbeThatCouldNotBeRecorded(t *testing.T) {
	s := newStory(t)
	s.play("group size=6 max_expansion=3\nsettle\ncut-off 0a 1a 2a 3a\nrun 5m10s")
	st := read[store.Status](s.world, s.keys.Status(s.group)).Record
	if st.Storm == nil || st.Storm.Probe != "" {
		t.Fatalf("the storm is %+v, not about to be probed", st.Storm)
	}
	told := 0
	for range 20 {
		for _, a := range Compute(s.snapshot(), s.now).Actions {
			if strings.HasPrefix(a.What(), "probe") {
				told++
				continue // this one is lost
			}
			s.commit(a.Conditions, a.Writes, 1)
		}
		s.pass(time.Second)
	}
	made := len(s.instances()) - 6
	if told == 0 || made > 1 {
		t.Errorf("%d probes were decided and not recorded, %d replacements made", told, made)
	}
	s.run(time.Minute, time.Second)
	if st := read[store.Status](s.world, s.keys.Status(s.group)).Record; st.Storm == nil || st.Storm.Probe == "" {
		t.Errorf("once it can be recorded, the storm is probed: %+v", st.Storm)
	}
}
