package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// shop writes a directory with groups, one file for each, and returns its name.
func shop(t *testing.T, sizes map[string]int) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, size := range sizes {
		write(t, "fleet/"+name+".yaml", groupText(name, size))
	}
}

func groupText(name string, size int) string {
	return fmt.Sprintf("name: %s\nprovider: process\nsize: %d\nworkload: {run: [./%s]}\n", name, size, name)
}

// A directory is applied as a whole: groups, in folders below it too, and settings of the shard. A
// second time there is nothing to do.
//
// proves REC-14 REC-20
func TestApplyADirectory(t *testing.T) {
	w := newWorld(t)
	w.serve()
	shop(t, map[string]int{"web": 3, "back/jobs": 2})
	if err := os.Rename("fleet/back/jobs.yaml", "fleet/back/jobs.yml"); err != nil {
		t.Fatal(err)
	}
	write(t, "fleet/back/jobs.yml", groupText("jobs", 2)+"---\n"+groupText("mail", 1))
	write(t, "fleet/shard.yaml", "settings:\n  provider_poll: 7s\n  create_rate: 3\n")
	write(t, "fleet/.github/workflow.yaml", "on: push\n")
	write(t, "fleet/README.md", "not a group")

	code, out, stderr := w.run("apply", "-f", "fleet", "--diff")
	if code != Differs || !strings.Contains(out,
		"3 would be created, 0 changed, 0 deleted, 0 unchanged; 2 settings would change") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
	if listing, err := w.st.List(t.Context(), w.keys.Of(store.KindGroups), 0); err != nil || len(listing.KVs) > 0 {
		t.Errorf("--diff wrote %d groups, %v", len(listing.KVs), err)
	}
	out = w.must("apply", "-f", "fleet")
	if !strings.Contains(out, "3 created, 0 changed, 0 being deleted, 0 unchanged; 2 settings changed") ||
		!strings.Contains(out, fmt.Sprintf("web created rev %d\n", w.revision(store.KindGroups, "web"))) {
		t.Error(out)
	}
	if a, b := w.revision(store.KindGroups, "web"), w.revision(store.KindGroups, "mail"); a != b {
		t.Errorf("one transaction writes all, and the revisions are %d and %d", a, b)
	}
	shard, err := w.st.Get(t.Context(), w.keys.Shard())
	if err != nil {
		t.Fatal(err)
	}
	if v, err := store.Decode[store.Shard](shard); err != nil || v.Record.Settings.Value("provider_poll") != "7s" ||
		v.Record.Settings.Value("create_rate") != "3" || v.Record.Settings.Value("create_burst") != "10" {
		t.Errorf("%v, %+v", err, v.Record.Settings)
	}
	before := w.revision(store.KindGroups, "web")
	if out = w.must("apply", "-f", "fleet"); !strings.Contains(out, "0 created, 0 changed, 0 being deleted, 3 unchanged") {
		t.Error(out)
	}
	if now := w.revision(store.KindGroups, "web"); now != before {
		t.Errorf("an unchanged group was written at %d", now)
	}
	if code, out, _ := w.run("apply", "-f", "fleet", "--diff"); code != Done {
		t.Errorf("no difference is exit %d\n%s", code, out)
	}
}

// A directory may be named by a link, as tools name it that exchange a whole release at once. A
// link to a directory below it is refused, since its groups would seem to be deleted.
//
// proves REC-7, REC-14
func TestApplyLinks(t *testing.T) {
	w := newWorld(t)
	w.serve()
	shop(t, map[string]int{"web": 3})
	write(t, "fleet/back/jobs.yaml", groupText("jobs", 2))
	for link, to := range map[string]string{
		"current": "fleet", "fleet/mail.yaml": "../mail.txt", "fleet/..data": "back",
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	write(t, "mail.txt", groupText("mail", 1))
	if out := w.must("apply", "-f", "current"); !strings.Contains(out, "3 created") {
		t.Error(out)
	}
	if err := os.Rename("fleet/back", "elsewhere"); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"../elsewhere", "../nowhere"} {
		if err := os.Symlink(to, "fleet/back"); err != nil {
			t.Fatal(err)
		}
		code, out, stderr := w.run("apply", "-f", "current", "--source", "shop", "--prune", "--diff")
		if code != Usage || !strings.Contains(stderr, "fleet/back") {
			t.Errorf("%s: exit %d\n%s%s", to, code, out, stderr)
		}
		if err := os.Remove("fleet/back"); err != nil {
			t.Fatal(err)
		}
	}
}

// Everything that is wrong in a directory is reported at once, with its place, and nothing is
// written.
func TestApplyADirectoryWithErrors(t *testing.T) {
	w := newWorld(t)
	w.serve()
	shop(t, map[string]int{"web": 3})
	write(t, "fleet/a.yaml", "name: a\nsise: 3\n")
	write(t, "fleet/b.yaml", groupText("web", 1))
	write(t, "fleet/c.yaml", "name: web2\nprovider: process\nsource: mine\n")
	code, out, stderr := w.run("apply", "-f", "fleet")
	for _, want := range []string{
		"fleet/a.yaml:2:1", `group "web" is in fleet/b.yaml already (fleet/web.yaml:1:7)`,
		"source: not set in a file: use leasehold apply --source",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in\n%s", want, stderr)
		}
	}
	if code != Failed || out != "" {
		t.Errorf("exit %d: %s", code, out)
	}
	for text, want := range map[string]string{
		"settings: {povider_poll: 1s}": "settings.povider_poll: unknown setting: " +
			"did you mean provider_poll? (s/s.yaml:1:12)",
		"settings: {provider_poll: 0s}": "settings.provider_poll: 0s: must be 1s to 10m0s (DET-12) (s/s.yaml:1:27)",
		"settings: {reconnect_min: 50s}": "settings.reconnect_min: 50s: must be 100ms to 1m0s, and at most " +
			"reconnect_max (30s) (DET-14) (s/s.yaml:1:27)",
		"settings: {a: [1]}": "settings.a: a list: must be a value",
		"settings: 3":        "settings: 3: must have fields like provider_poll: 10s",
		"settings: {create_rate: 2}\nsize: 3": "size: unknown field: " +
			"a document with settings has nothing else",
		"name: web\nsettings: {create_rate: 2}":                       "settings: unknown field",
		"settings: {create_rate: 2}\n---\nsettings: {create_rate: 3}": "must be set once",
	} {
		write(t, "s/s.yaml", text+"\n")
		if code, _, stderr := w.run("apply", "-f", "s"); code != Failed || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, no %q in\n%s", text, code, want, stderr)
		}
	}
	if code, _, stderr := w.run("group", "apply", "-f", "s/s.yaml"); code != Failed ||
		!strings.Contains(stderr, "settings: unknown field") {
		t.Errorf("group apply: exit %d\n%s", code, stderr)
	}
	if listing, err := w.st.List(t.Context(), w.keys.Of(store.KindGroups), 0); err != nil || len(listing.KVs) > 0 {
		t.Errorf("%d groups were written, %v", len(listing.KVs), err)
	}
}

// An edit of any group in the middle of an apply prevents all changes, whether the edit comes
// before the only transaction or before the check that precedes several. An edit between two
// transactions leaves the first in place, with a message; the same command continues.
//
// proves REC-14
func TestAConflictInTheMiddle(t *testing.T) {
	for _, n := range []int{10, 2*groupsAtOnce + 5} {
		for _, at := range []int{1, 2} { // before which commit
			if at == 2 && n < groupsAtOnce {
				continue
			}
			t.Run(fmt.Sprintf("%d groups, commit %d", n, at), func(t *testing.T) {
				w := newWorld(t)
				w.serve()
				sizes := map[string]int{}
				for i := range n {
					sizes[fmt.Sprintf("g%03d", i)] = 1
				}
				shop(t, sizes)
				w.must("apply", "-f", "fleet")
				for i := range n {
					write(t, fmt.Sprintf("fleet/g%03d.yaml", i), groupText(fmt.Sprintf("g%03d", i), 2))
				}
				last := fmt.Sprintf("g%03d", n-1)
				commits := 0
				w.open = func(context.Context, Connection) (store.Store, func() error, error) {
					return interrupted{w.st, func() {
						if commits++; commits == at {
							kv, err := w.st.Get(t.Context(), w.keys.Group(last))
							if err != nil {
								t.Error(err)
							}
							w.put(store.KindGroups, last, strings.Replace(string(kv.Value), `"size":1`, `"size":9`, 1))
						}
					}}, func() error { return nil }, nil
				}
				code, out, stderr := w.run("apply", "-f", "fleet")
				w.open = nil
				if code != Conflict || !strings.Contains(stderr, "group "+last+": it was changed") {
					t.Errorf("exit %d\n%s%s", code, out, stderr)
				}
				wrote := 0
				for i := range n - 1 {
					if w.spec(fmt.Sprintf("g%03d", i)).Size == 2 {
						wrote++
					}
				}
				want := 0
				if n > groupsAtOnce { // the edit was made after the check
					want = 2 * groupsAtOnce
				}
				if wrote != want || w.spec(last).Size != 9 {
					t.Errorf("%d groups were written, want %d; the edit says %d", wrote, want, w.spec(last).Size)
				}
				if want > 0 && !strings.Contains(stderr,
					fmt.Sprintf("%d groups before it were written and stand, 5 are not", want)) {
					t.Error(stderr)
				}
				w.must("apply", "-f", "fleet", "--confirm="+last)
				if w.spec(last).Size != 2 {
					t.Error("the second apply did not go on")
				}
			})
		}
	}
}

// Several transactions begin only after a check of all groups.
//
// proves REC-14
func TestAConflictBeforeSeveralTransactions(t *testing.T) {
	w := newWorld(t)
	w.serve()
	n := groupsAtOnce + 1
	var in intent
	for i := range n {
		g := webGroup(1)
		g.Name = fmt.Sprintf("g%03d", i)
		in.changes = append(in.changes, groupChange{name: g.Name, after: g})
	}
	w.put(store.KindGroups, "g063", webGroup(4))
	inv := &Invocation{env: w.env(os.Stdout, os.Stderr), flags: &Globals{Shard: "default"}, st: w.st}
	_, err := inv.writeIntent(t.Context(), in, "again")
	var why *Failure
	if !errors.As(err, &why) || why.Code != Conflict {
		t.Errorf("got %v", err)
	}
	if listing, err := w.st.List(t.Context(), w.keys.Of(store.KindGroups), 0); err != nil || len(listing.KVs) != 1 {
		t.Errorf("%d groups are there, %v", len(listing.KVs), err)
	}
}

// interrupted is a store in which something happens before each commit.
type interrupted struct {
	store.Store
	before func()
}

func (i interrupted) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	i.before()
	return i.Store.Commit(ctx, txn)
}

// --prune deletes what the same source has applied and nothing else: neither groups of another
// source nor groups without one. It wants each name, and refuses a directory without groups.
//
// proves REC-7
func TestPrune(t *testing.T) {
	w := newWorld(t)
	w.serve()
	shop(t, map[string]int{"web": 3, "jobs": 2, "mail": 2})
	w.must("apply", "-f", "fleet", "--source", "shop")
	write(t, "other/api.yaml", groupText("api", 1))
	w.must("apply", "-f", "other", "--source=ops")
	write(t, "alone.yaml", groupText("alone", 1))
	w.must("group", "apply", "-f", "alone.yaml")

	for _, args := range [][]string{
		{"apply", "-f", "fleet", "--prune"},
		{"apply", "-f", "fleet", "--source=two words"},
	} {
		if code, _, stderr := w.run(args...); code != Usage {
			t.Errorf("%v: exit %d\n%s", args, code, stderr)
		}
	}
	code, _, stderr := w.run("apply", "-f", "fleet", "--source=ops")
	if code != Conflict || !strings.Contains(stderr, "was applied from source shop, not ops") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	if code, _, stderr = w.run("apply", "-f", "fleet"); code != Conflict {
		t.Errorf("exit %d\n%s", code, stderr)
	}

	write(t, "empty/shard.yaml", "settings: {create_rate: 9}\n")
	code, _, stderr = w.run("apply", "-f", "empty", "--source=shop", "--prune", "--confirm=web")
	if code != Usage || !strings.Contains(stderr, "--prune would delete all groups of source shop") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	for _, name := range []string{"jobs", "mail"} {
		if err := os.Remove(filepath.Join("fleet", name+".yaml")); err != nil {
			t.Fatal(err)
		}
	}
	w.must("apply", "-f", "fleet", "--source=shop") // without --prune nothing goes
	if w.spec("jobs").Deleting {
		t.Error("jobs is being deleted")
	}
	prune := []string{"apply", "-f", "fleet", "--source=shop", "--prune"}
	code, out, stderr := w.run(append(prune, "--diff")...)
	if code != Differs || !strings.Contains(out, "- jobs: spec rev") ||
		!strings.Contains(out, "--confirm=jobs --confirm=mail") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
	code, _, stderr = w.run(prune...)
	if code != Usage || !strings.Contains(stderr, "next: run the same command with --confirm=jobs --confirm=mail") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	if code, _, stderr = w.run(append(prune, "--confirm=mail")...); code != Usage || w.spec("mail").Deleting {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	out = w.must(append(prune, "--confirm=jobs", "--confirm=mail")...)
	if !strings.Contains(out, "0 created, 0 changed, 2 being deleted, 1 unchanged") {
		t.Error(out)
	}
	for name, deleting := range map[string]bool{"jobs": true, "mail": true, "web": false, "api": false, "alone": false} {
		if w.spec(name).Deleting != deleting {
			t.Errorf("%s: deleting is %t", name, !deleting)
		}
	}
	if code, _, stderr = w.run(prune...); code != Done { // what is being deleted is not deleted again
		t.Errorf("exit %d\n%s", code, stderr)
	}
	// A group that is taken over belongs to the other source from then on.
	w.must("apply", "-f", "fleet", "--source=ops", "--take-over")
	if got := w.spec("web").Source; got != "ops" {
		t.Errorf("the source of web is %q", got)
	}
	_, out, _ = w.run("group", "show", "web")
	if !strings.Contains(out, "source: ops") {
		t.Error(out)
	}
	_, _, stderr = w.run("group", "scale", "web", "5")
	if !strings.Contains(stderr, "web was applied from source ops") {
		t.Error(stderr)
	}
}

// What --diff showed can be applied exactly: not if a group, or the shard's settings where the
// files change one, has changed since. Groups that the files are not about may.
//
// proves REC-14
func TestApplyExactlyThis(t *testing.T) {
	w := newWorld(t)
	w.serve()
	shop(t, map[string]int{"web": 3})
	write(t, "fleet/shard.yaml", "settings: {create_rate: 9}\n")
	var doc applyDocument
	diff := func() []string {
		t.Helper()
		_, out, _ := w.run("apply", "-f", "fleet", "--diff", "-o", "json")
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
		return strings.Fields(doc.Apply)[1:]
	}
	exactly := diff()
	w.put(store.KindGroups, "api", strings.ReplaceAll(string(store.Encode(webGroup(1))), `"web"`, `"api"`))
	w.put(store.KindGroups, "web", webGroup(1))
	if code, _, stderr := w.run(exactly...); code != Conflict ||
		!strings.Contains(stderr, "group web has changed since revision") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	exactly = diff()
	w.must("config", "set", "create_burst=5")
	if code, _, stderr := w.run(exactly...); code != Conflict || !strings.Contains(stderr, "settings have changed") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	exactly = diff()
	w.put(store.KindGroups, "mail", strings.ReplaceAll(string(store.Encode(webGroup(1))), `"web"`, `"mail"`))
	w.must(exactly...)
	if w.spec("web").Size != 3 {
		t.Errorf("web has size %d", w.spec("web").Size)
	}
}

// --wait does not wait for an operator: when the canaries are healthy and only a promotion
// continues the roll, it says so with an exit code of its own.
//
// proves ROLL-5
func TestWaitEndsWhereAPromotionIsNeeded(t *testing.T) {
	for _, command := range [][]string{
		{"group", "apply", "-f", "fleet/web.yaml", "--wait"}, {"apply", "-f", "fleet", "--wait"},
	} {
		w := newWorld(t)
		w.serve()
		shop(t, map[string]int{"web": 3})
		write(t, "fleet/web.yaml", groupText("web", 3)+"rollout: {canary: 1, canary_duration: 0s}\n")
		w.must("apply", "-f", "fleet")
		g := w.spec("web")
		st := statusOf(g, w.revision(store.KindGroups, "web"), 3)
		template := g.InstanceSpec().TemplateHash()
		st.Rollout = &store.Rollout{Template: template, Canary: 1, Canaries: []int{0}, Done: 1, Total: 3}
		st.Blocked = []store.Blocked{{
			Rule: "ROLL-5", Kind: store.BlockedByCanary, Work: store.WorkRoll, Of: store.BlockedFacts{Count: 1, Limit: 1},
		}}
		w.put(store.KindStatus, "web", st)
		code, _, stderr := w.run(command...)
		if code != Awaits || !strings.Contains(stderr, "the roll waits for a promotion") ||
			!strings.Contains(stderr, "next: leasehold group promote web") {
			t.Errorf("%v: exit %d\n%s", command, code, stderr)
		}
	}
}
