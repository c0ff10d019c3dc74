package sim_test

import (
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// machine checks what becomes of machines: each has a record before it is made and as long as it is
// there, and only one is made of each ID (SAFE-8).
func (tr *trial) machine(at time.Time, m sim.Machine) {
	tr.trace.add(at, "machine", m.Instance, string(m.Event), "zone "+m.Zone)
	rec := tr.w.Instance(m.Instance)
	switch m.Event {
	case fake.Doubled:
		tr.fail("a second machine is made for %s, in another zone", m.Instance)
	case fake.Made:
		tr.made[m.Instance]++
		if !rec.Present() {
			tr.fail("a machine is made for %s, of which there is no record", m.Instance)
		}
		if rec.Record.Phase == store.Pending || !rec.Record.Called {
			tr.fail("a machine is made for %s, and nothing says that a provider was asked", m.Instance)
		}
		if tr.made[m.Instance] > 1 && !tr.forgetful(m.Provider) {
			tr.fail("a machine is made for %s for the second time", m.Instance)
		}
	case fake.Removed:
		if rec.Present() && rec.Record.Phase != store.Deleting {
			tr.fail("the machine of %s is removed while its record is %s", m.Instance, rec.Record.Phase)
		}
		if !rec.Present() && !strings.Contains(m.Instance, "planted") {
			tr.fail("a machine of %s was there after its record", m.Instance)
		}
	case fake.Stopped, fake.Crashed, fake.Restarted:
	}
}

// removing: no machine is touched any more while the shard is on hold or its group is paused,
// though its removal was decided before (SAFE-12, REC-13).
func (tr *trial) removing(_ time.Time, rec store.Instance) {
	f := tr.inForce(rec.Group)
	switch {
	case tr.w.Shard().Hold != nil:
		tr.fail("a provider is asked to remove %s while the shard is on hold", rec.ID)
	case f.there && f.spec.Paused:
		tr.fail("a provider is asked to remove %s while its group is paused", rec.ID)
	}
}

func (tr *trial) forgetful(name string) bool {
	for _, p := range tr.providers {
		if p.Name == name {
			return p.Forgetful
		}
	}
	return false
}
