package guard_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/guard"
)

// proves SEC-5
func TestHandshakesEndInTime(t *testing.T) {
	onStreet(t, small(), func(s *street) {
		silent := s.comes("10.0.0.1:1")
		slow := s.comes("10.0.0.2:1")
		fmt.Fprint(slow, "web")
		agent := s.comes("10.0.0.3:1").says("web-1")
		stranger := s.comes("10.0.0.4:1").says("")
		pass(5*time.Second - time.Nanosecond)
		if silent.isOut() || slow.isOut() || agent.isOut() || stranger.isOut() {
			t.Error("a connection was closed too early")
		}
		pass(time.Nanosecond)
		if !silent.isOut() || !slow.isOut() || agent.isOut() || stranger.isOut() {
			t.Errorf("out: silent %v, slow %v, agent %v, stranger %v; want the first two", silent.isOut(), slow.isOut(),
				agent.isOut(), stranger.isOut())
		}
		pass(25 * time.Second)
		if agent.isOut() || !stranger.isOut() {
			t.Errorf("out: agent %v, stranger %v; want the second", agent.isOut(), stranger.isOut())
		}
		pass(time.Hour) // a connection without a stream is legitimate
		if agent.isOut() {
			t.Error("a named connection was closed")
		}
		agent.Close()
		want := "10.0.0.1:1: handshake not finished in time\n10.0.0.2:1: handshake not finished in time\n" +
			"10.0.0.4:1: without a certificate a client can only join, and joining takes less time"
		if got := s.whys(); got != want &&
			got != strings.Join([]string{
				strings.Split(want, "\n")[1], strings.Split(want, "\n")[0],
				strings.Split(want, "\n")[2],
			}, "\n") {
			t.Errorf("told:\n%s\nwant:\n%s", got, want)
		}
	})
}

// A client that leaves handshakes unfinished loses them to later clients from any address.
//
// proves SEC-5
func TestPendingHandshakesMakeRoom(t *testing.T) {
	onStreet(t, small(), func(s *street) {
		var here []*caller
		for i := range 3 {
			here = append(here, s.comes(fmt.Sprintf("10.0.0.1:%d", i)))
			pass(time.Millisecond)
		}
		if !s.comes("10.0.0.1:3").isOut() {
			t.Error("a fourth of one address is let in, though the others are young")
		}
		pass(time.Second)
		next := s.comes("10.0.0.1:4")
		if !here[0].isOut() || here[1].isOut() || next.isOut() {
			t.Error("the eldest does not go for the next of its address")
		}
		next.says("web-1")
		pass(time.Second)
		v6 := []*caller{s.comes("[2001:db8::1]:1"), s.comes("[2001:db8::2]:1"), s.comes("[2001:db8::3]:1")}
		if !s.comes("[2001:db8::4]:1").isOut() {
			t.Error("each address of an IPv6 network counts for itself")
		}
		s.comes("10.0.0.2:1") // six in all
		if here[1].isOut() {
			t.Error("the second went too soon")
		}
		other := s.comes("10.0.0.3:1")
		if !here[1].isOut() || here[2].isOut() || other.isOut() {
			t.Error("the eldest of all does not go when there are too many in all")
		}
		for _, c := range v6 {
			if c.isOut() {
				t.Error("a young one went")
			}
		}
		if next.isOut() {
			t.Error("an agent went")
		}
		pass(time.Minute)
		next.Close()
	})
}

// One address cannot exceed its bound when there are too many in all: no connection of another
// address is closed for it.
//
// proves SEC-5
func TestConnectionBeyondTheBoundOfItsAddressDisplacesNoOther(t *testing.T) {
	onStreet(t, small(), func(s *street) {
		others := []*caller{s.comes("10.0.0.2:1"), s.comes("10.0.0.3:1"), s.comes("10.0.0.4:1")}
		pass(time.Second) // the others are old enough to make room
		for i := range 3 {
			if s.comes(fmt.Sprintf("10.0.0.1:%d", i)).isOut() {
				t.Error("a connection within all bounds is closed")
			}
		}
		if !s.comes("10.0.0.1:3").isOut() {
			t.Error("a fourth of one address is accepted because there are too many in all")
		}
		for _, c := range others {
			if c.isOut() {
				t.Error("a connection of another address was closed for it")
			}
		}
		if want := "10.0.0.1:3: too many unfinished handshakes of one address"; s.whys() != want {
			t.Errorf("refusals %q, want %q", s.whys(), want)
		}
		pass(time.Minute)
	})
}

// proves SEC-5
func TestConnectionsOfANameAreBounded(t *testing.T) {
	onStreet(t, small(), func(s *street) {
		first, second := s.comes("10.0.0.1:1").says("web-1"), s.comes("10.0.0.1:2").says("web-1")
		other := s.comes("10.0.0.1:3").says("web-2")
		third := s.comes("10.0.0.9:1").says("web-1")
		if !first.isOut() || second.isOut() || third.isOut() || other.isOut() {
			t.Error("the eldest of a name does not go, or another does")
		}
		if want := "10.0.0.1:1 web-1: too many connections with one certificate's name"; s.whys() != want {
			t.Errorf("told %q, want %q", s.whys(), want)
		}
		second.Close()
		third.Close()
		other.Close()
		synctest.Wait()
	})
}

// proves SEC-5
func TestAnonymousConnectionsOfASourceAreBounded(t *testing.T) {
	onStreet(t, small(), func(s *street) {
		first, second := s.comes("10.0.0.1:1").says(""), s.comes("10.0.0.1:2").says("")
		if !s.comes("10.0.0.1:3").says("").isOut() {
			t.Error("a third is let in, though the others are young")
		}
		pass(time.Second)
		third := s.comes("10.0.0.1:4").says("")
		if !first.isOut() || second.isOut() || third.isOut() {
			t.Error("the eldest without a name does not go for the next")
		}
		pass(time.Minute)
	})
}

// Strangers never keep agents out: with too many connections in all, theirs are closed first.
//
// proves SEC-5
func TestStrangersMakeRoomForAgents(t *testing.T) {
	b := small()
	b.AnonymousPerSource = 100
	onStreet(t, b, func(s *street) {
		var strangers, agents []*caller
		for i := range 5 {
			strangers = append(strangers, s.comes(fmt.Sprintf("10.0.0.1:%d", i)).says(""))
			pass(time.Millisecond)
		}
		for i := range 5 {
			agents = append(agents, s.comes(fmt.Sprintf("10.0.0.2:%d", i)).says(fmt.Sprintf("web-%d", i)))
		}
		pass(time.Second)
		for i := range 5 {
			agents = append(agents, s.comes(fmt.Sprintf("10.0.0.2:%d", 5+i)).says(fmt.Sprintf("web-%d", 5+i)))
			if !strangers[i].isOut() {
				t.Errorf("stranger %d stays", i)
			}
		}
		for i, a := range agents {
			if a.isOut() {
				t.Errorf("agent %d is out", i)
			}
		}
		if !s.comes("10.0.0.3:1").isOut() {
			t.Error("there is room beyond the bound")
		}
		for _, a := range agents {
			a.Close()
		}
		synctest.Wait()
	})
}

// proves SEC-5
func TestAcceptingGoesOnWhenDescriptorsAreShort(t *testing.T) {
	onStreet(t, small(), func(s *street) {
		idle := s.comes("10.0.0.1:1")
		pass(2 * time.Second)
		for range 20 {
			s.incoming <- incoming{err: &net.OpError{Op: "accept", Err: syscall.EMFILE}}
		}
		s.incoming <- incoming{err: errors.New("whatever")}
		if !idle.isOut() {
			t.Error("the unfinished connection keeps its descriptor")
		}
		agent := s.comes("10.0.0.2:1").says("web-1")
		if agent.isOut() {
			t.Error("no connection is accepted any more")
		}
		agent.Close()
		synctest.Wait()
	})
}

// proves SEC-5
func TestCloseConnectionOfAStream(t *testing.T) {
	onStreet(t, small(), func(s *street) {
		agent, other := s.comes("10.0.0.1:1").says("web-1"), s.comes("10.0.0.1:2").says("web-2")
		guard.CloseConnection(t.Context(), "no peer") // nothing happens
		guard.CloseConnection(s.served["web-1"], "it does not read")
		guard.CloseConnection(s.served["web-1"], "again")
		if !agent.isOut() || other.isOut() {
			t.Error("not just the one that is cut off is out")
		}
		if want := "10.0.0.1:1 web-1: it does not read"; s.whys() != want {
			t.Errorf("told %q, want %q", s.whys(), want)
		}
		other.Close()
		synctest.Wait()
	})
}

// A handshake holds a permit while it computes, and none while it waits for its client.
//
// proves SEC-5
func TestWaitingHandshakesDoNotBlockOthers(t *testing.T) {
	onStreet(t, small(), func(s *street) {
		waiting := s.comes("10.0.0.1:1")
		fmt.Fprint(waiting, "we")
		agent := s.comes("10.0.0.2:1").says("web-1")
		if _, in := s.served["web-1"]; !in {
			t.Error("a handshake waits for another that waits for its caller")
		}
		agent.Close()
		waiting.Close()
		synctest.Wait()
	})
}

// A thousand agents of one host, or behind one address, may come at once, with two connections
// each.
//
// proves SEC-5
func TestAThousandAgentsOfOneAddressGetIn(t *testing.T) {
	onStreet(t, guard.DefaultBounds(20_000), func(s *street) {
		var agents []*caller
		for i := range 2000 {
			agents = append(agents, s.comes(fmt.Sprintf("10.0.0.1:%d", i)))
		}
		pass(2 * time.Second)
		for i, a := range agents {
			a.says(fmt.Sprintf("web-%d", i/2))
		}
		for i, a := range agents {
			if a.isOut() {
				t.Fatalf("connection %d is out: %s", i, s.whys())
			}
		}
		if c := s.guard.Counts(); c.Total != 2000 || c.Pending != 0 {
			t.Errorf("the guard counts %+v", c)
		}
		for _, a := range agents {
			a.Close()
		}
		synctest.Wait()
	})
}

// When far more clients arrive than there is time for, no work is wasted: handshakes that begin
// also finish, and the others are closed after half of their time, so that the clients retry.
//
// proves SEC-5, SAFE-11
func TestHandshakesThatBeginFinishUnderOverload(t *testing.T) {
	onStreetWith(t, guard.DefaultBounds(20_000), laborious{}, func(s *street) {
		const crowd = 2000 // which take one processor 40 s
		var all sync.WaitGroup
		var through, away int
		var mu sync.Mutex
		begun := time.Now()
		for i := range crowd {
			ours, theirs := net.Pipe()
			s.incoming <- incoming{conn: from{theirs, at(fmt.Sprintf("10.0.%d.%d:1", i/250, i%250))}}
			all.Go(func() {
				defer ours.Close()
				answers := bufio.NewReader(ours)
				for n, says := range []string{"hello", fmt.Sprintf("web-%d", i)} {
					_, err := fmt.Fprintln(ours, says)
					if err == nil {
						_, err = answers.ReadString('\n')
					}
					mu.Lock()
					switch {
					case err != nil && n > 0:
						t.Errorf("a handshake that had begun was closed after %s", time.Since(begun))
					case err != nil && time.Since(begun) > 3*time.Second:
						t.Errorf("a handshake that had not begun was closed after %s", time.Since(begun))
					case err != nil:
						away++
					case n > 0:
						through++
					}
					mu.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if least := int(2500*time.Millisecond/(2*labour)) * guard.DefaultBounds(20_000).Handshakes; through < least ||
			through+away != crowd {
			t.Errorf("%d got through and %d were closed, want at least %d and all others", through, away, least)
		}
		if got := s.whys(); strings.Count(got, "too many handshakes at once") != away {
			t.Errorf("told:\n%s", got[:min(len(got), 500)])
		}
	})
}
