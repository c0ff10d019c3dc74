package bootstrap

import (
	"fmt"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// proves PROV-7: machines fetch the agent from replicas that serve the same program, the leader's
// if it serves one
func TestWhereMachinesFetchTheAgent(t *testing.T) {
	one, two := map[string]string{"amd64": "1"}, map[string]string{"amd64": "2"}
	for name, test := range map[string]struct {
		replicas map[string]store.Replica
		want     string
	}{
		"nowhere":       {map[string]store.Replica{"a": {}, "b": {Agents: one}}, "[] map[]"},
		"at the leader": {map[string]store.Replica{"a": {Downloads: "A", Agents: one}, "b": {}}, "[A] map[amd64:1]"},
		"at another":    {map[string]store.Replica{"a": {}, "b": {Downloads: "B", Agents: one}}, "[B] map[amd64:1]"},
		"at all": {map[string]store.Replica{
			"a": {Downloads: "A", Agents: one},
			"b": {Downloads: "B", Agents: one},
		}, "[A B] map[amd64:1]"},
		"of two releases": {map[string]store.Replica{
			"a": {Downloads: "A", Agents: two},
			"b": {Downloads: "B", Agents: one},
		}, "[A] map[amd64:2]"},
		"without the leader's": {map[string]store.Replica{
			"b": {Downloads: "B", Agents: two},
			"c": {Downloads: "C", Agents: one},
		}, "[B] map[amd64:2]"},
	} {
		shard := Shard{ID: "s", Replicas: test.replicas}
		got := shard.Agent("a")
		if text := fmt.Sprint(got.Addresses, got.SHA256); text != test.want || (got.Host == "") != (len(got.Addresses) == 0) {
			t.Errorf("%s: %s from %q, want %s", name, text, got.Host, test.want)
		}
	}
}

// A machine is told its slot's name and what it is, for its workload and for cloud-init.
//
// proves SLOT-1
func TestBootstrapDocumentOfAMachine(t *testing.T) {
	rec := store.Instance{ID: "web-3-abc", Group: "web", Slot: 3, Zone: "a"}
	rec.Spec.Slots.Name = "${group}-${slot}"
	shard := Shard{ID: "s", Name: "main"}
	got := shard.Document(rec, "")
	if got.Name != "web-3" || fmt.Sprint(got.Facts) != "map[group:web instance:web-3-abc name:web-3 shard:main slot:3 "+
		"zone:a]" {
		t.Errorf("the document says %s and %v", got.Name, got.Facts)
	}
}
