package attack

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/stage"
	"github.com/leasehold/leasehold/tests/tier"
)

var honest = flag.Int("agents", tier.Pick(60, 200), "how many honest agents report meanwhile")

// built are the programs.
var built *stage.Programs

func TestMain(m *testing.M) { os.Exit(stage.Main(m, "", &built)) }

// siege is a shard under attack.
type siege struct {
	*stage.Stage
	shard     string // the shard's random ID
	attackers int    // attackers with an address of their own
}

// besiege starts a shard with its honest agents, whose certificates are valid for seconds.
func besiege(t *testing.T, agents int) *siege {
	t.Helper()
	s := &siege{Stage: stage.New(t, stage.Plan{
		Programs: built, Again: fmt.Sprintf("go test ./tests/attack -count=1 -v -agents %d -run '^%s$'", agents,
			t.Name()), Replicas: 2, Interval: 2 * time.Second,
	})}
	s.shard = s.record(t).ID
	s.lifetime(t, 15*time.Second)
	s.Apply("web", agents)
	return s
}

// within runs a subtest, so that the stage's failures fail that one.
func (s *siege) within(t *testing.T, name string, do func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		outer := s.T
		s.T = t
		defer func() { s.T = outer }()
		do(t)
	})
}

// record returns the shard's record.
func (s *siege) record(t *testing.T) store.Shard {
	t.Helper()
	kv, err := s.Store.Get(t.Context(), s.Keys.Shard())
	if err != nil {
		t.Fatal(err)
	}
	v, err := store.Decode[store.Shard](kv)
	if err != nil {
		t.Fatal(err)
	}
	return v.Record
}

// calm returns a moment in which all honest instances are healthy and nothing is in progress: what
// is counted from then on is not left over from before. Instances whose names attackers use may
// stay silent.
func (s *siege) calm() stage.Mark {
	s.T.Helper()
	s.Await("the honest instances being healthy", func() bool { return s.Complete("web", *honest) })
	return s.Mark()
}

// untouched fails if anything was done to any machine since a moment.
func (s *siege) untouched(t *testing.T, since stage.Mark) {
	t.Helper()
	if c := s.Since(since); c != (stage.Count{}) {
		t.Errorf("while under attack: %s, and all of that should be 0\n%s", c, s.TellJournal(since))
	}
}

// honestUntouched fails if anything was done to an honest machine since a moment, or one of them
// lost its lease.
func (s *siege) honestUntouched(t *testing.T, since stage.Mark) {
	t.Helper()
	now := s.Instances("web")
	for _, id := range since.Instances("web") {
		if !slices.Contains(now, id) {
			t.Errorf("%s is gone\n%s", id, s.TellJournal(since))
		}
	}
	if len(now) != len(since.Instances("web")) {
		t.Errorf("there are %d honest instances, and were %d", len(now), len(since.Instances("web")))
	}
	for _, id := range s.leasesLost(t, since) {
		if slices.Contains(now, id) {
			t.Errorf("%s lost its lease", id)
		}
	}
}

// leasesLost returns the instances whose alive key was deleted since a moment, from etcd's own
// history.
func (s *siege) leasesLost(t *testing.T, since stage.Mark) (lost []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stage.Longest)
	defer cancel()
	now := s.Mark().Revision
	for batch := range s.Store.Watch(ctx, s.Keys.Of(store.KindAlive), since.Revision+1) {
		if batch.Err != nil {
			t.Fatal(batch.Err)
		}
		for _, e := range batch.Events {
			if _, name, _ := s.Keys.Split(e.KV.Key); e.Deleted && e.KV.Modified <= now && since.Has(name) {
				lost = append(lost, name)
			}
		}
		if batch.Revision >= now {
			return lost
		}
	}
	t.Fatal("the watch ended")
	return nil
}

// recorded waits until the journal has an entry of a rule since a moment that contains all these
// words.
func (s *siege) recorded(t *testing.T, since stage.Mark, rule string, words ...string) store.JournalEntry {
	t.Helper()
	var found store.JournalEntry
	s.Await(fmt.Sprintf("%s in the journal with %q", rule, words), func() bool {
		for _, v := range s.Journal(since.Revision) {
			e := v.Record
			text := strings.Join(append([]string{e.What, e.Why, e.Instance}, e.Evidence...), " ; ")
			if e.Rule == rule && !slices.ContainsFunc(words,
				func(w string) bool { return !strings.Contains(text, w) }) {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// remove deletes a group and waits for the end of its machines.
func (s *siege) remove(group string) {
	s.T.Helper()
	s.Leasehold("group", "delete", group, "--confirm="+group)
	s.Await("the end of "+group, func() bool {
		if _, there := stage.Records[store.Status](s.Stage, store.KindStatus)[group]; there {
			return false
		}
		for _, in := range stage.Records[store.Instance](s.Stage, store.KindInstances) {
			if in.Record.Group == group {
				return false
			}
		}
		return true
	})
}

// stolenAuthority is the shard's own authority. The tests use it to make certificates with exactly
// one thing wrong.
func (s *siege) stolenAuthority(t *testing.T) forger {
	t.Helper()
	return stolenFrom(t, s.PKI)
}

func stolenFrom(t *testing.T, place string) forger {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(place, "agents", "ca.crt"), filepath.Join(place, "agents", "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		t.Fatalf("the authority has a %T", pair.PrivateKey)
	}
	return forger{cert: pair.Leaf, key: key}
}
