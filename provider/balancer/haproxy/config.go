package haproxy

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider/balancer"
)

// Config says which HAProxy processes there are, and which backend the members join.
type Config struct {
	// Name is the balancer's.
	Name string `json:"-"`
	// Sockets are the runtime sockets, one of each process: unix:/PATH or HOST:PORT.
	Sockets []string `json:"sockets"`
	Backend string   `json:"backend"`
	// Server are the options of servers that are added. Default: check.
	Server string `json:"server,omitempty"`
	// Slots is the prefix of a server-template. With it members are slots; no servers are added.
	Slots string `json:"slots,omitempty"`
	// Timeout is how long a process may take to answer a command. Default 3s.
	Timeout string `json:"timeout,omitempty"`
}

const (
	defaultServer  = "check"
	defaultTimeout = 3 * time.Second
	// commandsOfACall is how many commands the longest call may wait for.
	commandsOfACall = 6
)

var (
	backendForm = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)
	slotsForm   = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,64}$`)
	optionForm  = regexp.MustCompile(`^[A-Za-z0-9_./:,=+@-]{1,256}$`)
)

// New checks the configuration. It sends no command.
func New(c Config) (*Balancer, error) {
	b, err := c.open()
	if err != nil {
		return nil, fmt.Errorf("haproxy balancer: %w", err)
	}
	return b, nil
}

func (c Config) open() (*Balancer, error) {
	b := &Balancer{name: c.Name, backend: c.Backend, slots: c.Slots, timeout: defaultTimeout}
	switch {
	case !balancer.IsName(c.Name):
		return nil, fmt.Errorf("name: %q: must be at most 40 of a-z, 0-9 and -, beginning with a letter", c.Name)
	case len(c.Sockets) == 0:
		return nil, errors.New("sockets: is missing: name each process's runtime socket, " +
			"such as unix:/run/haproxy/admin.sock")
	case !backendForm.MatchString(c.Backend):
		return nil, fmt.Errorf("backend: %q: must be a backend's name", c.Backend)
	case c.Slots != "" && !slotsForm.MatchString(c.Slots):
		return nil, fmt.Errorf("slots: %q: must be the prefix of a server-template", c.Slots)
	case c.Slots != "" && c.Server != "":
		return nil, errors.New("server: the options of slots stand in HAProxy's configuration: leave it out")
	}
	if c.Timeout != "" {
		var err error
		if b.timeout, err = time.ParseDuration(c.Timeout); err != nil || b.timeout < 100*time.Millisecond ||
			b.timeout > time.Minute {
			return nil, fmt.Errorf("timeout: %q: must be a duration from 100ms to 1m", c.Timeout)
		}
	}
	if c.Server == "" {
		c.Server = defaultServer
	}
	if err := b.readOptions(strings.Fields(c.Server)); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	for i, s := range c.Sockets {
		t, err := readSocket(s)
		if err != nil {
			return nil, fmt.Errorf("sockets: %q: %w", s, err)
		}
		if slices.Contains(c.Sockets[:i], s) {
			return nil, fmt.Errorf("sockets: %q: is named twice", s)
		}
		t.timeout = b.timeout
		b.targets = append(b.targets, t)
	}
	return b, nil
}

// readOptions reads the options of servers that are added.
func (b *Balancer) readOptions(words []string) error {
	for i, w := range words {
		switch {
		case !optionForm.MatchString(w):
			return fmt.Errorf("%q: must be words of HAProxy's server line", w)
		case w == "weight":
			return errors.New("weight: is the group's: set it there")
		case w == "check":
			b.checks = true
		case w == "fall" && i+1 < len(words):
			if n, err := strconv.Atoi(words[i+1]); err != nil || n < 2 {
				return errors.New("fall: must be at least 2: else a server that was never checked looks like one that is up")
			}
		}
	}
	b.options = strings.Join(words, " ")
	return nil
}

func readSocket(s string) (*target, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		if !strings.HasPrefix(path, "/") || len(path) > 107 {
			return nil, errors.New("must be unix:/PATH, with at most 107 bytes of path")
		}
		return &target{name: s, network: "unix", address: path, changing: make(chan struct{}, 1)}, nil
	}
	host, port, err := net.SplitHostPort(s)
	if n, bad := strconv.Atoi(port); err != nil || host == "" || bad != nil || n < 1 || n > 65535 {
		return nil, errors.New("must be unix:/PATH or HOST:PORT")
	}
	return &target{name: s, network: "tcp", address: s, changing: make(chan struct{}, 1)}, nil
}
