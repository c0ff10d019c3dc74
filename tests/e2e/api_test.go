package e2e

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/api"
	"github.com/leasehold/leasehold/coordinator/api/client"
)

// A program manages a fleet by the API: it makes a group, sees it complete, changes it, is told of
// another edit, replaces an instance, and deletes it; etcd's roles decide what it may do.
//
// proves WEB-4
func TestAPI(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	at := l.address()
	l.startDev("--listen", l.address(), "--http", at, "--http-api", "--group", l.groupFile("demo", 1))
	l.follow()
	as := func(name string) []string {
		file := filepath.Join(l.data, "pki", "issued", name)
		return []string{"--cert", file + ".crt", "--key", file + ".key"}
	}
	passwords := filepath.Join(l.dir, "passwords")
	if err := os.WriteFile(passwords, []byte("eva:very-secret-indeed\nvic:also-secret-indeed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.must(append(as("root"), "auth", "add", "eva", "--role", "operator", "--passwords", passwords)...)
	l.must(append(as("root"), "auth", "add", "vic", "--role", "viewer", "--passwords", passwords)...)
	open := func(user, password string) *client.Client {
		c, err := client.New(client.Config{URL: "http://" + at, User: user, Password: password})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	eva, vic := open("eva", "very-secret-indeed"), open("vic", "also-secret-indeed")
	anyone, liar := open("", ""), open("eva", "guessed")
	ctx := t.Context()
	refused := func(what string, err error, status int, says string) {
		t.Helper()
		var p *api.Problem
		if !errors.As(err, &p) || p.Status != status ||
			!strings.Contains(p.Detail+strings.Join(p.Errors, "")+p.Remedies.String(), says) {
			t.Errorf("%s: wanted %d with %q, got %+v", what, status, says, err)
		}
	}

	// It begins with what others have made.
	spec, rev, err := anyone.Group(ctx, "demo")
	if err != nil || spec.Size != 1 || rev == 0 {
		t.Fatalf("the demo group: %+v at %d, %v", spec, rev, err)
	}
	spec.Name = "web"
	_, err = anyone.Apply(ctx, spec, client.At(0))
	refused("an edit by no one", err, http.StatusUnauthorized, "")
	_, err = liar.Apply(ctx, spec, client.At(0))
	refused("a wrong password", err, http.StatusUnauthorized, "no such user")
	_, err = vic.Apply(ctx, spec, client.At(0))
	refused("an edit by a viewer", err, http.StatusForbidden, "has the role viewer")
	_, err = eva.Apply(ctx, spec)
	refused("an edit of nothing known", err, http.StatusPreconditionRequired, "If-Match")
	plan, err := eva.Apply(ctx, spec, client.At(0), client.DryRun())
	if err != nil || !strings.Contains(string(plan.Plan), "create 1") {
		t.Errorf("a dry run: %+v %s, %v", plan, plan.Plan, err)
	}
	if _, _, err := eva.Group(ctx, "web"); err == nil {
		t.Error("a dry run has made the group")
	}
	spec.Size = 2
	made, err := eva.Apply(ctx, spec, client.At(0))
	if err != nil || !made.Changed || made.Revision == 0 {
		t.Fatalf("make the group: %+v, %v", made, err)
	}
	_, err = eva.Apply(ctx, spec, client.At(0))
	refused("make it twice", err, http.StatusPreconditionFailed, "exists already")

	// It is told when the group is complete.
	complete := func(size int) {
		t.Helper()
		if err := anyone.WatchStatus(ctx, "web", func(g api.Group) bool {
			return g.Counts["live"] != size || g.Counts["leaving"] > 0 || g.Attends || g.Status == nil || !g.Status.OK
		}); !errors.Is(err, client.ErrSeen) {
			t.Fatalf("watch the group: %v", err)
		}
	}
	complete(2)
	bad := spec
	bad.Budget.MaxDeleting = -1
	_, err = eva.Apply(ctx, bad, client.At(made.Revision))
	refused("a wrong field", err, http.StatusUnprocessableEntity, "budget.max_deleting")

	// Another edit comes first.
	l.must("group", "scale", "web", "3")
	_, err = eva.Scale(ctx, "web", 4, client.At(made.Revision))
	refused("an edit of an older revision", err, http.StatusPreconditionFailed, "nothing was changed")
	if !client.Conflict(err) {
		t.Errorf("that is a conflict: %v", err)
	}
	spec, rev, err = eva.Group(ctx, "web")
	if err != nil || spec.Size != 3 {
		t.Fatalf("read it again: %+v, %v", spec, err)
	}
	_, err = eva.Scale(ctx, "web", 1, client.At(rev))
	refused("a smaller size", err, http.StatusConflict, "confirm=web")
	less, err := eva.Scale(ctx, "web", 1, client.At(rev), client.Confirm("web"))
	if err != nil {
		t.Fatal(err)
	}
	complete(1)

	// An instance is replaced, and the journal says who ordered it.
	all, err := vic.Instances(ctx, "web")
	if err != nil || len(all) != 1 {
		t.Fatalf("instances: %+v, %v", all, err)
	}
	old := all[0].ID
	_, err = vic.Order(ctx, old, "replace")
	refused("an order by a viewer", err, http.StatusForbidden, "give orders")
	_, err = eva.Order(ctx, "web-0-none", "replace")
	refused("an order about nothing", err, http.StatusNotFound, "no instance")
	ordered, err := eva.Order(ctx, old, "replace")
	if err != nil || ordered.Order == "" {
		t.Fatalf("order: %+v, %v", ordered, err)
	}
	var replacement string
	if err := anyone.WatchEvents(ctx, url.Values{"instance": {old}}, func(e api.Event) bool {
		if e.Replacement != "" && e.Instance == old {
			replacement = e.Replacement
		}
		return replacement == "" || e.What != "gone"
	}); !errors.Is(err, client.ErrSeen) {
		t.Fatalf("watch events: %v", err)
	}
	story, err := anyone.Instance(ctx, old)
	if err != nil || story.Heir != replacement || story.Now != nil || len(story.Events) == 0 {
		t.Errorf("the story of what was replaced: %+v, %v", story, err)
	}
	if !slices.ContainsFunc(story.Events, func(e api.Event) bool {
		return strings.Contains(e.Why+e.Cause.By, "eva (by the API, ")
	}) {
		t.Errorf("the journal does not say who ordered it: %+v", story.Events)
	}

	// The shard is put on hold and released, and an instance is protected: each on what was read.
	shard, err := anyone.Shard(ctx)
	if err != nil || shard.Base == 0 {
		t.Fatalf("the shard: %+v, %v", shard, err)
	}
	_, err = vic.Hold(ctx, "a try", client.At(shard.Base))
	refused("a hold by a viewer", err, http.StatusForbidden, "")
	held, err := eva.Hold(ctx, "a try", client.At(shard.Base))
	if err != nil || held.Revision <= shard.Base {
		t.Fatalf("hold: %+v, %v", held, err)
	}
	_, err = eva.Release(ctx, client.At(shard.Base))
	refused("a release of an older revision", err, http.StatusPreconditionFailed, "nothing was changed")
	if _, err := eva.Release(ctx, client.At(held.Revision)); err != nil {
		t.Fatalf("release: %v", err)
	}
	guarded, err := anyone.Instance(ctx, replacement)
	if err != nil || guarded.Base == 0 {
		t.Fatalf("the replacement: %+v, %v", guarded, err)
	}
	_, err = eva.Protect(ctx, replacement, &api.Protection{Why: "it is examined"}, client.At(guarded.Base))
	if err != nil {
		t.Fatalf("protect: %v", err)
	}
	l.await("the protection", func() bool {
		guarded, err = anyone.Instance(ctx, replacement)
		return err == nil && guarded.Record.Protection != nil && guarded.Record.Protection.Why == "it is examined"
	})
	if _, err := eva.Protect(ctx, replacement, nil, client.At(guarded.Base)); err != nil {
		t.Fatalf("end the protection: %v", err)
	}

	paused, err := eva.Do(ctx, "web", "pause", client.At(less.Revision))
	if err != nil || paused.Revision <= less.Revision {
		t.Errorf("pause: %+v, %v", paused, err)
	}
	resumed, err := eva.Do(ctx, "web", "resume", client.At(paused.Revision))
	if err != nil {
		t.Errorf("resume: %v", err)
	}
	_, err = eva.Delete(ctx, "web", client.At(resumed.Revision))
	refused("a deletion", err, http.StatusConflict, "confirm=web")
	if _, err := eva.Delete(ctx, "web", client.At(resumed.Revision), client.Confirm("web")); err != nil {
		t.Fatal(err)
	}
	l.await("the group being gone", func() bool {
		_, _, err := anyone.Group(ctx, "web")
		var p *api.Problem
		return errors.As(err, &p) && p.Status == http.StatusNotFound
	})
	if shard, err := anyone.Shard(ctx); err != nil || shard.Stale || len(shard.Groups) != 1 {
		t.Errorf("the shard: %+v, %v", shard, err)
	}

	l.followsThePage(at)
	l.await("the page's group being gone", func() bool { return len(l.h.instances("jobs")) == 0 })
	if log, err := os.ReadFile(filepath.Join(l.data, "dev.log")); err != nil ||
		regexp.MustCompile("secret-indeed|guessed").Match(append(log, l.dev.stderr.String()...)) {
		t.Errorf("a password is in the log: %v", err)
	}
	l.stop(l.h.wanted("demo"), syscall.SIGINT)
}

// followsThePage runs the commands of docs/api.md, one after the other.
func (l *laptop) followsThePage(at string) {
	l.t.Helper()
	steps := stepsOf(l.t, filepath.Join("..", "..", "docs", "api.md"))
	if len(steps) < 5 {
		l.t.Fatalf("docs/api.md has %d commands", len(steps))
	}
	for _, s := range steps {
		var out string
		end := time.Now().Add(longest)
		for {
			cmd := l.command("bash", "-euc", s.command)
			cmd.Env = append(cmd.Env, "API=http://"+at+"/api/v1", "PASSWORD=very-secret-indeed")
			said, err := cmd.CombinedOutput()
			out = string(said)
			var ended *exec.ExitError
			if err != nil && !errors.As(err, &ended) {
				l.t.Fatal(err)
			}
			wanted := !slices.ContainsFunc(s.prints, func(line string) bool { return !strings.Contains(out, line) })
			if wanted || time.Now().After(end) {
				break
			}
			<-time.After(200 * time.Millisecond)
		}
		for _, line := range s.prints {
			if !strings.Contains(out, line) {
				l.t.Errorf("%s\nlacks %q:\n%s", s.command, line, out)
			}
		}
	}
}
