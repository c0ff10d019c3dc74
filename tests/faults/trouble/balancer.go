package trouble

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/tests/faults/cloud"
)

var ofBalancer = []Kind{
	{Name: "balancer-forgets", Weight: 2, Do: balancerForgets},
	{Name: "balancer-meddled-with", Weight: 1, Do: balancerMeddledWith},
	{
		Name: "balancer-silent", Weight: 2, Takes: []Part{Balancer}, Least: 2 * time.Second, Most: 20 * time.Second,
		Do: balancerSilent,
	},
	{
		Name: "balancer-fails", Weight: 2, Takes: []Part{Balancer}, Least: 4 * time.Second, Most: 15 * time.Second,
		Do: balancerFails,
	},
	{
		Name: "balancer-late", Weight: 2, Takes: []Part{Balancer}, Least: 4 * time.Second, Most: 15 * time.Second,
		Do: balancerLate,
	},
	{
		Name: "member-added-late", Weight: 1, Takes: []Part{Balancer}, Least: 12 * time.Second, Most: 15 * time.Second,
		Do: memberAddedLate,
	},
	{
		Name: "balancer-calls-all-down", Weight: 1, Takes: []Part{Balancer}, Least: 2 * time.Second,
		Most: 10 * time.Second, Do: balancerCallsAllDown,
	},
	{
		Name: "file-edited-on-full-disk", Weight: 1, Takes: []Part{Disks, Operators}, Least: 3 * time.Second,
		Most: 10 * time.Second, Do: fileEditedOnFullDisk,
	},
}

func disturb(s *Site, f cloud.BalancerFault) func() error {
	lift := s.Cloud.DisturbBalancer(f)
	return func() error { lift(); return nil }
}

func balancerForgets(_ context.Context, s *Site) (string, func() error, error) {
	had := s.Cloud.Members()
	s.Cloud.BalancerForgets()
	return fmt.Sprint(had), nil, nil
}

// balancerMeddledWith: members are taken out by hand.
func balancerMeddledWith(_ context.Context, s *Site) (string, func() error, error) {
	all := s.Cloud.Members()
	if len(all) == 0 {
		return "", nil, errNoTarget{"member"}
	}
	hit := some(s, 3, all)
	for _, id := range hit {
		s.Cloud.RemoveMember(id)
	}
	return fmt.Sprint(hit), nil, nil
}

func balancerSilent(_ context.Context, s *Site) (string, func() error, error) {
	return "it does not answer", disturb(s, cloud.BalancerFault{Silent: true}), nil
}

func balancerFails(_ context.Context, s *Site) (string, func() error, error) {
	done := s.Chance(50)
	return fmt.Sprintf("every second call fails, done all the same: %t", done),
		disturb(s, cloud.BalancerFault{Fails: true, Done: done}), nil
}

// balancerLate: calls are carried out after they were given up, so that one of before meets what
// was decided since.
func balancerLate(_ context.Context, s *Site) (string, func() error, error) {
	late := s.between(time.Second, 6*time.Second)
	return fmt.Sprintf("every second call fails, and is done %s later", late),
		disturb(s, cloud.BalancerFault{Fails: true, Done: true, Late: late}), nil
}

// memberAddedLate: members are put back, some by calls that are carried out only when their
// instances are gone.
func memberAddedLate(ctx context.Context, s *Site) (string, func() error, error) {
	all := s.Cloud.Members()
	if len(all) == 0 {
		return "", nil, errNoTarget{"member"}
	}
	late := s.between(9*time.Second, 11*time.Second)
	lift := s.Cloud.DisturbBalancer(cloud.BalancerFault{Fails: true, Done: true, Late: late})
	s.Cloud.BalancerForgets()
	wait(ctx, 3*time.Second) // most are put back meanwhile
	lift()
	hit := each(all, func(id string) error { return s.Operator(ctx, "instance", "delete", id, "--confirm", id) })
	return fmt.Sprintf("%v, %s late", hit, late), func() error { return nil }, nil
}

func balancerCallsAllDown(_ context.Context, s *Site) (string, func() error, error) {
	return "it calls all down", disturb(s, cloud.BalancerFault{Down: true}), nil
}

// fileEditedOnFullDisk: files are to change, and some of them to grow, while the machines have no
// room.
func fileEditedOnFullDisk(ctx context.Context, s *Site) (string, func() error, error) {
	d := s.MachinesDisk()
	if d == nil {
		return "", nil, errNoTarget{"disk"}
	}
	name := pick(s, s.Served())
	if err := d.Fill(); err != nil {
		return "of all machines", d.Free, err
	}
	err := s.Edit(ctx, name, "vars")
	return "files of " + name, d.Free, err
}
