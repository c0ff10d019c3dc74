package certificate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/identity/identitytest"
	"github.com/leasehold/leasehold/agent/protocol"
)

// A machine whose clock is twenty years ahead joins, finds its coordinators, renews in time and not
// more often, and finds them again after a restart of its agent.
//
// proves SAFE-13, SEC-3
func TestAClockThatIsWrongHarmsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		coordinator := ca.Own(t, identity.Identity{Shard: us.Shard, Role: identity.Coordinator, Name: "coord-a"},
			2*month)
		trust := identitytest.Trust(ca)
		made := time.Now()
		<-time.After(20 * 365 * 24 * time.Hour)
		wrong := time.Since(made) // so much is the machine's clock ahead of the coordinators' from now on
		right := func() time.Time { return time.Now().Add(-wrong) }
		answer := func(request []byte) *protocol.Certificate {
			key, err := identity.ReadRequest(request)
			if err != nil {
				t.Fatal(err)
			}
			c := certificate(ca.Certify(t, key, us, right().Add(-24*time.Hour), right().Add(month)), trust)
			c.Issued = timestamppb.New(right())
			return c
		}
		var h *holder
		finds := func(what string) {
			t.Helper()
			if _, err := handshake(t, h, false, coordinator, trust); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		told := func(c *Config, _ *Deps) { c.Bootstrap.Made = made.Format(time.RFC3339) }
		h = hold(t, ca, dir, told)
		finds("before it has joined")
		if err := h.Join(t.Context(), func(_ context.Context, r *protocol.JoinRequest) (*protocol.Certificate, error) {
			return answer(r.GetRequest()), nil
		}); err != nil {
			t.Fatal(err)
		}
		renewed := 0
		renew := func(until time.Duration) {
			t.Helper()
			end := time.Now().Add(until)
			for {
				request, look := h.Renewal(time.Now())
				if request != nil {
					renewed++
					h.Accept(answer(request))
					synctest.Wait()
					continue
				}
				if !look.Before(end) {
					<-time.After(time.Until(end))
					return
				}
				<-time.After(time.Until(look))
			}
		}
		renew(month)
		if renewed < 2 || renewed > 3 {
			t.Errorf("renewed %d times within a lifetime, want every third of it", renewed)
		}
		finds("after a month")
		h.stop()

		h = hold(t, ca, dir, told)
		defer h.stop()
		finds("after a restart")
		h.Tell(timestamppb.New(right())) // the welcome
		renewed = 0
		renew(month)
		if renewed < 2 || renewed > 4 {
			t.Errorf("renewed %d times within a lifetime after a restart, want every third of it", renewed)
		}
		if n := h.log.count("has ended"); n > 0 {
			t.Errorf("the log calls a good certificate ended %d times", n)
		}
	})
}

// A coordinator whose clock has jumped by more than a day cannot replace a machine's good
// certificate: the one that it issues would be useless once its clock is right, and with other
// coordinators. A welcome from that coordinator proves nothing about its clock, however often the
// machine returns.
//
// proves SAFE-13, SEC-3
func TestACoordinatorsClockThatHasJumpedHarmsNothing(t *testing.T) {
	for name, jump := range map[string]struct {
		by       time.Duration
		welcomes int
		restart  bool // of the agent, before the first of them
	}{
		"ahead": {2 * month, 0, false}, "behind": {-2 * month, 0, false},
		"ahead, on a stream since then":                        {2 * month, 1, false},
		"behind, on a stream since then":                       {-2 * month, 1, false},
		"ahead, on the second stream":                          {2 * month, 2, false},
		"by two days, on a stream since then":                  {48 * time.Hour, 1, false},
		"ahead, and the first that a restarted agent reaches":  {2 * month, 1, true},
		"behind, and the first that a restarted agent reaches": {-2 * month, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
				<-time.After(3 * month) // there is a time before
				h := hold(t, ca, dir, nil)
				defer func() { h.stop() }()
				h.join(month)
				h.Tell(timestamppb.Now())
				ends := h.Status().Ends
				renew := func(off time.Duration) {
					t.Helper()
					request, err := h.ask(true)
					if err != nil {
						t.Fatal(err)
					}
					key, err := identity.ReadRequest(request)
					if err != nil {
						t.Fatal(err)
					}
					theirs := time.Now().Add(off)
					c := certificate(ca.Certify(t, key, us, theirs.Add(-24*time.Hour), theirs.Add(month)),
						identitytest.Trust(ca))
					c.Issued = timestamppb.New(theirs)
					h.Accept(c)
					synctest.Wait()
				}
				<-time.After(month / 2)
				if jump.restart {
					h.stop()
					h = hold(t, ca, dir, nil)
				}
				for range jump.welcomes {
					h.Tell(timestamppb.New(time.Now().Add(jump.by)))
					<-time.After(time.Minute)
				}
				renew(jump.by)
				if got := h.Status().Ends; !got.Equal(ends) {
					t.Errorf("it ends %s, not %s", got, ends)
				}
				if off := time.Since(h.Now()).Abs(); jump.welcomes == 0 && off > time.Second {
					t.Errorf("the answer has moved the time by %s", off)
				}
				if h.log.count("clock has jumped") != 1 {
					t.Errorf("log %s", h.log.all())
				}
				if jump.welcomes > 0 {
					h.Tell(timestamppb.Now()) // another coordinator
				}
				renew(0)
				if got := h.Status().Ends; !got.After(ends) {
					t.Errorf("it is not renewed: it ends %s", got)
				}
			})
		})
	}
}

// Of two times that differ, the earlier one counts until the later one has held for a day.
//
// proves SAFE-13
func TestATimeThatContradictsAnEarlierOneCountsAfterADay(t *testing.T) {
	const day = 24 * time.Hour
	here := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) // the machine's time, which is wrong
	type word struct {
		after, off time.Duration
	}
	for name, c := range map[string]struct {
		words []word
		after time.Duration // after the last word
		want  time.Duration
	}{
		"one":                          {[]word{{0, month}}, day, month},
		"nearly the same":              {[]word{{0, month}, {day, month + time.Second}}, 0, month + time.Second},
		"another":                      {[]word{{0, month}, {day, 0}}, day - time.Second, month},
		"another, for a day":           {[]word{{0, month}, {day, 0}}, day, 0},
		"another, again and again":     {[]word{{0, month}, {0, 0}, {day / 2, 0}}, day / 2, 0},
		"another, and the first again": {[]word{{0, month}, {0, 0}, {day / 2, month}}, day, month},
		"another, and again later":     {[]word{{0, month}, {0, 0}, {day / 2, month}, {day / 2, 0}}, day / 2, month},
		"two others, then a day":       {[]word{{0, month}, {0, 0}, {day / 2, -month}}, day, -month},
		"two others, then half a day":  {[]word{{0, month}, {0, 0}, {day / 2, -month}}, day / 2, month},
	} {
		t.Run(name, func(t *testing.T) {
			now, k := here, clock{}
			for _, w := range c.words {
				now = now.Add(w.after)
				k.tell(now.Add(w.off), now)
			}
			now = now.Add(c.after)
			if got := k.proven(now).now(now).Sub(now); got != c.want {
				t.Errorf("what counts is %s off, want %s", got, c.want)
			}
		})
	}
}

// A restarted agent checks the first time that it receives against what the last run left, unless
// that cannot be true.
//
// proves SAFE-13
func TestTheFirstTimeAfterARestartIsMeasured(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		h := hold(t, ca, dir, nil)
		h.join(month)
		h.stop()
		kept := h.draft
		const hour = time.Hour
		for name, c := range map[string]struct {
			off  time.Duration // of the machine's clock when the certificate was issued
			set  time.Duration // by so much it was set since
			told time.Duration // by so much a coordinator is off the truth
			want time.Duration // what counts then
		}{
			"right":                              {0, 0, 0, 0},
			"right, and wrong here":              {20 * 365 * 24 * hour, 0, 0, 0},
			"wrong":                              {0, 0, 2 * month, 0},
			"wrong, and wrong here":              {-5 * hour, 0, 2 * month, 0},
			"right, and the clock here was lost": {0, -20 * 365 * 24 * hour, 0, 0},
			"wrong, and the clock here was lost": {0, -20 * 365 * 24 * hour, 2 * month, 2 * month},
			"right, and the clock here was set":  {0, 5 * hour, 0, 5 * hour}, // until it has held for a day
		} {
			p, truth := kept, kept.issued.Add(10*24*hour)
			p.here = p.issued.Add(c.off)
			now := truth.Add(c.off + c.set)
			k := clock{kept: keptBy(p, now)}
			k.tell(truth.Add(c.told), now)
			if got := k.proven(now).now(now).Sub(truth); got != c.want {
				t.Errorf("%s: what counts is %s off, want %s", name, got, c.want)
			}
		}
	})
}
