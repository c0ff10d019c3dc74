package suite

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/proof"
)

// Harness describes a provider to the suite. Promises that need an omitted field are not proved.
type Harness struct {
	// Open returns a provider ready for use. The suite deletes the machines that it creates.
	Open func() (provider.Provider, error)
	// Close releases a provider that Open returned. May be nil.
	Close func(p provider.Provider)
	// Kill ends a machine behind the provider's back, without a shutdown.
	Kill func(m provider.Machine) error
	// Remains returns what is left of a deleted machine, or "".
	Remains func(m provider.Machine) string
	// Print has a machine write to its console.
	Print func(m provider.Machine, text string) error
	// Created is called with the result of each request for a machine. May be nil.
	Created func(err error)

	Template provider.Template // of every machine
	Patience time.Duration     // for a machine to come up or go down; default 30s
	Poll     time.Duration     // pause between two Lists while waiting; default 5ms
}

// promises are the cases of the suite, in order.
var promises = proof.Cases[*subject]{
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
		h.Poll = 5 * time.Millisecond
	}
	return proof.Check(ctx, promises, promise, func(test func(*subject)) *proof.Findings {
		s := &subject{Harness: h, findings: &findings{}, base: ctx, shard: "sh" + proof.Word(), word: "t" + proof.Word()}
		s.run(test)
		return &s.Findings
	})
}

// run plays a case, and deletes its machines.
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
