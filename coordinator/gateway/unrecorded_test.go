package gateway_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// nacks sends a report that must be answered, and renew nothing.
func (a *agent) nacks() {
	a.t.Helper()
	if m := a.report(&protocol.Report{Healthy: true}); m.GetNack().GetSequence() != a.number {
		a.t.Fatalf("report %d is answered with %v, want that nothing was renewed", a.number, m)
	}
}

// If an instance's record disappears without a note, nothing is stopped: the stream stays, renews
// nothing, and continues when the record is back.
//
// proves SAFE-1, SAFE-14, DET-18
func TestStreamOutlivesItsRecord(t *testing.T) {
	for name, c := range map[string]struct {
		harm, mend func(w *world)
	}{
		"record": {
			func(w *world) { w.remove(w.keys.Instance("web-0")) },
			func(w *world) { w.record("web-0", store.Running) },
		},
		"record and alive": {
			func(w *world) {
				w.remove(w.keys.Instance("web-0"))
				w.remove(w.keys.Alive("web-0"))
			},
			func(w *world) { w.record("web-0", store.Running) },
		},
		"shard": {
			func(w *world) { w.remove(w.keys.Shard()) },
			func(w *world) {
				w.put(w.keys.Shard(), store.Encode(store.Shard{
					Schema: store.Schema, ID: shardID,
					Settings: store.DefaultShardSettings(),
				}))
			},
		},
		"another shard, in which it has a record": {
			func(w *world) {
				w.put(w.keys.Shard(), store.Encode(store.Shard{
					Schema: store.Schema, ID: "other",
					Settings: store.DefaultShardSettings(),
				}))
			},
			func(w *world) {
				w.put(w.keys.Shard(), store.Encode(store.Shard{
					Schema: store.Schema, ID: shardID,
					Settings: store.DefaultShardSettings(),
				}))
			},
		},
		"another shard, in which it is being deleted": {
			func(w *world) {
				w.put(w.keys.Shard(), store.Encode(store.Shard{
					Schema: store.Schema, ID: "other",
					Settings: store.DefaultShardSettings(),
				}))
				w.record("web-0", store.Deleting)
			},
			func(w *world) {
				w.record("web-0", store.Running)
				w.put(w.keys.Shard(), store.Encode(store.Shard{
					Schema: store.Schema, ID: shardID,
					Settings: store.DefaultShardSettings(),
				}))
			},
		},
	} {
		for _, long := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, for long %t", name, long), func(t *testing.T) {
				inWorld(t, func(w *world) {
					r := w.serve("one")
					defer r.stop()
					w.record("web-0", store.Running)
					a := r.welcomed(hello("web-0", "boot1", 1))
					defer a.hangUp()
					a.reports()
					c.harm(w)
					pass(time.Second)
					times := 1
					if long {
						times = 10
					}
					for range times {
						a.nacks()
						pass(interval)
					}
					if m := r.refused(hello("web-0", "boot1", 2), protocol.Refused_UNKNOWN); m.GetAfter() == nil {
						t.Error("it is not told when to come again")
					}
					if long && w.alive("web-0").Present() {
						t.Error("the lease was renewed without a record")
					}
					before := r.troubles()
					c.mend(w)
					pass(time.Second)
					a.reports()
					if r.troubles() == before { // leases were not renewed for a while (SAFE-1)
						t.Error("that its lease was not renewed is no disturbance")
					}
					w.shows("web-0", "one", 1, store.StreamOpen)
					pass(time.Second)
					if read[store.Stray](w, w.keys.Stray("web-0")).Present() {
						t.Error("it has a record, and is noted as a stray")
					}
				})
			})
		}
	}
}

// A lost report, alone or with the record, is written again even without news: an instance without
// a report counts as one that has never become healthy.
//
// proves SAFE-16, SAFE-17
func TestALostReportIsWrittenAnew(t *testing.T) {
	for name, lose := range map[string]func(w *world, a *agent){
		"alone": func(w *world, _ *agent) { w.remove(w.keys.Report("web-0")) },
		"with the record, and first": func(w *world, a *agent) {
			w.remove(w.keys.Report("web-0"))
			w.remove(w.keys.Instance("web-0"))
			pass(time.Second)
			a.nacks()
			w.record("web-0", store.Running)
		},
		"while the shard was lost": func(w *world, a *agent) {
			w.remove(w.keys.Shard())
			w.remove(w.keys.Report("web-0"))
			pass(time.Second)
			a.nacks()
			w.put(w.keys.Shard(), store.Encode(store.Shard{
				Schema: store.Schema, ID: shardID,
				Settings: store.DefaultShardSettings(),
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				r := w.serve("one")
				defer r.stop()
				w.record("web-0", store.Running)
				a := r.welcomed(hello("web-0", "boot1", 1))
				defer a.hangUp()
				a.reports()
				pass(time.Second)
				if !read[store.Report](w, w.keys.Report("web-0")).Present() {
					t.Fatal("its first report is not written")
				}
				lose(w, a)
				pass(time.Second)
				a.reports()
				pass(time.Second)
				if !read[store.Report](w, w.keys.Report("web-0")).Present() {
					t.Error("its report was lost, and the next is not written")
				}
			})
		})
	}
}

// What the session knows of its record outlives it.
//
// proves SAFE-17, REC-8
func TestStrayReportsWhatItWas(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.workloadRecord("web-0", func(i *store.Instance) { i.Slot, i.Template, i.Zone = 4, "t1", "north" })
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		w.remove(w.keys.Instance("web-0"))
		pass(time.Second)
		stray := read[store.Stray](w, w.keys.Stray("web-0"))
		if c := stray.Record.Claim; c == nil || c.Slot != 4 || c.Group != "web" || c.Template != "t1" ||
			c.Zone != "north" || c.Shard != shardID || !c.Managed {
			t.Errorf("stray %+v with claim %+v", stray.Record, c)
		}
		if stray.Record.BootID != "boot1" || stray.Record.Agent != "test" {
			t.Errorf("stray %+v", stray.Record)
		}
	})
}

// Only a note of the newest record, of our shard, that can be read says that the record was deleted
// on purpose.
//
// proves SAFE-14
func TestNotEveryNoteRetires(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(w *world, rev store.Revision)
		want protocol.Refused_Reason
	}{
		"its own":            {func(w *world, rev store.Revision) { w.noted("web-0", rev) }, protocol.Refused_RETIRED},
		"of an earlier life": {func(w *world, rev store.Revision) { w.noted("web-0", rev-1) }, 0},
		"of no revision":     {func(w *world, _ store.Revision) { w.noted("web-0", 0) }, 0},
		"that cannot be read": {func(w *world, _ store.Revision) {
			w.put(w.keys.Gone(w.keys.Instance("web-0")), []byte("{"))
		}, 0},
		"in another shard": {func(w *world, rev store.Revision) {
			w.put(w.keys.Shard(), store.Encode(store.Shard{Schema: store.Schema, ID: "other"}))
			w.noted("web-0", rev)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				r := w.serve("one")
				defer r.stop()
				w.record("web-0", store.Running)
				a := r.welcomed(hello("web-0", "boot1", 1))
				defer a.hangUp()
				c.harm(w, read[store.Instance](w, w.keys.Instance("web-0")).Modified)
				w.remove(w.keys.Instance("web-0"))
				pass(time.Second)
				if c.want == 0 {
					a.nacks()
					return
				}
				if m := a.next().GetRefused(); m.GetReason() != c.want || m.GetPhase() != protocol.PhaseGone {
					t.Errorf("it is told %v", m)
				}
			})
		})
	}
}

// A cache that is behind, or that shows an old record, decides nothing: neither that an agent
// stops, nor that it need not.
//
// proves SAFE-14, DET-18
func TestOnlyEtcdItselfRetires(t *testing.T) {
	t.Run("the record is created again before the cache shows its end", func(t *testing.T) {
		inWorld(t, func(w *world) {
			r := w.serve("one")
			defer r.stop()
			w.record("web-0", store.Running)
			a := r.welcomed(hello("web-0", "boot1", 1))
			defer a.hangUp()
			synctest.Wait()
			r.store.Faults().StallWatches()
			w.record("web-0", store.Deleting)
			w.gone("web-0")
			w.record("web-0", store.Running)
			r.store.Faults().ReleaseWatches()
			pass(time.Second)
			a.reports()
		})
	})
	t.Run("a relist shows that the record went", func(t *testing.T) {
		inWorld(t, func(w *world) {
			r := w.serve("one")
			defer r.stop()
			for _, id := range []string{"web-0", "web-1"} {
				w.record(id, store.Running)
			}
			a, b := r.welcomed(hello("web-0", "boot1", 1)), r.welcomed(hello("web-1", "boot1", 1))
			defer a.hangUp()
			defer b.hangUp()
			synctest.Wait()
			r.store.Faults().Cut()
			w.gone("web-0")
			w.remove(w.keys.Instance("web-1"))
			if err := w.db.Faults().Compact(w.put("/leasehold/other/x", nil)); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			r.store.Faults().Mend()
			pass(10 * time.Second)
			if m := a.next().GetRefused(); m.GetReason() != protocol.Refused_RETIRED ||
				m.GetPhase() != protocol.PhaseGone {
				t.Errorf("the one that was deleted is told %v", m)
			}
			b.nacks()
		})
	})
}

// A derived record that cannot be read is written again by the replica that serves the agent.
//
// proves SAFE-16
func TestSpoiledKeysAreWrittenAnew(t *testing.T) {
	for name, garbage := range map[string]string{"garbage": "{", "newer": `{"schema": 99}`, "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				r := w.serve("one")
				defer r.stop()
				w.record("web-0", store.Running)
				a := r.welcomed(hello("web-0", "boot1", 1))
				defer a.hangUp()
				a.reports()
				w.put(w.keys.Alive("web-0"), []byte(garbage))
				w.put(w.keys.Report("web-0"), []byte(garbage))
				pass(time.Second)
				w.shows("web-0", "one", 1, store.StreamOpen)
				if w.alive("web-0").Lease == 0 {
					t.Error("alive is on no lease")
				}
				a.reports()
				pass(time.Second)
				if rep := w.report("web-0"); !rep.Present() || rep.Record.Sequence != a.number {
					t.Errorf("report %+v", rep.Record)
				}
				a.hangUp()

				w.put(w.keys.Alive("web-0"), []byte(garbage))
				b := r.welcomed(hello("web-0", "boot2", 1))
				defer b.hangUp()
				w.shows("web-0", "one", 1, store.StreamOpen)

				// Nor does it take a record that can be read: that one is not ours to mend.
				w.put(w.keys.Instance("web-0"), []byte(garbage))
				w.put(w.keys.Alive("web-0"), []byte(garbage))
				pass(time.Second)
				w.shows("web-0", "one", 1, store.StreamOpen)
				b.reports()
				w.db.Faults().DropLease(w.alive("web-0").Lease)
				b.reports()
				w.shows("web-0", "one", 1, store.StreamOpen)
			})
		})
	}
}

// wantedRaw takes in what has come.
func (a *agent) wantedRaw() {
	synctest.Wait()
	for range len(a.in) {
		if msg := <-a.in; msg.GetWanted() != nil {
			a.told = append(a.told, msg.GetWanted())
		}
	}
}

// Agents without a record and without a claim can be anyone: so many are noted one by one, and the
// others are counted.
//
// proves SEC-5, REC-8
func TestStraysAreBounded(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		const most = 1000
		for i := range most + 10 {
			r.refused(hello(fmt.Sprintf("web-%d", i), "boot1", 1), protocol.Refused_UNKNOWN)
			if i%100 == 0 {
				pass(time.Second)
			}
		}
		l, err := w.store.List(t.Context(), w.keys.Of(store.KindStrays), 0)
		if err != nil {
			t.Fatal(err)
		}
		leases := map[store.LeaseID]bool{}
		for _, kv := range l.KVs {
			leases[kv.Lease] = true
		}
		if len(l.KVs) != most || len(leases) != 1 {
			t.Errorf("%d strays on %d leases, want %d on one", len(l.KVs), len(leases), most)
		}
		if n := r.Unnoted(); n != 10 {
			t.Errorf("%d more are counted, want 10", n)
		}
		pass(time.Hour)
		if n := r.Unnoted(); n != 0 {
			t.Errorf("%d are counted that have stopped coming", n)
		}
	})
}

// A seal that cannot be made hinders nothing else: the agent gets all that is wanted of it.
//
// proves SAFE-17
func TestWithoutASealAllElseIsSent(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.workloadRecord("web-0", nil)
		r.own = w.ca.agent("web-0", time.Hour)
		w.ca.setBroken(true)
		a := r.welcomed(helloTrusting(w, "web-0"))
		defer a.hangUp()
		a.wantTold("without a seal", "service c1 run [./web] greeting=hello")
		a.told = nil
		w.ca.setBroken(false)
		w.workloadRecord("web-0", func(i *store.Instance) { i.Ref = "i-1" })
		if n := len(a.claims()); n != 1 {
			t.Errorf("told %d claims once they can be sealed", n)
		}
	})
}

// A replica whose cache does not show yet that etcd is another shard's retires no agent by what it
// reads there.
//
// proves SAFE-14
func TestNobodyIsRetiredInAnotherShard(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		synctest.Wait()
		r.store.Faults().StallWatches()
		w.put(w.keys.Shard(), store.Encode(store.Shard{Schema: store.Schema, ID: "other"}))
		w.record("web-0", store.Deleting)
		r.refused(hello("web-0", "boot1", 1), protocol.Refused_UNKNOWN)
		w.gone("web-0")
		r.refused(hello("web-0", "boot1", 2), protocol.Refused_UNKNOWN)
	})
}
