package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/durable"
)

const (
	callTimeout = 40 * time.Second
	// orderlyEnd bounds how long Restart waits for an agent to end in order: half a call.
	orderlyEnd = 20 * time.Second
	// startGrace is how long a start without a recorded process is taken to be under way. After
	// that List looks for the process by itself.
	startGrace = 10 * time.Second

	defaultPortFrom = 20000
	defaultPortTo   = 29999
)

// Config says where machines live and what they run.
type Config struct {
	Dir          string       // holds everything; made with mode 0700 if it is missing
	AgentCommand []string     // the agent and its arguments
	Zones        []string     // names only, this host is one place; default "local"
	PortFrom     int          // the first port given to machines; default 20000
	PortTo       int          // the last one; default 29999
	Logger       *slog.Logger // default: discard
}

// Provider makes machines that are processes on this host. Several, in this process or in others,
// may use one directory at once.
type Provider struct {
	dir      string
	command  []string
	site     string // of the directory: see siteOf
	zones    []string
	portFrom int
	portTo   int
	log      *slog.Logger
	env      []string // what agents inherit
	hostBoot string   // the kernel's boot ID: pids and start times mean nothing under another one

	mu     sync.Mutex
	ports  map[string]int // by instance: a machine's port never changes
	pruned time.Time      // when tombstones were last cleared away
}

var _ provider.Provider = (*Provider)(nil)

// New checks the configuration and makes the directory. It starts nothing.
func New(c Config) (*Provider, error) {
	if c.Dir == "" {
		return nil, errors.New("process provider: the directory for machines is not set")
	}
	if len(c.AgentCommand) == 0 || c.AgentCommand[0] == "" {
		return nil, errors.New("process provider: the agent's command is not set")
	}
	if c.PortFrom == 0 && c.PortTo == 0 {
		c.PortFrom, c.PortTo = defaultPortFrom, defaultPortTo
	}
	if c.PortFrom < 1 || c.PortTo > 65535 || c.PortFrom > c.PortTo {
		return nil, fmt.Errorf("process provider: ports %d to %d: must be a range within 1 to 65535", c.PortFrom,
			c.PortTo)
	}
	if len(c.Zones) == 0 {
		c.Zones = []string{"local"}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	agent, err := exec.LookPath(c.AgentCommand[0])
	if err == nil {
		agent, err = filepath.Abs(agent)
	}
	if err != nil {
		return nil, fmt.Errorf("process provider: find the agent: %w: build or install it, or give its full path", err)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("process provider: directory %s: %w", c.Dir, err)
	}
	boot, err := hostBootID()
	if err != nil {
		return nil, fmt.Errorf("process provider: read the kernel's boot ID: %w: it needs Linux with /proc mounted",
			err)
	}
	for _, d := range []string{
		dir, filepath.Join(dir, locksDir), filepath.Join(dir, newDir),
		filepath.Join(dir, trashDir), filepath.Join(dir, deletedDir),
	} {
		if err := durable.MakeDir(d); err != nil {
			return nil, dirError(dir, err)
		}
	}
	probe, err := os.CreateTemp(filepath.Join(dir, newDir), ".probe-*")
	if err != nil {
		return nil, dirError(dir, err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, dirError(dir, err)
	}
	site, err := siteOf(dir)
	if err != nil {
		return nil, dirError(dir, err)
	}
	return &Provider{
		dir:      dir,
		site:     site,
		command:  append([]string{agent}, c.AgentCommand[1:]...),
		zones:    slices.Clone(c.Zones),
		portFrom: c.PortFrom,
		portTo:   c.PortTo,
		log:      c.Logger,
		env:      inherited(),
		hostBoot: boot,
		ports:    map[string]int{},
	}, nil
}

func dirError(dir string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("process provider: make directory for machines: %w: choose a directory that user %d may write to, "+
			"or change the owner of %s",
			err, os.Getuid(), dir)
	}
	return fmt.Errorf("process provider: make directory for machines: %w", err)
}

// inherited is all that agents get of our own environment: no credentials and no settings leak into
// machines.
func inherited() []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	if v := os.Getenv("PATH"); v != "" {
		env[0] = "PATH=" + v
	}
	if v := os.Getenv("HOME"); v != "" {
		env = append(env, "HOME="+v)
	}
	return env
}

// Capabilities declares that List is always up to date, since the directory is the truth.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{
		Zones: slices.Clone(p.zones), Consistency: 0, CallTimeout: callTimeout, Boots: true, Crashes: true,
		Remembers: true, Site: p.site,
	}
}

// Validate refuses what would otherwise be ignored in silence: a process has no instance type, and
// there are no settings.
func (p *Provider) Validate(t provider.Template) error {
	var errs []error
	if len(t.InstanceTypes) > 0 {
		errs = append(errs, fmt.Errorf("%w: instance_type %q: a process on this host has no type: remove it",
			provider.ErrInvalid, t.InstanceTypes[0]))
	}
	for _, z := range t.Zones {
		if !slices.Contains(p.zones, z) {
			errs = append(errs, p.zoneError(z))
		}
	}
	names := make([]string, 0, len(t.Settings))
	for name := range t.Settings {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		errs = append(errs, fmt.Errorf("%w: setting %q: the process provider has no settings: remove it",
			provider.ErrInvalid, name))
	}
	return errors.Join(errs...)
}

func (p *Provider) zoneError(z string) error {
	return fmt.Errorf("%w: zone %q: the process provider has %s", provider.ErrInvalid, z, strings.Join(p.zones, ", "))
}

// LogPath is the file with what the machine's agent wrote. It need not exist.
func (p *Provider) LogPath(instance string) string {
	return filepath.Join(p.dir, filepath.Base(instance), logFile)
}

// checkNames refuses names that are no plain file names: they become paths.
func checkNames(shard, instance string) error {
	if err := checkName("shard", shard); err != nil {
		return err
	}
	return checkName("instance", instance)
}

func checkName(what, name string) error {
	ok := name != "" && len(name) <= 120 && name[0] != '.' && name[0] != '-'
	for _, r := range name {
		ok = ok && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' ||
			r == '-')
	}
	if !ok {
		return fmt.Errorf("%w: %s %q: must be 1 to 120 of letters, digits, '.', '_' and '-', beginning with a letter, "+
			"a digit or '_'", provider.ErrInvalid, what, name)
	}
	return nil
}

// locked runs f while no other call for the instance, in any process, is under way.
func (p *Provider) locked(ctx context.Context, instance string, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	unlock, err := acquire(ctx, filepath.Join(p.dir, locksDir, instance))
	if err != nil {
		return err
	}
	defer unlock()
	return f()
}
