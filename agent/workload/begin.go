package workload

import (
	"cmp"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/leasehold/leasehold/provider"
)

// ownVariables are variables of Leasehold's own programs, which no other program receives.
var ownVariables = []string{provider.EnvBootstrap, provider.EnvBootID, "LEASEHOLD_SECRETS_KEY"}

// begin starts a process in its own process group that writes its output to a file, so that it does
// not depend on the agent. It returns what a later agent must know of it.
func (c Config) begin(argv []string, vars map[string]string, out *os.File) (*exec.Cmd, record, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	rec, err := c.start(cmd, vars, out)
	return cmd, rec, err
}

func (c Config) start(cmd *exec.Cmd, vars map[string]string, out *os.File) (record, error) {
	cmd.Dir = c.Dir
	cmd.Env = c.environment(vars)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return record{}, err
	}
	rec := record{Boot: c.Boot, Kernel: kernelBoot(), PID: cmd.Process.Pid}
	if s, err := readStat(rec.PID); err == nil {
		rec.Start = s.start
	}
	return rec, nil
}

// environment returns the agent's environment without the agent's own variables, and with the
// group's vars and secrets.
func (c Config) environment(vars map[string]string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(ownVariables, name)
	})
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	env = append(env, c.Secrets.Environ()...)
	return append(env,
		"LEASEHOLD_INSTANCE="+c.Instance,
		"LEASEHOLD_GROUP="+c.Group,
		"LEASEHOLD_NAME="+cmp.Or(c.Facts["name"], c.Instance),
		provider.EnvMachine+"="+c.Shard+"/"+c.Instance,
	)
}
