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

// A coordinator whose clock has jumped by more than a day takes no good certificate from a machine:
// the one that it issues would be of no use once its clock is right, nor with other coordinators.
//
// proves SAFE-13, SEC-3
func TestACoordinatorsClockThatHasJumpedHarmsNothing(t *testing.T) {
	for name, by := range map[string]time.Duration{"ahead": 2 * month, "behind": -2 * month} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
				<-time.After(3 * month) // there is a time before
				h := hold(t, ca, dir, nil)
				defer h.stop()
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
				renew(by)
				if got := h.Status().Ends; !got.Equal(ends) || time.Since(h.Now()).Abs() > time.Second {
					t.Errorf("it ends %s, not %s, and it is %s", got, ends, h.Now())
				}
				if h.log.count("clock has jumped") != 1 {
					t.Errorf("log %s", h.log.all())
				}
				renew(0)
				if got := h.Status().Ends; !got.After(ends) {
					t.Errorf("it is not renewed: it ends %s", got)
				}
			})
		})
	}
}
