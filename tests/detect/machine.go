package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/leasehold/leasehold/tests/machines"
)

const (
	// coordinatorIP is the coordinator's address for machines. All addresses are from the range for
	// measuring networks (RFC 2544).
	coordinatorIP = "198.18.0.1"
	// nowhere is a hardware address that no interface has: packets for it are dropped silently.
	nowhere = "02:00:00:00:00:01"
	// firstPort is the first port that the process provider gives to a machine.
	firstPort = 20000
)

// muteGroup is the group whose first agents never send anything.
const muteGroup = "mute"

// agentScript is what the provider starts as an agent: it creates the machine's network, with one
// link to the coordinator, mounts its working directory at seenAs, and becomes the agent. Its port
// identifies the machine.
const agentScript = `#!/bin/sh
set -e
instance=${LEASEHOLD_MACHINE#*/}
slot=${instance%%-*}
if [ "${slot%%-*}" = %[1]s ] && mkdir "%[2]s/$slot" 2>/dev/null; then
	exec sleep 1000000
fi
port=$(sed -n 's/.*"port": *"\([0-9]*\)".*/\1/p' "$LEASEHOLD_BOOTSTRAP")
n=$((port - %[3]d))
address=198.18.$((1 + n / 250)).$((1 + n %% 250))
ip netns add "$instance"
ip -batch - <<-END
	link add v$port type veth peer name eth0 netns $instance
	link set v$port up
	route add $address dev v$port src %[4]s
END
ip -netns "$instance" -batch - <<-END
	link set lo up
	address add $address/32 dev eth0
	link set eth0 up
	route add %[4]s dev eth0
END
exec nsenter "--net=/run/netns/$instance" unshare --mount sh -c 'mount --bind "$1" %[6]s && shift && exec "$@"' sh "${LEASEHOLD_BOOTSTRAP%%/*}/work" %[5]s "$@"
`

// seenAs is where each machine sees its own working directory: a group file can only contain paths
// that are the same for all.
const seenAs = "/run/machine"

// writeAgentScript writes the script beside the programs and returns its path.
func writeAgentScript(dir string) (string, error) {
	mute := filepath.Join(dir, "mute")
	for _, d := range []string{mute, seenAs} { // /run is private: see beFirst
		if err := os.MkdirAll(d, 0o700); err != nil {
			return "", err
		}
	}
	path := filepath.Join(dir, "agent.sh")
	text := fmt.Sprintf(agentScript, muteGroup, mute, firstPort, coordinatorIP, filepath.Join(dir, "leasehold-agent"),
		seenAs)
	return path, os.WriteFile(path, []byte(text), 0o700)
}

// ip runs the tool of that name.
func ip(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// machine is a machine that can get a fault.
type machine struct {
	instance string
	shard    string
	dir      string // of all machines
	record   machines.Machine
}

// find looks up the machine of an instance.
func find(dir, instance string) (machine, error) {
	r, err := machines.Read(dir, instance)
	if err == nil && r.PID < 2 {
		err = errors.New("no process is recorded")
	}
	if err != nil {
		return machine{}, fmt.Errorf("find the machine of %s: %w", instance, err)
	}
	return machine{instance: instance, shard: r.Shard, dir: dir, record: r}, nil
}

// agent returns the process of its agent.
func (m machine) agent() int { return m.record.PID }

// others returns its processes except the agent.
func (m machine) others() []int {
	var pids []int
	for _, r := range machines.Residents([]string{m.shard}) {
		if r.Instance == m.instance && r.PID != m.agent() {
			pids = append(pids, r.PID)
		}
	}
	return pids
}

// tell creates a file that the machine sees.
func (m machine) tell(file, text string) error {
	path := filepath.Join(m.dir, m.instance, "work", file)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// send signals processes. It is an error if one has ended already: the fault would have no effect.
func send(s syscall.Signal, pids ...int) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil {
			return fmt.Errorf("signal process %d: %w", pid, err)
		}
	}
	return nil
}

// address is the machine's address on its link: see agentScript.
func (m machine) address() string {
	n := m.record.Port - firstPort
	return fmt.Sprintf("198.18.%d.%d", 1+n/250, 1+n%250)
}

// dropToMachine drops everything that the coordinator sends to the machine.
func (m machine) dropToMachine(ctx context.Context) error {
	return ip(ctx, "neigh", "replace", m.address(), "lladdr", nowhere, "dev", fmt.Sprintf("v%d", m.record.Port), "nud",
		"permanent")
}

// dropToCoordinator drops everything that the machine sends.
func (m machine) dropToCoordinator(ctx context.Context) error {
	return ip(ctx, "-netns", m.instance, "neigh", "replace", coordinatorIP, "lladdr", nowhere, "dev", "eth0", "nud",
		"permanent")
}
