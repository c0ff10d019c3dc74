//go:build nightly

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// packagesTimeout is for one build: it compiles all programs for each architecture, on an empty
// cache beside other tests.
const packagesTimeout = 20 * time.Minute

// buildPackages builds a release's packages into a directory.
func buildPackages(t *testing.T, version, architectures string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), version)
	ctx, cancel := context.WithTimeout(t.Context(), packagesTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "../../scripts/packages.sh", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its compilers end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Env = append(os.Environ(), "VERSION="+version, "ARCHITECTURES="+architectures)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the packages: %v: %s", err, out)
	}
	return dir
}

// Two builds give the same bytes. What is for arm64 holds programs for arm64, and the image is what
// its hashes say.
//
// proves DAY-4
func TestPackagesAreReproducible(t *testing.T) {
	one, other := buildPackages(t, "v0.9.0", "amd64 arm64"), buildPackages(t, "v0.9.0", "amd64 arm64")
	sums := func(dir string) string {
		text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if a, b := sums(one), sums(other); a != b {
		t.Errorf("two builds differ:\n%s\n%s", a, b)
	}
	for _, want := range []string{
		"leasehold_0.9.0_amd64.deb", "leasehold_0.9.0_arm64.deb", "leasehold-agent_0.9.0_arm64.deb",
		"leasehold-0.9.0-1.x86_64.rpm", "leasehold-0.9.0-1.aarch64.rpm", "leasehold-v0.9.0-linux-arm64.tar.gz",
		"leasehold-v0.9.0-linux-arm64.cdx.json",
		"leasehold-v0.9.0-oci.tar",
	} {
		if !strings.Contains(sums(one), " "+want+"\n") {
			t.Errorf("no %s among\n%s", want, sums(one))
		}
	}
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		for _, name := range []string{"leasehold", "leasehold-agent"} {
			files, err := exec.Command("dpkg-deb", "--fsys-tarfile", filepath.Join(one, name+"_0.9.0_"+arch+".deb")).Output()
			if err != nil {
				t.Fatal(err)
			}
			if got := machineOf(t, unpack(t, files)["./usr/bin/"+name]); got != machine {
				t.Errorf("%s for %s is a program for %s", name, arch, got)
			}
		}
	}
	checkImage(t, filepath.Join(one, "leasehold-v0.9.0-oci.tar"))
}

// machineOf is what a program runs on.
func machineOf(t *testing.T, program []byte) elf.Machine {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	return f.Machine
}

// unpack returns the files of a tar.
func unpack(t *testing.T, text []byte) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err == nil {
			all[h.Name], err = io.ReadAll(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func gunzip(t *testing.T, text []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err == nil {
		text, err = io.ReadAll(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// checkImage follows an image layout from its index to the programs.
func checkImage(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	layout := unpack(t, text)
	type descriptor struct {
		MediaType, Digest string
		Size              int
		Platform          struct{ Architecture, OS string }
	}
	type document struct {
		Manifests, Layers []descriptor
		Config            descriptor
		Architecture      string
		Rootfs            struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	blob := func(d descriptor) []byte {
		name, _ := strings.CutPrefix(d.Digest, "sha256:")
		content := layout["./blobs/sha256/"+name]
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != name || len(content) != d.Size {
			t.Fatalf("%s has %d bytes with hash %x: %+v", name, len(content), sum, d)
		}
		return content
	}
	read := func(text []byte) (d document) {
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return d
	}
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	all := read(blob(read(layout["./index.json"]).Manifests[0])).Manifests
	if len(all) != len(machines) {
		t.Errorf("%d architectures", len(all))
	}
	for _, m := range all {
		manifest := read(blob(m))
		config := read(blob(manifest.Config))
		layer := gunzip(t, blob(manifest.Layers[0]))
		if sum := sha256.Sum256(layer); config.Rootfs.DiffIDs[0] != "sha256:"+hex.EncodeToString(sum[:]) {
			t.Errorf("%s: the layer's hash is not %s", m.Platform.Architecture, config.Rootfs.DiffIDs[0])
		}
		arch := config.Architecture
		got := machineOf(t, unpack(t, layer)["./usr/bin/leasehold"])
		if arch != m.Platform.Architecture || got != machines[arch] {
			t.Errorf("image for %s: config %s, program %s", m.Platform.Architecture, arch, got)
		}
	}
}

// debian is a container with a whole Debian, whose first process is systemd.
type debian struct {
	*world
	name string
	lxc  []string
}

func newDebian(t *testing.T) *debian {
	t.Helper()
	l := useLXD(t)
	importDebian(t, l)
	d := &debian{
		world: newWorld(t, "machines"), name: "box",
		lxc: []string{"LXD_DIR=" + l.Dir, "LXD_CONF=" + t.TempDir()},
	}
	d.boot()
	return d
}

// boot makes the container and starts it, with a network card if it has a bridge.
func (d *debian) boot(bridge ...string) {
	d.t.Helper()
	d.client("init", "debian", d.name, "-s", "default")
	for _, b := range bridge {
		d.client("config", "device", "add", d.name, "eth0", "nic", "nictype=bridged", "parent="+b, "name=eth0")
	}
	d.client("start", d.name)
	d.await("systemd to run", func() bool {
		out, _ := d.try("systemctl is-system-running")
		return out != "" && !strings.Contains(out, "bus") && !strings.Contains(out, "offline")
	})
	d.t.Cleanup(func() {
		if d.t.Failed() {
			d.tell()
		}
	})
}

// tell logs what the programs of the packages say: the container is gone when the test has ended.
func (d *debian) tell() {
	for _, command := range []string{
		"leasehold status", "leasehold group list", "leasehold instance list", "leasehold events",
		"journalctl -n 60 --no-pager -u leasehold-server -u leasehold-agent",
	} {
		if out, err := d.try(command); err == nil && out != "" {
			d.t.Logf("%s# %s\n%s", d.name, command, out)
		}
	}
}

// push copies a file to a path in the container, which is below /root if it is relative.
func (d *debian) push(file, path string) {
	d.t.Helper()
	if !filepath.IsAbs(path) {
		path = "/root/" + path
	}
	d.client("file", "push", file, d.name+path)
}

// client runs LXD's command line.
func (d *debian) client(args ...string) {
	d.t.Helper()
	cmd := exec.Command("lxc", args...)
	cmd.Env = append(os.Environ(), d.lxc...)
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("lxc %q: %v: %s", args, err, out)
	}
}

// try runs a command of a shell in the container, as root.
func (d *debian) try(command string) (string, error) {
	cmd := exec.Command("lxc", "exec", d.name, "--", "sh", "-c", command)
	cmd.Env = append(os.Environ(), d.lxc...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// do is try for what must work.
func (d *debian) do(command string) string {
	d.t.Helper()
	out, err := d.try(command)
	if err != nil {
		journal, _ := d.try("journalctl -n 40 --no-pager")
		d.t.Fatalf("# %s\n%s\n%v\n%s", command, out, err, journal)
	}
	return out
}

// install installs both packages of a release, over whatever is there.
func (d *debian) install(dir, number string) {
	d.t.Helper()
	for _, name := range []string{"leasehold", "leasehold-agent"} {
		d.push(filepath.Join(dir, name+"_"+number+"_"+runtime.GOARCH+".deb"), name+".deb")
	}
	d.do("dpkg -i /root/leasehold.deb /root/leasehold-agent.deb")
	if out := d.do("leasehold --version; leasehold-agent --version"); strings.Count(out, number) != 2 {
		d.t.Errorf("programs of %s are %s", number, out)
	}
}

// running is what must outlive a change of packages: the workloads' processes, and the instances.
func (d *debian) running() string {
	d.t.Helper()
	return d.do("pgrep -a sleep | grep -E ' 70707[0-9]$'; leasehold instance list -o json | grep -E '\"(id|instance)\"'")
}

// part is the process of a part of the server.
func (d *debian) part(name string) string {
	d.t.Helper()
	return d.do(pgrep(name))
}

// pgrep looks for a part of the server. The shell that runs it has another command line.
func pgrep(part string) string {
	return fmt.Sprintf("pgrep -f -- '--part=[%s]%s'", part[:1], part[1:])
}

// The packages in a Debian with systemd: installed, upgraded from the release before, downgraded,
// removed and purged, with a server and an agent of the packages, and with workloads that outlive
// all of it. systemd and the server's supervisor start again what hangs, and nothing beside it.
//
// proves DAY-4, DAY-1
func TestPackagesInDebian(t *testing.T) {
	old, now := buildPackages(t, "v0.8.0", runtime.GOARCH), buildPackages(t, "v0.9.0", runtime.GOARCH)
	d := newDebian(t)
	d.install(old, "0.8.0")
	out, _ := d.try("systemctl is-enabled leasehold-server leasehold-coordinator leasehold-agent")
	if strings.Contains(out, "enabled") {
		t.Errorf("an installation enables: %s", out)
	}
	for path, want := range map[string]string{
		"/etc/leasehold": "root leasehold 750", "/var/lib/leasehold": "leasehold leasehold 750",
		"/etc/leasehold/server.env": "root root 640", "/etc/leasehold-agent": "root root 700",
		"/var/lib/leasehold-agent": "root root 700",
	} {
		if got := d.do("stat -c '%U %G %a' " + path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	d.do("bash -c '. /usr/share/bash-completion/completions/leasehold; complete -p leasehold'")
	d.do("zcat /usr/share/man/man1/leasehold.1.gz /usr/share/man/man1/leasehold-agent.1.gz | grep -q NAME")

	// As docs/production.md says: set up by hand, then a service.
	d.do("echo 'LEASEHOLD_FLAGS=--hang-limit 8s' >/etc/leasehold/server.env")
	d.do(`runuser -u leasehold -- leasehold server --name a --init --address 127.0.0.1 --bind 127.0.0.1 >/tmp/init 2>&1 &
		until grep -q ^ready /tmp/init; do kill -0 $! || { cat /tmp/init; exit 1; }; sleep 0.1; done
		pkill -INT -o -x leasehold; wait $!; true`)
	d.do("systemctl enable --now leasehold-server")
	d.do("leasehold status")
	d.do(`cat >/root/web.yaml <<'END'
name: web
size: 2
provider: process
workload: {run: [sleep, "707070"]}
END
cat >/root/rack.yaml <<'END'
name: rack
provider: none
workload: {run: [sleep, "707071"]}
END
leasehold group apply -f /root/web.yaml -f /root/rack.yaml --wait --timeout 2m`)
	d.do("leasehold instance bootstrap --new -g rack -o json >/root/machine.json")
	var machine struct{ Bootstrap json.RawMessage }
	if err := json.Unmarshal([]byte(d.do("cat /root/machine.json")), &machine); err != nil {
		t.Fatal(err)
	}
	d.do("umask 077; cat >/etc/leasehold-agent/bootstrap.json <<'END'\n" + string(machine.Bootstrap) + "\nEND\n")
	d.do("systemctl enable --now leasehold-agent")
	d.await("the agent of the package to run its workload", func() bool {
		out, _ := d.try("pgrep -f '^sleep 707071'")
		return out != ""
	})
	work := d.running()
	if strings.Count(work, "sleep 70707") != 3 {
		t.Fatalf("not all workloads run: %s", work)
	}
	same := func(after string) {
		t.Helper()
		d.await("both units to be active "+after, func() bool {
			out, _ := d.try("systemctl is-active leasehold-server leasehold-agent")
			return out == "active\nactive"
		})
		if got := d.running(); got != work {
			t.Errorf("%s: there are\n%s\nand were\n%s", after, got, work)
		}
	}
	pids := func() string {
		return d.do("systemctl show -p MainPID leasehold-server leasehold-agent")
	}
	d.scores()
	for _, change := range []struct{ dir, number, what string }{
		{now, "0.9.0", "after the upgrade"}, {old, "0.8.0", "after the downgrade"}, {now, "0.9.0", "after another upgrade"},
	} {
		before := pids()
		d.install(change.dir, change.number)
		same(change.what)
		if pids() == before {
			t.Errorf("%s: nothing was restarted: %s", change.what, before)
		}
		if got := d.do("cat /etc/leasehold/server.env"); !strings.Contains(got, "hang-limit") {
			t.Errorf("%s: settings were overwritten: %s", change.what, got)
		}
	}

	// One part hangs, then the other; then the supervisor is killed, and at last hangs itself.
	for i, name := range []string{"member", "replica"} {
		hangs, other := d.part(name), d.part([]string{"replica", "member"}[i])
		d.do("kill -STOP " + hangs)
		d.await("another "+name, func() bool {
			out, err := d.try(pgrep(name))
			return err == nil && out != hangs
		})
		if got := d.part([]string{"replica", "member"}[i]); got != other {
			t.Errorf("the %s hung, and the other part was started again", name)
		}
		d.await("the server to work", func() bool { _, err := d.try("leasehold status --timeout 5s"); return err == nil })
	}
	for _, signal := range []string{"KILL", "STOP"} {
		d.do(`dir=/run/systemd/system/leasehold-server.service.d; mkdir -p $dir
			printf '[Service]\nWatchdogSec=8\nTimeoutAbortSec=2\n' >$dir/test.conf
			systemctl daemon-reload; systemctl restart leasehold-server`)
		before := d.part("member")
		d.do("kill -" + signal + " $(systemctl show -P MainPID leasehold-server)")
		d.await("another server after "+signal, func() bool {
			out, err := d.try(pgrep("member"))
			return err == nil && out != before
		})
		d.await("the server to work", func() bool { _, err := d.try("leasehold status --timeout 5s"); return err == nil })
		same("after the supervisor got " + signal)
	}

	d.do("dpkg -r leasehold-agent leasehold")
	out, _ = d.try("systemctl is-active leasehold-server leasehold-agent; ls /usr/bin/leasehold*")
	if strings.Contains("\n"+out+"\n", "\nactive\n") || strings.Contains(out, "/usr/bin/leasehold\n") {
		t.Errorf("after the removal: %s", out)
	}
	if n := strings.Count(d.do("pgrep -a sleep"), "sleep 70707"); n != 3 {
		t.Errorf("%d workloads run after the removal", n)
	}
	d.do("dpkg -P leasehold-agent leasehold")
	d.do("test ! -e /var/lib/leasehold-agent && test ! -e /etc/leasehold/server.env")
	d.do("test -d /var/lib/leasehold/server/etcd")
}

// scores compares what systemd-analyze says of each unit with what the page says.
func (d *debian) scores() {
	d.t.Helper()
	page, err := os.ReadFile("../../docs/packages.md")
	if err != nil {
		d.t.Fatal(err)
	}
	level := regexp.MustCompile(`(?m)Overall exposure level for (\S+): ([0-9.]+)`)
	for _, unit := range []string{"leasehold-server.service", "leasehold-coordinator.service", "leasehold-agent.service"} {
		m := level.FindStringSubmatch(d.do("systemd-analyze security --no-pager " + unit))
		if m == nil || !slices.Contains(strings.Split(string(page), "\n"), fmt.Sprintf("| `%s` | %s |", unit, m[2])) {
			d.t.Errorf("docs/packages.md does not say of %s: %q", unit, m)
		}
	}
}
