package bootstrap

import (
	"fmt"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// proves PROV-7: machines fetch the agent from replicas that serve the same program, the leader's if it serves one
func TestWhereMachinesFetchTheAgent(t *testing.T) {
	one, two := map[string]string{"amd64": "1"}, map[string]string{"amd64": "2"}
	for name, test := range map[string]struct {
		replicas map[string]store.Replica
		want     string
	}{
		"nowhere":              {map[string]store.Replica{"a": {}, "b": {Agents: one}}, "[] map[]"},
		"at the leader":        {map[string]store.Replica{"a": {Downloads: "A", Agents: one}, "b": {}}, "[A] map[amd64:1]"},
		"at another":           {map[string]store.Replica{"a": {}, "b": {Downloads: "B", Agents: one}}, "[B] map[amd64:1]"},
		"at all":               {map[string]store.Replica{"a": {Downloads: "A", Agents: one}, "b": {Downloads: "B", Agents: one}}, "[A B] map[amd64:1]"},
		"of two releases":      {map[string]store.Replica{"a": {Downloads: "A", Agents: two}, "b": {Downloads: "B", Agents: one}}, "[A] map[amd64:2]"},
		"without the leader's": {map[string]store.Replica{"b": {Downloads: "B", Agents: two}, "c": {Downloads: "C", Agents: one}}, "[B] map[amd64:2]"},
	} {
		shard := Shard{ID: "s", Replicas: test.replicas}
		got := shard.Agent("a")
		if text := fmt.Sprint(got.Addresses, got.SHA256); text != test.want || (got.Host == "") != (len(got.Addresses) == 0) {
			t.Errorf("%s: %s from %q, want %s", name, text, got.Host, test.want)
		}
	}
}
