package trouble

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/store"
)

var ofClocks = []Kind{
	{
		Name: "machine-clock-jumps", Weight: 1, Takes: []Part{Clocks}, Least: 2 * time.Second, Most: 10 * time.Second,
		Do: machineClock,
	},
	{
		Name: "replica-clock-jumps", Weight: 2, Takes: []Part{Clocks}, Least: 2 * time.Second, Most: 10 * time.Second,
		Do: replicaClock,
	},
	{
		Name: "clock-jumps-as-machines-boot", Weight: 1, Takes: []Part{Clocks, Operators}, Least: 2 * time.Second,
		Most: 4 * time.Second, Do: clockJumpsAsMachinesBoot,
	},
	{
		Name: "etcd-clock-jumps", Weight: 1, Takes: []Part{Clocks}, Least: 2 * time.Second, Most: 10 * time.Second,
		Do: etcdClock,
	},
}

// jump is how wrong a clock becomes: hours for processes that issue certificates, years for the
// others.
func jump(s *Site, most time.Duration) time.Duration {
	by := pick(s, []time.Duration{time.Minute, time.Hour, most})
	if s.Chance(50) {
		by = -by
	}
	return by
}

func machineClock(_ context.Context, s *Site) (string, func() error, error) {
	at := s.Cloud.Running()
	if len(at) == 0 {
		return "", nil, errNoTarget{"machine"}
	}
	hit, by := some(s, 5, at), jump(s, 20*365*24*time.Hour)
	for _, id := range hit {
		_ = s.Cloud.SetClock(id, by) // one that is gone meanwhile has no clock
	}
	return fmt.Sprintf("machines %v by %s", hit, by), func() error {
		for _, id := range hit {
			_ = s.Cloud.SetClock(id, 0)
		}
		return nil
	}, nil
}

func replicaClock(_ context.Context, s *Site) (string, func() error, error) {
	id, what := replica(s)
	by := jump(s, 3*time.Hour)
	if err := s.Replica(id).SetClock(by); err != nil {
		return "", nil, errNoTarget{"replica"}
	}
	return fmt.Sprintf("%s, by %s", what, by), func() error {
		_ = s.Replica(id).SetClock(0) // one that has ended begins with a right clock
		return nil
	}, nil
}

// clockJumpsAsMachinesBoot: the leader's clock is an hour ahead while a machine has a deadline that
// has not passed by any correct clock (SAFE-13).
func clockJumpsAsMachinesBoot(ctx context.Context, s *Site) (string, func() error, error) {
	name := group(s)
	was := s.Wanted()[name]
	err := s.Operator(ctx, "group", "scale", name, strconv.Itoa(was+2), "--confirm", name)
	back := func() error {
		return s.OperatorMust("group", "scale", name, strconv.Itoa(was), "--confirm", name)
	}
	patience, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	for !s.anyBoots() {
		if !wait(patience, 20*time.Millisecond) {
			return name + ", and nothing boots", back, err
		}
	}
	id := s.LeaderNow()
	if id == "" {
		return name + ", and there is no leader", back, err
	}
	leads := s.Replica(id)
	if wrong := leads.SetClock(time.Hour); wrong != nil {
		return name + ", and the leader has ended", back, err
	}
	return fmt.Sprintf("replica %s, which leads, by 1h, as machines of %s boot", id, name), func() error {
		_ = leads.SetClock(0) // one that has ended begins with a right clock
		return back()
	}, err
}

// anyBoots reports whether some machine is recorded as booting.
func (s *Site) anyBoots() bool {
	return slices.ContainsFunc(s.Witness.Now().Of(s.Keys.Of(store.KindInstances)), func(kv store.KV) bool {
		v, err := store.Decode[store.Instance](kv)
		return err == nil && v.Record.Phase == store.Booting
	})
}

func etcdClock(_ context.Context, s *Site) (string, func() error, error) {
	most := 24 * time.Hour
	if len(s.Hosts) > 0 { // its replica has the same clock
		most = 3 * time.Hour
	}
	i, by := s.IntN(s.MemberCount()), jump(s, most)
	if err := s.Member(i).SetClock(by); err != nil {
		return "", nil, errNoTarget{"member"}
	}
	return fmt.Sprintf("m%d by %s", i, by), func() error {
		_ = s.Member(i).SetClock(0)
		return nil
	}, nil
}
