package trouble

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/tests/faults/network"
)

var ofMachines = []Kind{
	{Name: "machine-crashes", Weight: 4, Do: machineCrashes},
	{Name: "machine-frozen", Weight: 4, Least: 2 * time.Second, Most: 20 * time.Second, Do: machineFrozen},
	{Name: "machine-cut", Weight: 4, Least: 2 * time.Second, Most: 20 * time.Second, Do: machineCut},
	{Name: "agent-killed", Weight: 3, Do: agentKilled},
	{Name: "workload-killed", Weight: 2, Do: workloadKilled},
	{Name: "machine-sick", Weight: 3, Least: 4 * time.Second, Most: 24 * time.Second, Do: machineSick},
	{Name: "group-sick", Weight: 1, Least: 12 * time.Second, Most: 24 * time.Second, Do: groupSick},
	{
		Name: "agents-return-as-judged", Weight: 1, Takes: []Part{Machines, Replicas}, Least: time.Second,
		Most: 2 * time.Second, Do: agentsReturnAsJudged,
	},
	{
		Name: "zone-cut", Weight: 2, Takes: []Part{Machines, Operators}, Least: 6 * time.Second, Most: 18 * time.Second,
		ManyCut: true, Do: zoneCut,
	},
	{
		Name: "machines-all-cut", Weight: 2, Takes: []Part{Machines, Operators}, Least: 6 * time.Second,
		Most: 18 * time.Second, ManyCut: true, Do: machinesAllCut,
	},
}

// machines returns up to so many running machines.
func machines(s *Site, most int) ([]string, error) {
	up := s.Cloud.Running()
	if len(up) == 0 {
		return nil, errNoTarget{"machine"}
	}
	return some(s, most, up), nil
}

// each does something to each of some machines, except those that are gone by then.
func each(hit []string, do func(id string) error) []string {
	return slices.DeleteFunc(hit, func(id string) bool { return do(id) != nil })
}

func machineCrashes(_ context.Context, s *Site) (string, func() error, error) {
	hit, err := machines(s, 2)
	return fmt.Sprint(each(hit, s.Cloud.Crash)), nil, err
}

func agentKilled(_ context.Context, s *Site) (string, func() error, error) {
	hit, err := machines(s, 3)
	return fmt.Sprint(each(hit, s.Cloud.KillAgent)), nil, err
}

func workloadKilled(_ context.Context, s *Site) (string, func() error, error) {
	hit, err := machines(s, 1)
	return fmt.Sprint(each(hit, s.Cloud.KillWorkload)), nil, err
}

func machineFrozen(_ context.Context, s *Site) (string, func() error, error) {
	hit, err := machines(s, 2)
	if err != nil {
		return "", nil, err
	}
	hit = each(hit, s.Cloud.Freeze)
	return fmt.Sprint(hit), func() error { each(hit, s.Cloud.Thaw); return nil }, nil
}

func machineSick(_ context.Context, s *Site) (string, func() error, error) {
	hit, err := machines(s, 2)
	if err != nil {
		return "", nil, err
	}
	hit = each(hit, s.Cloud.Sicken)
	return fmt.Sprint(hit), func() error { each(hit, s.Cloud.Cure); return nil }, nil
}

// groupSick: the checks of several machines of one group fail at once.
func groupSick(_ context.Context, s *Site) (string, func() error, error) {
	name := pick(s, s.Checked())
	hit := slices.DeleteFunc(s.Cloud.Running(), func(id string) bool { return s.GroupOf(id) != name })
	if len(hit) == 0 {
		return "", nil, errNoTarget{"machine of " + name}
	}
	hit = each(some(s, len(hit), hit), s.Cloud.Sicken)
	return fmt.Sprint(hit), func() error { each(hit, s.Cloud.Cure); return nil }, nil
}

// agentsReturnAsJudged: machines are cut off until just when they are judged lost, while the
// leader's messages are delayed: an agent's return and the leader's decision meet in etcd (SAFE-4).
func agentsReturnAsJudged(ctx context.Context, s *Site) (string, func() error, error) {
	hit, err := machines(s, 2)
	leads := s.LeaderNow()
	if err != nil || leads == "" {
		return "", nil, errNoTarget{"leader and machine"}
	}
	late := s.between(100*time.Millisecond, 500*time.Millisecond)
	mend := s.CutMachines(func(id string) bool { return slices.Contains(hit, id) }, network.Rule{Silent: true})
	lift := s.Impose(network.Rule{From: network.Any(leads), To: s.IsMember, Delay: late})
	patience, stop := context.WithTimeout(ctx, 4*s.TTL)
	defer stop()
	gone := s.awaitLeaseEnds(patience, hit[0])
	wait(ctx, 500*time.Millisecond+s.between(late/2, 2*late)) // confirmed (DET-17), decided, and on its way
	err = mend()
	return fmt.Sprintf("%v, which lost their lease: %t, and the leader %s hears all %s late", hit, gone, leads, late),
		func() error { lift(); return nil }, err
}

// awaitLeaseEnds waits until an instance has no lease, and reports whether that happened.
func (s *Site) awaitLeaseEnds(ctx context.Context, id string) bool {
	for len(s.Witness.Now().Of(s.Keys.Alive(id))) > 0 {
		if !wait(ctx, 50*time.Millisecond) {
			return false
		}
	}
	return true
}

func machineCut(_ context.Context, s *Site) (string, func() error, error) {
	hit, err := machines(s, 2)
	if err != nil {
		return "", nil, err
	}
	mend := s.CutMachines(func(id string) bool { return slices.Contains(hit, id) }, cutting(s))
	return fmt.Sprint(hit), mend, nil
}

func zoneCut(_ context.Context, s *Site) (string, func() error, error) {
	zone := pick(s, s.Zones())
	return "zone " + zone, s.CutMachines(func(id string) bool { return s.Cloud.Zone(id) == zone }, cutting(s)), nil
}

func machinesAllCut(_ context.Context, s *Site) (string, func() error, error) {
	return "all of them", s.CutMachines(func(string) bool { return true }, cutting(s)), nil
}
