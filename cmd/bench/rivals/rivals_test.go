package rivals

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/parts"
)

// limit bounds what must not hang.
const limit = 4 * time.Minute

// TestMain is also what a rival starts: this program again, as one of its parts.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "part" {
		if err := parts.Serve(context.Background(), os.Stdin, os.Stdout, part); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func part(ctx context.Context, ready func(parts.Ready) error) error {
	if os.Args[2] == "etcd" {
		return parts.Etcd(ctx, os.Args[4], os.Stderr, ready)
	}
	role, err := RoleOf(os.Args[4])
	if err != nil {
		return err
	}
	return role.Part(ctx, ready)
}

// A stall beyond the lease has a watcher of deleted keys declare the living dead; without one it
// declares none dead; and everything is measured.
func TestContestOfRivals(t *testing.T) {
	for _, habit := range []Habit{Automatic, EachCall} {
		t.Run(string(habit), func(t *testing.T) {
			t.Parallel() // it waits most of the time
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			const agents, interval, ttl = 12, 500 * time.Millisecond, 2 * time.Second
			r, err := Begin(ctx, Config{
				Habit: habit, Agents: agents, Interval: interval, TTL: ttl, Size: 100,
				Rate: 1000, Program: os.Args[0],
			})
			defer func() {
				if err := r.End(true); err != nil {
					t.Error(err)
				}
			}()
			if err != nil {
				t.Fatal(err)
			}
			told := ""
			f, err := Contest(ctx, r, Plan{
				Steady: 2 * time.Second, Stall: 2 * ttl, Begin: limit, Settle: limit,
				Tell: func(doing, _ string) {
					if doing != told {
						t.Log(doing)
					}
					told = doing
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if e := f.Everyday; e.Requests <= 0 || e.Applied <= 0 || e.Etcd.Memory == 0 ||
				e.Judges.Memory == 0 || e.Agents.Memory == 0 || e.Machine <= 0 {
				t.Errorf("everyday: %+v", e)
			}
			if s := f.EtcdStall; s.Declared.AtOnce == 0 || s.Declared.Waiting > s.Declared.AtOnce || s.Back == nil ||
				s.Seconds < (2*ttl).Seconds() {
				t.Errorf("etcd stood still for two leases: %+v", s)
			}
			if s := f.JudgeStall; s.Back == nil || s.Seconds < (2*ttl).Seconds() {
				t.Errorf("the detector stood still: %+v", s)
			}
		})
	}
}

// What does not come about in time is told with how far it came, and with what was measured before.
func TestContestGivesUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r, err := Begin(ctx, Config{
		Habit: Automatic, Agents: 3, Interval: time.Second, TTL: time.Hour, Size: 100,
		Rate: 1000, Program: os.Args[0],
	})
	defer func() {
		if err := r.End(true); err != nil {
			t.Error(err)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Contest(ctx, r, Plan{
		Steady: time.Millisecond, Stall: time.Millisecond, Begin: limit, Settle: time.Second,
		Tell: func(string, string) {},
	})
	if err == nil || !strings.Contains(err.Error(), "not finished within 1s: all healthy; this must last 1h0m0s") {
		t.Errorf("no agent is healthy for an hour within a second: %v", err)
	}
	if f.RampUp == 0 || f.Everyday == nil || f.EtcdStall != nil || f.JudgeStall != nil {
		t.Errorf("figures: %+v", f)
	}
}
