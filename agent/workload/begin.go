package workload

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/provider"
)

// ownVariables are variables of Leasehold's own programs, which no other program receives.
var ownVariables = []string{provider.EnvBootstrap, provider.EnvBootID, "LEASEHOLD_SECRETS_KEY"}

// begin starts a process, as hold does, that is let go at once. It returns what a later agent must
// know of it. If the disk holds the program up until ctx ends, the process waits for it.
func (c Config) begin(
	ctx context.Context, argv []string, vars map[string]string, out *os.File,
) (*exec.Cmd, record, error) {
	h, err := c.hold(ctx, argv, vars, out)
	if err != nil {
		return nil, record{}, err
	}
	return h.cmd, h.rec, h.letGo(ctx)
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
		c.mark(),
	)
}

// mark is the variable that every process of this machine's workload has.
func (c Config) mark() string { return provider.EnvMachine + "=" + c.Shard + "/" + c.Instance }
