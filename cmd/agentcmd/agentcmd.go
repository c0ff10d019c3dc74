package agentcmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/agent"
	"github.com/leasehold/leasehold/agent/certificate"
	"github.com/leasehold/leasehold/agent/checks"
	"github.com/leasehold/leasehold/agent/files"
	"github.com/leasehold/leasehold/agent/host"
	"github.com/leasehold/leasehold/agent/notice"
	"github.com/leasehold/leasehold/agent/secrets"
	"github.com/leasehold/leasehold/agent/smbios"
	"github.com/leasehold/leasehold/agent/upgrade"
	"github.com/leasehold/leasehold/agent/workload"
	"github.com/leasehold/leasehold/cmd/supervised"
	"github.com/leasehold/leasehold/provider"
)

// Cmd holds the agent's flags.
type Cmd struct {
	Bootstrap    string   `help:"Bootstrap document of this machine, written by the provider; smbios: the one in a virtual machine's SMBIOS tables." env:"LEASEHOLD_BOOTSTRAP" placeholder:"FILE"`
	StateDir     string   `help:"Directory of the agent's state (default: the directory of the bootstrap document; /var/lib/leasehold if that is in no file)." env:"LEASEHOLD_STATE_DIR" placeholder:"DIR"`
	WorkDir      string   `help:"Working directory of the workload (default: the state directory)." env:"LEASEHOLD_WORK_DIR" placeholder:"DIR"`
	BootID       string   `name:"boot-id" help:"ID of the machine's present boot (default: the kernel's boot ID)." env:"LEASEHOLD_BOOT_ID" placeholder:"ID"`
	Source       string   `help:"Source address of the connections to coordinators, if this machine has several (default: chosen by the routing table)." env:"LEASEHOLD_SOURCE" placeholder:"IP"`
	Farewell     string   `help:"Goodbye that the agent sends when it is terminated: shutdown (the machine goes down) or restart (the agent will return, unless systemd shuts the machine down)." enum:"shutdown,restart" default:"shutdown" env:"LEASEHOLD_FAREWELL"`
	FilesRoot    []string `help:"Directory below which the agent may write files that the group has. May be repeated (default: files in the machine's own directory if it is one of the process provider, else /etc/leasehold-files; the default is created)." env:"LEASEHOLD_FILES_ROOT" placeholder:"DIR"`
	KeepWorkload bool     `help:"With --farewell=restart: leave the workload running for the next agent, unless the machine goes down." env:"LEASEHOLD_KEEP_WORKLOAD"`
	ReleaseKey   []string `help:"Public key of releases, or a file of them: the agent installs only versions that one of them has signed. May be repeated (default: the keys that this program was built with)." env:"LEASEHOLD_RELEASE_KEY" placeholder:"KEY|FILE"`
}

// Version is the program's version, as reports contain it. It has a type of its own so that a
// command line can bind it.
type Version string

// Run runs the agent until the context ends.
func (c *Cmd) Run(ctx context.Context, log *slog.Logger, version Version) error {
	if c.Bootstrap == "" {
		return fmt.Errorf("no bootstrap document: name it with --bootstrap or %s", provider.EnvBootstrap)
	}
	source, err := sourceOf(c.Source)
	if err != nil {
		return err
	}
	bootstrap, err := readBootstrap(c.Bootstrap)
	if err != nil {
		return err
	}
	stateDir, boot, err := c.openState()
	if err != nil {
		return err
	}
	if os.Getenv(upgrade.EnvTrial) == "" { // the agent that tries a version keeps its lock
		unlock, err := lockState(ctx, stateDir, log)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		defer unlock()
	}
	versions, err := c.programsOf(ctx, stateDir, version, log)
	if err != nil {
		return err
	}
	stopTimeout, err := time.ParseDuration(bootstrap.StopTimeout)
	if err != nil {
		return fmt.Errorf("read bootstrap document: stop_timeout: %w", err)
	}
	sampler, err := host.New(host.Config{Disk: stateDir}, host.Deps{Logger: log})
	if err != nil {
		return err
	}
	place := workload.Config{
		Run: bootstrap.Run, Vars: bootstrap.Vars, Facts: bootstrap.Facts,
		Dir: or(c.WorkDir, stateDir), StateDir: stateDir, Boot: boot,
		Instance: bootstrap.Instance, Group: bootstrap.Group, Shard: bootstrap.Shard,
		StopTimeout: stopTimeout, Secrets: secrets.New(),
	}
	papers, err := papersOf(bootstrap, stateDir, log)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Bootstrap, err)
	}
	tools, err := c.toolsFor(bootstrap, place, log, papers)
	if err != nil {
		return err
	}
	notices, evacuation, err := openNotices(stateDir, bootstrap.Instance, log)
	if err != nil {
		return err
	}
	farewell := c.farewell(log)
	a, err := agent.New(agent.Config{
		Bootstrap: bootstrap, BootID: boot, StateDir: stateDir, Version: string(version), Source: source,
		Farewell: farewell, KeepWorkload: c.KeepWorkload,
		GoesDown: func() bool { return c.goesDown(bootstrap.Instance) }, Acknowledged: versions.acknowledged(),
	}, agent.Deps{
		Certificate: papers, Logger: log, Host: sampler, Notices: notices, Evacuation: evacuation,
		Workload: tools.runner, Hook: tools.hook, Checks: tools.checks, Files: tools.files, Secrets: place.Secrets,
		Fence:   fence{place: place, deps: workload.Deps{Logger: log}, processes: c.BootID != ""},
		Upgrade: versions.manager(papers, dialer(source)), Dial: dialer(source),
		Crash: func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) },
	})
	if err != nil {
		return err
	}
	service := supervised.Open()
	err = runWatched(ctx, a, service)
	return versions.ended(ctx, err, service, func(ctx context.Context) error {
		if c.KeepWorkload && !c.goesDown(bootstrap.Instance) {
			return nil
		}
		return tools.runner.StopReleased(ctx)
	})
}

// workloadTools are the agent's parts that work with the workload.
type workloadTools struct {
	runner *workload.Runner
	hook   *workload.Hook
	checks *checks.Runner
	files  *files.Manager
}

// toolsFor makes the tools for the workload in a place.
func (c *Cmd) toolsFor(b provider.Bootstrap, place workload.Config, log *slog.Logger, clock papers) (
	t workloadTools, err error,
) {
	if t.files, err = c.files(b, place, log, clock, func() error { return t.runner.Reload() }); err != nil {
		return t, err
	}
	place.Waits = t.files.Missing
	if t.runner, err = workload.New(place, workload.Deps{Logger: log}); err != nil {
		return t, err
	}
	if t.hook, err = workload.NewHook(place, workload.Deps{Logger: log}); err != nil {
		return t, err
	}
	t.checks, err = checks.New(checks.Config{Place: place}, checks.Deps{Logger: log})
	return t, err
}

// farewell returns the agent's goodbye. With one that ends the workload, KeepWorkload, which the
// units of machines set, has no effect.
func (c *Cmd) farewell(log *slog.Logger) agent.Farewell {
	kind := agent.Farewell(or(c.Farewell, string(agent.FarewellShutdown)))
	if c.KeepWorkload && kind != agent.FarewellRestart {
		log.Info("the workload is not kept: that needs --farewell=restart", "farewell", kind)
		c.KeepWorkload = false
	}
	return kind
}

// goesDown reports whether the machine stops, or its document names another instance by now. The
// script that installs an agent replaces the document before it restarts the agent.
func (c *Cmd) goesDown(instance string) bool {
	b, err := readBootstrap(c.Bootstrap)
	return err == nil && b.Instance != instance || supervised.MachineStops()
}

// openState makes the state directory, and returns it with the boot that the machine is in.
func (c *Cmd) openState() (dir, boot string, err error) {
	if dir, err = stateDir(c.StateDir, c.Bootstrap); err != nil {
		return "", "", err
	}
	if err = os.MkdirAll(dir, 0o750); err != nil {
		return "", "", fmt.Errorf("create state directory: %w", err)
	}
	if boot = c.BootID; boot == "" {
		boot, err = kernelBoot()
	}
	return dir, boot, err
}

// openNotices returns the watchers for notices: the group's source, and the operator's file that
// asks to empty the machine.
func openNotices(stateDir, instance string, log *slog.Logger) (notices, evacuation *notice.Watcher, err error) {
	if notices, err = notice.New(notice.Config{}, notice.Deps{Logger: log}); err != nil {
		return nil, nil, err
	}
	if evacuation, err = notice.New(notice.Config{}, notice.Deps{Logger: log}); err != nil {
		return nil, nil, err
	}
	evacuation.Watch(notice.Spec{
		Source: notice.File, File: evacuationFile(stateDir), Kind: notice.Evacuating, Instance: instance,
	})
	return notices, evacuation, nil
}

// runWatched runs the agent, and notifies systemd that it is ready and that its loop turns.
func runWatched(ctx context.Context, a *agent.Agent, service supervised.Service) error {
	service.Ready()
	watching, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		service.Watch(watching, a.Working)
	}()
	err := a.Run(ctx)
	end()
	<-ended
	return err
}

// defaultFilesRoot is the default directory for files.
const defaultFilesRoot = "/etc/leasehold-files"

// files returns the manager of the group's files on this machine.
func (c *Cmd) files(b provider.Bootstrap, place workload.Config, log *slog.Logger, clock papers,
	reload func() error,
) (*files.Manager, error) {
	roots := slices.Clone(c.FilesRoot)
	if len(roots) == 0 {
		root := defaultFilesRoot
		if dir := b.Facts["dir"]; dir != "" {
			root = filepath.Join(dir, "files") // other machines are on the same host
		}
		if err := os.MkdirAll(root, 0o755); err != nil {
			log.Warn("directory for files was not created", "dir", root, "error", err)
		}
		roots = []string{root}
	}
	return files.New(files.Config{
		Roots: roots, StateDir: place.StateDir, Instance: b.Instance, Facts: b.Facts,
	}, files.Deps{
		Logger: log, Now: clock.Now, Reload: reload, Hide: place.Secrets.Hide, Hidden: func() { place.Secrets.Unread(false) },
		Command: func(ctx context.Context, run []string, vars map[string]string) error {
			return workload.Command(ctx, place, workload.Deps{Logger: log}, run, vars)
		},
	})
}

// papers are the machine's certificate and the coordinators' time.
type papers interface {
	agent.Certificate
	Now() time.Time
	// TLS returns how the machine reaches coordinators; nil if nothing authenticates them.
	TLS() *tls.Config
}

// papersOf returns this machine's certificate. Machines that a coordinator without certificates
// created have none either.
func papersOf(bootstrap provider.Bootstrap, stateDir string, log *slog.Logger) (papers, error) {
	if bootstrap.CA == "" {
		return certificate.Unsecured{}, nil
	}
	return certificate.Open(certificate.Config{Bootstrap: bootstrap, StateDir: stateDir}, certificate.Deps{Logger: log})
}

// sourceOf returns the source address of streams; none if not set. The machine may get the address
// after the agent starts, so its presence is not checked.
func sourceOf(flag string) (netip.Addr, error) {
	if flag == "" {
		return netip.Addr{}, nil
	}
	source, err := netip.ParseAddr(flag)
	if err != nil || source.IsUnspecified() || source.IsMulticast() {
		return source,
			fmt.Errorf("source: %q: --source and LEASEHOLD_SOURCE take an IP address of this machine, "+
				"without port or name, such as 192.0.2.7", flag)
	}
	return source, nil
}

// dialer returns a dialer with an address of this machine as its source.
func dialer(source netip.Addr) func(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	if source.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(source, 0))
	}
	return func(ctx context.Context, address string) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }
}

// fromSMBIOS is the value of --bootstrap that names the document in the SMBIOS tables.
const fromSMBIOS = "smbios"

// readBootstrap reads the document. The error says what to do if it does not exist.
func readBootstrap(path string) (provider.Bootstrap, error) {
	var data []byte
	var err error
	if path == fromSMBIOS {
		data, err = smbios.Document(smbios.Tables)
	} else {
		data, err = os.ReadFile(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return provider.Bootstrap{},
			fmt.Errorf("bootstrap document %s does not exist: the provider writes it when it creates the machine", path)
	case err != nil:
		return provider.Bootstrap{}, fmt.Errorf("bootstrap document cannot be read: %w", err)
	}
	b, err := provider.ReadBootstrap(data)
	if err != nil {
		return b, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// defaultState is the state directory if the document is not in a file.
const defaultState = "/var/lib/leasehold"

// stateDir returns the agent's state directory.
func stateDir(flag, bootstrap string) (string, error) {
	if flag == "" && bootstrap == fromSMBIOS {
		return defaultState, nil
	}
	dir, err := filepath.Abs(or(flag, filepath.Dir(bootstrap)))
	if err != nil {
		return "", fmt.Errorf("find state directory: %w", err)
	}
	return dir, nil
}

func kernelBoot() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("the kernel has no boot ID (%w): give one with --boot-id or %s", err, provider.EnvBootID)
	}
	return strings.TrimSpace(string(data)), nil
}

func or(value, otherwise string) string {
	if value != "" {
		return value
	}
	return otherwise
}
