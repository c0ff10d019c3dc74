package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/identity/identitytest"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/claim"
	"github.com/leasehold/leasehold/store"
)

// nacks sends a report that must be answered, and renew nothing.
func (a *agent) nacks() {
	a.t.Helper()
	if m := a.report(&protocol.Report{Healthy: true}); m.GetNack().GetSequence() != a.number {
		a.t.Fatalf("report %d is answered with %v, want that nothing was renewed", a.number, m)
	}
}

// What takes an instance's record away without a word is no reason to stop anything: the stream
// stays, renews nothing, and goes on when the record is back.
//
// proves SAFE-14, DET-18
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
					c.mend(w)
					pass(time.Second)
					a.reports()
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

// A report that was lost, alone or with the record, is written anew though it says nothing new: an
// instance of which there is no report is taken for one that has never become healthy.
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
func TestStrayTellsWhatItWas(t *testing.T) {
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
	t.Run("the record is made anew before the cache shows its end", func(t *testing.T) {
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

// proves SEC-5
func TestLongClaimIsMalformed(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		r.own = w.ca.agent("web-0", time.Hour)
		h := helloTrusting(w, "web-0")
		h.Claim = []byte(strings.Repeat("x", protocol.MostClaim+1))
		a := r.call(h)
		defer a.hangUp()
		a.ends()
	})
}

// claims are those that the agent was told since it was asked last.
func (a *agent) claims() [][]byte {
	a.t.Helper()
	a.wantedRaw()
	var out [][]byte
	for _, m := range a.told {
		if len(m.GetClaim()) > 0 {
			out = append(out, m.GetClaim())
		}
	}
	a.told = nil
	return out
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

// The claim is sealed once for each change of what it says, and an agent that has it already is
// told none.
//
// proves SAFE-17
func TestClaimIsToldWhenItChanges(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.workloadRecord("web-0", nil)
		r.own = w.ca.agent("web-0", time.Hour)
		a := r.welcomed(helloTrusting(w, "web-0"))
		defer a.hangUp()
		got := a.claims()
		if len(got) != 1 {
			t.Fatalf("%d claims were told at first", len(got))
		}
		for range 3 {
			a.reports()
		}
		w.workloadRecord("web-0", func(i *store.Instance) { i.Phase = store.Draining })
		if n := len(a.claims()); n != 0 || w.ca.sealed() != 1 {
			t.Errorf("told %d claims and sealed %d, and nothing of it was new", n, w.ca.sealed())
		}
		w.workloadRecord("web-0", func(i *store.Instance) { i.Ref = "i-1" })
		if got = append(got, a.claims()...); len(got) != 2 || w.ca.sealed() != 2 {
			t.Fatalf("told %d claims, sealed %d", len(got), w.ca.sealed())
		}
		for i, more := range []int{1, 0} { // an old one, then the newest
			h := helloTrusting(w, "web-0")
			h.Epoch, h.Claim = uint64(10+i), got[i]
			b := r.welcomed(h)
			if n := len(b.claims()); n != more {
				t.Errorf("agent with claim %d is told %d more", i, n)
			}
			b.hangUp()
		}
	})
}

// A hello without a record is recognized by a claim that a coordinator has sealed, for this
// instance of this shard.
//
// proves SAFE-17, SEC-5
func TestClaimOfAStray(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		sealed := map[string][]byte{}
		for _, id := range []string{"web-0", "web-1"} {
			w.workloadRecord(id, func(i *store.Instance) { i.Slot = 3 })
			r.own = w.ca.agent(id, time.Hour)
			a := r.welcomed(helloTrusting(w, id))
			sealed[id] = a.claims()[0]
			a.hangUp()
			w.remove(w.keys.Instance(id))
			w.remove(w.keys.Stray(id))
		}
		pass(time.Second)
		r.own = w.ca.agent("web-0", time.Hour)
		epoch := uint64(10)
		claimOf := func(shown []byte) *store.Claim {
			epoch++
			h := helloTrusting(w, "web-0")
			h.Epoch, h.Claim = epoch, shown
			r.refused(h, protocol.Refused_UNKNOWN)
			pass(time.Second)
			return read[store.Stray](w, w.keys.Stray("web-0")).Record.Claim
		}
		spoiled := append([]byte(nil), sealed["web-0"]...)
		spoiled[20] ^= 1
		for name, shown := range map[string][]byte{
			"none": nil, "another's": sealed["web-1"], "spoiled": spoiled,
			"garbage": []byte("x"),
		} {
			if c := claimOf(shown); c != nil {
				t.Errorf("%s: taken for %+v", name, c)
			}
		}
		if c := claimOf(sealed["web-0"]); c == nil || c.Slot != 3 || c.Instance != "web-0" {
			t.Errorf("its own: taken for %+v", c)
		}
		ignored := 0
		for _, e := range r.entries() {
			if e.What == "claim ignored" && e.Rule == "SAFE-17" {
				ignored++
			}
		}
		if ignored != 2 {
			t.Errorf("%d entries tell of claims that were ignored, want one for each reason: %+v", ignored, r.entries())
		}
	})
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
			t.Errorf("%d are counted that came no more", n)
		}
	})
}

// Once another authority issues, claims are sealed by that one: the one before will not be believed
// for ever.
//
// proves SAFE-17, SEC-3
func TestClaimIsSealedAnewByTheNextAuthority(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		first, second := w.ca.issuer, identitytest.New(w.t, "second")
		r := w.serve("one")
		defer r.stop()
		w.workloadRecord("web-0", nil)
		r.own = w.ca.agent("web-0", time.Hour)
		a := r.welcomed(helloTrusting(w, "web-0"))
		defer a.hangUp()
		old := a.claims()
		w.ca.change(second, first, second)
		pass(time.Second)
		got := a.claims()
		if len(old) != 1 || len(got) != 1 {
			t.Fatalf("told %d claims, then %d", len(old), len(got))
		}
		if _, err := claim.Open(got[0], identitytest.Trust(second)); err != nil {
			t.Error(err)
		}
		h := helloTrusting(w, "web-0")
		h.Epoch, h.Claim = 10, old[0]
		b := r.welcomed(h)
		defer b.hangUp()
		if n := len(b.claims()); n != 1 {
			t.Errorf("an agent that shows the old seal is told %d", n)
		}
	})
}

// A seal that cannot be made hinders nothing else: the agent gets all that is wanted of it.
//
// proves SAFE-17
func TestWithoutASealAllElseIsTold(t *testing.T) {
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

// A note that was written before the claim was sealed is of an earlier life of the instance.
//
// proves SAFE-14
func TestNoteOfALifeBeforeTheClaim(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.workloadRecord("web-0", nil)
		rev := w.gone("web-0")
		pass(time.Hour)
		w.workloadRecord("web-0", nil)
		pass(time.Second)
		r.own = w.ca.agent("web-0", 3*time.Hour)
		a := r.welcomed(helloTrusting(w, "web-0"))
		shown := a.claims()[0]
		a.hangUp()
		w.remove(w.keys.Instance("web-0"))
		pass(time.Second)
		h := helloTrusting(w, "web-0")
		h.Epoch, h.Claim = 10, shown
		r.refused(h, protocol.Refused_UNKNOWN)

		w.noted("web-0", rev) // which is deleted on purpose after that
		h.Epoch = 11
		if m := r.refused(h, protocol.Refused_RETIRED); m.GetRevision() != int64(rev) ||
			m.GetPhase() != protocol.PhaseGone {
			t.Errorf("it is told %v", m)
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
