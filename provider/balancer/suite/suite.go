package suite

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/proof"
)

// Harness is what the suite must be told of a balancer. What is left out is not proved.
type Harness struct {
	// Open returns a balancer ready for use, each time as another coordinator would. What the suite
	// adds, it removes.
	Open func() (balancer.Balancer, error)
	// Front is where clients reach the balancer by HTTP; "": no traffic is sent.
	Front string
	// Host is the address that the suite's backends listen on. Default 127.0.0.1.
	Host string
	// Use is how members are used.
	Use balancer.Use
	// Forget has the balancer start again or reload, as its operators do it.
	Forget func() error
	// Foreign adds an entry by hand that is not the shard's, at that address.
	Foreign func(address string, port int) error
	// ForeignStands reports whether that entry is as it was.
	ForeignStands func(address string, port int) (bool, error)
	// Break has every target fail in a way, until mend is called.
	Break map[Way]func() (mend func())

	Patience time.Duration // for a balancer's checks and reloads; default 30s
	Poll     time.Duration // how often List is asked while waiting; default 10ms
}

// Way is how a balancer fails.
type Way string

// The ways in which a balancer fails.
const (
	IsDown        Way = "down"        // nothing answers there
	Hangs         Way = "hangs"       // it takes connections and answers nothing
	TalksNonsense Way = "nonsense"    // its answers cannot be read
	AnswersPart   Way = "part"        // its answers end in the middle
	Refuses       Way = "credentials" // it does not allow it
)

// promises are the cases of the suite, in order.
var promises = []struct {
	name string
	test func(*subject)
}{
	{"Capabilities", capabilities},
	{"AddBringsTraffic", addBringsTraffic},
	{"AddTwice", addTwice},
	{"AddAtAnotherAddress", addAtAnotherAddress},
	{"AddOfWhatCannotBe", addOfWhatCannotBe},
	{"WeightIsKept", weightIsKept},
	{"HealthIsProved", healthIsProved},
	{"DrainKeepsWhatIsInUse", drainKeepsWhatIsInUse},
	{"DrainTwiceAndOfUnknown", drainAgain},
	{"AddEndsADrain", addEndsADrain},
	{"RemoveDuringADrain", removeDuringADrain},
	{"RemoveTwiceAndOfUnknown", removeAgain},
	{"WhatIsForgottenIsPutBack", forgottenIsPutBack},
	{"ForeignIsLeftAlone", foreignIsLeftAlone},
	{"AnotherShardIsLeftAlone", anotherShardIsLeftAlone},
	{"ManyAtOnce", manyAtOnce},
	{"EndedContext", endedContext},
	{"WhenItIsDown", broken(IsDown)},
	{"WhenItHangs", broken(Hangs)},
	{"WhenItTalksNonsense", broken(TalksNonsense)},
	{"WhenItAnswersAPart", broken(AnswersPart)},
	{"WhenItRefuses", broken(Refuses)},
}

// Promises returns the names of what the suite proves, in order.
func Promises() []string {
	names := make([]string, len(promises))
	for i, p := range promises {
		names[i] = p.name
	}
	return names
}

// Outcome is what the suite found of one promise.
type Outcome = proof.Outcome

// The outcomes.
const (
	Proved    = proof.Proved
	Failed    = proof.Failed
	NotProved = proof.NotProved
)

// Result is what came of one promise.
type Result = proof.Result

// Check plays one promise.
func Check(ctx context.Context, h Harness, promise string) Result {
	if h.Patience == 0 {
		h.Patience = 30 * time.Second
	}
	if h.Poll == 0 {
		h.Poll = 10 * time.Millisecond
	}
	if h.Host == "" {
		h.Host = "127.0.0.1"
	}
	for _, p := range promises {
		if p.name == promise {
			begun := time.Now()
			s := &subject{
				Harness: h, findings: &findings{}, base: ctx, shard: "sh" + word(), word: "t" + word(),
				recorded: map[string]balancer.Member{},
			}
			s.run(p.test)
			return s.Result(ctx, promise, begun)
		}
	}
	return Result{Promise: promise, Outcome: NotProved, Why: []string{"there is no such promise"}}
}

// run plays a case, and removes what it left.
func (s *subject) run(test func(*subject)) {
	b, err := s.Open()
	if err != nil {
		s.Errorf("open the balancer: %v", err)
		return
	}
	s.b = patient{b}
	s.Play(func() { test(s) })
	s.clear()
}
