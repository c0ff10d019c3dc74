//go:build nightly

package bench

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/bench"
	"github.com/leasehold/leasehold/cmd/bench/rivals"
	"github.com/leasehold/leasehold/cmd/bench/trial"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
	"github.com/leasehold/leasehold/tests/harness"
)

// Leasehold goes through what rivals go through, and declares no agent dead for it.
func TestLeaseholdIsCompared(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	doing := ""
	tell := func(what, _ string) {
		if what != doing {
			t.Log(what)
		}
		doing = what
	}
	const agents, lease = 12, 5 * time.Second
	shard, err := trial.Begin(ctx, trial.Config{
		Shard: "bench-compared", Agents: agents, Interval: time.Second, GroupSize: agents, Rate: 300, Replicas: 2,
		ReconnectMax: time.Second,
	}, trial.Deps{
		Version: "test", Own: true, Tell: tell,
		Open: func(ctx context.Context, address string) (store.Store, func() error, error) {
			st, err := etcdstore.Open(ctx, etcdstore.Config{Endpoints: []string{address}})
			if err != nil {
				return nil, nil, err
			}
			return st, st.Close, nil
		},
	})
	var f rivals.Figures
	if err == nil {
		f, err = rivals.Contest(ctx, shard.Contender(),
			rivals.Plan{Steady: time.Second, Stall: lease + 2*time.Second, Begin: longest, Settle: longest, Tell: tell})
	}
	if ended := shard.End(err); ended != nil {
		t.Error(ended)
	}
	if err != nil {
		t.Fatal(err)
	}
	if e := f.Everyday; e.Etcd.Memory == 0 || e.Judges.Memory == 0 || e.Agents.Memory == 0 || e.Requests == 0 {
		t.Errorf("everyday: %+v", e)
	}
	for who, s := range map[string]*rivals.Stall{"etcd": f.EtcdStall, "the leader": f.JudgeStall} {
		if s.Declared.AtOnce != 0 || s.Back == nil || s.Seconds < lease.Seconds() {
			t.Errorf("%s stood still: %+v", who, s)
		}
	}
	nothingLeft(t)
}

// An interrupt while etcd is paused leaves nothing behind either.
func TestCompareIsInterrupted(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	var out harness.Output
	aside := harness.Output{More: make(chan struct{}, 1)}
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-aside.More:
				if strings.Contains(aside.String(), "etcd is paused") {
					cancel()
				}
			case <-ended:
				return
			}
		}
	}()
	code := bench.Run(ctx, environment(&out, &aside),
		[]string{"compare", "--agents", "6", "--interval", "1s", "--steady", "1s"})
	close(ended)
	if code != program.Interrupted || !strings.Contains(aside.String(), "nothing is left behind") ||
		!strings.Contains(aside.String(), "etcd is paused") {
		t.Errorf("exit %d: %s", code, aside.String())
	}
	nothingLeft(t)
}
