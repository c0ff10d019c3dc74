package agent

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/identity/identitytest"
	"github.com/leasehold/leasehold/agent/protocol"
)

const month = 30 * 24 * time.Hour

// securedStory is an agent of a shard whose streams are secured.
func securedStory(t *testing.T, names []string, lifetime time.Duration, before func(*office),
	tell func(t *testing.T, r *running, o *office),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, lifetime)
		if before != nil {
			before(o)
		}
		r := startAgent(t, newSecuredShard(o, names...), newMachine(true), nil)
		pass(time.Millisecond)
		tell(t, r, o)
		r.end()
	})
}

// now returns the present state of the office.
func (o *office) now(look func(*office)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	look(o)
}

// lastReport returns the newest report received.
func lastReport(t *testing.T, all []heard) *protocol.Report {
	t.Helper()
	for _, h := range slices.Backward(all) {
		if report := h.message.GetReport(); report != nil {
			return report
		}
	}
	t.Fatalf("no report among %q", summary(all))
	return nil
}

func hellos(all []heard) int {
	n := 0
	for _, h := range all {
		if h.message.GetHello() != nil {
			n++
		}
	}
	return n
}

// proves SEC-1, SEC-2
func TestJoinsBeforeItsFirstStream(t *testing.T) {
	securedStory(t, []string{"a", "b"}, month, nil, func(t *testing.T, r *running, o *office) {
		got := r.shard.take()
		if n := hellos(got); n != 1 {
			t.Fatalf("heard %q, want one hello", summary(got))
		}
		report := lastReport(t, got)
		o.now(func(o *office) {
			if len(o.joins) != 1 || o.issued != 1 || len(o.shown) != 1 {
				t.Errorf("asked to join %d times, had %d certificates, showed %d", len(o.joins), o.issued, len(o.shown))
			}
			if d := o.trust.Digest(); got[0].message.GetHello().GetTrust() != d || report.GetTrust() != d {
				t.Errorf("trust is told as %q and %q, want %q", got[0].message.GetHello().GetTrust(), report.GetTrust(),
					d)
			}
			if c := report.GetCertificate(); c.GetIssuer() != o.issuer.Print() ||
				!c.GetEnds().AsTime().Equal(o.shown[0].NotAfter) {
				t.Errorf("certificate is told as %v", c)
			}
		})
		pass(maxReconnect)
		if r.shard.handshakes() != 3 { // to join, to speak, and to have a second connection ready
			t.Errorf("%d handshakes, want 3", r.shard.handshakes())
		}
	})
}

// The answer is lost over and over, and the agent is started again in between: one key, and it
// joins.
//
// proves SEC-2
func TestAJoinWhoseAnswerIsLostIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, month)
		o.loses = 4
		s, dir, m := newSecuredShard(o, "a"), t.TempDir(), newMachine(true)
		first := startAgent(t, s, m, func(c *Config) {
			c.StateDir, c.Farewell, c.KeepWorkload = dir, FarewellRestart, true
		})
		pass(time.Millisecond)
		first.cancel()
		if err := <-first.done; err != nil {
			t.Fatal(err)
		}
		if got := s.take(); len(got) != 0 {
			t.Fatalf("heard %q before it joined", summary(got))
		}
		second := startAgent(t, s, m, func(c *Config) { c.StateDir = dir })
		pass(time.Minute)
		if n := hellos(s.take()); n != 1 {
			t.Errorf("%d hellos, want one", n)
		}
		o.now(func(o *office) {
			if len(o.joins) != 5 || len(slices.Compact(slices.Sorted(slices.Values(o.joins)))) != 1 {
				t.Errorf("asked with keys %v, want 5 times the same", o.joins)
			}
		})
		second.end()
	})
}

// proves SEC-2, DET-14
func TestARefusedJoinIsTriedAgain(t *testing.T) {
	securedStory(t, []string{"a"}, month, func(o *office) { o.refuses = true },
		func(t *testing.T, r *running, o *office) {
			pass(10 * time.Minute)
			o.now(func(o *office) {
				if n := len(o.joins); n < 20 || n > 60 {
					t.Errorf("asked %d times in ten minutes, want about every 30s", n)
				}
			})
			if s := r.machine.State(); !s.Running {
				t.Errorf("workload is %+v, want it to run", s)
			}
			if got := r.shard.take(); len(got) != 0 {
				t.Errorf("heard %q without a certificate", summary(got))
			}
			o.set(func(o *office) { o.refuses = false })
			pass(maxReconnect)
			if n := hellos(r.shard.take()); n != 1 {
				t.Errorf("%d hellos once it is let in", n)
			}
		})
}

// A replica that cannot show who it is gets neither token nor hello.
//
// proves SEC-1, SEC-2
func TestAStrangerGetsNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, month)
		own := o.issuer
		s := newSecuredShard(o, "a")
		o.set(func(o *office) { o.issuer = identitytest.New(t, "stranger") })
		r := startAgent(t, s, newMachine(true), nil)
		pass(time.Minute)
		o.now(func(o *office) {
			if len(o.joins) != 0 {
				t.Error("a stranger was asked to let us join")
			}
		})
		o.set(func(o *office) { o.issuer = own })
		pass(maxReconnect)
		if n := hellos(s.take()); n != 1 {
			t.Errorf("%d hellos once the replica is the right one", n)
		}
		r.end()
	})
}

// proves SEC-3
func TestManyGenerationsOnOneStream(t *testing.T) {
	securedStory(t, []string{"a", "b"}, 10*time.Second, nil, func(t *testing.T, r *running, o *office) {
		served := r.shard.take()[0].replica
		warm := map[string]string{"a": "b", "b": "a"}[served]
		var ends time.Time
		for range 60 {
			pass(5 * time.Second)
			got := r.shard.take()
			if hellos(got) != 0 {
				t.Fatalf("heard %q, want the stream to go on", summary(got))
			}
			told := lastReport(t, got).GetCertificate().GetEnds().AsTime()
			if left := time.Until(told); left < 3*time.Second || !told.After(ends) {
				t.Errorf("reports a certificate with %v left, the last one ended %v", left, ends)
			}
			ends = told
		}
		o.now(func(o *office) {
			if o.issued < 50 || len(o.joins) != 1 {
				t.Errorf("%d certificates in five minutes, %d joins", o.issued, len(o.joins))
			}
		})
		// The second connection shows the newest, so moving over costs no handshake.
		shaken := r.shard.handshakes()
		r.shard.order(t, served,
			&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Move{Move: &protocol.Move{Reason: "going down"}}})
		pass(time.Millisecond)
		got := summary(r.shard.take())
		// one for the new second connection
		if !slices.Contains(got, warm+" hello") || r.shard.handshakes() > shaken+1 {
			t.Errorf("heard %q, %d handshakes", got, r.shard.handshakes()-shaken)
		}
		o.now(func(o *office) {
			if last := o.shown[len(o.shown)-1]; !last.NotAfter.Equal(ends) && !last.NotAfter.After(ends) {
				t.Errorf("showed a certificate that ends %v, newest is %v", last.NotAfter, ends)
			}
		})
	})
}

// proves SEC-3
func TestNoAnswerToARenewalIsAskedForAgain(t *testing.T) {
	securedStory(t, []string{"a"}, time.Minute, func(o *office) { o.mute = true },
		func(t *testing.T, r *running, o *office) {
			pass(45 * time.Second)
			got := summary(r.shard.take())
			asked := 0
			for _, line := range got {
				if line == "a renew" {
					asked++
				}
			}
			if asked < 4 {
				t.Errorf("asked %d times for a renewal in %q", asked, got)
			}
			o.set(func(o *office) { o.mute = false })
			pass(time.Minute)
			if got := r.shard.take(); hellos(got) != 0 ||
				time.Until(lastReport(t, got).GetCertificate().GetEnds().AsTime()) < 0 {
				t.Errorf("heard %q, want the stream to go on", summary(got))
			}
		})
}

// proves SEC-3
func TestAuthoritiesAreExchangedUnderWay(t *testing.T) {
	securedStory(t, []string{"a", "b"}, month, nil, func(t *testing.T, r *running, o *office) {
		served := r.shard.take()[0].replica
		old, next := o.issuer, identitytest.New(t, "agents 2")
		step := func(what string, wait time.Duration, trust identity.Trust,
			issuer *identitytest.Authority,
		) *protocol.Report {
			t.Helper()
			o.set(func(o *office) { o.trust, o.issuer = trust, issuer })
			pass(wait)
			got := r.shard.take()
			if hellos(got) != 0 {
				t.Fatalf("%s: heard %q, want the stream to go on", what, summary(got))
			}
			report := lastReport(t, got)
			if report.GetTrust() != trust.Digest() {
				t.Errorf("%s: trust was not reported at once", what)
			}
			return report
		}
		introduced := identitytest.Trust(next, old)
		if c := step("introduced", time.Millisecond, introduced, old).GetCertificate(); c.GetIssuer() != old.Print() {
			t.Errorf("introduced: certificate is %v", c)
		}
		takenOver := identitytest.Trust(old, next)
		if c := step("taken over", time.Millisecond, takenOver, next).GetCertificate(); c.GetIssuer() != old.Print() {
			t.Errorf("taken over: all ask at once")
		}
		pass(30 * time.Second)
		if c := lastReport(t, r.shard.take()).GetCertificate(); c.GetIssuer() != next.Print() {
			t.Errorf("half a minute later the certificate is %v", c)
		}
		step("the old one is gone", time.Millisecond, identitytest.Trust(next), next)
		o.now(func(o *office) {
			if o.issued != 2 {
				t.Errorf("%d certificates, want two", o.issued)
			}
		})
		r.shard.replicas[served].stop()
		pass(time.Second)
		if got := summary(r.shard.take()); len(got) == 0 || got[0] == served+" hello" {
			t.Errorf("heard %q, want it at the other replica", got)
		}
	})
}

// The machine was off until its certificate had expired: it shows it, and no token is used again.
//
// proves SEC-3, DET-14
func TestACertificateThatHasEndedEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, time.Hour)
		s, dir, m := newSecuredShard(o, "a"), t.TempDir(), newMachine(true)
		first := startAgent(t, s, m, func(c *Config) {
			c.StateDir, c.Farewell, c.KeepWorkload = dir, FarewellRestart, true
		})
		pass(time.Millisecond)
		first.cancel()
		if err := <-first.done; err != nil {
			t.Fatal(err)
		}
		s.take()
		<-time.After(2 * time.Hour)
		shaken := s.handshakes()
		second := startAgent(t, s, m, func(c *Config) { c.StateDir = dir })
		pass(10 * time.Minute)
		if got := s.take(); len(got) != 0 {
			t.Errorf("heard %q on a certificate that has ended", summary(got))
		}
		if n := s.handshakes() - shaken; n < 20 || n > 60 {
			t.Errorf("%d handshakes in ten minutes, want about one in 30s", n)
		}
		o.now(func(o *office) {
			if len(o.joins) != 1 {
				t.Errorf("%d joins, want only the first one", len(o.joins))
			}
		})
		if !m.State().Running {
			t.Error("the workload does not run")
		}
		second.end()
	})
}

// proves SEC-3
func TestADiskThatHangsStopsNoRenewal(t *testing.T) {
	securedStory(t, []string{"a"}, 20*time.Second, nil, func(t *testing.T, r *running, o *office) {
		r.shard.take()
		answers := make(chan struct{})
		r.machine.mu.Lock()
		r.machine.disk = answers
		r.machine.mu.Unlock()
		pass(5 * time.Minute)
		got := r.shard.take()
		if hellos(got) != 0 || time.Until(lastReport(t, got).GetCertificate().GetEnds().AsTime()) < 5*time.Second {
			t.Errorf("heard %q, want one stream and certificates that follow each other", summary(got))
		}
		r.machine.mu.Lock()
		r.machine.disk = nil
		r.machine.mu.Unlock()
		close(answers)
		pass(time.Millisecond)
	})
}
