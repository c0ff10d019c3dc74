package haproxytest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/tests/harness"
	"github.com/leasehold/leasehold/tests/ports"
)

var addresses = ports.Between(3000, 5000)

// patience is how long HAProxy may take to start, to reload its configuration and to end.
const patience = 30 * time.Second

// Process is a HAProxy: a master, and a worker that is exchanged when it reloads.
type Process struct {
	Dir    string
	Socket string // path of the runtime socket
	User   string // path of one without rights
	TCP    string // HOST:PORT of the runtime socket
	Front  string // HOST:PORT at which it takes connections, for the backend web
	Mode   string // http or tcp, from the next Configure on

	t       testing.TB
	program string
	slots   int
	master  *harness.Process
	said    *harness.Output
}

// Start runs a HAProxy with the backend web. With slots it has a server-template slot1, slot2 … and
// without it servers are added. It ends with the test.
func Start(t testing.TB, slots int) *Process {
	t.Helper()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/haproxy"); err != nil {
			t.Fatal("haproxy is missing: scripts/test-needs.sh installs what the tests need")
		}
	}
	dir, err := os.MkdirTemp("", "lh-ha-") //nolint:usetesting // a unix socket needs a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &Process{
		Dir: dir, Socket: filepath.Join(dir, "admin"), User: filepath.Join(dir, "user"), TCP: addresses.FreeAddress(t),
		Front: addresses.FreeAddress(t), Mode: "http", t: t, program: program, slots: slots,
	}
	p.Configure("")
	p.Run()
	t.Cleanup(p.Stop)
	return p
}

// Configure writes the configuration; servers are further lines of the backend.
func (p *Process) Configure(servers string) {
	p.t.Helper()
	text := `global
  stats socket ` + p.Socket + ` mode 600 level admin
  stats socket ` + p.User + ` mode 600 level user
  stats socket ipv4@` + p.TCP + ` level admin
  server-state-file ` + filepath.Join(p.Dir, "state") + `
  hard-stop-after 10s
defaults
  mode ` + p.Mode + `
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  load-server-state-from-file global
frontend front
  bind ` + p.Front + `
  default_backend web
backend web
  balance roundrobin
  option httpchk GET /
` + servers + "\n"
	if p.slots > 0 {
		text += fmt.Sprintf("  server-template slot 1-%d slots.invalid:80 init-addr last,127.0.0.1 check inter 2s "+
			"fastinter 50ms downinter 50ms rise 2 fall 3 disabled\n", p.slots)
	}
	if err := os.WriteFile(filepath.Join(p.Dir, "haproxy.cfg"), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// Run starts it, and returns when its socket answers.
func (p *Process) Run() {
	p.t.Helper()
	p.said = &harness.Output{}
	cmd := exec.CommandContext(context.Background(), p.program, "-W", "-S", p.masterSocket(), "-f",
		filepath.Join(p.Dir, "haproxy.cfg"))
	cmd.Stdout, cmd.Stderr = p.said, p.said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if p.master, err = harness.Start("haproxy", cmd, nil); err != nil {
		p.t.Fatal(err)
	}
	p.await("")
}

// Stop ends it at once, workers included. It may be run again.
func (p *Process) Stop() { p.master.KillGroup() }

// Save writes the state of the servers to where HAProxy reads it when it starts.
func (p *Process) Save() {
	p.t.Helper()
	state, err := p.Ask("show servers state")
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.Dir, "state"), []byte(state), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// Reload has it reload its configuration, and returns when the new worker answers.
func (p *Process) Reload() {
	p.t.Helper()
	before := p.pid()
	// By its socket: a signal that comes while the master is still starting is lost.
	p.until("its master answers", func() bool { _, err := p.ask(p.masterSocket(), "reload"); return err == nil })
	p.await(before)
}

// pid returns the worker's.
func (p *Process) pid() string {
	info, _ := p.Ask("show info")
	_, rest, _ := strings.Cut(info, "\nPid: ")
	pid, _, _ := strings.Cut(rest, "\n")
	return pid
}

// await waits until a worker answers that is not the one before.
func (p *Process) await(before string) {
	p.t.Helper()
	p.until("a worker answers", func() bool { pid := p.pid(); return pid != "" && pid != before })
}

func (p *Process) until(what string, so func() bool) {
	p.t.Helper()
	harness.Await(p.t, what, patience, 10*time.Millisecond, func() bool {
		if p.master.HasEnded() {
			p.t.Fatalf("HAProxy ended: %s", p.said)
		}
		return so()
	}, p.said.String)
}

func (p *Process) masterSocket() string { return filepath.Join(p.Dir, "master") }

// Ask sends one command to the runtime socket.
func (p *Process) Ask(command string) (string, error) { return p.ask(p.Socket, command) }

func (p *Process) ask(socket, command string) (string, error) {
	conn, err := new(net.Dialer).DialContext(context.WithoutCancel(p.t.Context()), "unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, command+"\n"); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	return string(text), err
}
