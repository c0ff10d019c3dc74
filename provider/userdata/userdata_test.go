package userdata_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/suite"
	"github.com/leasehold/leasehold/provider/userdata"
)

const host = "coordinator.s1.leasehold"

// program stands for the agent: it writes down how it was called, and waits.
const program = "#!/bin/sh\necho \"$@\" >>/var/lib/leasehold/called\nexec sleep 1000\n"

func document() provider.Bootstrap {
	b := suite.Request("s1", "web-0-abc", "a", provider.Template{}).Bootstrap
	b.Run, b.Vars = []string{"sh", "-c", `echo "it's"; echo $HOME`}, map[string]string{"NASTY": "a'b\n$(reboot)`x`\\"}
	return b
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// authority is a certificate for the coordinators, which certifies itself.
func authority(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	is := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, is, is, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// serve serves one answer at the path of the agent, and counts how often.
func serve(t *testing.T, certificate tls.Certificate, answer string) (address string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/agent/linux-"+runtime.GOARCH || answer == "" {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, answer)
	}))
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), asked
}

// machine is this machine's file system with a layer of its own above it, and no processes but its
// own.
type machine struct {
	t   *testing.T
	dir string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Fatal("the script is tried in a file system of its own: run the tests as root on Linux, or leave this package out")
	}
	m := &machine{t, t.TempDir()}
	// The upper layer cannot lie in another overlay: it is in memory.
	if out, err := exec.Command("mount", "-t", "tmpfs", "none", m.dir).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", m.dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	for _, d := range []string{"upper", "work", "root"} {
		if err := os.Mkdir(filepath.Join(m.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// has gives the machine's image a file.
func (m *machine) has(path, text string) {
	m.t.Helper()
	path = filepath.Join(m.dir, "upper", path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

// run runs a script as the machine's root would, on what earlier runs left. All that it started
// ends with it, once check has succeeded in the machine.
func (m *machine) run(script, path, check string) (string, error) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, "upper", "user-data"), []byte(script), 0o600); err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "sh", "-ec", `
		mount -t overlay overlay -o lowerdir=/,upperdir="$0/upper",workdir="$0/work" "$0/root"
		mount -t proc proc "$0/root/proc"
		mount --bind /dev "$0/root/dev"
		chroot "$0/root" env -i PATH="$1" sh /user-data
		chroot "$0/root" env -i PATH="$1" timeout 60 sh -ec "until $2; do sleep 0.05; done"`, m.dir, path, check)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (m *machine) read(name string) string {
	text, err := os.ReadFile(filepath.Join(m.dir, "upper", name))
	if err != nil {
		m.t.Error(err)
	}
	return string(text)
}

const (
	paths = "/usr/sbin:/usr/bin:/sbin:/bin"
	ready = "[ -s /var/lib/leasehold/called ]"
)

// A plain machine gets the agent from the first coordinator that has the right one, however the
// others fail; what it is started with is the document as it was made. Run again, the script
// fetches nothing.
//
// proves PROV-7
func TestAPlainMachineFetchesItsAgent(t *testing.T) {
	certificate, ca := authority(t)
	stranger, _ := authority(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	foreign, foreignAsked := serve(t, stranger, program)
	wrong, wrongAsked := serve(t, certificate, program+"#")
	busy, _ := serve(t, certificate, "")
	right, asked := serve(t, certificate, program)
	b := document()
	b.CA = ca
	script, err := userdata.Script(b, provider.AgentSource{
		Addresses: []string{closed.Addr().String(), foreign, wrong, busy, right}, Host: host,
		SHA256: map[string]string{runtime.GOARCH: sum(program), "riscv64": sum("")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"curl": paths, "python": "/only"} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			if name == "python" {
				all(t, filepath.Join(m.dir, "upper", path), "curl")
			}
			before := asked.Load()
			if out, err := m.run(script, path, ready); err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			if m.read("usr/local/bin/leasehold-agent") != program || asked.Load() != before+1 {
				t.Errorf("another program was installed, or it was asked for %d times", asked.Load()-before)
			}
			if foreignAsked.Load() > 0 || wrongAsked.Load() == 0 {
				t.Errorf("asked a stranger %d times, and one with another program %d times", foreignAsked.Load(), wrongAsked.Load())
			}
			if got, err := provider.ReadBootstrap([]byte(m.read("etc/leasehold/bootstrap.json"))); err != nil ||
				got.Vars["NASTY"] != b.Vars["NASTY"] || got.Run[2] != b.Run[2] {
				t.Errorf("the document is %+v, %v", got, err)
			}
			for file, mode := range map[string]os.FileMode{
				"etc/leasehold/bootstrap.json": 0o600, "etc/leasehold": 0o700, "usr/local/bin/leasehold-agent": 0o755,
			} {
				if info, err := os.Stat(filepath.Join(m.dir, "upper", file)); err != nil || info.Mode().Perm() != mode {
					t.Errorf("%s: %v, %v", file, info, err)
				}
			}
			if got := m.read("var/lib/leasehold/called"); got != "--bootstrap /etc/leasehold/bootstrap.json --state-dir "+
				"/var/lib/leasehold\n" {
				t.Errorf("called with %q", got)
			}
			if out, err := m.run(script, path, `[ "$(wc -l </var/lib/leasehold/called)" = 2 ]`); err != nil ||
				asked.Load() != before+1 {
				t.Errorf("again: %v, asked for %d times:\n%s", err, asked.Load()-before, out)
			}
		})
	}
}

// An image's own agent is used as it is. Without one, and where coordinators offer none, the script
// says what to do.
//
// proves PROV-7
func TestAnImageWithItsAgent(t *testing.T) {
	for _, source := range []provider.AgentSource{
		{}, {Addresses: []string{"127.0.0.1:1"}, Host: host, SHA256: map[string]string{runtime.GOARCH: sum(program)}},
	} {
		script, err := userdata.Script(document(), source)
		if err != nil {
			t.Fatal(err)
		}
		m := newMachine(t)
		m.has("usr/bin/leasehold-agent", program)
		if out, err := m.run(script, paths, ready); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		if _, err := os.Stat(filepath.Join(m.dir, "upper/usr/local/bin/leasehold-agent")); err == nil {
			t.Error("another agent was installed beside the image's")
		}
	}
	script, err := userdata.Script(document(), provider.AgentSource{})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := newMachine(t).run(script, paths, "true"); err == nil ||
		!strings.Contains(out, "start them with --downloads") {
		t.Errorf("no agent anywhere: %v:\n%s", err, out)
	}
}

// Settings that no coordinator may give come from a file of the image: which signatures the agent
// trusts, say.
//
// proves PROV-7
func TestAnImageWithSettingsOfItsAgent(t *testing.T) {
	script, err := userdata.Script(document(), provider.AgentSource{})
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t)
	m.has("usr/bin/leasehold-agent", strings.Replace(program, `"$@"`, `"$LEASEHOLD_RELEASE_KEY"`, 1))
	m.has("etc/leasehold/agent.env", "# whose releases\nLEASEHOLD_RELEASE_KEY=ours+f5a44223+AT22/Cem\n")
	if out, err := m.run(script, paths, ready); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if got := m.read("var/lib/leasehold/called"); got != "ours+f5a44223+AT22/Cem\n" {
		t.Errorf("the agent's key is %q", got)
	}
	if !strings.Contains(script, "\nEnvironmentFile=-$config/agent.env\n") {
		t.Error("with systemd, the agent gets no settings")
	}
}

// The workload goes on while its agent restarts, in the unit and without systemd, unless the image
// has other settings.
//
// proves DET-8, DAY-4
func TestAgentKeepsItsWorkload(t *testing.T) {
	script, err := userdata.Script(document(), provider.AgentSource{})
	if err != nil {
		t.Fatal(err)
	}
	_, unit, _ := strings.Cut(script, "<<UNIT\n")
	unit, _, _ = strings.Cut(unit, "\nUNIT\n")
	keeps, settings := -1, -1
	lines := strings.Split(unit, "\n")
	for i, line := range lines {
		switch line {
		case "Environment=LEASEHOLD_FAREWELL=restart LEASEHOLD_KEEP_WORKLOAD=true":
			keeps = i
		case "EnvironmentFile=-$config/agent.env":
			settings = i
		}
	}
	if keeps < 0 || settings < 0 {
		t.Errorf("the unit ends the workload with the agent, or has no settings:\n%s", unit)
	}
	for _, line := range []string{"KillMode=process", "OOMPolicy=continue", "TimeoutStopSec=12min", "Restart=always"} {
		if !slices.Contains(lines, line) {
			t.Errorf("the unit lacks %s:\n%s", line, unit)
		}
	}
	for name, c := range map[string]struct{ env, want string }{
		"by default":          {"", "restart true\n"},
		"as the image has it": {"LEASEHOLD_FAREWELL=shutdown\nLEASEHOLD_KEEP_WORKLOAD=false\n", "shutdown false\n"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.has("usr/bin/leasehold-agent",
				strings.Replace(program, `"$@"`, `"$LEASEHOLD_FAREWELL $LEASEHOLD_KEEP_WORKLOAD"`, 1))
			m.has("etc/leasehold/agent.env", c.env)
			if out, err := m.run(script, paths, ready); err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			if got := m.read("var/lib/leasehold/called"); got != c.want {
				t.Errorf("the agent has settings %q, want %q", got, c.want)
			}
		})
	}
}

// all has a directory hold all programs of this machine but some.
func all(t *testing.T, dir string, but ...string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, from := range strings.Split(paths, ":") {
		programs, err := os.ReadDir(from)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range programs {
			if strings.Join(but, " ") != p.Name() {
				_ = os.Symlink(filepath.Join(from, p.Name()), filepath.Join(dir, p.Name())) // it may be in two of them
			}
		}
	}
}
