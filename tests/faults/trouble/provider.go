package trouble

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/tests/faults/network"
)

var ofProvider = []Kind{
	{
		Name: "answers-lost", Weight: 3, Takes: []Part{Provider}, Least: 4 * time.Second, Most: 20 * time.Second,
		Do: answersLost,
	},
	{
		Name: "calls-late", Weight: 2, Takes: []Part{Provider}, Least: 4 * time.Second, Most: 20 * time.Second,
		Do: callsLate,
	},
	{
		Name: "calls-slow", Weight: 2, Takes: []Part{Provider}, Least: 4 * time.Second, Most: 20 * time.Second,
		Do: callsSlow,
	},
	{
		Name: "calls-hang", Weight: 1, Takes: []Part{Provider}, Least: 4 * time.Second, Most: 10 * time.Second,
		Do: callsHang,
	},
	{
		Name: "no-capacity", Weight: 1, Takes: []Part{Provider}, Least: 4 * time.Second, Most: 15 * time.Second,
		Do: noCapacity,
	},
	{
		Name: "list-fails-beside-machines", Weight: 1, Takes: []Part{Provider}, Least: 9 * time.Second,
		Most: 14 * time.Second, Do: listFailsBesideMachines,
	},
	{
		Name: "list-lies", Weight: 4, Takes: []Part{Provider}, Least: 3 * time.Second, Most: 15 * time.Second,
		Do: listLies,
	},
	{
		Name: "create-called-off", Weight: 1, Takes: []Part{Provider, Operators}, Least: time.Second,
		Most: 3 * time.Second, Do: createCalledOff,
	},
	{
		Name: "list-fails", Weight: 1, Takes: []Part{Provider}, Least: 3 * time.Second, Most: 15 * time.Second,
		Do: listFails,
	},
}

var errLost = errors.New("connection reset while waiting for the answer")

func inject(s *Site, f fake.Fault) func() error {
	remove := s.Cloud.Inject(f)
	return func() error { remove(); return nil }
}

// call is one that does something.
func call(s *Site) fake.Call {
	return pick(s, []fake.Call{
		fake.CallCreate, fake.CallCreate, fake.CallDelete,
		fake.CallStop, fake.CallRestart,
	})
}

func answersLost(_ context.Context, s *Site) (string, func() error, error) {
	c := call(s)
	return fmt.Sprintf("%s is done, and its answer lost", c),
		inject(s, fake.Fault{Call: c, Chance: 0.6, Err: errLost, Effect: fake.EffectDone}), nil
}

func callsLate(_ context.Context, s *Site) (string, func() error, error) {
	c, late := call(s), s.between(time.Second, 8*time.Second)
	return fmt.Sprintf("%s fails, and is done %s later", c, late),
		inject(s, fake.Fault{Call: c, Chance: 0.5, Err: errLost, Effect: fake.EffectLate, Late: late}),
		nil
}

// createCalledOff: a group grows, and shrinks again before the result of the creations is known:
// they happen afterwards (SAFE-8).
func createCalledOff(ctx context.Context, s *Site) (string, func() error, error) {
	name, late := group(s), s.between(6*time.Second, 9*time.Second)
	was := s.Wanted()[name]
	heal := inject(s, fake.Fault{
		Call: fake.CallCreate, Err: errLost, Effect: fake.EffectLate,
		Late: late,
	})
	err := s.Operator(ctx, "group", "scale", name, strconv.Itoa(was+2), "--confirm", name)
	return fmt.Sprintf("%s from %d to %d, and back before its creations are done, %s late", name, was, was+2, late),
		func() error {
			return errors.Join(heal(), s.OperatorMust("group", "scale", name, strconv.Itoa(was), "--confirm", name))
		}, err
}

func callsSlow(_ context.Context, s *Site) (string, func() error, error) {
	slow := s.between(500*time.Millisecond, 4*time.Second)
	return fmt.Sprintf("every call takes %s longer", slow), inject(s, fake.Fault{Delay: slow}), nil
}

func callsHang(_ context.Context, s *Site) (string, func() error, error) {
	c := call(s)
	return fmt.Sprintf("%s hangs", c), inject(s, fake.Fault{Call: c, Chance: 0.7, Hang: true}), nil
}

func noCapacity(_ context.Context, s *Site) (string, func() error, error) {
	return "no zone has room", inject(s, fake.Fault{Call: fake.CallCreate, Err: provider.ErrCapacity}),
		nil
}

func listFails(_ context.Context, s *Site) (string, func() error, error) {
	return "List fails", inject(s,
		fake.Fault{Call: fake.CallList, Chance: 0.8, Err: errors.New("internal error, try again")}), nil
}

// listFailsBesideMachines: machines are cut off, and the provider does not say whether they run:
// that is no evidence of their death (DET-4).
func listFailsBesideMachines(_ context.Context, s *Site) (string, func() error, error) {
	hit, err := machines(s, 2)
	if err != nil {
		return "", nil, err
	}
	heal := inject(s, fake.Fault{Call: fake.CallList, Err: errors.New("internal error, try again")})
	mend := s.CutMachines(func(id string) bool { return slices.Contains(hit, id) }, network.Rule{Silent: true})
	return fmt.Sprintf("List fails, and %v are cut off", hit), func() error { return errors.Join(mend(), heal()) }, nil
}

func listLies(_ context.Context, s *Site) (string, func() error, error) {
	lie := pick(s, []fake.Lie{
		{Kind: fake.Empty},
		{Kind: fake.Halved},
		{Kind: fake.Short}, // too few for a storm: the open stream alone tells that it is there
		{Kind: fake.Stale},
		{Kind: fake.Odd},
		{Kind: fake.Empty, Times: 1},
		{Kind: fake.Halved, Delay: 2 * time.Second},
	})
	end := s.Cloud.Lie(lie)
	return fmt.Sprintf("List is %s, %d times, %s late", lie.Kind, lie.Times, lie.Delay),
		func() error { end(); return nil }, nil
}
