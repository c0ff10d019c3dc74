package program

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	osexec "os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Config is an operator's configuration of any program. It is part of the replica's own
// configuration: no group can name a program (SEC-7).
type Config struct {
	// Command is the program and its arguments.
	Command []string `json:"command"`
	// User runs the program. It is required if the coordinator is root.
	User string `json:"user"`
	// Config is passed to the program with every call.
	Config map[string]any `json:"config"`
	// Secrets are the secrets that the program gets with every call: the program's name of each,
	// and the shard's.
	Secrets map[string]string `json:"secrets"`
	// Env is the program's whole environment, apart from PATH.
	Env map[string]string `json:"env"`
	// Concurrency is the number of calls at once, in addition to one List; default 8.
	Concurrency int `json:"concurrency"`

	Logger *slog.Logger `json:"-"` // default: discard
}

const defaultConcurrency = 8

// command is a checked configuration.
type command struct {
	path string
	args []string
	dir  string
	env  []string
	as   *syscall.Credential // nil: the coordinator's own user
}

func (c *Config) check() (command, error) {
	p := command{dir: "/", env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}
	switch {
	case len(c.Command) == 0 || c.Command[0] == "":
		return p, errors.New("command: is missing: name the program and its arguments")
	case c.Concurrency < 0 || c.Concurrency > 64:
		return p, fmt.Errorf("concurrency: %d: must be 1 to 64", c.Concurrency)
	}
	path, err := osexec.LookPath(c.Command[0])
	if err != nil {
		return p, fmt.Errorf("command: %w: give the full path of a program that may be executed", err)
	}
	if p.path, err = filepath.Abs(path); err != nil {
		return p, fmt.Errorf("command: %w", err)
	}
	p.args = c.Command[1:]
	for name, value := range c.Env {
		p.env = append(p.env, name+"="+value)
	}
	if os.Geteuid() == 0 && c.User == "" {
		return p, errors.New("user: is missing: the coordinator is root, so name the user that the " +
			"program runs as (root too must be named)")
	}
	if c.User != "" {
		if p.as, err = Credential(c.User); err != nil {
			return p, err
		}
	}
	return p, nil
}

// Credential returns the credential of a user; nil for the current user.
func Credential(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("user: %w", err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("user: %s: %w", name, err)
	}
	switch {
	case int(uid) == os.Geteuid():
		return nil, nil
	case os.Geteuid() != 0:
		return nil, fmt.Errorf("user: %s: only a coordinator that is root can run a program as another user", name)
	}
	var groups []uint32
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("user: %s: %w", name, err)
	}
	for _, id := range ids {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user: %s: group %s: %w", name, id, err)
		}
		groups = append(groups, uint32(n))
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), Groups: groups}, nil
}
