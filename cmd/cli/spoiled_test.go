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
