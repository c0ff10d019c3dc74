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

// Config is what an operator sets, whatever the program is for. It stands in the replica's own
// configuration: no group can name
// a program (SEC-7).
type Config struct {
	// Command is the program and its arguments.
	Command []string `json:"command"`
	// User is the one that the program runs as. It must be named where the coordinator is root.
	User string `json:"user"`
	// Config is passed to the program with every call.
	Config map[string]any `json:"config"`
	// Secrets are secrets of the shard that the program gets with every call: its name for each, and
	// the shard's.
	Secrets map[string]string `json:"secrets"`
	// Env is the program's whole environment, beside PATH.
	Env map[string]string `json:"env"`
	// Concurrency is how many calls run at once, beside one List; default 8.
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
	as   *syscall.Credential // nil: as the coordinator
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
		return p, errors.New("user: is missing: the coordinator is root, so name the user that the program runs as (root too must be named)")
	}
	if c.User != "" {
		if p.as, err = Credential(c.User); err != nil {
			return p, err
		}
	}
	return p, nil
}

// Credential returns what it takes to run as a user; nil for the one we are.
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
