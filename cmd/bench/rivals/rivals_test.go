package rivals

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/parts"
)

// limit bounds what must not hang.
const limit = 4 * time.Minute

// TestMain is also what a rival starts: this program again, as one of its parts.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "bench" && os.Args[2] == "part" {
		if err := parts.Serve(context.Background(), os.Stdin, os.Stdout, part); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func part(ctx context.Context, ready func(parts.Ready) error) error {
	if os.Args[3] == "etcd" {
		return parts.Etcd(ctx, os.Args[5], os.Stderr, ready)
	}
	role, err := RoleOf(os.Args[5])
	if err != nil {
		return err
	}
	return role.Part(ctx, ready)
}

// A stall beyond the lease has a watcher of deleted keys declare the living dead; without one it declares nobody, and everything is measured.
func TestContestOfRivals(t *testing.T) {
	for _, habit := range []Habit{Automatic, EachCall} {
		t.Run(string(habit), func(t *testing.T) {
			t.Parallel() // it waits most of the time
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			const agents = 12
			r, err := Begin(ctx, Config{
				Habit: habit, Agents: agents, Processes: 2, Interval: 500 * time.Millisecond, TTL: 2 * time.Second, Size: 100, Rate: 1000, Program: os.Args[0],
			})
			defer func() {
				if err := r.End(true); err != nil {
					t.Error(err)
				}
			}()
			if err != nil {
				t.Fatal(err)
			}
			f, err := Contest(ctx, r, agents, Plan{Steady: 2 * time.Second, Stall: 4 * time.Second, Tell: func(what string) { t.Log(what) }})
			if err != nil {
				t.Fatal(err)
			}
			if f.Requests < agents || f.Proposals < agents/2 || f.EtcdMemory == 0 || f.JudgeMemory == 0 || f.AgentMemory == 0 {
				t.Errorf("everyday: %+v", f)
			}
			if f.MiddleStall.Agents != agents/2 || f.MiddleStall.Declared < agents/2 {
				t.Errorf("a process with half of the agents stood still: %+v", f.MiddleStall)
			}
			if f.EtcdStall.Declared == 0 {
				t.Errorf("etcd stood still for two leases, and nobody was declared dead: %+v", f.EtcdStall)
			}
		})
	}
}

func TestRatios(t *testing.T) {
	rows := Rows(Figures{EtcdCores: 0.5, EtcdStall: Stall{Declared: 7}}, Figures{EtcdCores: 0.25})
	byName := map[string]Row{}
	for _, r := range rows {
		byName[r.Name] = r
	}
	if r := byName["CPU of etcd"]; r.Ratios[0] != 2 || r.Ratios[1] != 1 {
		t.Errorf("CPU: %+v", r)
	}
	if r := byName["etcd stood still: living declared dead"]; r.Values[0] != 7 || r.Ratios[0] != 0 || Ratio(r.Ratios[0]) != "-" {
		t.Errorf("false positives where there is nothing to hold them against: %+v", r)
	}
}
