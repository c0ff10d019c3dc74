package leader_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

var keys = store.KeysOf("test")

// script drives a leader by hand, on records in memory.
type script struct {
	t        *testing.T
	now      time.Time
	heard    time.Time
	content  *cache.Content
	leader   *leader.Leader
	evidence *evidence.Evidence
	commands []leader.Command // not yet taken
}

// newScript begins a term in a shard with one group, and has the provider list no machines.
func newScript(t *testing.T, size int) *script {
	t.Helper()
	return newScriptWith(t, size, nil)
}

// newScriptWith is newScript, with sources of numbers from outside.
func newScriptWith(t *testing.T, size int, sources map[string]query.Settings) *script {
	t.Helper()
	s := &script{t: t, now: start, heard: start, content: cache.NewContent()}
	fence := store.Fence{Key: keys.Leader(7), Created: 1}
	capabilities := map[string]provider.Capabilities{"mem": {
		Zones: []string{"a"}, CallTimeout: time.Minute,
		Consistency: time.Second,
	}}
	s.evidence = evidence.New(evidence.Config{
		Keys: keys, Capabilities: capabilities, SessionTTL: 5 * time.Second, Seed: 1,
		Now: func() time.Time { return s.now }, Jitter: half,
		Wake: func() {}, Suspect: func(string) {}, Validate: func(string, store.Group) string { return "" },
	})
	g := store.DefaultGroup()
	g.Schema, g.Name, g.Provider, g.Size, g.Workload.Run = store.Schema, "web", "mem", size, []string{"./web"}
	shard := store.Shard{Schema: store.Schema, ID: "test", Name: "test", Created: start, Settings: rate(1000, 1000)}
	s.apply(1, store.Put(fence.Key, store.Encode(store.Leader{Schema: store.Schema, Replica: "one", Since: start})))
	s.apply(2, store.Put(keys.Shard(), store.Encode(shard)), store.Put(keys.Group("web"), store.Encode(g)))
	s.evidence.Listed(s.content)
	s.leader = leader.New(leader.Config{
		Keys: keys, Fence: fence, Evidence: s.evidence, Capabilities: capabilities, Settings: shard.Settings,
		Sources: sources,
		Began:   start, Jitter: half,
	})
	s.step(leader.Tick{})
	s.step(leader.Listed{Provider: "mem", Begun: take[leader.List](s).Begun})
	return s
}

func (s *script) apply(rev store.Revision, writes ...store.Write) (changes []cache.Change) {
	s.t.Helper()
	for _, w := range writes {
		if c, ok := s.content.Apply(keys,
			store.Event{KV: store.KV{Key: w.Key, Value: w.Value, Created: rev, Modified: rev}, Deleted: w.Delete}); ok {
			changes = append(changes, c)
		}
	}
	s.content.Revision = rev
	return changes
}

// step has the leader take an event up.
func (s *script) step(e leader.Event) {
	s.commands = append(s.commands, s.leader.Step(s.now, leader.View{Content: s.content, Heard: s.heard}, e)...)
}

// take returns the first command of a kind, and drops it. There must be one.
func take[C leader.Command](s *script) (found C) {
	s.t.Helper()
	for i, c := range s.commands {
		if c, ok := c.(C); ok {
			s.commands = slices.Delete(s.commands, i, i+1)
			return c
		}
	}
	s.t.Fatalf("no command %T among %T", found, s.commands)
	return found
}

// none fails if there is a command of a kind.
func none[C leader.Command](s *script) {
	s.t.Helper()
	for _, c := range s.commands {
		if _, ok := c.(C); ok {
			s.t.Errorf("unexpected command %T: %+v", c, c)
		}
	}
}

// write makes writes as one transaction that the cache shows at once.
func (s *script) write(writes ...store.Write) store.Revision {
	rev := s.content.Revision + 1
	s.evidence.Changed(s.content, s.apply(rev, writes...))
	return rev
}

// planToCommit plans until there is something to commit.
func (s *script) planToCommit() leader.Commit {
	s.t.Helper()
	for range 5 {
		s.step(leader.Wake{})
		c := take[leader.Compute](s)
		s.step(leader.Planned{Plan: plan.Compute(*c.Snapshot, s.now)})
		if len(s.commands) > 0 {
			break
		}
	}
	return take[leader.Commit](s)
}

// commitAll carries out all transactions of a round.
func (s *script) commitAll() {
	for {
		i := slices.IndexFunc(s.commands, func(c leader.Command) bool { _, ok := c.(leader.Commit); return ok })
		if i < 0 {
			return
		}
		c, _ := s.commands[i].(leader.Commit)
		s.commands = slices.Delete(s.commands, i, i+1)
		s.step(leader.Committed{Revision: s.write(c.Writes...)})
	}
}

// resize edits the group as an operator does.
func (s *script) resize(size int) {
	s.t.Helper()
	v, err := store.Decode[store.Group](s.content.Groups["web"])
	if err != nil {
		s.t.Fatal(err)
	}
	v.Record.Size = size
	s.write(store.Put(keys.Group("web"), store.Encode(v.Record)))
}

// settle plans until a plan has no actions.
func (s *script) settle() {
	s.t.Helper()
	for range 20 {
		s.step(leader.Wake{})
		i := slices.IndexFunc(s.commands, func(c leader.Command) bool { _, ok := c.(leader.Compute); return ok })
		if i < 0 {
			return
		}
		c := take[leader.Compute](s)
		s.step(leader.Planned{Plan: plan.Compute(*c.Snapshot, s.now)})
		s.commitAll()
	}
	s.t.Fatal("planning does not end")
}

// A creation is recorded, under everything that the plan saw, before the provider is called, and by
// a deadline that counts from before the record. What cannot be recorded is not called.
//
// proves SAFE-8
func TestCreationIsRecordedBeforeTheCall(t *testing.T) {
	s := newScript(t, 1)
	s.settle()
	record := take[leader.Record](s)
	if rec := record.Instance; rec.Phase != store.Creating || !rec.Called || len(record.Conditions) == 0 ||
		len(record.Entries) != 1 {
		t.Errorf("recorded %+v under %d conditions with %d entries", rec, len(record.Conditions), len(record.Entries))
	}
	none[leader.Invoke](s)
	s.step(leader.Recorded{Operation: record.Operation, Err: store.ErrUnknown})
	none[leader.Invoke](s)
	none[leader.Record](s)
	s.now = s.now.Add(leader.RefusedWait)
	s.heard = s.now
	s.settle()
	again := take[leader.Record](s)
	deadline := s.now.Add(time.Minute)
	s.now = s.now.Add(10 * time.Second)
	s.step(leader.Recorded{Operation: again.Operation, Revision: s.write(again.Writes...)})
	if call := take[leader.Invoke](s); call.Method != leader.Create || !call.Deadline.Equal(deadline) {
		t.Errorf("method %d is invoked with deadline %s, want %s", call.Method, call.Deadline, deadline)
	}
}

// Each call for a restart is recorded. The journal has the first one only: a provider that
// throttles is asked again and again.
//
// proves SAFE-8
func TestTheJournalHasARestartOnce(t *testing.T) {
	s := newScript(t, 1)
	s.settle()
	record := take[leader.Record](s)
	s.step(leader.Recorded{Operation: record.Operation, Revision: s.write(record.Writes...)})
	call := take[leader.Invoke](s)
	s.step(leader.Answered{Operation: call.Operation, Machine: provider.Machine{Instance: call.Instance.ID, Ref: "1"}})
	s.settle()
	rec := s.content.Instances[call.Instance.ID]
	rec.Record.Phase = store.Stopping
	for _, token := range []string{"one", "two"} {
		rec.Record.Restart = &store.Restart{Level: store.RestartMachine, Rule: "ROLL-2", Token: token}
		rec.Record.Last = store.Decision{Rule: "ROLL-2", Why: "outdated"}
		s.write(store.Put(rec.Key, store.Encode(rec.Record)))
		for i := range 3 {
			s.settle()
			record := take[leader.Record](s)
			if want := max(0, 1-i); record.Kind != plan.CallRestart || len(record.Entries) != want || len(record.Writes) == 0 {
				t.Errorf("restart %s: call %d is recorded with %d entries, want %d", token, i, len(record.Entries), want)
			}
			s.step(leader.Recorded{Operation: record.Operation, Revision: s.write(record.Writes...)})
			s.step(leader.Answered{Operation: take[leader.Invoke](s).Operation, Err: provider.ThrottledFor(time.Second)})
			s.now = s.now.Add(2 * time.Second)
			s.heard = s.now
		}
	}
}

// A machine of which the next List may tell more is listed again a second later, not only with the
// next poll.
//
// proves DET-3
func TestUnsettledMachinesAreListedAgain(t *testing.T) {
	s := newScript(t, 1)
	s.now = s.now.Add(time.Minute)
	s.step(leader.Tick{})
	begun := take[leader.List](s).Begun
	for _, c := range []struct{ unsettled, again bool }{
		{false, false}, {true, true}, {true, true}, {false, true}, {false, false},
	} {
		s.step(leader.Listed{
			Provider: "mem", Begun: begun, Machines: []provider.Machine{{Instance: "web-0", Unsettled: c.unsettled}},
		})
		s.now = s.now.Add(time.Second)
		s.step(leader.Tick{})
		if !c.again { // a requested List is followed by another one
			none[leader.List](s)
			s.now = s.now.Add(store.DefaultShardSettings().ProviderPoll.D())
			s.step(leader.Tick{})
		}
		begun = take[leader.List](s).Begun
	}
}

// One round at a time: what happens meanwhile is planned once it has ended.
func TestWakeDuringARoundIsNotLost(t *testing.T) {
	s := newScript(t, 1)
	s.settle()
	s.resize(2)
	s.step(leader.Wake{})
	c := take[leader.Compute](s)
	s.step(leader.Wake{})
	none[leader.Compute](s)
	if _, wake := s.leader.NextStep(s.now); !wake.IsZero() {
		t.Errorf("another round is to begin at %s during one", wake)
	}
	s.step(leader.Planned{Plan: plan.Compute(*c.Snapshot, s.now)})
	s.commitAll()
	if _, wake := s.leader.NextStep(s.now); !wake.Equal(s.now) {
		t.Errorf("the next round is to begin at %s, want now", wake)
	}
}

// A transaction that conflicts does not end the term, and one that meets another leader's fence
// does.
//
// proves SAFE-7
func TestOutcomesOfTransactions(t *testing.T) {
	s := newScript(t, 1)
	c := s.planToCommit()
	s.step(leader.Committed{Err: &store.ConflictError{Keys: []string{keys.Group("web")}}})
	if r := take[leader.Refused](s); r.Action != c.Actions[0] {
		t.Errorf("refused is %+v", r.Action)
	}
	none[leader.Resign](s)
	s.commitAll()
	s.now, s.heard = s.now.Add(time.Second), s.heard.Add(time.Second)
	if _, wake := s.leader.NextStep(s.now); wake.IsZero() || wake.After(s.now) {
		t.Errorf("what was overtaken is planned again at %s", wake)
	}
	s.planToCommit()
	fence := store.Fence{Key: keys.Leader(7), Created: 1}
	s.step(leader.Committed{Err: leader.Outcome(fence, &store.ConflictError{Keys: []string{fence.Key}})})
	if r := take[leader.Resign](s); !errors.Is(r.Err, leader.ErrDeposed) {
		t.Errorf("resigns because of %v", r.Err)
	}
}

// proves SAFE-7
func TestEveryTransactionComparesTheFence(t *testing.T) {
	fence := store.Fence{Key: keys.Leader(7), Created: 9}
	other := store.At(keys.Shard(), 3)
	txn := leader.Fenced(fence, []store.Condition{other, other}, nil)
	if !slices.Equal(txn.Conditions, []store.Condition{fence.Condition(), other}) {
		t.Errorf("compared: %+v", txn.Conditions)
	}
}

// A leader whose key is gone from the cache plans nothing more.
//
// proves SAFE-7
func TestDeposedLeaderResigns(t *testing.T) {
	s := newScript(t, 1)
	s.write(store.Delete(keys.Leader(7)))
	s.step(leader.Wake{})
	take[leader.Resign](s)
	none[leader.Compute](s)
}

// proves SAFE-3
func TestNothingIsPlannedOnAStaleCache(t *testing.T) {
	s := newScript(t, 1)
	s.now = s.now.Add(3*time.Second + 1)
	s.step(leader.Wake{})
	take[leader.Stale](s)
	none[leader.Compute](s)
	_, wake := s.leader.NextStep(s.now)
	if wake.Sub(s.now) != time.Second {
		t.Errorf("the cache is looked at again at %s", wake)
	}
	s.now, s.heard = wake, wake
	s.step(leader.Wake{})
	take[leader.Compute](s)
}

// removing brings a script to the point where the machine of its only instance is about to be
// stopped.
func removing(t *testing.T) (*script, leader.Verify) {
	t.Helper()
	s := newScript(t, 1)
	s.settle()
	record := take[leader.Record](s)
	s.step(leader.Recorded{Operation: record.Operation, Revision: s.write(record.Writes...)})
	call := take[leader.Invoke](s)
	s.step(leader.Answered{Operation: call.Operation, Machine: provider.Machine{Instance: call.Instance.ID, Ref: "1"}})
	s.resize(0)
	s.settle()
	return s, take[leader.Verify](s)
}

// A machine that did not stop in order is deleted all the same; if the provider throttles, it is
// not asked again at once.
//
// proves HEAL-14
func TestRemovalStopsAndThenDeletes(t *testing.T) {
	for name, test := range map[string]struct {
		stop    error
		deletes bool
	}{
		"stopped":     {nil, true},
		"did not":     {errors.New("trouble"), true},
		"throttled":   {provider.ThrottledFor(time.Minute), false},
		"wrapped too": {errors.Join(provider.ThrottledFor(time.Minute)), false},
	} {
		s, verify := removing(t)
		none[leader.Invoke](s)
		s.step(leader.Verified{Operation: verify.Operation})
		stop := take[leader.Invoke](s)
		if stop.Method != leader.Stop {
			t.Fatalf("%s: method %d comes first", name, stop.Method)
		}
		s.step(leader.Answered{Operation: stop.Operation, Err: test.stop})
		if !test.deletes {
			none[leader.Invoke](s)
			continue
		}
		if del := take[leader.Invoke](s); del.Method != leader.Delete {
			t.Errorf("%s: method %d follows", name, del.Method)
		}
	}
}

// proves SAFE-4, SAFE-8
func TestRemovalThatIsOvertakenDoesNotBegin(t *testing.T) {
	s, verify := removing(t)
	s.step(leader.Verified{Operation: verify.Operation, Err: &store.ConflictError{Keys: []string{keys.Shard()}}})
	none[leader.Invoke](s)
}

// proves SAFE-3: etcd's history may have taken so long that the cache is stale by then
func TestNothingIsPlannedOnACacheThatBecameStaleDuringRecall(t *testing.T) {
	s := newScript(t, 1)
	s.settle()
	s.write(store.Put(keys.Instance("web-7-abc"), []byte("garbage")))
	s.step(leader.Wake{})
	take[leader.Recall](s)
	s.now = s.now.Add(time.Minute)
	s.step(leader.Recalled{})
	take[leader.Stale](s)
	none[leader.Compute](s)
	s.heard = s.now
	s.step(leader.Wake{})
	take[leader.Recall](s)
	s.step(leader.Recalled{})
	take[leader.Compute](s)
}
