package story

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// The leader's verdict holds for explain and the page as long as status counts it.
func TestWhenAVerdictStands(t *testing.T) {
	told := func(v store.Verdict) *store.JournalEntry { return &store.JournalEntry{Verdict: v, Revision: 10} }
	counts := &store.Status{Verdicts: map[store.Verdict]int{store.Suspect: 1, store.Unhealthy: 1, store.Live: 5}}
	for name, test := range map[string]struct {
		told                    *store.JournalEntry
		status                  *store.Status
		instance, alive, report store.Revision
		want                    bool
	}{
		"suspect":                   {told(store.Suspect), counts, 9, 10, 9, true},
		"a report proves nothing":   {told(store.Suspect), counts, 9, 9, 11, true},
		"its stream is another":     {told(store.Suspect), counts, 9, 11, 9, false},
		"its record is another":     {told(store.Suspect), counts, 11, 9, 9, false},
		"status counts none":        {told(store.Suspect), &store.Status{}, 9, 9, 9, false},
		"live is what records show": {told(store.Live), counts, 9, 9, 9, false},
		"unhealthy":                 {told(store.Unhealthy), counts, 9, 9, 9, true},
		"a newer report is well":    {told(store.Unhealthy), counts, 9, 9, 11, false},
	} {
		if got := Stands(test.told, test.status, test.instance, test.alive, test.report); got != test.want {
			t.Errorf("%s: stands is %t", name, got)
		}
	}
}

// What is said to do about lost records, and about those that are not counted yet, helps.
//
// proves SAFE-15
func TestWhatToDoAboutDamage(t *testing.T) {
	for kind, want := range map[store.BlockedKind]string{
		store.BlockedByDamage:      "leasehold repair",
		store.BlockedByMissingList: "leasehold provider show cloud",
	} {
		b := store.Blocked{Rule: "SAFE-15", Kind: kind, Work: store.WorkAll, Of: store.BlockedFacts{Name: "cloud"}}
		p := heldProblem("web", Blockage{Blocked: b})
		if !strings.HasPrefix(p.Remedies.String(), want) {
			t.Errorf("%s: next is %q", kind, p.Remedies)
		}
	}
}

// An instance that is booting says who refused its agent, or what to check on its machine.
//
// proves DET-11, SEC-1
func TestWhyAnAgentHasNotRegistered(t *testing.T) {
	booting := store.Instance{ID: "web-0-a", Phase: store.Booting, Created: noon, Since: noon}
	replica := func(address string, refused ...store.Refused) store.Versioned[store.Replica] {
		return store.Versioned[store.Replica]{Record: store.Replica{Address: address, Refused: refused}}
	}
	refusal := store.Refused{
		What: "connection refused", Why: "the certificate has expired", Instance: "web-0-a", From: "10.0.0.7:5",
		At: noon.Add(time.Minute), Detail: "by its clock",
	}
	other := refusal
	other.Instance = "web-0-b"
	older := refusal
	older.At = noon.Add(-time.Hour)
	for name, c := range map[string]struct {
		phase    store.Phase
		after    time.Duration
		replicas map[string]store.Versioned[store.Replica]
		want     []string
	}{
		"it has just been made": {store.Booting, 5 * time.Second, nil, nil},
		"it has registered":     {store.Checking, time.Hour, nil, nil},
		"no coordinator is known": {store.Booting, time.Minute, nil, []string{
			"journalctl -u leasehold-agent says why (without systemd: agent.log in its state directory); check its clock",
		}},
		"none has heard of it": {store.Booting, time.Minute, map[string]store.Versioned[store.Replica]{
			"a": replica("a:7420", other, older), "b": replica("b:7420"), "c": replica(""),
		}, []string{"check whether it reaches a:7420, b:7420, its clock, and its certificate or join token"}},
		"one has refused it": {store.Booting, 2 * time.Minute, map[string]store.Versioned[store.Replica]{
			"a": replica("a:7420"), "b": replica("b:7420", refusal),
		}, []string{"agent: b refused it 1m ago, from 10.0.0.7:5: connection refused: the certificate has expired " +
			"(by its clock); the client gave the name without proof"}},
	} {
		i := booting
		i.Phase = c.phase
		got := UnregisteredLines(i, c.replicas, noon.Add(c.after))
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for n, want := range c.want {
			if !strings.Contains(got[n], want) {
				t.Errorf("%s: %q, want %q", name, got[n], want)
			}
		}
	}
}
