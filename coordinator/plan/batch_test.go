package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// atOnce is a thousand agents that register at once.
func atOnce() Snapshot {
	return crowd(1000, 1, func(in *Instance) { in.Record.Phase = store.Booting })
}

// A thousand agents that register at once are taken up by few transactions, in the order of the
// plan, each with its own conditions and entry.
//
// proves SAFE-4, REC-15
func TestSimpleActionsShareTransactions(t *testing.T) {
	s := atOnce()
	p := Compute(s, epoch.Add(time.Minute))
	parts, turns := Batch(p.Actions), NewTurns(&s)
	if len(p.Actions) < 1000 || len(parts) > 1000/maxInBatch+5 {
		t.Errorf("%d actions in %d transactions", len(p.Actions), len(parts))
	}
	next := 0
	for _, part := range parts {
		conditions, writes := turns.TxnOf(part)
		told := 0
		for _, a := range part {
			if a != &p.Actions[next] {
				t.Fatalf("%s %s comes out of its turn", a.Instance, a.What())
			}
			next++
			for _, c := range a.Conditions {
				if !slices.Contains(conditions, c) {
					t.Errorf("%s %s: %+v is not compared", a.Instance, a.What(), c)
				}
			}
			told += len(a.JournalEntries())
		}
		if err := asCommitted(conditions, writes, told).Validate(); err != nil {
			t.Errorf("a transaction of %d actions: %v", len(part), err)
		}
	}
	if next != len(p.Actions) {
		t.Errorf("%d of %d actions are carried out", next, len(p.Actions))
	}
}

// asCommitted is a transaction with the leader's fence and entries of the journal.
func asCommitted(conditions []store.Condition, writes []store.Write, told int) store.Txn {
	txn := store.Txn{
		Conditions: append(slices.Clone(conditions), store.CreatedAt("fence", 1)),
		Writes:     slices.Clone(writes),
	}
	for n := range told {
		txn.Writes = append(txn.Writes, store.Put(fmt.Sprint("journal", n), nil))
	}
	return txn
}

// move is a simple action of one instance.
func move(id string) Action {
	return Action{
		Group: "web", Instance: id, Rule: "DET-11", Effect: effect(store.EffectRegistered),
		From: store.Booting, To: store.Checking,
		Conditions: []store.Condition{store.At("instances/"+id, 3), store.At("alive/"+id, 4)},
		Writes:     []store.Write{store.Put("instances/"+id, nil)},
	}
}

// What makes or removes a machine, uses a budget, changes more than one record, or has to do with
// what another changes does not share.
//
// proves SAFE-4, SAFE-8, HEAL-3
func TestWhoSharesATransaction(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Action)
		shares bool
	}{
		{"one like the others", func(*Action) {}, true},
		{"of another group", func(a *Action) { a.Group = "db" }, true},
		{"changes no phase", func(a *Action) { a.From, a.To = store.Running, store.Running }, true},
		{"a status", func(a *Action) { a.Instance, a.From, a.To, a.NoJournal = "", "", "", true }, true},
		{"compares the spec as well", func(a *Action) {
			a.Conditions = append(a.Conditions, store.At("groups/web", 2))
		}, true},
		{"uses a budget", func(a *Action) { a.Turn = true }, false},
		{"concerns the shard", func(a *Action) { a.Group, a.Instance = "", "" }, false},
		{
			"changes another record too", func(a *Action) { a.Writes = append(a.Writes, store.Delete("requests/r")) },
			false,
		},
		{"removes its record", func(a *Action) { a.Writes = []store.Write{store.Delete("instances/m")} }, false},
		{"makes its record", func(a *Action) { a.Conditions = []store.Condition{store.Absent("instances/m")} }, false},
		{"does not compare what it changes", func(a *Action) { a.Conditions = a.Conditions[1:] }, false},
		{"is going to be removed", func(a *Action) { a.To = store.Deleting }, false},
		{"leaves", func(a *Action) { a.To = store.Draining }, false},
		{"is finished", func(a *Action) { a.To = store.Finished }, false},
		{
			"compares what the one before changes",
			func(a *Action) { a.Conditions = append(a.Conditions, store.At("instances/before", 3)) }, false,
		},
		{"changes what the one before compares", func(a *Action) {
			a.Conditions, a.Writes = append(a.Conditions, store.At("alive/before", 4)),
				[]store.Write{store.Put("alive/before", nil)}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := move("m")
			c.change(&m)
			parts := Batch([]Action{move("before"), m})
			if shares := len(parts) == 1; shares != c.shares {
				t.Errorf("shares a transaction: %t", shares)
			}
			other := move("other")
			if parts := Batch([]Action{m, other}); len(parts) == 1 && !c.shares &&
				!strings.Contains(c.name, "the one before") {
				t.Error("another shares its transaction")
			}
		})
	}
}

// However many and however large they are, transactions stay below what etcd takes.
func TestSharedTransactionsAreBounded(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Action)
		most   int
	}{
		{"many", func(*Action) {}, maxInBatch},
		{"with much evidence", func(a *Action) {
			for n := range 9 {
				a.Conditions = append(a.Conditions,
					store.Condition{Key: fmt.Sprint(a.Instance, n), Created: 1, Modified: 2})
			}
		}, 6},
		{"with many entries", func(a *Action) { a.Notes = make([]Note, 40) }, 3},
		{"with as many entries as fit", func(a *Action) { a.Notes = make([]Note, store.MaxOps/2-2) }, 2},
		{"with one more than fit", func(a *Action) { a.Notes = make([]Note, store.MaxOps/2-1) }, 1},
		{"with large records", func(a *Action) { a.Writes[0].Value = make([]byte, maxTogetherBytes/4) }, 3},
		{"with much to tell", func(a *Action) { a.Facts = inWords(strings.Repeat("x", maxTogetherBytes/8)) }, 3},
		{"alone too large", func(a *Action) { a.Writes[0].Value = make([]byte, 2*maxTogetherBytes) }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var actions []Action
			for n := range 100 {
				a := move(fmt.Sprint("web-", n))
				c.change(&a)
				actions = append(actions, a)
			}
			most, all := 0, 0
			for _, part := range Batch(actions) {
				most, all = max(most, len(part)), all+len(part)
				told := 0
				for _, a := range part {
					told += len(a.JournalEntries())
				}
				conditions, writes := Turns{}.TxnOf(part)
				if err := asCommitted(conditions, writes, told).Validate(); err != nil {
					t.Errorf("%d actions: %v", len(part), err)
				}
			}
			if most != c.most || all != len(actions) {
				t.Errorf("%d of %d actions, at most %d in a transaction, want %d", all, len(actions), most, c.most)
			}
		})
	}
}

// An action that was overtaken is tried alone, and the others together once more.
func TestOvertakenActionsHoldUpNobody(t *testing.T) {
	a, b, c := move("a"), move("b"), move("c")
	for _, tt := range []struct {
		changed string
		want    string
	}{
		{"alive/b", "[a c] [b]"},
		{"alive/c instances/a", "[b] [a] [c]"},
		{"alive/a alive/b alive/c", "[a] [b] [c]"},
		{"elsewhere", "[a] [b] [c]"},
		{"", "[a] [b] [c]"},
	} {
		var got []string
		for _, part := range Split([]*Action{&a, &b, &c}, strings.Fields(tt.changed)) {
			var ids []string
			for _, a := range part {
				ids = append(ids, a.Instance)
			}
			got = append(got, fmt.Sprint(ids))
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%q changed: tried are %s, want %s", tt.changed, got, tt.want)
		}
	}
}
