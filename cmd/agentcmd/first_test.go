package agentcmd

import (
	"log/slog"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// agentsOf plays agents that run for a while each and end with a status; asked is how often the
// first process is asked to stop while the last of them runs.
func agentsOf(ran time.Duration, asked int, statuses ...syscall.WaitStatus) (code, started, told int) {
	f := first{
		asked: make(chan os.Signal), children: make(chan os.Signal), log: slog.New(slog.DiscardHandler),
		now: func() func() time.Time {
			now := time.Unix(0, 0)
			return func() time.Time { now = now.Add(ran); return now }
		}(),
		end: func(int) error { told++; return nil },
	}
	f.start = func() (int, error) {
		started++
		go func(last bool) {
			for range asked {
				if last {
					f.asked <- syscall.SIGPWR
				}
			}
			f.children <- syscall.SIGCHLD // of an orphan
			f.children <- syscall.SIGCHLD
		}(started == len(statuses))
		return started, nil
	}
	collected := 0
	f.reap = func() (map[int]syscall.WaitStatus, error) {
		if collected++; collected%2 == 1 {
			return map[int]syscall.WaitStatus{4711: 0}, nil
		}
		return map[int]syscall.WaitStatus{started: statuses[started-1]}, nil
	}
	return f.run(), started, told
}

func TestMachineEndsWithItsAgent(t *testing.T) {
	const failed, killed = syscall.WaitStatus(3 << 8), syscall.WaitStatus(syscall.SIGKILL)
	for name, c := range map[string]struct {
		ran                  time.Duration
		asked                int
		statuses             []syscall.WaitStatus
		code, started, ended int
	}{
		"asked":                        {time.Hour, 1, []syscall.WaitStatus{0}, 0, 1, 1},
		"asked, and it fails":          {time.Hour, 1, []syscall.WaitStatus{failed}, 3, 1, 1},
		"asked twice":                  {time.Hour, 2, []syscall.WaitStatus{0}, 0, 1, 1},
		"ends by itself":               {time.Hour, 0, []syscall.WaitStatus{0}, 0, 1, 0},
		"cannot begin":                 {time.Second, 0, []syscall.WaitStatus{failed}, 3, 1, 0},
		"killed at once":               {time.Second, 0, []syscall.WaitStatus{killed}, 137, 1, 0},
		"breaks down, and comes again": {time.Hour, 1, []syscall.WaitStatus{failed, killed, 0}, 0, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			code, started, ended := agentsOf(c.ran, c.asked, c.statuses...)
			if code != c.code || started != c.started || ended != c.ended {
				t.Errorf("code %d, %d started, %d asked to end; want %d, %d, %d", code, started, ended, c.code, c.started, c.ended)
			}
		})
	}
}

func TestFirstProcessHasAnEnvironment(t *testing.T) {
	env := firstEnvironment([]string{"container=lxc", "PATH=/mine"})
	for _, want := range []string{
		"container=lxc", "PATH=/mine", "LEASEHOLD_BOOTSTRAP=/etc/leasehold/bootstrap.json",
		"TERM=dumb",
	} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is not in %v", want, env)
		}
	}
	if len(env) != 5 {
		t.Errorf("%v", env)
	}
}
