package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/store"
)

// scenario is one kind of fault, with the expected outcome.
type scenario struct {
	name string // on the command line
	what string // in the table
	// harm causes the fault in a healthy machine. Nil: it is caused at the creation of the
	// machines, see bench.raiseMute.
	harm func(ctx context.Context, b *bench, m machine) error

	verdict  store.Verdict
	rule     string // of the verdict
	replaced string // rule of the replacement

	// silent: it is silent for a while before it is judged, and counts towards a storm.
	silent bool

	// target is how soon the replacement must have been requested, and its derivation.
	target func(c config) time.Duration
	why    string
}

const (
	providerPoll        = 5 * time.Second // the shard's default
	registrationTimeout = 10 * time.Second

	// The defaults of checks.
	checkInterval  = 2 * time.Second
	checkTimeout   = time.Second
	checkThreshold = 2

	noticeFile = "notice"
)

// Targets.
func atOnce(config) time.Duration     { return 2 * time.Second }
func oneLease(c config) time.Duration { return c.leaseTTL() + 1500*time.Millisecond }
func noticed(config) time.Duration    { return 3 * time.Second }
func onePoll(config) time.Duration    { return providerPoll + 2*time.Second }
func oneTimeout(config) time.Duration { return registrationTimeout + 2*time.Second }
func overdue(c config) time.Duration  { return c.Interval*3/2 + 2*time.Second }
func failing(config) time.Duration    { return checkThreshold*checkInterval + time.Second }
func hanging(config) time.Duration    { return checkThreshold*checkInterval + checkTimeout + time.Second }

// deafLease adds the report that still gets through and, with several replicas, the hello that
// follows it over the warm connection to the next one.
func deafLease(c config) time.Duration {
	return time.Duration(min(c.Replicas, 2))*c.Interval + c.leaseTTL() + 1500*time.Millisecond
}

// scenarios returns all scenarios, in the order of the table.
func scenarios() []scenario {
	return []scenario{
		{
			name: "agent-killed", what: "agent killed",
			harm:    func(_ context.Context, _ *bench, m machine) error { return send(syscall.SIGKILL, m.agent()) },
			verdict: store.Dead, rule: "DET-4", replaced: "DET-4", target: atOnce, why: "2s",
		},
		{
			name: "machine-killed", what: "all of a machine killed",
			harm: func(_ context.Context, _ *bench, m machine) error {
				return send(syscall.SIGKILL, append([]int{m.agent()}, m.others()...)...)
			},
			verdict: store.Dead, rule: "DET-4", replaced: "DET-4", target: atOnce, why: "2s",
		},
		{
			name: "power-lost", what: "machine gone, and no packet says so",
			harm: func(ctx context.Context, _ *bench, m machine) error {
				if err := m.dropToCoordinator(ctx); err != nil {
					return err
				}
				return send(syscall.SIGKILL, append([]int{m.agent()}, m.others()...)...)
			},
			verdict: store.Dead, rule: "DET-4", replaced: "DET-4", silent: true, target: overdue,
			why: "1.5 × interval + 2s",
		},
		{
			name: "stopped-by-provider", what: "machine stopped at its provider",
			harm: func(ctx context.Context, b *bench, m machine) error {
				return b.provider.Stop(ctx, m.shard, m.instance, 30*time.Second)
			},
			verdict: store.Dead, rule: "DET-4", replaced: "DET-4", target: onePoll, why: "provider_poll + 2s",
		},
		{
			name: "agent-frozen", what: "agent stopped (SIGSTOP)",
			harm:    func(_ context.Context, _ *bench, m machine) error { return send(syscall.SIGSTOP, m.agent()) },
			verdict: store.Lost, rule: "DET-17", replaced: "HEAL-2", silent: true, target: oneLease,
			why: "lease + 1.5s",
		},
		{
			name: "cut-off", what: "network cut, both ways",
			harm: func(ctx context.Context, _ *bench, m machine) error {
				if err := m.dropToCoordinator(ctx); err != nil {
					return err
				}
				return m.dropToMachine(ctx)
			},
			verdict: store.Lost, rule: "DET-17", replaced: "HEAL-2", silent: true, target: oneLease,
			why: "lease + 1.5s",
		},
		{
			name: "cut-to-coordinator", what: "network cut towards the coordinator",
			harm:    func(ctx context.Context, _ *bench, m machine) error { return m.dropToCoordinator(ctx) },
			verdict: store.Lost, rule: "DET-17", replaced: "HEAL-2", silent: true, target: oneLease,
			why: "lease + 1.5s",
		},
		{
			name: "cut-to-machine", what: "network cut towards the machine",
			harm:    func(ctx context.Context, _ *bench, m machine) error { return m.dropToMachine(ctx) },
			verdict: store.Lost, rule: "DET-17", replaced: "HEAL-2", silent: true, target: deafLease,
			why: "interval + lease + 1.5s",
		},
		{
			name: "workload-ended", what: "workload killed",
			harm: func(_ context.Context, _ *bench, m machine) error {
				pids := m.others()
				if len(pids) == 0 {
					return fmt.Errorf("%s runs no workload", m.instance)
				}
				return send(syscall.SIGKILL, pids...)
			},
			verdict: store.Unhealthy, rule: "DET-9", replaced: "HEAL-2", target: atOnce, why: "2s",
		},
		{
			name: "check-failing", what: "HTTP check fails",
			harm:    func(_ context.Context, _ *bench, m machine) error { return m.tell("fail", "") },
			verdict: store.Unhealthy, rule: "DET-9", replaced: "HEAL-2", target: failing,
			why: "threshold × interval + 1s",
		},
		{
			name: "check-hanging", what: "HTTP check hangs",
			harm:    func(_ context.Context, _ *bench, m machine) error { return m.tell("hang", "") },
			verdict: store.Unhealthy, rule: "DET-9", replaced: "HEAL-2", target: hanging,
			why: "threshold × interval + timeout + 1s",
		},
		{
			name: "notice", what: "notice that the machine will be taken away",
			harm: func(_ context.Context, _ *bench, m machine) error {
				return m.tell(noticeFile, "kind: interruption\nin: 2m\n")
			},
			verdict: store.Doomed, rule: "SPOT-2", replaced: "SPOT-2", target: noticed, why: "3s",
		},
		{
			name: "never-registered", what: "agent never registers",
			verdict: store.Stuck, rule: "DET-11", replaced: "HEAL-2", target: oneTimeout,
			why: "registration_timeout + 2s",
		},
	}
}

// chosen returns the scenarios with these names, or all.
func chosen(names []string) ([]scenario, error) {
	all := scenarios()
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, s := range all {
		known = append(known, s.name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("-only: no scenario %q: there are %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(s scenario) bool { return !slices.Contains(names, s.name) }), nil
}
