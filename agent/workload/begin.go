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

// ownVariables are for Leasehold's own programs only.
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

// environment returns the agent's, without what is the agent's own business, and with the group's
// vars as they are and its secrets.
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
