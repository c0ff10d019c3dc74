package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// workloadsOf are the processes on this host with this command line.
func workloadsOf(args ...string) int {
	n := 0
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		if line, err := os.ReadFile(file); err == nil && string(line) == strings.Join(args, "\x00")+"\x00" {
			n++
		}
	}
	return n
}

// A machine that an operator sets up by hand runs one script and is an instance. Its death proves
// nothing: its record ends by an operator's word, or by the word of its agent that its workload has
// stopped. Then the machine is there still, and runs nothing of ours.
//
// proves PROV-9, PROV-7
func TestMachinesSetUpByHand(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("machines with a file system of their own are made by root: run the tests as root")
	}
	c := newCluster(t)
	agents := filepath.Join(c.dir, "agents")
	if err := os.MkdirAll(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	agent, err := os.ReadFile(bin("leasehold-agent"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(agents, "leasehold-agent-linux-"+runtime.GOARCH), agent, 0o700); err != nil {
		t.Fatal(err)
	}
	c.replicas["a"] = c.start("a", c.command(bin("leasehold"), "coordinator", "--id", "a",
		"--listen", addresses.FreeAddress(t), "--machines", c.machines, "--agent", c.agentScript(),
		"--state-dir", filepath.Join(c.dir, "known-a"), "--session-ttl", sessionTTL.String(), "--http", "off",
		"--log-level", "debug", "--downloads", addresses.FreeAddress(t), "--agents", agents))
	c.await("a leader", func() bool { return c.h.leader() != "" })
	work := []string{"sleep", fmt.Sprint(1_000_000 + os.Getpid())}
	group := filepath.Join(c.dir, "rack.yaml")
	if err := os.WriteFile(group, fmt.Appendf(nil,
		"name: rack\nprovider: none\nworkload: {run: [%s, %q]}\nreport: {interval: %s, lease_ttl: %s}\nstop_timeout: 2s\n",
		work[0], work[1], interval, leaseTTL), 0o600); err != nil {
		t.Fatal(err)
	}
	c.must("group", "apply", "-f", group, "--wait")
	if p := c.cli("group", "scale", "rack", "2", "--wait"); p.ExitCode() == 0 ||
		!strings.Contains(p.stderr.String(), "none needs size 0") {
		t.Errorf("a size for machines that nothing makes: exit %d, %s", p.ExitCode(), p.stderr.String())
	}

	instances := func() map[string]store.Instance {
		all := map[string]store.Instance{}
		for id, v := range currentOf[store.Instance](c.h, store.KindInstances) {
			all[id] = v.Record
		}
		return all
	}
	bootstrap := func() string { return c.must("instance", "bootstrap", "--new", "-g", "rack", "--zone", "r1") }
	// joins waits for the instance that was made last.
	joins := func(before map[string]store.Instance, workloads int) (id string) {
		c.await("the machine to run", func() bool {
			for i, rec := range instances() {
				if _, old := before[i]; !old && rec.Phase == store.Running && rec.Zone == "r1" && !rec.Managed {
					id = i
				}
			}
			return id != "" && workloadsOf(work...) == workloads
		})
		return id
	}
	setUp := func(n int) (id string, machine *program, shell io.Writer) {
		before, script := instances(), bootstrap()
		dir := filepath.Join(c.dir, fmt.Sprint("machine-", n))
		if err := os.MkdirAll(filepath.Join(dir, "layers"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "user-data"), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := c.command("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec",
			strings.Replace(plainMachine, "tail -f /dev/null", "sh", 1))
		cmd.Env = append(cmd.Env, "LEASEHOLD_WORK_DIR="+dir, fmt.Sprint("LEASEHOLD_BOOT_ID=boot-", n))
		shell, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		machine = c.start(fmt.Sprint("machine ", n), cmd)
		return joins(before, n), machine, shell
	}
	first, machine, _ := setUp(1)
	second, other, shell := setUp(2)

	machine.Signal(syscall.SIGKILL)
	c.await("its lease to end", func() bool {
		_, alive := currentOf[store.Alive](c.h, store.KindAlive)[first]
		return !alive && workloadsOf(work...) == 1
	})
	c.must("instance", "delete", first, "--confirm", first)
	c.await("it to be deleted", func() bool { return instances()[first].Phase == store.Deleting })
	c.throughout(2*interval, "it is not declared gone", func() bool { _, there := instances()[first]; return there })
	c.must("instance", "delete", "--gone", first, "--confirm", first)
	c.await("its record to end", func() bool { _, there := instances()[first]; return !there })
	if workloadsOf(work...) != 1 || instances()[second].Phase != store.Running {
		t.Errorf("the other machine was touched: %+v", instances()[second])
	}

	// Its record is lost: its agent goes on, and tells by its claim what it is.
	if _, err := c.st.Commit(t.Context(), store.Txn{
		Writes: []store.Write{store.Delete(c.h.keys.Instance(second))},
	}); err != nil {
		t.Fatal(err)
	}
	c.await("it to be known as a machine without a record", func() bool {
		_, known := currentOf[store.Extra](c.h, store.KindExtras)[second]
		return known
	})
	c.must("instance", "adopt", second)
	c.await("it to be adopted", func() bool {
		rec := instances()[second]
		return rec.Phase == store.Running && rec.Spec.Provider == store.ProviderNone && !rec.Managed
	})
	if n := workloadsOf(work...); n != 1 {
		t.Errorf("%d workloads run, though nothing has ended it", n)
	}

	c.must("instance", "delete", second, "--confirm", second)
	c.await("its agent to confirm its stop", func() bool { return len(instances()) == 0 })
	if n := workloadsOf(work...); n != 0 {
		t.Errorf("%d workloads run, though the agent has confirmed that its own was stopped", n)
	}
	if other.HasEnded() {
		t.Error("the machine has ended, though it is not ours")
	}

	before := instances()
	if _, err := fmt.Fprintf(shell, "sh -s <<'AGAIN'\n%s\nAGAIN\n", bootstrap()); err != nil {
		t.Fatal(err)
	}
	third := joins(before, 1)
	c.must("instance", "delete", third, "--confirm", third)
	c.await("its agent to confirm its stop", func() bool { return len(instances()) == 0 })
	other.Signal(syscall.SIGKILL)
	c.await("the machine to be off", func() bool {
		return errors.Is(syscall.Kill(-other.PID(), 0), syscall.ESRCH)
	})
}
