package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Each constructor makes the condition or the write that it is named for, and nothing else.
func TestConditionsAndWrites(t *testing.T) {
	kv := store.KV{Key: "k", Value: []byte("v"), Created: 3, Modified: 5, Lease: 7}
	for name, test := range map[string]struct{ got, want any }{
		"unchanged":    {store.Unchanged(kv), store.Condition{Key: "k", Modified: 5}},
		"at":           {store.At("k", 5), store.Condition{Key: "k", Modified: 5}},
		"at, absent":   {store.At("k", 0), store.Condition{Key: "k", Absent: true}},
		"created at":   {store.CreatedAt("k", 3), store.Condition{Key: "k", Created: 3}},
		"absent":       {store.Absent("k"), store.Condition{Key: "k", Absent: true}},
		"exists":       {store.Exists("k"), store.Condition{Key: "k", Exists: true}},
		"put":          {store.Put("k", []byte("v")), store.Write{Key: "k", Value: []byte("v")}},
		"put leased":   {store.PutLeased("k", []byte("v"), 7), store.Write{Key: "k", Value: []byte("v"), Lease: 7}},
		"delete":       {store.Delete("k"), store.Write{Key: "k", Delete: true}},
		"fence":        {store.Fence{Key: "k", Created: 3}.Condition(), store.Condition{Key: "k", Created: 3}},
		"lease's end":  {store.Lease{From: time.Unix(5, 0), TTL: time.Minute}.Ends(), time.Unix(65, 0)},
		"cluster name": {store.Vitals{Cluster: 0xabc}.ClusterName(), "abc"},
	} {
		if fmt.Sprintf("%+v", test.got) != fmt.Sprintf("%+v", test.want) {
			t.Errorf("%s: %+v, want %+v", name, test.got, test.want)
		}
	}
}

// A condition holds for a key as it is, by every part of it.
func TestConditionHolds(t *testing.T) {
	kv := store.KV{Key: "k", Created: 3, Modified: 5}
	for _, test := range []struct {
		c                 store.Condition
		holds, forNothing bool // for the key, and for one that is absent
	}{
		{store.At("k", 5), true, false},
		{store.At("k", 4), false, false},
		{store.At("k", 3), false, false},
		{store.At("k", 0), false, true},
		{store.CreatedAt("k", 3), true, false},
		{store.CreatedAt("k", 5), false, false},
		{store.Exists("k"), true, false},
		{store.Condition{Key: "k", Created: 3, Modified: 5}, true, false},
		{store.Condition{Key: "k", Created: 3, Modified: 6}, false, false},
		{store.Condition{Key: "k", Created: 2, Modified: 5}, false, false},
		{store.Condition{Key: "k", Exists: true, Modified: 5}, true, false},
	} {
		if got := test.c.Holds(kv); got != test.holds {
			t.Errorf("%+v for %+v: %t", test.c, kv, got)
		}
		if got := test.c.Holds(store.KV{}); got != test.forNothing {
			t.Errorf("%+v for an absent key: %t", test.c, got)
		}
	}
}

// What one store refuses the other refuses too: both have the same limits.
func TestTransactionsThatAreRefused(t *testing.T) {
	write := []store.Write{store.Put("k", nil)}
	conditions := func(n int, c store.Condition) (out []store.Condition) {
		for range n {
			out = append(out, c)
		}
		return out
	}
	writes := func(n int) (out []store.Write) {
		for i := range n {
			out = append(out, store.Delete(fmt.Sprint("k", i)))
		}
		return out
	}
	both := store.Condition{Key: "k", Created: 1, Modified: 2}
	for _, test := range []struct {
		name string
		txn  store.Txn
		want string // "" if it is well formed
	}{
		{"a write", store.Txn{Writes: write}, ""},
		{"no writes", store.Txn{Conditions: conditions(1, store.Absent("k"))}, "no writes"},
		{"as many writes as there may be", store.Txn{Writes: writes(store.MaxOps)}, ""},
		{"one write more", store.Txn{Writes: writes(store.MaxOps + 1)}, "split it"},
		{
			"as many conditions as there may be",
			store.Txn{Writes: write, Conditions: conditions(store.MaxOps, store.Absent("k"))},
			"",
		},
		{
			"one condition more",
			store.Txn{Writes: write, Conditions: conditions(store.MaxOps+1, store.Absent("k"))},
			"split it",
		},
		{"as many comparisons", store.Txn{Writes: write, Conditions: conditions(store.MaxOps/2, both)}, ""},
		{"two comparisons more", store.Txn{Writes: write, Conditions: conditions(store.MaxOps/2+1, both)}, "split it"},
		{
			"one revision is one comparison",
			store.Txn{Writes: write, Conditions: conditions(store.MaxOps, store.At("k", 2))},
			"",
		},
		{
			"one creation is one comparison",
			store.Txn{Writes: write, Conditions: conditions(store.MaxOps, store.CreatedAt("k", 2))},
			"",
		},
		{
			"two comparisons at revision 1",
			store.Txn{Writes: write, Conditions: conditions(store.MaxOps/2+1,
				store.Condition{Key: "k", Created: 1, Modified: 1})},
			"split it",
		},
		{"a write without a key", store.Txn{Writes: []store.Write{store.Put("", nil)}}, "no key"},
		{
			"a key twice",
			store.Txn{Writes: []store.Write{store.Put("k", nil), store.Put("l", nil), store.Delete("k")}},
			"k twice",
		},
		{"a condition without a key", store.Txn{Writes: write, Conditions: conditions(1, store.Absent(""))}, "no key"},
		{"the second condition", store.Txn{
			Writes:     write,
			Conditions: []store.Condition{store.Absent("k"), store.Absent("")},
		}, "no key"},
		{"a negative revision", store.Txn{
			Writes:     write,
			Conditions: conditions(1, store.Condition{Key: "k", Modified: -1}),
		}, "negative"},
		{"a negative creation", store.Txn{
			Writes:     write,
			Conditions: conditions(1, store.Condition{Key: "k", Created: -1}),
		}, "negative"},
		{"absent and there", store.Txn{
			Writes:     write,
			Conditions: conditions(1, store.Condition{Key: "k", Absent: true, Exists: true}),
		}, "contradicts"},
		{"absent and modified", store.Txn{
			Writes:     write,
			Conditions: conditions(1, store.Condition{Key: "k", Absent: true, Modified: 1}),
		}, "contradicts"},
		{"absent and created", store.Txn{
			Writes:     write,
			Conditions: conditions(1, store.Condition{Key: "k", Absent: true, Created: 1}),
		}, "contradicts"},
		{
			"nothing is compared",
			store.Txn{Writes: write, Conditions: conditions(1, store.Condition{Key: "k"})},
			"compares nothing",
		},
		{"created", store.Txn{Writes: write, Conditions: conditions(1, store.CreatedAt("k", 1))}, ""},
		{"exists", store.Txn{Writes: write, Conditions: conditions(1, store.Exists("k"))}, ""},
	} {
		err := test.txn.Validate()
		if test.want == "" && err != nil || test.want != "" &&
			(err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// A record tells whether it is there, and gives the condition that it has not changed since.
func TestVersionedRecords(t *testing.T) {
	kv := store.KV{
		Key: "k", Value: store.Encode(store.Leader{Schema: store.Schema, Replica: "a"}), Created: 3,
		Modified: 5, Lease: 7,
	}
	v, err := store.Decode[store.Leader](kv)
	if err != nil || v.Record.Replica != "a" || v.Key != "k" || v.Created != 3 || v.Modified != 5 || v.Lease != 7 ||
		!v.Present() {
		t.Errorf("read as %+v, %v", v, err)
	}
	if v.Unchanged() != store.At("k", 5) {
		t.Errorf("unchanged is %+v", v.Unchanged())
	}
	for value, want := range map[string]string{
		`{"schema":1,"replica":"a"}`:  "",
		`{"replica":"a","schema":1}`:  "",
		`{"replica":"a"}`:             "",
		`{"replica":"a","schema":2}`:  "newer schema",
		`{"schema":10,"replica":"a"}`: "newer schema",
		`{"schema":1,"replica":5}`:    "read k",
		`no record`:                   "read k",
		``:                            "read k",
	} {
		kv.Value = []byte(value)
		v, err := store.Decode[store.Leader](kv)
		if want == "" && (err != nil || v.Record.Replica != "a") || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %+v, %v, want %q", value, v.Record, err, want)
		}
		if (want == "newer schema") != errors.Is(err, store.ErrSchema) {
			t.Errorf("%s: %v", value, err)
		}
	}
}
