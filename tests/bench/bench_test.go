package bench

import (
	"encoding/json"
	"testing"

	"github.com/leasehold/leasehold/cmd/bench/trial"
	"github.com/leasehold/leasehold/cmd/program"
)

// result runs a bench and reads what it measured.
func result[T any](t *testing.T, args ...string) T {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	code, stdout, stderr := run(t.Context(), t, append(append(args, quick...), "-o", "json")...)
	var r T
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("exit %d: %v in %q: %s", code, err, stdout, stderr)
	}
	if code == program.Done { // else logs are kept
		nothingLeft(t)
	}
	return r
}

// Agents that fail are seen, those that only lose their connection are left alone, and all of it is
// told. On a machine with other work to do a failure may be seen later than is promised, so that is
// not asked here.
func TestAgents(t *testing.T) {
	r := result[trial.Agents](t, "agents", "--agents", "40", "--for", "10s", "--failures", "4", "--churn", "3",
		"--group-size", "20")
	if r.Agents != 40 || r.Groups != 2 || r.Connections != trial.OwnConnections || r.LeaseTTL != 6 {
		t.Errorf("setting: %+v", r.Setting)
	}
	if d := r.Detection; d.Failed != 4 || d.Seen != 4 || d.Lag.Count != 4 || d.Lag.P50 < 5000 {
		t.Errorf("of 4 failures were seen %+v: each takes a lease at least", d)
	}
	if r.Churned != 3 || r.FalsePositives != 0 || r.LeasesLost != 0 {
		t.Errorf("%d came back of 3, %d false positives, %d healthy leases lost: %v", r.Churned, r.FalsePositives,
			r.LeasesLost, r.Wrongly)
	}
	if r.Registered < 36 || r.Reports < 20 || r.Latency.Count == 0 || r.Renewals < 20 || r.MemoryPerAgent <= 0 {
		t.Errorf("measured: %+v", r)
	}
	names := ""
	for _, p := range r.Processes {
		names += p.Name + " "
		if p.Memory == 0 {
			t.Errorf("process %s has no memory", p.Name)
		}
	}
	if names != "bench etcd replica-a agents-1 " {
		t.Errorf("processes: %s", names)
	}
}

// proves SAFE-2 for a whole group of processes: nothing of a storm is replaced.
func TestStorm(t *testing.T) {
	r := result[trial.Storm](t, "storm", "--lost", "30", "--healthy", "10")
	if r.Lost != 30 || r.Healthy != 10 || r.Storms != 1 || r.Replaced != 0 || r.Made != 0 || r.HealthyHurt != 0 {
		t.Errorf("measured: %+v", r)
	}
	if r.LeasesEnded < 4 || r.Away < r.LeasesEnded || r.Latency.Count == 0 {
		t.Errorf("measured: %+v", r)
	}
}
