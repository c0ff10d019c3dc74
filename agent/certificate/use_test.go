package certificate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/identity/identitytest"
	"github.com/leasehold/leasehold/agent/protocol"
)

// proves SEC-2, FILE-2
func TestJoinsOnceAndKeepsWhatItGot(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		h := hold(t, ca, dir, nil)
		if h.Status().Joined {
			t.Fatal("joined before it has")
		}
		var asked *protocol.JoinRequest
		if err := h.Join(t.Context(), func(_ context.Context, r *protocol.JoinRequest) (*protocol.Certificate, error) {
			asked = r
			return h.answer(r.GetRequest(), month), nil
		}); err != nil {
			t.Fatal(err)
		}
		if asked.GetShard() != us.Shard || asked.GetInstance() != us.Name || asked.GetToken() != "token" {
			t.Errorf("asked with %v", asked)
		}
		got := h.Status()
		if !got.Joined || got.Issuer != ca.Print() || got.Trust != identitytest.Trust(ca).Digest() ||
			time.Until(got.Ends).Round(time.Hour) != month {
			t.Errorf("status is %+v", got)
		}
		select {
		case <-h.Changed():
		default:
			t.Error("it was not told that the status is new")
		}
		h.stop()

		info, err := os.Stat(filepath.Join(dir, fileName))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("file: %v, %v, want mode 0600", info, err)
		}
		names, err := os.ReadDir(dir)
		if err != nil || len(names) != 1 {
			t.Errorf("directory has %v (%v), want the one file", names, err)
		}
		again := hold(t, ca, dir, nil)
		defer again.stop()
		if again.Status() != got {
			t.Errorf("after a restart it is %+v, was %+v", again.Status(), got)
		}
		if err := again.Join(t.Context(), func(context.Context, *protocol.JoinRequest) (*protocol.Certificate, error) {
			t.Error("a machine with a certificate asked for another with its token")
			return nil, errors.New("asked")
		}); err != nil {
			t.Error(err)
		}
	})
}

// The answer is lost, the agent is killed, and the next one asks with the same key.
//
// proves SEC-2
func TestAJoinWithoutAnAnswerIsRepeatedWithTheSameKey(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		var prints []string
		for range 3 {
			h := hold(t, ca, dir, nil)
			for range 2 {
				err := h.Join(t.Context(), func(_ context.Context, r *protocol.JoinRequest) (*protocol.Certificate,
					error,
				) {
					key, err := identity.ReadRequest(r.GetRequest())
					if err != nil {
						t.Fatal(err)
					}
					name, err := identity.KeyPrint(key)
					if err != nil {
						t.Fatal(err)
					}
					prints = append(prints, name)
					if len(prints) == 6 {
						return h.answer(r.GetRequest(), month), nil
					}
					return nil, errors.New("connection reset")
				})
				if (err == nil) != (len(prints) == 6) {
					t.Errorf("try %d: %v", len(prints), err)
				}
			}
			h.stop()
		}
		if slices.Sort(prints); len(slices.Compact(prints)) != 1 {
			t.Errorf("asked with keys %v, want one", prints)
		}
	})
}

// A call is given up while its answer is on the way to the disk: the next one must not ask with
// another key.
//
// proves SEC-2
func TestAnAnswerToACallThatWasGivenUpCounts(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		disk := &disk{}
		h := hold(t, ca, dir, func(_ *Config, d *Deps) { d.Write = disk.write })
		defer h.stop()
		ctx, giveUp := context.WithCancel(t.Context())
		err := h.Join(ctx, func(_ context.Context, r *protocol.JoinRequest) (*protocol.Certificate, error) {
			disk.hang()
			giveUp()
			return h.answer(r.GetRequest(), month), nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("join: %v, want it given up", err)
		}
		if err := h.Join(t.Context(), refuse); err != nil {
			t.Errorf("the next try: %v, want it to find the certificate", err)
		}
		disk.answer()
	})
}

// proves SEC-2
func TestARefusedJoinIsLoggedOnceWithWhatToDo(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		h := hold(t, ca, dir, nil)
		defer h.stop()
		for range 5 {
			if err := h.Join(t.Context(), refuse); !errors.Is(err, ErrNotJoined) {
				t.Fatalf("join: %v, want ErrNotJoined", err)
			}
		}
		if n := h.log.count("join refused"); n != 1 || !strings.Contains(h.log.all(), "leasehold explain web-0-a") {
			t.Errorf("told %d times, want once with the next step: %s", n, h.log.all())
		}
		if strings.Contains(h.log.all(), `"token"`) {
			t.Errorf("the token is in the log: %s", h.log.all())
		}
		h.join(month)
		if !h.Status().Joined {
			t.Error("not joined although it was let in at last")
		}
	})
}

func TestWithoutATokenNobodyIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		h := hold(t, ca, dir, func(c *Config, _ *Deps) { c.Bootstrap.JoinToken = "" })
		defer h.stop()
		for range 3 {
			err := h.Join(t.Context(), func(context.Context, *protocol.JoinRequest) (*protocol.Certificate, error) {
				t.Error("asked")
				return nil, errors.New("asked")
			})
			if !errors.Is(err, ErrNotJoined) {
				t.Errorf("join: %v", err)
			}
		}
		if h.log.count("no join token") != 1 {
			t.Errorf("log is %s", h.log.all())
		}
	})
}

// proves SEC-1
func TestWhatDoesNotFitChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		h := hold(t, ca, dir, nil)
		defer h.stop()
		h.join(month)
		before := h.Status()
		passed(month / 2)
		request, _ := h.Renewal(time.Now())
		key, err := identity.ReadRequest(request)
		if err != nil {
			t.Fatal(err)
		}
		other, err := identity.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		stranger := identitytest.New(t, "stranger")
		trust := identitytest.Trust(ca)
		sign := func(by *identitytest.Authority, who identity.Identity, from, until time.Duration) []byte {
			return by.Certify(t, key, who, now.Add(from), now.Add(until))
		}
		for name, c := range map[string]struct {
			answer *protocol.Certificate
			want   string
		}{
			"another key": {
				certificate(ca.Certify(t, &other.PublicKey, us, now, now.Add(time.Hour)), trust),
				"not for the key",
			},
			"another instance": {certificate(sign(ca,
				identity.Identity{Shard: "s1", Role: identity.Agent, Name: "web-1-b"}, 0, month), trust), "web-1-b"},
			"another shard": {
				certificate(sign(ca,
					identity.Identity{Shard: "s2", Role: identity.Agent, Name: us.Name}, 0, month), trust),
				"leasehold://s2",
			},
			"a coordinator's": {
				certificate(sign(ca,
					identity.Identity{Shard: "s1", Role: identity.Coordinator, Name: us.Name}, 0, month), trust),
				"coordinator/web-0-a",
			},
			"a foreign authority": {certificate(sign(stranger, us, 0, month), trust), "not signed by an authority"},
			"ended": {
				certificate(sign(ca, us, -time.Hour, -time.Minute), trust),
				"the clock of this machine says 2000-01-16",
			},
			"not yet valid": {
				certificate(sign(ca, us, time.Hour, month), trust),
				"the clock of this machine says 2000-01-16",
			},
			"no chain":      {&protocol.Certificate{Trust: told(trust)}, "0 certificates"},
			"endless chain": {&protocol.Certificate{Chain: make([][]byte, 9), Trust: told(trust)}, "9 certificates"},
			"rubbish": {
				&protocol.Certificate{Chain: [][]byte{[]byte("rubbish")}, Trust: told(trust)},
				"certificate:",
			},
			"foreign, no trust": {
				&protocol.Certificate{Chain: [][]byte{sign(stranger, us, 0, month)}},
				"not signed by an authority",
			},
			"no authority": {certificate(sign(ca, us, 0, month), identity.Trust{}), "no certificate authority"},
			"trust in an agent": {
				certificate(sign(ca, us, 0, month), identity.Trust{Authorities: h.force.chain}),
				"is not a certificate authority",
			},
		} {
			h.Accept(c.answer)
			synctest.Wait()
			if h.Status() != before {
				t.Errorf("%s: status is %+v, was %+v", name, h.Status(), before)
			}
			if h.log.count(c.want) == 0 {
				t.Errorf("%s: %q is not in the log: %s", name, c.want, h.log.all())
			}
		}
		h.SetTrust(&protocol.Trust{})
		h.SetTrust(&protocol.Trust{Authorities: make([][]byte, 100)})
		synctest.Wait()
		if h.Status() != before || h.log.count("a coordinator sent unusable trust") != 2 {
			t.Errorf("after trust of no use: %+v, %s", h.Status(), h.log.all())
		}
		h.Accept(h.answer(request, month))
		synctest.Wait()
		if h.Status() == before {
			t.Error("the right answer was not taken after all these")
		}
	})
}

// proves SEC-3
func TestRenewsOverAndOver(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		h := hold(t, ca, dir, nil)
		defer h.stop()
		h.join(month)
		keys := map[string]bool{}
		for range 20 {
			request, look := h.Renewal(time.Now())
			if request != nil {
				t.Fatal("asked before its time")
			}
			passed(time.Until(look))
			_, before := h.Credentials(false)
			if request, _ = h.Renewal(time.Now()); request == nil {
				t.Fatal("not asked when it said it would")
			}
			if again, _ := h.Renewal(time.Now()); again != nil {
				t.Error("asked twice")
			}
			key, err := identity.ReadRequest(request)
			if err != nil {
				t.Fatal(err)
			}
			name, err := identity.KeyPrint(key)
			if err != nil || keys[name] {
				t.Errorf("key %s (%v) was used before", name, err)
			}
			keys[name] = true
			answer := h.answer(request, month)
			h.Accept(answer)
			h.Accept(answer) // asked twice, say
			synctest.Wait()
			if _, now := h.Credentials(false); now != before+1 {
				t.Errorf("generation %d follows %d", now, before)
			}
			if left := time.Until(h.Status().Ends); left < month-time.Minute {
				t.Errorf("renewed, and %v are left", left)
			}
		}
		if h.log.count(`"level":"WARN"`) != 0 {
			t.Errorf("log is %s", h.log.all())
		}
	})
}

// proves SEC-3
func TestAskedForAgainUntilItEndsAndThenSaysWhatToDo(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		h := hold(t, ca, dir, nil)
		defer h.stop()
		h.join(time.Hour)
		tries := 0
		for time.Now().Before(h.Status().Ends) {
			request, look := h.Renewal(time.Now())
			if request != nil {
				tries++
			}
			passed(max(time.Second, time.Until(look)))
		}
		if tries < 10 || h.log.count("ends soon and is not renewed") != 1 {
			t.Errorf("%d tries; log is %s", tries, h.log.all())
		}
		for range 3 {
			if err := h.Join(t.Context(), refuse); err != nil {
				t.Errorf("an expired one is presented nevertheless, got %v", err)
			}
		}
		if h.log.count("has expired") != 1 || h.log.count("leasehold instance replace web-0-a") != 1 ||
			h.log.count("the clock of this machine says") != 1 {
			t.Errorf("log is %s", h.log.all())
		}
	})
}

// proves SEC-3
func TestAnotherAuthorityTakesOver(t *testing.T) {
	bubble(t, func(t *testing.T, old *identitytest.Authority, dir string) {
		h := hold(t, old, dir, nil)
		h.join(month)
		next := identitytest.New(t, "agents 2")
		introduced := identitytest.Trust(next, old)
		h.SetTrust(told(introduced))
		synctest.Wait()
		if request, _ := h.Renewal(time.Now()); request != nil || h.Status().Trust != introduced.Digest() {
			t.Errorf("introducing another: asks %t, status %+v", request != nil, h.Status())
		}
		takenOver := identitytest.Trust(old, next)
		h.SetTrust(told(takenOver))
		synctest.Wait()
		h.stop()

		h = hold(t, old, dir, nil) // trust is kept, and that it is time
		defer h.stop()
		if h.Status().Trust != takenOver.Digest() {
			t.Error("trust was not kept")
		}
		request, _ := h.Renewal(time.Now())
		if request == nil {
			t.Fatal("no early request")
		}
		// A replica that has not heard of it yet: once more, but not in a circle. and the agents' trust
		// stays
		h.Accept(&protocol.Certificate{Chain: [][]byte{old.Issue(t, request, us, month)}})
		synctest.Wait()
		request, look := h.Renewal(time.Now())
		if request != nil || time.Until(look) != maxPause || h.Status().Trust != takenOver.Digest() {
			t.Errorf("after the old one's once more: asks %t, looks again in %v", request != nil, time.Until(look))
		}
		passed(maxPause)
		if request, _ = h.Renewal(time.Now()); request == nil {
			t.Fatal("no second early request")
		}
		h.Accept(certificate(next.Issue(t, request, us, month), takenOver))
		synctest.Wait()
		if h.Status().Issuer != next.Print() {
			t.Errorf("status is %+v", h.Status())
		}
		h.SetTrust(told(identitytest.Trust(next)))
		synctest.Wait()
		if _, look := h.Renewal(time.Now()); time.Until(look) < month/4 {
			t.Errorf("looks again in %v although all is well", time.Until(look))
		}
	})
}

func passed(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
