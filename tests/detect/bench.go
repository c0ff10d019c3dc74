package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider/process"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/embedetcd"
	"github.com/leasehold/leasehold/tests/certs"
	"github.com/leasehold/leasehold/tests/harness"
)

const (
	etcdAddress = "127.0.0.1:2379" // the namespace is not shared
	shardName   = "default"
	webGroup    = "web"

	// longest bounds every wait.
	longest = 5 * time.Minute
	// flapWindow is how long a slot is spared after maxHarmed failures: flap.window, and some.
	flapWindow = 5*time.Minute + 10*time.Second
	maxHarmed  = 2 // flap.failures is 3
)

// bench is a shard with machines for the faults.
type bench struct {
	cfg      config
	progress io.Writer
	ledger   *ledger
	machines string // their directory
	pki      string // where the certificate authorities are
	provider *process.Provider

	// The ledger's lock guards these.
	writes []time.Duration     // durations of a write to etcd, once a second
	harmed map[int][]time.Time // when each slot of the web group had a fault
	done   int                 // trials
	of     int
}

// runBench does the whole run: it leaves its result in the run's directory.
func runBench(ctx context.Context, cfg config, progress io.Writer) (err error) {
	todo, err := chosen(cfg.Only)
	if err != nil {
		return err
	}
	if err := errors.Join(ip(ctx, "link", "set", "lo", "up"),
		ip(ctx, "address", "add", coordinatorIP+"/32", "dev", "lo")); err != nil {
		return err
	}
	b := &bench{
		cfg: cfg, progress: progress, ledger: newLedger(store.KeysOf(shardName)),
		machines: filepath.Join(cfg.Dir, "machines"),
		harmed:   map[int][]time.Time{}, of: cfg.Trials * len(todo),
	}
	agent, err := writeAgentScript(cfg.Dir)
	if err != nil {
		return err
	}
	if b.provider, err = process.New(process.Config{Dir: b.machines, AgentCommand: []string{agent}}); err != nil {
		return err
	}
	if b.pki, err = certs.Make(cfg.Dir); err != nil {
		return err
	}
	stop, err := b.start(ctx, agent)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	began := time.Now()
	outcomes, err := b.play(ctx, todo)
	if err != nil {
		return err
	}
	b.say("done in %s", time.Since(began).Round(time.Second))
	return writeResult(filepath.Join(cfg.Dir, resultFile), b.sumUp(todo, outcomes))
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.progress, format+"\n", args...) }

// start starts etcd, its followers and the coordinator, and waits for a leader.
func (b *bench) start(ctx context.Context, agent string) (stop func() error, err error) {
	b.say("starting etcd and %d coordinator(s)", b.cfg.Replicas)
	log, err := os.Create(filepath.Join(b.cfg.Dir, "etcd.log"))
	if err != nil {
		return nil, err
	}
	etcd, err := harness.StartEtcd(ctx,
		embedetcd.Config{
			DataDir: filepath.Join(b.cfg.Dir, "etcd"), Listen: etcdAddress,
			Logger: slog.New(slog.NewJSONHandler(log, nil)),
		})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	st := etcd.Store
	following, unfollow := context.WithCancel(ctx)
	var followers sync.WaitGroup
	followers.Go(func() { b.ledger.follow(following, st) })
	followers.Go(func() { b.feelPulse(following, st) })
	shard, err := store.NewShard("default", "")
	if err == nil {
		err = store.CreateShard(ctx, st, store.KeysOf("default"), shard)
	}
	var replicas []*harness.Process
	stop = func() error {
		for _, p := range replicas {
			p.Kill()
		}
		unfollow()
		followers.Wait()
		return errors.Join(etcd.Close(), log.Close())
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	for i := range b.cfg.Replicas {
		name := string(rune('a' + i))
		p, err := b.launch(name, "coordinator", "--id", name, "--listen", fmt.Sprintf("%s:%d", coordinatorIP, 7420+i),
			"--machines", b.machines, "--state-dir", filepath.Join(b.cfg.Dir, "known-"+name), "--agent", agent,
			"--http", "off")
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		replicas = append(replicas, p)
	}
	err = b.ledger.await(ctx, "a leader", longest,
		func() bool { return b.ledger.leader && len(b.ledger.replicas) == b.cfg.Replicas })
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// feelPulse measures how long etcd takes for a write besides all others: if that is slow,
// everything else is.
func (b *bench) feelPulse(ctx context.Context, st store.Store) {
	for pause(ctx, time.Second) == nil {
		began := time.Now()
		if _, err := st.Commit(ctx, store.Txn{Writes: []store.Write{store.Put("/detect/pulse", nil)}}); err != nil {
			continue // the replicas notice and report it, too
		}
		b.ledger.mu.Lock()
		b.writes = append(b.writes, time.Since(began))
		b.ledger.mu.Unlock()
	}
}

// launch starts leasehold with its output in a log file.
func (b *bench) launch(name string, args ...string) (*harness.Process, error) {
	cmd := exec.Command(filepath.Join(b.cfg.Dir, "leasehold"), args...)
	cmd.Env = append(os.Environ(), "LEASEHOLD_ENDPOINTS="+etcdAddress, certs.Env+"="+b.pki)
	return harness.StartLogged(name, filepath.Join(b.cfg.Dir, name+".log"), cmd)
}

// apply creates a group. more are further lines of its file.
func (b *bench) apply(ctx context.Context, name string, size int, more ...string) error {
	text := fmt.Sprintf("name: %s\nsize: %d\nprovider: process\nbudget: {max_expansion: 100}\n%s\n", name, size,
		strings.Join(more, "\n"))
	if b.cfg.Interval != defaultInterval {
		text += fmt.Sprintf("report: {interval: %s}\n", b.cfg.Interval)
	}
	file := filepath.Join(b.cfg.Dir, name+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(b.cfg.Dir, "leasehold"), "group", "apply", "-f", file)
	cmd.Env = append(os.Environ(), "LEASEHOLD_ENDPOINTS="+etcdAddress)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apply group %s: %w: %s", name, err, out)
	}
	return nil
}

// play runs all scenarios at once, each at its own pace.
func (b *bench) play(ctx context.Context, todo []scenario) (map[string][]*trial, error) {
	size := b.webSize(todo)
	if size > 0 {
		b.say("making %d machines", size)
		if err := b.raiseWeb(ctx, size); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	outcomes := map[string][]*trial{}
	var playing sync.WaitGroup
	for _, s := range todo {
		playing.Go(func() {
			trials, err := b.playOne(ctx, s)
			if err != nil {
				cancel(fmt.Errorf("%s: %w", s.name, err))
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes[s.name] = trials
		})
	}
	playing.Wait()
	return outcomes, context.Cause(ctx)
}

func (b *bench) playOne(ctx context.Context, s scenario) ([]*trial, error) {
	if s.harm == nil {
		return b.raiseMute(ctx)
	}
	// The scenarios' paces differ from each other and from the report interval.
	if err := pause(ctx, rand.N(b.cfg.Pace)); err != nil {
		return nil, err
	}
	var trials []*trial
	var harming sync.WaitGroup
	defer harming.Wait()
	failed := make(chan error, b.cfg.Trials)
	for range b.cfg.Trials {
		t, m, err := b.victim(ctx)
		if err != nil {
			return trials, err
		}
		trials = append(trials, t)
		harming.Go(func() { // stopping a machine in order takes a while
			b.ledger.begin(t)
			if err := s.harm(ctx, b, m); err != nil {
				failed <- fmt.Errorf("cause fault in %s: %w", m.instance, err)
				return
			}
			if err := b.replaced(ctx, t); err != nil {
				failed <- err
			}
		})
		if err := pause(ctx, b.cfg.Pace*3/4+rand.N(b.cfg.Pace/2)); err != nil {
			return trials, err
		}
	}
	harming.Wait()
	select {
	case err := <-failed:
		return trials, err
	default:
		return trials, nil
	}
}

// replaced waits until a trial is over.
func (b *bench) replaced(ctx context.Context, t *trial) error {
	return b.ledger.await(ctx, "the replacement of "+t.Victim, longest, func() bool {
		if t.Replaced.IsZero() {
			return false
		}
		if b.done++; b.done%50 == 0 || b.done == b.of {
			b.say("%d of %d trials", b.done, b.of)
		}
		return true
	})
}

// webSize returns how many machines are needed so that no slot has so many faults that it flaps,
// and so few of all are silent at once that it is not a storm.
func (b *bench) webSize(todo []scenario) int {
	kinds, silent := 0, 0
	for _, s := range todo {
		if s.harm != nil {
			kinds++
		}
		if s.silent {
			silent++
		}
	}
	if kinds == 0 {
		return 0
	}
	trials := b.cfg.Trials
	if inWindow := int(flapWindow/b.cfg.Pace) + 1; inWindow < trials { // after that a slot's turn comes again
		trials = inWindow
	}
	// Some slots always wait for a new machine.
	forSlots := kinds*trials*6/10 + 5
	// A silent machine counts for about a lease. Half of a group would be a storm.
	atOnce := silent * min(b.cfg.Trials, int((b.cfg.leaseTTL()+b.cfg.Interval)/b.cfg.Pace)+1)
	return max(forSlots, 3*atOnce)
}

func (b *bench) raiseWeb(ctx context.Context, size int) error {
	err := b.apply(ctx, webGroup, size,
		fmt.Sprintf(`workload: {run: [%q, "${port}", %q]}`, filepath.Join(b.cfg.Dir, "web"), seenAs),
		`checks: [{http: {port: "${port}", path: /healthz}}]`,
		fmt.Sprintf("spot: {source: file, file: %q}", filepath.Join(seenAs, noticeFile)))
	if err != nil {
		return err
	}
	return b.ledger.await(ctx, "all machines to run", longest, func() bool {
		n := 0
		for _, in := range b.ledger.instances {
			if in.Group == webGroup && in.Phase == store.Running && in.stream == store.StreamOpen {
				n++
			}
		}
		return n == size
	})
}

// raiseMute creates a group whose first agents never register, and waits until all of them are
// replaced.
func (b *bench) raiseMute(ctx context.Context) ([]*trial, error) {
	var trials []*trial
	b.ledger.mu.Lock()
	b.ledger.onBoot = func(in store.Instance, at time.Time) {
		if in.Group == muteGroup && in.Replaces == "" {
			t := &trial{Victim: in.ID, Harmed: at}
			trials = append(trials, t)
			b.ledger.trials[in.ID] = t
		}
	}
	b.ledger.mu.Unlock()
	if err := b.apply(ctx, muteGroup, b.cfg.Trials,
		fmt.Sprintf("registration_timeout: %s", registrationTimeout)); err != nil {
		return nil, err
	}
	err := b.ledger.await(ctx, "machines to boot that stay mute", longest,
		func() bool { return len(trials) == b.cfg.Trials })
	if err != nil {
		return nil, err
	}
	for _, t := range trials {
		if err := b.replaced(ctx, t); err != nil {
			return nil, err
		}
	}
	return trials, nil
}

// victim waits for a machine that may get a fault, and reserves one at random.
func (b *bench) victim(ctx context.Context) (*trial, machine, error) {
	var t *trial
	err := b.ledger.await(ctx, "a machine for a fault", longest+flapWindow, func() bool {
		now := time.Now()
		var may []store.Instance
		for _, in := range b.ledger.settled(webGroup, now.Add(-2*b.cfg.Interval)) {
			b.harmed[in.Slot] = slices.DeleteFunc(b.harmed[in.Slot],
				func(at time.Time) bool { return now.Sub(at) > flapWindow })
			if len(b.harmed[in.Slot]) < maxHarmed {
				may = append(may, in)
			}
		}
		if len(may) == 0 {
			return false
		}
		in := may[rand.N(len(may))]
		b.harmed[in.Slot] = append(b.harmed[in.Slot], now)
		t = &trial{Victim: in.ID}
		b.ledger.trials[in.ID] = t
		return true
	})
	if err != nil {
		return nil, machine{}, err
	}
	m, err := find(b.machines, t.Victim)
	return t, m, err
}

// pause waits for a time.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
