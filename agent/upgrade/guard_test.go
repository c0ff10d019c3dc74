package upgrade

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A slow disk is not the version's fault: what it keeps from being tried in time is not taken back,
// but tried later.
//
// proves PROV-7
func TestATrialThatTheDiskDelays(t *testing.T) {
	for name, delay := range map[string]func(*Trial){
		"too late":                func(tr *Trial) { tr.By = time.Now().Add(-time.Second) },
		"little time is left":     func(tr *Trial) { tr.Within, tr.By = time.Hour, time.Now().Add(29*time.Minute) },
		"the agent has not ended": func(tr *Trial) { tr.Unfinished = true },
	} {
		t.Run(name, func(t *testing.T) {
			b, trial := tried(t, acknowledges)
			delay(trial)
			next, err := trial.Run(t.Context(), nil, os.Environ(), func() {})
			if err != nil || next != "" {
				t.Fatalf("next %q, %v", next, err)
			}
			if start := b.place.Start(); start != "" {
				t.Errorf("a start runs %q", start)
			}
			if s := b.place.read(); s.Trial != nil || s.Last != nil {
				t.Errorf("recorded: %+v, %+v", s.Trial, s.Last)
			}
			m, _ := b.manager()
			o := b.offer("one", b.statement("v1.1.0", acknowledges))
			m.Want(&o)
			b.await(m, "the same offer to be taken again", m.Ready)
		})
	}
}

// While the disk keeps a version from being started, this process acts on the lease, and ends when
// it is terminated.
//
// proves PROV-7, SAFE-9
func TestALeaseIsActedOnThoughTheDiskHangs(t *testing.T) {
	b, trial := tried(t, acknowledges)
	program := b.place.path(trial.state.Trial.Program.File)
	if err := errors.Join(os.Remove(program), syscall.Mkfifo(program, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if f, err := os.OpenFile(program, os.O_WRONLY, 0); err == nil {
			_ = f.Close()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	kill := time.Now().Add(time.Hour)
	acted := make(chan time.Time, 1)
	trial.Lease = &Lease{Lost: time.Now(), Kill: kill, Act: func(by time.Time) {
		acted <- by
		cancel()
	}}
	if next, err := trial.Run(ctx, nil, os.Environ(), func() {}); next != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("next %q, %v", next, err)
	}
	if by := <-acted; !by.Equal(kill) {
		t.Errorf("acted until %s, want %s", by, kill)
	}
}

// The lease is acted on once it may be lost: later if the version on trial has renewed it, and not
// before the last moment if that version ends the workload.
//
// proves SAFE-9
func TestWhenALeaseIsActedOn(t *testing.T) {
	const lost, kill = 10 * time.Second, 14 * time.Second
	for name, c := range map[string]struct {
		happens     func(*guard)
		begin, kill time.Duration
	}{
		"nothing happens": {func(*guard) {}, lost, kill},
		"renewed": {
			func(g *guard) { g.renewed(time.Now(), 4*time.Second) }, 13 * time.Second, 17 * time.Second,
		},
		"renewed for no longer": {func(g *guard) { g.renewed(time.Now(), time.Second) }, lost, kill},
		"terminated":            {func(g *guard) { g.last() }, kill, kill},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var at, by time.Duration
				var g guard
				g.begin(&Lease{Lost: began.Add(lost), Kill: began.Add(kill), Act: func(kill time.Time) {
					at, by = time.Since(began), kill.Sub(began)
				}})
				<-time.After(5 * time.Second)
				c.happens(&g)
				<-time.After(time.Minute)
				synctest.Wait()
				if at != c.begin || by != c.kill {
					t.Errorf("acted after %s until %s, want %s and %s", at, by, c.begin, c.kill)
				}
			})
		})
	}
	var none guard
	none.begin(nil)
	none.renewed(time.Now(), time.Second)
	none.last()
}
