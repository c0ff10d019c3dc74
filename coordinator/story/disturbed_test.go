package story

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A restart of a host in order disturbs the others once or twice: that is no reason to look at
// disks. Often is.
//
// proves SAFE-1
func TestARestartIsNoReasonToLookAtDisks(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for times, disks := range map[int]bool{1: false, 2: false, 3: true, 40: true} {
		found := conditionOf(store.Replica{
			ID: "a", Disturbances: times,
			Last: &store.Disturbance{At: now.Add(-time.Second), What: "etcd changed its leader"},
		}, time.Minute, now)
		if len(found) != 1 || strings.Contains(found[0].Remedies.String(), "disks") != disks {
			t.Errorf("%d times: %+v", times, found)
		}
	}
}

// A disturbance that is over is said to be, with its time, and comes after what is so now.
//
// proves SAFE-1
func TestADisturbanceThatIsOver(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var st Shard
	st.Leads = true
	st.Groups = []Known{{Name: "web", Spec: store.DefaultGroup()}}
	st.Shard.Record.Settings.ReconnectMax = store.Duration(10 * time.Second)
	grace := st.graceLasts()
	for since, over := range map[time.Duration]bool{
		time.Second: false, grace - 1: false, grace: true, 5 * time.Minute: true,
	} {
		st.Replicas = []store.Versioned[store.Replica]{{Record: store.Replica{
			ID: "a", Disturbances: 1, Last: &store.Disturbance{At: now.Add(-since), What: "etcd changed its leader"},
		}}}
		found := Problems(&st, now)
		at := slices.IndexFunc(found, func(p Problem) bool { return p.Rule == "SAFE-1" })
		if at < 0 {
			t.Fatalf("%s ago: not among %+v", since, found)
		}
		p := found[at]
		if p.Over != over || strings.Contains(p.What, "no instance is judged lost") == over ||
			strings.Contains(p.What, now.Add(-since).Format(time.RFC3339)) != over || over && at != len(found)-1 {
			t.Errorf("%s ago: problem %d of %d: %+v", since, at+1, len(found), p)
		}
	}
}
