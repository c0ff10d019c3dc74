package suite

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/proof"
)

// Harness describes a balancer to the suite. Promises that need an omitted field are not proved.
type Harness struct {
	// Open returns a balancer ready for use, each time as another coordinator would. The suite
	// removes the members that it adds.
	Open func() (balancer.Balancer, error)
	// Front is the HTTP address of the balancer for clients; "": no traffic is sent.
	Front string
	// Host is the address that the suite's backends listen on. Default 127.0.0.1.
	Host string
	// Use is the use of all members.
	Use balancer.Use
	// Forget restarts or reloads the balancer as its operators do.
	Forget func() error
	// Foreign adds an entry by hand, at that address, that is not the shard's.
	Foreign func(address string, port int) error
	// ForeignStands reports whether that entry is unchanged.
	ForeignStands func(address string, port int) (bool, error)
	// Break makes every target fail in one way, until mend is called.
	Break map[Way]func() (mend func())

	Patience time.Duration // for a balancer's checks and reloads; default 30s
	Poll     time.Duration // pause between two Lists while waiting; default 10ms
}

// Way is a kind of failure of a balancer.
type Way string

// The kinds of failure.
const (
	IsDown        Way = "down"        // it accepts no connections
	Hangs         Way = "hangs"       // it accepts connections and answers nothing
	TalksNonsense Way = "nonsense"    // its answers cannot be read
	AnswersPart   Way = "part"        // its answers end in the middle
	Refuses       Way = "credentials" // it refuses the credentials
)

// promises are the cases of the suite, in order.
var promises = proof.Cases[*subject]{
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

// Promises returns the names of the promises, in order.
func Promises() []string { return proof.Promises(promises) }

// Outcome is the suite's result for one promise.
type Outcome = proof.Outcome

// The outcomes.
const (
	Proved    = proof.Proved
	Failed    = proof.Failed
	NotProved = proof.NotProved
)

// Result is an outcome with its reasons.
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
	return proof.Check(ctx, promises, promise, func(test func(*subject)) *proof.Findings {
		s := &subject{
			Harness: h, findings: &findings{}, base: ctx, shard: "sh" + proof.Word(), word: "t" + proof.Word(),
			recorded: map[string]balancer.Member{},
		}
		s.run(test)
		return &s.Findings
	})
}

// run plays a case, and removes its members.
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
