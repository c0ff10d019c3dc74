package network

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWithoutRulesItIsAsIfItWereNotThere(t *testing.T) {
	_, address, y := newNetwork(t)
	c := connect(t, address, y)
	c.from.say("hello")
	c.to.hears("hello")
	c.to.say("welcome")
	c.from.hears("welcome")
	if err := c.from.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.to.hearsEnd(io.EOF)
	c.to.say("you have hung up, and hear me still")
	c.from.hears("you have hung up, and hear me still")
	c.to.Close()
	c.from.hearsEnd(io.EOF)
}

func TestAnRSTIsPassedOn(t *testing.T) {
	_, address, y := newNetwork(t)
	c := connect(t, address, y)
	c.from.say("are you there?")
	c.to.hears("are you there?")
	cut(c.to.TCPConn)
	c.from.hearsEnd(errReset)
}

func TestWhereNobodyListensNobodyIsReached(t *testing.T) {
	n, address, y := newNetwork(t)
	y.Close()
	isRefused(t, address, "")
	if n.Held() != 0 {
		t.Errorf("%d wait", n.Held())
	}
}

func TestSilenceHoldsEverythingAndLosesNothing(t *testing.T) {
	n, address, y := newNetwork(t)
	c := connect(t, address, y)
	c.from.say("before")
	c.to.hears("before")
	lift := n.Impose(Rule{From: Any("x"), To: Any("y"), Silent: true})
	for _, word := range []string{"one", "two", "three"} {
		c.from.say(word)
	}
	c.to.say("answer")
	c.from.Close()
	until(t, "both directions are held", func() bool { return n.Held() == 2 })
	c.to.hearsNothing()
	lift()
	for _, word := range []string{"one", "two", "three"} {
		c.to.hears(word)
	}
	lift() // once more, for nothing
	c.to.say("anyone there?")
	// A process that is gone answers with an RST.
	until(t, "a client of the dead hears of it",
		func() bool { _, err := c.to.Write([]byte("?")); return err != nil })
	until(t, "nothing waits", func() bool { return n.Held() == 0 })
}

func TestOneWaySilence(t *testing.T) {
	for name, only := range map[string]Direction{"there": There, "back": Back} {
		t.Run(name, func(t *testing.T) {
			n, address, y := newNetwork(t)
			c := connect(t, address, y)
			dumb, loud := c.from, c.to
			if only == Back {
				dumb, loud = loud, dumb
			}
			lift := n.Impose(Rule{From: Any("x"), To: Any("y"), Only: only, Silent: true})
			dumb.say("held")
			until(t, "it is held", func() bool { return n.Held() == 1 })
			loud.say("passes")
			dumb.hears("passes")
			loud.hearsNothing()
			dumb.Close()
			// That it has gone cannot be heard either, though the other speaks on, and would be
			// told so.
			for range 10 {
				loud.say("do you hear me?")
			}
			loud.hearsNothing()
			lift()
			loud.hears("held")
			until(t, "it is heard that the other has gone",
				func() bool { _, err := loud.Write([]byte("?")); return err != nil })
		})
	}
}

func TestAnRSTDoesNotComeThroughSilence(t *testing.T) {
	n, address, y := newNetwork(t)
	c := connect(t, address, y)
	if err := c.from.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.to.hearsEnd(io.EOF)
	lift := n.Impose(Rule{From: Any("x"), Only: There, Silent: true})
	c.from.Close()
	until(t, "the RST is held", func() bool { c.to.say("do you hear me?"); return n.Held() == 1 })
	lift()
	until(t, "it arrives", func() bool { _, err := c.to.Write([]byte("?")); return err != nil })
}

func TestSlownessEndsWithItsRule(t *testing.T) {
	n, address, y := newNetwork(t)
	c := connect(t, address, y)
	lift := n.Impose(Rule{Slow: 10})
	c.from.say(strings.Repeat("x", 4*pieceSize)) // this takes hours
	c.from.say("y")
	_ = c.to.SetReadDeadline(time.Now().Add(longest))
	if _, err := c.to.lines.Peek(1); err != nil {
		t.Fatal(err)
	}
	lift()
	c.to.hears(strings.Repeat("x", 4*pieceSize))
	c.to.hears("y")
}

func TestTrafficIsNamedByWhoSendsWhoeverHasConnected(t *testing.T) {
	n, address, y := newNetwork(t)
	c := connect(t, address, y)
	n.Impose(Rule{From: Any("y"), Only: There, Silent: true}) // what y sends, on connections of x
	n.Impose(Rule{From: Any("z"), Silent: true})              // that is another one
	c.from.say("passes")
	c.to.hears("passes")
	c.to.say("held")
	until(t, "it is held", func() bool { return n.Held() == 1 })
	c.from.hearsNothing()
}

func TestConnectionsInSilence(t *testing.T) {
	for name, only := range map[string]Direction{"both": Both, "there": There, "back": Back} {
		t.Run(name, func(t *testing.T) {
			n, address, y := newNetwork(t)
			lift := n.Impose(Rule{From: Any("x"), To: Any("y"), Only: only, Silent: true})
			impatient := dial(t, address, "")
			impatient.say("I do not wait")
			until(t, "one waits", func() bool { return n.Held() == 1 })
			patient := dial(t, address, "")
			patient.say("I wait")
			until(t, "two wait", func() bool { return n.Held() == 2 })
			patient.hearsNothing()
			impatient.Close()
			lift()
			y.accept().hears("I wait") // the first that comes
			until(t, "nothing is held", func() bool { return n.Held() == 0 })
		})
	}
}

func TestRefuse(t *testing.T) {
	n, address, y := newNetwork(t)
	old := connect(t, address, y)
	lift := n.Impose(Rule{From: Any("x"), Only: There, Refuse: true})
	isRefused(t, address, "")
	old.from.say("I was here before")
	old.to.hears("I was here before")
	lift()
	c := connect(t, address, y)
	c.from.say("let in")
	c.to.hears("let in")
	n.Impose(Rule{From: Any("x"), Only: Back, Refuse: true}) // who connects to x
	connect(t, address, y)
}

func TestReset(t *testing.T) {
	n, address, y := newNetwork(t)
	other, err := n.Listen(Way{From: "x", To: "z", Leads: y.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	hit, spared := connect(t, address, y), connect(t, other, y)
	silence := n.Impose(Rule{To: Any("y"), Silent: true})
	hit.from.say("held")
	waiting := dial(t, address, "")
	until(t, "both wait", func() bool { return n.Held() == 2 })
	n.Impose(Rule{To: Any("y"), Only: There, Reset: true})
	hit.from.hearsEnd(errReset)
	hit.to.hearsEnd(errReset)
	waiting.hearsEnd(errReset)
	until(t, "nothing waits", func() bool { return n.Held() == 0 })
	silence()
	spared.from.say("still here")
	spared.to.hears("still here")
	connect(t, address, y)
}

func TestSeveralRulesAtOnce(t *testing.T) {
	n, address, y := newNetwork(t)
	c := connect(t, address, y)
	first := n.Impose(Rule{Silent: true})
	second := n.Impose(Rule{From: Any("x"), Silent: true})
	c.from.say("held")
	until(t, "it is held", func() bool { return n.Held() == 1 })
	first()
	first()
	c.to.hearsNothing()
	second()
	c.to.hears("held")
}

func TestWhatIsHeldDoesNotGrow(t *testing.T) {
	for name, rule := range map[string]Rule{
		"silent": {Silent: true}, "late": {Delay: longest}, "slow": {Slow: 10},
	} {
		t.Run(name, func(t *testing.T) {
			n, address, y := newNetwork(t)
			c := connect(t, address, y)
			n.Impose(rule)
			piece := make([]byte, 1<<20)
			for sent := 0; ; {
				_ = c.from.SetWriteDeadline(time.Now().Add(4 * moment))
				some, err := c.from.Write(piece)
				if errors.Is(err, os.ErrDeadlineExceeded) {
					break
				}
				if sent += some; err != nil || sent > 100<<20 {
					t.Fatalf("%d bytes were taken, %v", sent, err)
				}
			}
		})
	}
}

func TestDelayAndSpeedTakeTheirTime(t *testing.T) {
	const delay = 60 * time.Millisecond
	for name, c := range map[string]struct {
		rules []Rule
		least time.Duration
	}{
		"delay":    {[]Rule{{Delay: delay, Jitter: delay}}, delay},
		"one way":  {[]Rule{{Only: There, From: Any("x"), Delay: delay}}, delay},
		"together": {[]Rule{{Delay: delay / 2}, {Delay: delay / 2}}, delay},
		"slow":     {[]Rule{{Slow: 100}, {Slow: 1000}}, delay},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, address, y := newNetwork(t)
			e := connect(t, address, y)
			for _, rule := range c.rules {
				n.Impose(rule)
			}
			begun := time.Now()
			e.from.say("so long")
			e.to.hears("so long")
			if took := time.Since(begun); took < c.least {
				t.Errorf("it took %s, less than %s", took, c.least)
			}
		})
	}
}

func TestWhatIsLostIsSaidAgain(t *testing.T) {
	terms := func(rules ...*Rule) terms { return newBook(rules).terms("x", "y") }
	if took := terms(&Rule{Delay: time.Second},
		&Rule{From: Any("y"), Only: There, Loss: 1}).trip(); took != time.Second {
		t.Errorf("where nothing is lost it takes %s", took)
	}
	if got := terms(&Rule{Loss: 0.5}, &Rule{Loss: 0.5}).loss; got != 0.75 {
		t.Errorf("of two halves %v is lost", got)
	}
	if took, want := terms(&Rule{Delay: time.Second}, &Rule{Loss: 1}).trip(), time.Second+63*retransmit; took != want {
		t.Errorf("where all is lost it takes %s, not %s", took, want)
	}
}

func TestWhatIsUnderWayKeepsItsOrderAndItsEnd(t *testing.T) {
	n, address, y := newNetwork(t)
	c := connect(t, address, y)
	lift := n.Impose(Rule{Delay: 20 * time.Millisecond, Jitter: 20 * time.Millisecond})
	var want []string
	for i := range 100 {
		want = append(want, strings.Repeat("x", i))
		c.from.say(want[i])
		if i == 50 {
			lift() // the rest takes no time, and comes behind
		}
	}
	c.from.Close()
	for _, line := range want {
		c.to.hears(line)
	}
	c.to.hearsEnd(io.EOF)
}

func TestPartiesAreRecognizedByAddress(t *testing.T) {
	n, y := New(), newServer(t)
	defer n.Close()
	address, err := n.Listen(Way{To: "y", Leads: y.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	one, two := n.Source("one").String(), n.Source("two").String()
	if one == two || one != n.Source("one").String() || !n.Source("one").IsLoopback() {
		t.Fatalf("addresses are %s and %s", one, two)
	}
	if err := n.Name("127.99.0.1", "three"); err != nil || n.Source("three").String() != "127.99.0.1" {
		t.Errorf("the address of three is %s, %v", n.Source("three"), err)
	}
	if n.Name("127.99.0.1", "four") == nil || n.Name("nowhere", "four") == nil {
		t.Error("an address was given to two parties, or is none")
	}
	// The next of our own is taken already.
	if err := n.Name(n.Source("two").Next().String(), "five"); err != nil || n.Source("six") == n.Source("five") {
		t.Errorf("six has the address of five: %v, %v", n.Source("six"), err)
	}
	n.Impose(Rule{From: Any("two", "three", "127.0.0.1"), Refuse: true})
	for _, source := range []string{two, "127.99.0.1", "127.0.0.1"} {
		isRefused(t, address, source)
	}
	c := ends{dial(t, address, one), y.accept()}
	c.from.say("it is me")
	c.to.hears("it is me")
}

func TestACloseEndsAllThatWaits(t *testing.T) {
	n, address, y := newNetwork(t)
	far, err := n.Listen(Way{From: "x", To: "z", Leads: y.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	idle, held, late := connect(t, address, y), connect(t, address, y), connect(t, far, y)
	n.Impose(Rule{To: Any("z"), Delay: time.Hour})
	late.from.say("late")
	slow := dial(t, far, "")
	n.Impose(Rule{To: Any("y"), Silent: true})
	held.from.say("held")
	waiting := dial(t, address, "")
	until(t, "two are held", func() bool { return n.Held() == 2 })
	until(t, "all are there", func() bool { n.mu.Lock(); defer n.mu.Unlock(); return len(n.links) == 5 })
	n.Close()
	n.Close()
	for _, e := range []*end{idle.from, idle.to, held.from, held.to, late.from, late.to, slow, waiting} {
		e.hearsEnd(errReset)
	}
	if _, err := n.Listen(Way{To: "y"}); err == nil {
		t.Error("a closed network opened a way")
	}
	if c, err := net.DialTimeout("tcp", address, longest); err == nil {
		c.Close()
		t.Error("something still listens")
	}
}

func TestAWayThatCannotBeOpenedSaysWhichAndWhy(t *testing.T) {
	n, address, _ := newNetwork(t)
	if _, err := n.Listen(Way{To: "z", At: address}); err == nil || !strings.Contains(err.Error(), "the way to z") {
		t.Errorf("error is %v", err)
	}
}

// Whatever comes and goes, each byte arrives once, and in order.
func TestStorm(t *testing.T) {
	const connections, bytes = 30, 200_000
	n, address, y := newNetwork(t)
	results := make(chan error, 2*connections)
	for range connections {
		c := connect(t, address, y)
		for _, way := range []ends{c, {c.to, c.from}} {
			go func() {
				piece := make([]byte, 1000)
				for i := 0; i < bytes; i += len(piece) {
					for j := range piece {
						piece[j] = byte((i + j) % 251)
					}
					if _, err := way.from.Write(piece); err != nil {
						break // the other goroutine hears of it
					}
				}
				_ = way.from.CloseWrite()
			}()
			go func() {
				got, err := io.ReadAll(way.to)
				if err == nil && len(got) != bytes {
					err = io.ErrUnexpectedEOF
				}
				for i, b := range got {
					if int(b) != i%251 {
						err = errors.New("out of order")
						break
					}
				}
				results <- err
			}()
		}
	}
	rules := slices.Repeat([]Rule{
		{Silent: true},
		{Only: There, Silent: true},
		{From: Any("y"), Only: There, Silent: true, Refuse: true},
		{Delay: time.Millisecond, Jitter: time.Millisecond},
		{Slow: 10 << 20},
		{Loss: 0.001},
	}, 5)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var lifts []func()
	for _, rule := range rules {
		<-tick.C
		if lifts = append(lifts, n.Impose(rule)); len(lifts) == 4 {
			lifts[0]()
			lifts = lifts[1:]
		}
	}
	for _, lift := range lifts {
		lift()
	}
	for range 2 * connections {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
}
