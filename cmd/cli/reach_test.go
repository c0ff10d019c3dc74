package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// etcd that refuses, that does not answer and that does not know us end with a code and a command
// each.
func TestUnreachable(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		code Code
		says string
	}{
		{
			"refused", fmt.Errorf("connect to etcd at here:1: %w: refused", store.ErrUnavailable), Unreachable,
			"next: start etcd there",
		},
		{
			"denied", fmt.Errorf("connect to etcd at here:1: %w", store.ErrNotLoggedIn), Failed,
			"next: give --cacert, --cert and --key, or --user",
		},
		{"bad flags", errors.New("--cert and --key go together"), Usage, "error: --cert and --key go together"},
	} {
		w := newWorld(t)
		w.open = func(context.Context, Connection) (store.Store, func() error, error) { return nil, nil, c.err }
		for _, args := range []string{"status", "group list", "group scale web 3", "events", "instance show x"} {
			code, stdout, stderr := w.run(strings.Fields(args)...)
			if code != c.code || !strings.Contains(stderr, c.says) || stdout != "" {
				t.Errorf("%s: %s: exit %d: %s%s", c.name, args, code, stdout, stderr)
			}
			if strings.Count(stderr, "\n") != 2 {
				t.Errorf("%s: %s: not two lines: %s", c.name, args, stderr)
			}
		}
	}
}

func TestASilentEtcdIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.terminal, w.limit = true, 0
		w.db.Faults().Freeze()
		start := time.Now()
		code, _, stderr := w.run("status", "--endpoints", "a:1,b:2")
		if code != Unreachable || !strings.Contains(stderr, "etcd at a:1, b:2 cannot be reached: no answer in 5s") {
			t.Errorf("exit %d: %s", code, stderr)
		}
		if !strings.HasPrefix(stderr, "waiting for etcd at a:1, b:2 …\n") {
			t.Errorf("nothing was said meanwhile: %s", stderr)
		}
		if took := time.Since(start); took != requestTimeout {
			t.Errorf("took %s", took)
		}
		start = time.Now()
		if code, _, _ := w.run("status", "--timeout=1s"); code != Unreachable || time.Since(start) != time.Second {
			t.Errorf("exit %d after %s", code, time.Since(start))
		}
		w.db.Faults().Thaw()
	})
}

func TestALostAnswerIsNotCalledAFailure(t *testing.T) {
	w := newWorld(t)
	w.put(store.KindGroups, "web", webGroup(3))
	st := w.db.Connect()
	w.st = &raced{Store: st, first: func() { st.Faults().LoseAnswer() }}
	code, _, stderr := w.run("group", "scale", "web", "5")
	if code != Unreachable || !strings.Contains(stderr, "the operation may or may not have been carried out") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// full is a store that has no room left for anything.
type full struct{ store.Store }

func (full) Commit(context.Context, store.Txn) (store.Revision, error) { return 0, store.ErrFull }

// An etcd that is full is running: the advice is not to start it.
func TestAFullEtcdIsDistinguishedFromAMissingOne(t *testing.T) {
	w := newWorld(t)
	w.put(store.KindGroups, "web", webGroup(3))
	w.st = &full{w.st}
	for _, args := range []string{"group scale web 5", "group delete web --confirm=web"} {
		code, out, err := w.run(strings.Fields(args)...)
		w.expect(code, out, err, Unreachable, "2>rejects writes: its space quota is exhausted\n",
			"2>next: etcdctl compact ", "2>etcdctl defrag ", "2>etcdctl alarm disarm")
		if strings.Contains(err, "cannot be reached") || strings.Contains(err, "start etcd") {
			t.Errorf("%s: %s", args, err)
		}
	}
	w.must("group", "show", "web")
}

func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.Faults().Freeze()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		code, stdout, stderr := w.runCtx(ctx, "status")
		if code != Interrupted || stdout+stderr != "" {
			t.Errorf("exit %d: %s%s", code, stdout, stderr)
		}
		w.db.Faults().Thaw()
	})
}

func TestFollowShowsWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.journal(time.Minute, store.JournalEntry{Rule: "REC-3", Group: "web", Instance: "web-0-a", What: "before"})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		var out bytes.Buffer
		go func() {
			defer close(done)
			var errs bytes.Buffer
			if code := Run(ctx, w.env(&out, &errs), strings.Fields("events -g web --follow")); code != Interrupted ||
				errs.Len() > 0 {
				t.Errorf("exit %d: %s", code, errs.String())
			}
		}()
		synctest.Wait()
		w.journal(0, store.JournalEntry{Rule: "REC-3", Group: "api", Instance: "api-0-a", What: "elsewhere"})
		w.journal(-time.Second, store.JournalEntry{Rule: "DET-17", Group: "web", Instance: "web-0-a", What: "after"})
		synctest.Wait()
		cancel()
		<-done
		want := "2026-03-01T11:59:00Z\tREC-3\tweb-0-a\tbefore\t\t0\tcoord-a\t\n" +
			"2026-03-01T12:00:01Z\tDET-17\tweb-0-a\tafter\t\t0\tcoord-a\t\n"
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	})
}

func TestFollowSaysWhenEtcdIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		st := w.db.Connect()
		w.st = st
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		var out, errs bytes.Buffer
		go func() {
			defer close(done)
			if code := Run(ctx, w.env(&out, &errs), strings.Fields("events --follow")); code != Interrupted {
				t.Errorf("exit %d", code)
			}
		}()
		<-time.After(time.Minute) // of the bubble's own clock: progress comes every second
		synctest.Wait()
		if errs.Len() > 0 {
			t.Errorf("said %s", errs.String())
		}
		st.Faults().StallWatches()
		<-time.After(time.Minute)
		st.Faults().ReleaseWatches()
		other := *w
		other.st = w.db.Connect()
		other.journal(0, store.JournalEntry{Rule: "REC-3", Group: "web", Instance: "web-0-a", What: "after"})
		synctest.Wait()
		cancel()
		<-done
		if strings.Count(errs.String(), "no answer from etcd for 5s") != 1 || !strings.Contains(out.String(), "after") {
			t.Errorf("said %s%s", errs.String(), out.String())
		}
	})
}
