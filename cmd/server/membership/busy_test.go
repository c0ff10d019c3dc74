package membership

import (
	"strings"
	"testing"
)

// A host that has never started is called by its address, never by a URL, and can be removed by it.
// That another is being added passes.
//
// proves DAY-1
func TestAHostThatIsBeingAdded(t *testing.T) {
	c := Cluster{
		{ID: 1, Name: "a", Peer: "https://a:2380", Answers: true},
		{ID: 2, Peer: "https://c:2380", Learner: true},
	}
	r := c.MayAdd("b", "https://b:2380")
	if r == nil || !r.Busy || !strings.HasPrefix(r.What, "c is being added") || strings.Contains(r.Next, "//") ||
		!strings.HasSuffix(r.Next, "leasehold server remove c") {
		t.Errorf("another host: %+v", r)
	}
	for _, name := range []string{"c", "https://c:2380"} {
		if m, there := c.Find(name); !there || m.ID != 2 || c.MayRemove(name) != nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
	for _, name := range []string{"", "zz", "b"} {
		if m, there := c.Find(name); there || c.MayRemove(name) == nil {
			t.Errorf("%q is %+v", name, m)
		}
	}
	if r := c.MayAdd("a", "https://d:2380"); r == nil || r.Busy {
		t.Errorf("a name that is taken: %+v", r)
	}
	full := c
	for i := range Most {
		full = append(full, Member{ID: uint64(10 + i), Name: string(rune('k' + i)), Answers: true})
	}
	if r := full.MayAdd("b", "https://b:2380"); r == nil || r.Busy {
		t.Errorf("a full cluster: %+v", r)
	}
}
