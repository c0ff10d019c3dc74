package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/upgrade"
	"github.com/leasehold/leasehold/store"
)

// Every unit is started again however often it fails. By default systemd gives up after five quick
// failures: a disk that cannot be read for some seconds would end an agent until an operator starts
// it, and its workload would run unguarded.
//
// proves DAY-4
func TestUnitsAreStartedAgainHoweverOftenTheyFail(t *testing.T) {
	units, err := filepath.Glob("../packaging/*.service")
	if err != nil || len(units) != 3 {
		t.Fatalf("%v, units are %q", err, units)
	}
	for _, name := range append(units, "../provider/userdata/install.sh") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		unit, rest, _ := strings.Cut(string(text), "\n[Service]\n")
		_, unit, _ = strings.Cut(unit, "[Unit]\n")
		service, _, _ := strings.Cut(rest, "\n[Install]\n")
		if !strings.Contains(unit+"\n", "\nStartLimitIntervalSec=0\n") || !strings.Contains(service, "\nRestart=always\n") {
			t.Errorf("%s: systemd gives up after a few failures", name)
		}
	}
}

// Where the kernel ends a part of a server, or a workload, for want of memory, and where the
// service ends, systemd ends nothing else: the other part goes on, and so do machines and
// workloads.
//
// proves DAY-1, DAY-4
func TestUnitsEndNothingBeside(t *testing.T) {
	agents := []string{"../packaging/leasehold-agent.service", "../provider/userdata/install.sh"}
	lines := []string{"OOMPolicy=continue", "KillMode=process", "Type=notify"}
	for _, file := range append(agents, "../packaging/leasehold-server.service") {
		lacks(t, file, lines...)
	}
	// A workload has the limits of its agent, which is the same service however it was installed.
	for _, file := range agents {
		lacks(t, file, "WatchdogSec=5min", "Delegate=yes", "TasksMax=infinity", "LimitNOFILE=1048576")
	}
	settings, err := os.ReadFile("../packaging/agent.env")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"LEASEHOLD_FAREWELL=restart", "LEASEHOLD_KEEP_WORKLOAD=true"} {
		if !strings.Contains("\n"+string(settings), "\n"+line+"\n") {
			t.Errorf("agent.env lacks %s: a restart of the agent would end the workload", line)
		}
	}
}

func lacks(t *testing.T, file string, lines ...string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("%s lacks %s", file, line)
		}
	}
}

// A unit of the agent gives a workload its longest stop_timeout, and the agent the time to leave,
// before systemd kills it.
//
// proves HEAL-14, DAY-4
func TestUnitsLeaveTimeForTheWorkload(t *testing.T) {
	for _, file := range []string{"../packaging/leasehold-agent.service", "../provider/userdata/install.sh"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, value, _ := strings.Cut(string(text), "\nTimeoutStopSec=")
		value, _, _ = strings.Cut(value, "\n")
		limit, err := time.ParseDuration(strings.TrimSuffix(value, "in"))
		if least := store.MaxStopTimeout + upgrade.LeaveTime; err != nil || limit < least {
			t.Errorf("%s: TimeoutStopSec is %q (%v), must be at least %s", file, value, err, least)
		}
	}
}

// proves DET-3
func TestSilenceIsDetectedInTime(t *testing.T) {
	if silence := protocol.PingAfter + protocol.PongTimeout; silence > 15*time.Second {
		t.Errorf("a silent connection is closed after %s, and must be within 15s", silence)
	}
}
