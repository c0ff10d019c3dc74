package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/replay"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// The past, the control and the file are shown side by side, for people and for programs, from the
// shard and from a file.
//
// proves AUTO-4
func TestReplay(t *testing.T) {
	w := newWorld(t)
	w.past()
	t.Chdir(t.TempDir())
	_, file, _ := w.run("events", "export", "--since", "3h")
	for name, text := range map[string]string{
		"events": file, "half": file[:len(file)/2],
		"web.yaml": "name: web\nsize: 1\nprovider: process\nbudget: {max_expansion: 2}\n",
		"bad.yaml": "name: web\nsizee: 1\nprovider: process\n", "torn.yaml": "name: web\nsize: [\n",
		"new.yaml": "name: new\nsize: 1\nprovider: process\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"--since", "3h"}, {"--from", "events"}} {
		code, stdout, stderr := w.run(append([]string{"replay", "-f", "web.yaml", "-o", "json"}, args...)...)
		var doc replay.Result
		if err := json.Unmarshal([]byte(stdout), &doc); code != Done || err != nil {
			t.Fatalf("%v: %d, %v: %s", args, code, err, stderr)
		}
		g := doc.Groups[0]
		if g.Was.Replaced != 1 || g.Control.Replaced != 1 || g.Would.Replaced != 1 || g.Control.Lost == 0 ||
			g.Change != (replay.Difference{}) || g.Error.Lost != g.Control.Lost-g.Was.Lost ||
			!strings.Contains(strings.Join(doc.Unknown, " "), "Not played") {
			t.Errorf("%v: %s", args, stdout)
		}
	}
	if code, stdout, _ := w.run("replay", "-f", "web.yaml", "--since", "3h"); code != Done ||
		strings.Count(stdout, "\nweb\t") != 3 {
		t.Errorf("%s", stdout)
	}
	for _, c := range []struct {
		args []string
		code Code
		says string
	}{
		{[]string{"-f", "new.yaml"}, NotFound, "group new has no past here"},
		{nil, Usage, "-f: give the file"},
		{[]string{"-f", "web.yaml", "--from", "half"}, Failed, "cut short"},
		{[]string{"-f", "web.yaml", "--from", "nosuch"}, Usage, "no such file"},
		{[]string{"-f", "bad.yaml"}, Failed, "sizee: unknown field: did you mean size?"}, // as group apply says it
		{[]string{"-f", "torn.yaml"}, Failed, "not YAML"},
		{[]string{"-f", "nosuch.yaml"}, Usage, "no such file"},
	} {
		code, _, stderr := w.run(append([]string{"replay", "--since", "3h"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: %d, %s", c.args, code, stderr)
		}
	}
	w.terminal = true
	_, stdout, _ := w.run("replay", "-f", "web.yaml", "--since", "3h")
	t.Log(stdout)
	if !strings.Contains(stdout, "in the file: lost by machine died") || !strings.Contains(stdout, "Compare the file") ||
		!strings.Contains(stdout, "web: the same as with the policy in force.") {
		t.Errorf("%s", stdout)
	}
}

// After a restore the time before it is unknown to reports and replays, from the shard and from a
// file: it is not a time in which all was well.
//
// proves DAY-5, AUTO-4
func TestThePastBeginsAtARestore(t *testing.T) {
	w := newWorld(t)
	w.past()
	since := noon.Add(-30 * time.Minute)
	w.put(store.KindServed, "", store.Served{
		Schema: store.Schema, At: noon.Add(-2 * time.Second), Replica: "coord-a", Since: since,
	})
	t.Chdir(t.TempDir())
	_, file, _ := w.run("events", "export", "--since", "3h")
	spec := "name: web\nsize: 1\nprovider: process\nbudget: {max_expansion: 2}\n"
	for name, text := range map[string]string{"events": file, "web.yaml": spec} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"--since", "3h"}, {"--from", "events"}} {
		code, stdout, stderr := w.run(append([]string{"report", "-o", "json"}, args...)...)
		var doc review.Report
		if err := json.Unmarshal([]byte(stdout), &doc); code != Done || err != nil {
			t.Fatalf("%v: %d, %v: %s", args, code, err, stderr)
		}
		if !doc.From.Equal(since) || len(doc.Groups) != 1 || doc.Groups[0].Wanted.D() != 30*time.Minute ||
			doc.Groups[0].Lost != 0 {
			t.Errorf("%v: %s", args, stdout)
		}
		code, stdout, stderr = w.run(append([]string{"replay", "-f", "web.yaml", "-o", "json"}, args...)...)
		var res replay.Result
		if err := json.Unmarshal([]byte(stdout), &res); code != Done || err != nil {
			t.Fatalf("%v: %d, %v: %s", args, code, err, stderr)
		}
		if res.Groups[0].Was.Replaced != 0 {
			t.Errorf("%v: %s", args, stdout)
		}
	}
}
