package suite

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/proof"
)

// Harness is what the suite must be told of a provider. What is left out is not proved.
type Harness struct {
	// Open returns a provider ready for use. What the suite makes, it deletes.
	Open func() (provider.Provider, error)
	// Close ends the use of what Open returned; nil: nothing is to be done.
	Close func(p provider.Provider)
	// Kill ends a machine behind the provider's back, otherwise than in order.
	Kill func(m provider.Machine) error
	// Remains returns what is still there of a deleted machine, or "".
	Remains func(m provider.Machine) string
	// Print has a machine write to its console.
	Print func(m provider.Machine, text string) error
	// Created learns how each request for a machine ended; nil: nothing does.
	Created func(err error)

	Template provider.Template // of every machine
	Patience time.Duration     // for a machine to come up or go down; default 30s
	Poll     time.Duration     // how often List is asked while waiting; default 5ms
}

// promises are the cases of the suite, in order.
var promises = []struct {
	name string
	test func(*subject)
}{
	{"Capabilities", capabilities},
	{"CreateMakesATaggedMachine", createTags},
	{"CreateTwiceMakesOne", createTwice},
	{"CreateAtOnceMakesOne", createAtOnce},
	{"CreateAfterDelete", createAfterDelete},
	{"CreateRefusesAnUnknownZone", unknownZone},
	{"ListIsOfOneShard", listOfOneShard},
	{"ListIsComplete", listComplete},
	{"StopStopsAndKeeps", stopKeeps},
	{"StopTwiceAndOfUnknown", stopAgain},
	{"CrashIsSeen", crashIsSeen},
	{"DeleteLeavesNothing", deleteLeavesNothing},
	{"DeleteTwiceAndOfUnknown", deleteAgain},
	{"DeleteOfAnotherShard", deleteOfAnotherShard},
	{"DeleteAtOnce", deleteAtOnce},
	{"RestartBootsAnew", restartBootsAnew},
	{"RestartOfOneBoot", restartOfOneBoot},
	{"RestartOfStoppedAndCrashed", restartOfDown},
	{"RestartOfUnknown", restartOfUnknown},
	{"ConsoleIsKept", consoleIsKept},
	{"EndedContext", endedContext},
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
		h.Poll = 5 * time.Millisecond
	}
	for _, p := range promises {
		if p.name == promise {
			begun := time.Now()
			s := &subject{Harness: h, findings: &findings{}, base: ctx, shard: "sh" + word(), word: "t" + word()}
			s.run(p.test)
			return s.Result(ctx, promise, begun)
		}
	}
	return Result{Promise: promise, Outcome: NotProved, Why: []string{"there is no such promise"}}
}

// run plays a case, and deletes what it left.
func (s *subject) run(test func(*subject)) {
	p, err := s.Open()
	if err != nil {
		s.Errorf("open the provider: %v", err)
		return
	}
	s.opened, s.p = p, patient{p}
	s.Play(func() { test(s) })
	for _, shard := range append(s.shards, s.shard) {
		s.clear(shard)
	}
	for _, cancel := range s.cancels {
		cancel()
	}
	if s.Close != nil {
		s.Close(p)
	}
}
