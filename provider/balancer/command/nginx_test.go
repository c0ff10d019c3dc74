package command_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/balancer/balancertest"
	"github.com/leasehold/leasehold/provider/balancer/command"
	"github.com/leasehold/leasehold/provider/balancer/suite"
	"github.com/leasehold/leasehold/provider/program"
	"github.com/leasehold/leasehold/tests/harness"
	"github.com/leasehold/leasehold/tests/ports"
)

var addresses = ports.Between(2000, 3000)

// nginx is a real nginx, in a directory of its own.
type nginx struct {
	t       *testing.T
	program string
	dir     string
	front   string
	master  *harness.Process
}

func startNginx(t *testing.T) *nginx {
	t.Helper()
	program, err := osexec.LookPath("nginx")
	if err != nil {
		if program, err = osexec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Fatal("nginx is missing: scripts/test-needs.sh installs what the tests need")
		}
	}
	n := &nginx{t: t, program: program, dir: t.TempDir(), front: addresses.FreeAddress(t)}
	// Workers run as the test's user: other users may not enter the directory.
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n"
	}
	text := user + `worker_processes 1;
daemon off;
pid ` + n.path("pid") + `;
error_log ` + n.path("error.log") + ` notice;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path ` + n.path("body") + `;
  proxy_temp_path ` + n.path("proxy") + `;
  fastcgi_temp_path ` + n.path("fastcgi") + `;
  uwsgi_temp_path ` + n.path("uwsgi") + `;
  scgi_temp_path ` + n.path("scgi") + `;
  include ` + n.path("leasehold-*.conf") + `;
  server {
    listen ` + n.front + `;
    location / { proxy_pass http://web; }
  }
}
`
	n.write("nginx.conf", text)
	n.write("leasehold-web.conf", "upstream web {\n    server 127.0.0.1:9 down; # no traffic: "+
		"keeps the upstream valid\n}\n")
	n.run()
	t.Cleanup(n.stop)
	return n
}

func (n *nginx) path(name string) string { return filepath.Join(n.dir, name) }

func (n *nginx) write(name, text string) {
	n.t.Helper()
	if err := os.WriteFile(n.path(name), []byte(text), 0o644); err != nil {
		n.t.Fatal(err)
	}
}

func (n *nginx) read(name string) string {
	text, err := os.ReadFile(n.path(name))
	if err != nil {
		n.t.Fatal(err)
	}
	return string(text)
}

// arguments returns the arguments for running nginx and for sending it commands.
func (n *nginx) arguments(more ...string) []string {
	return append([]string{"-p", n.dir, "-c", n.path("nginx.conf"), "-e", n.path("error.log")}, more...)
}

func (n *nginx) run() {
	n.t.Helper()
	said := &harness.Output{}
	cmd := osexec.CommandContext(context.Background(), n.program, n.arguments()...)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if n.master, err = harness.Start("nginx", cmd, nil); err != nil {
		n.t.Fatal(err)
	}
	harness.Await(n.t, "nginx takes connections", 30*time.Second, 10*time.Millisecond, func() bool {
		if n.master.HasEnded() {
			n.t.Fatalf("nginx ended: %s", said)
		}
		c, err := new(net.Dialer).DialContext(context.WithoutCancel(n.t.Context()), "tcp", n.front)
		if err == nil {
			c.Close()
		}
		return err == nil
	}, said.String)
}

func (n *nginx) stop() { n.master.KillGroup() }

// config makes this nginx a balancer.
func (n *nginx) config() program.Config {
	c := program.Config{
		Command: []string{"../../../docs/balancers/examples/nginx.py"},
		Config: map[string]any{
			"upstream": "web", "file": n.path("leasehold-web.conf"), "pid": n.path("pid"),
			"nginx": append([]string{n.program}, n.arguments()...),
		},
	}
	if os.Geteuid() == 0 {
		c.User = "root"
	}
	return c
}

// The documented example keeps every promise that it claims, with a real nginx.
//
// proves LB-1, LB-3, PROV-2
func TestTheExampleForNginxKeepsTheContract(t *testing.T) {
	t.Parallel()
	n := startNginx(t)
	hand := func(address string, port int) string {
		return fmt.Sprintf("    server %s:%d backup; # by hand\n", address, port)
	}
	balancertest.Run(t, suite.Harness{
		Open:  func() (balancer.Balancer, error) { return command.New(t.Context(), "web", n.config()) },
		Front: n.front,
		Poll:  50 * time.Millisecond,
		Forget: func() error {
			n.stop()
			n.write("leasehold-web.conf", "upstream web {\n    server 127.0.0.1:9 down; # no traffic: "+
				"keeps the upstream valid\n}\n")
			n.run()
			return nil
		},
		Foreign: func(address string, port int) error {
			n.write("leasehold-web.conf", strings.Replace(n.read("leasehold-web.conf"), "}\n", hand(address, port)+"}\n", 1))
			return nil
		},
		ForeignStands: func(address string, port int) (bool, error) {
			before := n.read("leasehold-web.conf")
			n.write("leasehold-web.conf", strings.Replace(before, hand(address, port), "", 1))
			return strings.Contains(before, hand(address, port)), nil
		},
		Break: map[suite.Way]func() func(){
			suite.IsDown: func() func() { n.stop(); return n.run },
		},
	}, "HealthIsProved", "WhenItHangs", "WhenItTalksNonsense", "WhenItAnswersAPart", "WhenItRefuses")
}

// A change that nginx refuses does not stay in its file, and a file that nginx has not loaded
// confirms no instance.
//
// proves LB-2
func TestNginxHasLoadedWhatIsListed(t *testing.T) {
	t.Parallel()
	n := startNginx(t)
	b, err := command.New(t.Context(), "web", n.config())
	if err != nil {
		t.Fatal(err)
	}
	m := balancer.Member{Instance: "web-1", Address: "127.0.0.1", Port: 80}
	if err := b.Add(t.Context(), "sh1", m); err != nil {
		t.Fatal(err)
	}
	membership := func() balancer.Membership {
		l, err := b.List(t.Context(), "sh1", nil)
		if err != nil {
			t.Fatal(err)
		}
		return l.Of(m)
	}
	if s := membership(); !s.Confirmed() {
		t.Errorf("%+v", s)
	}
	// As if the program had been killed between the file and the reload.
	good := n.read("leasehold-web.conf")
	n.write("leasehold-web.conf", strings.Replace(good, "}\n", "    # another\n}\n", 1))
	if s := membership(); s.Confirmed() || s.Disabled != 1 {
		t.Errorf("a file that was not loaded: %+v", s)
	}
	if err := b.Add(t.Context(), "sh1", m); err != nil {
		t.Fatal(err)
	}
	if s := membership(); !s.Confirmed() {
		t.Errorf("after the next Add: %+v", s)
	}
	// Something else in nginx's configuration is wrong.
	n.write("leasehold-broken.conf", "nonsense;\n")
	before := n.read("leasehold-web.conf")
	err = b.Add(t.Context(), "sh1", balancer.Member{Instance: "web-2", Address: "127.0.0.1", Port: 81})
	if err == nil || !strings.Contains(err.Error(), "nginx refuses its configuration") {
		t.Errorf("Add with a configuration that is wrong: %v", err)
	}
	if after := n.read("leasehold-web.conf"); after != before {
		t.Errorf("it is left in the file:\n%s", after)
	}
	answer, err := http.Get("http://" + n.front) //nolint:noctx // it is there
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
}
