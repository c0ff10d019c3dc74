package trouble

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/tests/faults/network"
)

var ofOperators = []Kind{
	{
		Name: "group-scaled", Weight: 3, Takes: []Part{Operators}, Least: 3 * time.Second, Most: 15 * time.Second,
		Do: groupScaled,
	},
	{Name: "group-edited", Weight: 4, Takes: []Part{Operators}, Do: groupEdited},
	{Name: "group-edited-unseen", Weight: 2, Takes: []Part{Operators}, Do: groupEditedUnseen},
	{
		Name: "group-paused", Weight: 2, Takes: []Part{Operators}, Least: 3 * time.Second, Most: 12 * time.Second,
		Do: groupPaused,
	},
	{
		Name: "group-paused-amid-removals", Weight: 1, Takes: []Part{Operators, Provider}, Least: 20 * time.Second,
		Most: 24 * time.Second, Do: groupPausedAmidRemovals,
	},
	{
		Name: "group-deleted", Weight: 1, Takes: []Part{Operators}, Least: 3 * time.Second, Most: 10 * time.Second,
		Do: groupDeleted,
	},
	{Name: "group-restarted", Weight: 1, Takes: []Part{Operators}, Do: groupRestarted},
	{Name: "instance-ordered", Weight: 4, Do: instanceOrdered},
	{
		Name: "shard-held", Weight: 1, Takes: []Part{Operators}, Least: 3 * time.Second, Most: 10 * time.Second,
		Do: shardHeld,
	},
	{
		Name: "zone-evacuated", Weight: 1, Takes: []Part{Operators}, Least: 3 * time.Second, Most: 12 * time.Second,
		Do: zoneEvacuated,
	},
	{
		Name: "spec-vanishes", Weight: 1, Takes: []Part{Operators}, Least: 2 * time.Second, Most: 10 * time.Second,
		Do: specVanishes,
	},
}

// group chooses a group that an operator may change.
func group(s *Site) string { return pick(s, slices.Sorted(maps.Keys(s.Wanted()))) }

func groupScaled(ctx context.Context, s *Site) (string, func() error, error) {
	name := group(s)
	was := s.Wanted()[name]
	to := max(1, was-3+s.IntN(8))
	err := s.Operator(ctx, "group", "scale", name, strconv.Itoa(to), "--confirm", name)
	return fmt.Sprintf("%s from %d to %d, and back", name, was, to), func() error {
		return s.OperatorMust("group", "scale", name, strconv.Itoa(was), "--confirm", name)
	}, err
}

func groupEdited(ctx context.Context, s *Site) (string, func() error, error) {
	name := group(s)
	how := pick(s, []string{"vars", "run", "template", "check"})
	return fmt.Sprintf("%s of %s", how, name), nil, s.Edit(ctx, name, how)
}

// groupEditedUnseen: the leader's connections to etcd break, and a group is edited before there are
// new ones: its watch has to deliver that afterwards.
func groupEditedUnseen(ctx context.Context, s *Site) (string, func() error, error) {
	leads, name := s.LeaderNow(), group(s)
	if leads == "" {
		return "", nil, errNobody{"leader"}
	}
	lift := s.Impose(network.Rule{From: network.Any(leads), To: s.IsMember, Refuse: true, Reset: true})
	err := s.Edit(ctx, name, "vars")
	lift()
	return fmt.Sprintf("vars of %s, while replica %s had no connection", name, leads), nil, err
}

func groupPaused(ctx context.Context, s *Site) (string, func() error, error) {
	name := group(s)
	err := s.Operator(ctx, "group", "pause", name)
	return name, func() error { return s.OperatorMust("group", "resume", name) }, err
}

// groupPausedAmidRemovals: machines are being removed, which the provider refuses, when their group
// is paused: the removal is not retried until it is resumed (REC-13).
func groupPausedAmidRemovals(ctx context.Context, s *Site) (string, func() error, error) {
	up := s.Cloud.Running()
	if len(up) == 0 {
		return "", nil, errNobody{"machine"}
	}
	name := s.GroupOf(pick(s, up))
	up = slices.DeleteFunc(up, func(id string) bool { return s.GroupOf(id) != name })
	heal := inject(s, fake.Fault{Call: fake.CallDelete, Err: errors.New("internal error, try again")})
	hit := each(some(s, 2, up), s.Cloud.Crash)
	wait(ctx, s.between(2*time.Second, 5*time.Second))
	err := s.Operator(ctx, "group", "pause", name)
	return fmt.Sprintf("%s, and %v cannot be deleted", name, hit), func() error {
		return errors.Join(heal(), s.OperatorMust("group", "resume", name))
	}, err
}

func groupDeleted(ctx context.Context, s *Site) (string, func() error, error) {
	name := group(s)
	err := s.Operator(ctx, "group", "delete", name, "--confirm", name)
	return name + ", and made again", func() error { return s.MakeAgain(name) }, err
}

func groupRestarted(ctx context.Context, s *Site) (string, func() error, error) {
	name := group(s)
	args := []string{"group", "restart", name}
	if s.Chance(50) {
		args = append(args, "--recreate")
	}
	return fmt.Sprint(args), nil, s.Operator(ctx, args...)
}

func instanceOrdered(ctx context.Context, s *Site) (string, func() error, error) {
	at := s.Cloud.Existing()
	if len(at) == 0 {
		return "", nil, errNobody{"machine"}
	}
	what, id := pick(s, []string{"replace", "delete", "restart", "drain"}), pick(s, at)
	args := []string{"instance", what, id}
	if what == "delete" || what == "drain" {
		args = append(args, "--confirm", id)
	}
	return fmt.Sprint(args), nil, s.Operator(ctx, args...)
}

func shardHeld(ctx context.Context, s *Site) (string, func() error, error) {
	err := s.Operator(ctx, "hold", "somebody wants to look")
	return "the shard", func() error { return s.OperatorMust("release") }, err
}

func zoneEvacuated(ctx context.Context, s *Site) (string, func() error, error) {
	zone := pick(s, s.Zones())
	err := s.Operator(ctx, "evacuate", zone, "--confirm", zone)
	return zone, func() error { return s.OperatorMust("evacuate", zone, "--end") }, err
}

// specVanishes: a group's key is removed or spoiled by hand, and restored (SAFE-10, REC-7).
func specVanishes(ctx context.Context, s *Site) (string, func() error, error) {
	name := group(s)
	back, err := s.SpoilSpec(ctx, name, s.Chance(50))
	return name, back, err
}
