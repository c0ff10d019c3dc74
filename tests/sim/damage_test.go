package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

const damagedWorlds = 80

// Records are deleted, spoiled, or older than the machines, while leaders come and go and lists are
// read again. No machine is stopped or removed that no record condemned, and none is made in the
// place of one that was lost.
//
// proves SAFE-15, SAFE-16
func TestDamagedWorlds(t *testing.T) {
	kinds := map[string]int{}
	for seed := uint64(1); seed <= damagedWorlds; seed++ {
		d := &damagedWorld{trial: trial{
			plot: plot{seed: seed}, rng: rand.New(rand.NewPCG(seed, 0xda)),
			specs: map[string]inForce{},
		}, condemned: map[string]bool{}}
		d.play()
		kinds[d.kind]++
		if d.failed != "" {
			t.Errorf("seed %d, %s: %s\n%s%s", seed, d.kind, d.failed, d.trace.text(), d.scene())
		}
	}
	for _, kind := range []string{"lost", "spoiled", "older", "forgotten"} {
		if kinds[kind] == 0 {
			t.Errorf("no world had records that were %s", kind)
		}
	}
}

type damagedWorld struct {
	trial
	kind      string
	condemned map[string]bool // instances whose record said that they are to be deleted
	damaged   bool            // records are damaged now
	lost      map[string]bool // slots whose records are damaged, as group/slot
	mustShow  int             // damaged records that the leader can know of
}

func (d *damagedWorld) play() {
	cfg := d.conditions()
	for i := range cfg.Providers {
		p := &cfg.Providers[i]
		p.Fails, p.Throttled, p.NeverBoots = 0, 0, 0 // what fails is replaced, which is not what is tried here
	}
	for i := range cfg.Groups {
		g := &cfg.Groups[i]
		g.Paused, g.Stopped, g.Unstarted = false, false, false
	}
	cfg.Observer = sim.Observer{
		Machine: d.watchMachine, Changed: d.watchRecord,
		Noted:  func(at time.Time, what string) { d.trace.add(at, "!", what) },
		Broken: func(_ time.Time, what string) { d.fail("%s", what) },
		Committed: func(at time.Time, a *plan.Action, _ store.Revision) {
			if !a.NoJournal {
				d.trace.add(at, "did", a.Rule, a.Group+" "+a.Instance, a.What(), a.Why)
			}
		},
	}
	d.w = sim.New(cfg)
	defer d.caught()
	d.run(4 * time.Minute)
	lost := d.damage()
	begun := d.w.Elapsed()
	for range d.between(2, 8) {
		d.run(time.Duration(d.between(1, 120)) * time.Second)
		switch d.rng.IntN(4) {
		case 0:
			d.w.KillLeader(time.Second, 0)
		case 1:
			d.w.BlindLeader(time.Duration(d.between(1, 20))*time.Second, d.chance(50))
		case 2:
			d.w.Resign(0)
		}
	}
	d.run(time.Minute)
	if n := d.mustShow; n > 1 && (d.w.Shard().Hold == nil || d.w.Shard().Hold.Damage < n) {
		d.fail("%d records are damaged since %s, and the shard's hold is %+v", n, begun, d.w.Shard().Hold)
	}
	d.w.Repair(lost)
	d.damaged = false
	d.run(time.Minute)
	if d.w.Shard().Hold != nil {
		d.w.Release()
	}
	d.run(10 * time.Minute)
	for _, name := range d.groups() {
		if st := sim.Read[store.Status](d.w, d.w.Keys().Status(name)).Record; len(st.Damaged) > 0 {
			d.fail("all is put back, and the status names %+v", st.Damaged)
		}
	}
	if d.w.Shard().Hold != nil {
		d.fail("all is put back, and the shard is on hold again: %s", d.w.Shard().Hold.Why)
	}
}

func (d *damagedWorld) run(t time.Duration) {
	if d.failed == "" {
		d.w.RunUntil(d.w.Now().Add(t))
	}
}

// damage damages some records.
func (d *damagedWorld) damage() sim.Lost {
	var ids []string
	for _, id := range d.w.Instances() {
		if rec := d.w.Instance(id).Record; rec.Phase == store.Running {
			ids = append(ids, id)
		}
	}
	d.rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	d.kind = pick(&d.trial, "lost", "spoiled", "older", "forgotten")
	if d.kind == "older" { // the snapshot knows none of the youngest
		slices.SortFunc(ids, func(a, b string) int { return int(d.w.Instance(b).Created - d.w.Instance(a).Created) })
	}
	if d.kind != "forgotten" {
		ids = ids[:min(len(ids), d.between(1, 6))]
	}
	d.lost = map[string]bool{}
	var keys []string
	for _, id := range ids {
		rec := d.w.Instance(id).Record
		d.lost[fmt.Sprint(rec.Group, "/", rec.Slot)] = true
		keys = append(keys, d.w.Keys().Instance(id))
	}
	d.damaged, d.mustShow = true, len(ids)
	if d.kind == "forgotten" { // there is no leader meanwhile, and the groups alone remain
		for _, kind := range []string{store.KindStatus, store.KindSlots} {
			for _, name := range d.w.Names(kind) {
				keys = append(keys, d.w.Keys().Of(kind)+name)
			}
		}
		for _, id := range d.w.Instances() { // beside it, its machine is a second one in its slot
			if rec := d.w.Instance(id).Record; !slices.Contains(ids, id) &&
				d.lost[fmt.Sprint(rec.Group, "/", rec.Slot)] {
				d.mustShow--
			}
		}
		d.w.Resign(0)
	}
	if d.kind == "spoiled" {
		return d.w.Corrupt(keys...)
	}
	return d.w.Lose(keys...)
}

func (d *damagedWorld) watchRecord(_ time.Time, e store.Event) {
	if d.w == nil || e.Deleted {
		return
	}
	kind, id, _ := d.w.Keys().Split(e.KV.Key)
	if kind != store.KindInstances {
		return
	}
	rec := d.w.Instance(id).Record
	if rec.Phase == store.Deleting {
		d.condemned[id] = true
	}
	if d.damaged && rec.Phase == store.Pending && d.lost[fmt.Sprint(rec.Group, "/", rec.Slot)] {
		d.fail("%s is requested in a slot whose record is damaged", id)
	}
}

func (d *damagedWorld) watchMachine(at time.Time, m sim.Machine) {
	d.trace.add(at, "machine", m.Instance, string(m.Event))
	if (m.Event == fake.Removed || m.Event == fake.Stopped) && !d.condemned[m.Instance] {
		d.fail("the machine of %s is %s, and no record condemned it", m.Instance, m.Event)
	}
}
