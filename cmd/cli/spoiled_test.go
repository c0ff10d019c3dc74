package cli

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A record that an operator has written by hand must not hide the shard from others: status
// continues, and names the order and how to remove it; secrets continue, and the damaged one can be
// set again.
func TestRecordsThatOperatorsSpoilHideNothing(t *testing.T) {
	w, _ := secretWorld(t)
	w.put(store.KindRequests, "r0", "")
	w.put(store.KindRequests, "r1", "{")
	code, out, err := w.run("status")
	w.expect(code, out, err, Done, "REC-16: an order cannot be read", "requests/r0", "requests/r1", "next: etcdctl del")

	// A name with control sequences for the terminal.
	name := "\x1b]0;owned\x07\nall is well " + strings.Repeat("x", 1000)
	w.put(store.KindGroups, name, "{")
	_, out, err = w.run("status")
	if strings.ContainsAny(out+err, "\x1b\x07") || strings.Contains(out, "\nall is well") {
		t.Errorf("a group's name reaches the terminal as it is: %q", out)
	}

	// Authors and reasons with such sequences, in records that can be read.
	const evil = "\x1b]0;owned\x07eve"
	w.put(store.KindShard, "", store.Shard{
		Schema: store.Schema, ID: "x1", Name: "default", Evacuated: map[string]store.Evacuation{"a": {By: evil}},
		Hold: &store.Hold{By: evil, Why: evil, Extras: 1},
	})
	group := webGroup(1)
	group.Source = evil
	w.put(store.KindStatus, "web", statusOf(group, w.put(store.KindGroups, "web", group), 1))
	w.put(store.KindInstances, "web-0-a", store.Instance{
		Schema: store.Schema, ID: "web-0-a", Group: "web", Managed: true, Phase: store.Running,
		Protected: store.ProtectRemoval, Protection: &store.Protection{By: evil, Why: evil},
		Condemned: &store.Condemned{By: evil, Why: evil},
	})
	for _, command := range []string{
		"status", "group show web", "instance show web-0-a", "explain web", "explain web-0-a", "evacuate a", "hold again",
		"release",
	} {
		_, out, err := w.run(strings.Fields(command)...)
		if strings.ContainsAny(out+err, "\x1b\x07") || !strings.Contains(out+err, "owned") {
			t.Errorf("%s: who wrote it reaches the terminal as it is, or is not shown: %q", command, out+err)
		}
	}

	code, out, err = w.set("good", "hunter2")
	w.expect(code, out, err, Done, "good set version 1")
	w.put(store.KindSecrets, "bad", "{")
	code, out, err = w.run("secret", "list")
	w.expect(code, out, err, Done, "good\t1", `2>the record of secret "bad" cannot be read`, "2>leasehold secret set")
	code, out, err = w.set("good", "hunter3")
	w.expect(code, out, err, Done, "good set version 2")
	code, out, err = w.set("bad", "hunter4")
	w.expect(code, out, err, Done, "bad set version 1")
	code, out, err = w.run("secret", "list")
	w.expect(code, out, err, Done, "bad\t1")
	if strings.Contains(err, "cannot be read") {
		t.Errorf("it was set again: %s", err)
	}
}
